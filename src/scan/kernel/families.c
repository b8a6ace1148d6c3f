/* SPDX-License-Identifier: Apache-2.0 */
/*
 * families.c - the table of what kernel messages mean
 *
 * The first row whose pattern fits speaks. Patterns are fr_klog_like's: * any text, % a name, @ an
 * optional "driver device: ". A row with a function lets that read the numbers of the line.
 * NONE rows keep benign lines from rows below them.
 *
 * Source: Linux sources (drivers/net/ethernet/mellanox/mlx5, drivers/pci/pcie/aer.c, drivers/edac,
 * arch/x86/kernel/cpu/mce, drivers/firmware/efi/cper.c, drivers/nvme/host, block, fs,
 * mm/oom_kill.c, kernel/hung_task.c), public tickets.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "scan/kernel/inner.h"

#define STATUS_UC  (1ull << 61) /* uncorrected */
#define STATUS_PCC (1ull << 57) /* processor context corrupt */

struct family {
    enum fr_klog_source source;
    const char *pattern;
    enum fr_klog_severity severity;
    enum fr_klog_action action;
    bool continuation;
    void (*read)(const char *text, struct fr_klog_event *ev);
};

/* --- what stands in a line --- */

static void off_the_bus(const char *text, struct fr_klog_event *ev)
{
    (void)text;
    ev->xid = 79;
    ev->implied = true;
}

/* "NVRM: The NVIDIA GPU 0000:82:00.0" with nothing behind it begins a record of three lines that
 * says so; with "(PCI ID: ..." on the same line it is another message. */
static void maybe_off_the_bus(const char *text, struct fr_klog_event *ev)
{
    const char *p = strstr(text, "GPU ") + 4;

    p += fr_klog_pci_at(p);
    p += strspn(p, " \t\r");
    if (*p == '\0' || (*p == '\n' && strstr(p, "fallen off the bus")))
        off_the_bus(text, ev);
    else
        *ev = (struct fr_klog_event){.xid = -1, .caused_by = -1, .link = FR_KLOG_NO_LINK};
}

static void link_up(const char *text, struct fr_klog_event *ev)
{
    (void)text;
    ev->link_event = "up";
}

static void link_down(const char *text, struct fr_klog_event *ev)
{
    (void)text;
    ev->link_event = "down";
}

/* The status word of a machine check: behind "Bank n:" or "STATUS[...]:", else 16 hex digits. */
static void mce_status(const char *text, struct fr_klog_event *ev)
{
    const char *p = strstr(text, "Bank ");
    uint64_t status;

    if (p)
        p = strchr(p, ':');
    else if ((p = strstr(text, "STATUS[")))
        p = strstr(p, "]:") ? strstr(p, "]:") + 1 : NULL;
    if (!p)
        return;
    status = strtoull(p + 1, NULL, 16);
    if (status & (STATUS_UC | STATUS_PCC)) {
        ev->severity = FR_KLOG_CRITICAL;
        ev->action = FR_KLOG_INSPECT;
    }
}

/* "EDAC MC1: 262 CE ..." */
static void edac_count(const char *text, struct fr_klog_event *ev)
{
    const char *p = strchr(text, ':');
    unsigned long n = p ? strtoul(p + 1, NULL, 10) : 0;

    ev->count = n > 0 && n < UINT32_MAX ? (uint32_t)n : 1;
}

/* --- the table --- */

#define S(s) FR_KLOG_##s
#define ROW(source, pattern, severity, action, ...)                                                \
    {                                                                                              \
        S(source), pattern, S(severity), S(action), __VA_ARGS__                                    \
    }
#define MORE(source, pattern)                   ROW(source, pattern, INFO, IGNORE, true, NULL)
#define NOISE(pattern)                          ROW(NONE, pattern, INFO, IGNORE, false, NULL)
#define FIND(source, pattern, severity, action) ROW(source, pattern, severity, action, false, NULL)
#define READ(source, pattern, severity, action, fn)                                                \
    ROW(source, pattern, severity, action, false, fn)

static const struct family FAMILIES[] = {
    /* NVIDIA driver; Xid lines are taken before */
    READ(NVIDIA_DRIVER, "NVRM: The NVIDIA GPU ????:", FATAL, REBOOT, maybe_off_the_bus),
    MORE(NVIDIA_DRIVER, "NVRM: (PCI ID: *installed in this system has"),
    MORE(NVIDIA_DRIVER, "NVRM: fallen off the bus and is not responding"),
    READ(NVIDIA_DRIVER, "NVRM: *fallen off the bus", FATAL, REBOOT, off_the_bus),
    FIND(NVIDIA_DRIVER, "NVRM: *RmInitAdapter failed", FATAL, REBOOT),
    FIND(NVIDIA_DRIVER, "NVRM: *rm_init_adapter failed", FATAL, REBOOT),
    FIND(NVIDIA_DRIVER, "NVRM: *probe routine failed", FATAL, REBOOT),
    FIND(NVIDIA_DRIVER, "NVRM: None of the NVIDIA *initialized", FATAL, REBOOT),
    FIND(NVIDIA_DRIVER, "nvidia: probe of *failed with error", FATAL, REBOOT),
    FIND(NVIDIA_DRIVER, "nvidia ????:??:??.?: probe with driver nvidia failed", FATAL, REBOOT),
    FIND(NVIDIA_DRIVER, "NVRM: *Rate limiting GSP RPC error prints", CRITICAL, RESET_GPU),
    FIND(NVIDIA_DRIVER, "NVRM: *PMU*halted", CRITICAL, RESET_GPU),
    FIND(NVIDIA_DRIVER, "NVRM: *RxDet", WARNING, MONITOR),
    FIND(NVIDIA_DRIVER, "NVRM: *Rx Det", WARNING, MONITOR),
    FIND(NVIDIA_DRIVER, "nvidia-peermem*invalid context", WARNING, MONITOR),
    FIND(NVIDIA_DRIVER, "nvidia_peermem*invalid context", WARNING, MONITOR),
    FIND(NVIDIA_DRIVER, "nv_peer_mem*invalid context", WARNING, MONITOR),
    NOISE("NVRM:"),

    /* a queue that no longer sends, whoever drives it */
    FIND(NETDEV, "NETDEV WATCHDOG: *transmit queue *timed out", WARNING, MONITOR),
    FIND(NETDEV, "@NETDEV WATCHDOG: *transmit queue *timed out", WARNING, MONITOR),
    FIND(NETDEV, "@TX timeout detected", WARNING, MONITOR),

    /* PCIe: before the drivers, whose tag such lines bear */
    FIND(PCIE_AER, "@AER: Uncorrect*(Non-Fatal) error", CRITICAL, INSPECT),
    FIND(PCIE_AER, "@AER: Multiple Uncorrect*(Non-Fatal) error", CRITICAL, INSPECT),
    FIND(PCIE_AER, "@AER: Uncorrect*(Fatal) error", FATAL, INSPECT),
    FIND(PCIE_AER, "@AER: Multiple Uncorrect*(Fatal) error", FATAL, INSPECT),
    FIND(PCIE_AER, "@AER: *severity=Uncorrected (Non-Fatal)", CRITICAL, INSPECT),
    FIND(PCIE_AER, "@AER: *severity=Uncorrected (Fatal)", FATAL, INSPECT),
    FIND(PCIE_AER, "@PCIe Bus Error: *severity=Uncorrected (Non-Fatal)", CRITICAL, INSPECT),
    FIND(PCIE_AER, "@PCIe Bus Error: *severity=Uncorrected (Fatal)", FATAL, INSPECT),
    FIND(PCIE_AER, "@AER: Correct*error", WARNING, MONITOR),
    FIND(PCIE_AER, "@AER: Multiple Correct*error", WARNING, MONITOR),
    FIND(PCIE_AER, "@AER: *severity=Correct", WARNING, MONITOR),
    FIND(PCIE_AER, "@PCIe Bus Error: severity=Correct", WARNING, MONITOR),
    FIND(PCIE_AER, "@AER: device recovery failed", CRITICAL, INSPECT),
    MORE(PCIE_AER, "@AER: device recovery success"),
    MORE(PCIE_AER, "@AER: *can't find device of ID"),
    MORE(PCIE_AER, "@AER: *Error of this Agent"),
    MORE(PCIE_AER, "@Error of this Agent"),
    MORE(PCIE_AER, "@*device [????:????] error status/mask="),
    MORE(PCIE_AER, "@AER:   TLP Header:"),
    MORE(PCIE_AER, "@*TLP Header:"),
    MORE(PCIE_AER, "@aer_status:"),
    MORE(PCIE_AER, "@aer_layer="),
    MORE(PCIE_AER, "@aer_uncor_severity:"),
    FIND(PCIE_AER, "@DPC: unmasked uncorrectable error", CRITICAL, INSPECT),
    FIND(PCIE_AER, "@DPC: containment event", CRITICAL, INSPECT),
    MORE(PCIE_AER, "@DPC: "),

    /* mlx5 */
    FIND(MLX5, "mlx5_*ACCESS_REG(*failed", INFO, IGNORE),
    FIND(MLX5, "mlx5_*ACCESS_REG*status", INFO, IGNORE),
    FIND(MLX5, "mlx5_*insufficient power", WARNING, MONITOR),
    FIND(MLX5, "mlx5_*Port module event[error]", CRITICAL, INSPECT),
    FIND(MLX5, "mlx5_*High Temperature", CRITICAL, INSPECT),
    FIND(MLX5, "mlx5_*Cable unplugged", WARNING, MONITOR),
    FIND(MLX5, "mlx5_*Cable plugged", INFO, IGNORE),
    FIND(MLX5, "mlx5_*Cable error", CRITICAL, INSPECT),
    FIND(MLX5, "mlx5_*health compromised", FATAL, REBOOT),
    FIND(MLX5, "mlx5_*unrecoverable", FATAL, INSPECT),
    FIND(MLX5, "mlx5_*timeout. Will cause a leak", FATAL, REBOOT),
    FIND(MLX5, "mlx5_*timeout, will cause a leak", FATAL, REBOOT),
    FIND(MLX5, "mlx5_*_one*failed", FATAL, INSPECT),
    FIND(MLX5, "mlx5_*probe of *failed", FATAL, INSPECT),
    FIND(MLX5, "mlx5_*probe with driver *failed", FATAL, INSPECT),
    FIND(MLX5, "mlx5_*Fatal error * detected", FATAL, REBOOT),
    READ(MLX5, "mlx5_*Link up", INFO, IGNORE, link_up),
    READ(MLX5, "mlx5_*Link down", INFO, IGNORE, link_down),
    NOISE("mlx5_"),

    /* machine checks: APEI bears a number in braces */
    FIND(APEI, "{*}[Hardware Error]: event severity: fatal", FATAL, INSPECT),
    FIND(APEI, "{*}[Hardware Error]: event severity: corrected", WARNING, MONITOR),
    FIND(APEI, "{*}[Hardware Error]: event severity: recoverable", WARNING, MONITOR),
    FIND(APEI, "{*}[Hardware Error]: event severity: ", INFO, IGNORE),
    FIND(APEI, "{*}[Hardware Error]: Hardware error from APEI", WARNING, MONITOR),
    MORE(APEI, "{*}[Hardware Error]:"),
    FIND(APEI, "Kernel panic - not syncing: Fatal hardware error", FATAL, INSPECT),
    FIND(MCE, "mce: [Hardware Error]: Machine check events logged", WARNING, MONITOR),
    READ(MCE, "mce: [Hardware Error]: CPU *Machine Check*Bank ", WARNING, MONITOR, mce_status),
    FIND(MCE, "mce: [Hardware Error]: Machine check: ", CRITICAL, INSPECT),
    MORE(MCE, "mce: [Hardware Error]:"),
    MORE(MCE, "mce: *[Hardware Error]"),
    FIND(MCE, "Kernel panic - not syncing: *machine check", FATAL, INSPECT),
    READ(MCE, "[Hardware Error]: *_STATUS[", WARNING, MONITOR, mce_status),
    FIND(MCE, "[Hardware Error]: Machine check events logged", WARNING, MONITOR),
    FIND(MCE, "[Hardware Error]: Corrected error", WARNING, MONITOR),
    FIND(MCE, "[Hardware Error]: Deferred error", WARNING, MONITOR),
    FIND(MCE, "[Hardware Error]: Uncorrected", CRITICAL, INSPECT),
    MORE(MCE, "[Hardware Error]:"),

    /* memory controllers */
    MORE(EDAC, "EDAC *HANDLING MCE"),
    READ(EDAC, "EDAC MC*: * UE ", CRITICAL, INSPECT, edac_count),
    READ(EDAC, "EDAC MC*: UE ", CRITICAL, INSPECT, edac_count),
    READ(EDAC, "EDAC MC*: * CE ", WARNING, MONITOR, edac_count),
    READ(EDAC, "EDAC MC*: CE ", WARNING, MONITOR, edac_count),
    MORE(EDAC, "EDAC *Machine Check Event"),
    MORE(EDAC, "EDAC * MC*: TSC "),
    MORE(EDAC, "EDAC * MC*: ADDR "),
    MORE(EDAC, "EDAC * MC*: MISC "),
    MORE(EDAC, "EDAC * MC*: PROCESSOR "),
    NOISE("EDAC "),

    /* disks */
    FIND(NVME, "nvme *controller is down", CRITICAL, INSPECT),
    FIND(NVME, "nvme *Removing after probe failure", CRITICAL, INSPECT),
    FIND(NVME, "nvme *Disabling device after reset failure", CRITICAL, INSPECT),
    FIND(NVME, "nvme *Device not ready", CRITICAL, INSPECT),
    FIND(NVME, "nvme *no * path", CRITICAL, INSPECT),
    FIND(NVME, "block nvme*no * path", CRITICAL, INSPECT),
    FIND(NVME, "nvme *I/O *timeout", WARNING, MONITOR),
    FIND(NVME, "nvme *QID *timeout", WARNING, MONITOR),
    FIND(NVME, "nvme*: I/O Cmd(", WARNING, MONITOR),
    FIND(NVME, "nvme*(sct 0x", WARNING, MONITOR),
    FIND(NVME, "nvme *I/O error", WARNING, MONITOR),
    FIND(BLOCK, "Buffer I/O error on dev*lost *write", CRITICAL, INSPECT),
    FIND(BLOCK, "lost page write due to", CRITICAL, INSPECT),
    FIND(BLOCK, "Buffer I/O error on", WARNING, MONITOR),
    FIND(BLOCK, "blk_update_request: *error, dev ", WARNING, MONITOR),
    FIND(BLOCK, "print_req_error: *error, dev ", WARNING, MONITOR),
    FIND(BLOCK, "end_request: *error, dev ", WARNING, MONITOR),
    FIND(BLOCK, "I/O error, dev ", WARNING, MONITOR),
    FIND(BLOCK, "critical * error, dev ", WARNING, MONITOR),
    FIND(BLOCK, "md/*Disk failure on", FATAL, DRAIN_RMA),
    FIND(BLOCK, "md: *Disk failure on", FATAL, DRAIN_RMA),
    FIND(BLOCK, "device-mapper: raid: *fail", FATAL, DRAIN_RMA),
    FIND(BLOCK, "device-mapper: multipath: *Failing path", WARNING, MONITOR),
    FIND(BLOCK, "sd *rejecting I/O to offline device", CRITICAL, INSPECT),
    FIND(BLOCK, "sd *I/O error", WARNING, MONITOR),

    /* file systems */
    FIND(FS, "EXT?-fs error", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): Remounting filesystem read-only", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): re-mounted *ro. ", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): re-mounted *ro, ", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): *I/O error", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): *previous I/O error", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): error count since last fsck", CRITICAL, INSPECT),
    FIND(FS, "EXT?-fs (*): Delayed block allocation failed", CRITICAL, INSPECT),
    FIND(FS, "Aborting journal on device", CRITICAL, INSPECT),
    FIND(FS, "JBD2: *error", CRITICAL, INSPECT),
    FIND(FS, "JBD2: *I/O error", CRITICAL, INSPECT),
    FIND(FS, "XFS (*): *corruption", CRITICAL, INSPECT),
    FIND(FS, "XFS (*): *I/O error", CRITICAL, INSPECT),
    FIND(FS, "XFS (*): *shut*down", CRITICAL, INSPECT),
    FIND(FS, "XFS (*): Internal error", CRITICAL, INSPECT),
    FIND(FS, "BTRFS error", CRITICAL, INSPECT),
    FIND(FS, "BTRFS critical", CRITICAL, INSPECT),
    FIND(FS, "BTRFS: error", CRITICAL, INSPECT),
    FIND(FS, "BTRFS *forced readonly", CRITICAL, INSPECT),
    FIND(FS, "FAT-fs (*): error", CRITICAL, INSPECT),
    FIND(FS, "% filesystem read-only", CRITICAL, INSPECT),

    /* memory that ran out */
    FIND(OOM, "Out of memory: Kill", WARNING, RESTART_APP),
    FIND(OOM, "Out of memory (oom_kill_allocating_task)", WARNING, RESTART_APP),
    FIND(OOM, "Memory cgroup out of memory", WARNING, RESTART_APP),
    FIND(OOM, "% invoked oom-killer:", WARNING, RESTART_APP),
    FIND(OOM, "oom-kill:", WARNING, RESTART_APP),
    FIND(OOM, "oom_reaper: reaped", WARNING, RESTART_APP),
    FIND(OOM, "Killed process *total-vm:", WARNING, RESTART_APP),
    FIND(OOM, "Task in *killed as a result of limit", WARNING, RESTART_APP),

    /* processes that stand or fall */
    FIND(HUNG_TASK, "INFO: task *blocked for more than", WARNING, MONITOR),
    MORE(HUNG_TASK, "\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\""),
    FIND(HUNG_TASK, "watchdog: BUG: soft lockup", WARNING, MONITOR),
    FIND(HUNG_TASK, "BUG: soft lockup", WARNING, MONITOR),
    FIND(HUNG_TASK, "rcu: INFO: rcu_*stall", WARNING, MONITOR),
    FIND(HUNG_TASK, "INFO: rcu_*stall", WARNING, MONITOR),
    FIND(SEGFAULT, "%]: segfault at ", WARNING, RESTART_APP),
    FIND(SEGFAULT, "traps: *general protection", WARNING, RESTART_APP),
    FIND(SEGFAULT, "traps: *trap ", WARNING, RESTART_APP),
    FIND(SEGFAULT, "%] general protection ip:", WARNING, RESTART_APP),
    FIND(SEGFAULT, "%] trap * ip:", WARNING, RESTART_APP),

    /* limits; a panic is the end of the node for now */
    FIND(OS, "VFS: file-max limit", WARNING, INSPECT),
    FIND(OS, "nf_conntrack: *table full", WARNING, INSPECT),
    FIND(OS, "neighbour: *table overflow", WARNING, INSPECT),
    FIND(OS, "neighbor table overflow", WARNING, INSPECT),
    FIND(OS, "cgroup: fork rejected by pids controller", WARNING, INSPECT),
    FIND(OS, "TCP: out of memory", WARNING, INSPECT),
    FIND(OS, "Kernel panic - not syncing", FATAL, REBOOT),
};

/* "pcieport 0000:00:1c.5:    [ 0] RxErr  (First)": a bit of the record before. */
static bool is_aer_bit(const char *text)
{
    const char *p = strchr(text, '[');

    return p && p > text + 10 && p[-1] == ' ' && fr_klog_like(text, "@[") &&
           isdigit((unsigned char)p[1 + strspn(p + 1, " ")]);
}

static void nothing(struct fr_klog_event *ev)
{
    *ev = (struct fr_klog_event){.xid = -1, .caused_by = -1, .link = FR_KLOG_NO_LINK};
}

static void by_family(const char *text, bool untagged, struct fr_klog_event *ev)
{
    for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++) {
        const struct family *f = &FAMILIES[i];

        if ((untagged && f->pattern[0] == '%') || !fr_klog_like(text, f->pattern))
            continue;
        ev->source = f->source;
        ev->severity = f->severity;
        ev->action = f->action;
        ev->continuation = f->continuation;
        if (f->source == FR_KLOG_NONE)
            return;
        fr_klog_pci(text, ev->pci);
        if (f->read)
            f->read(text, ev);
        return;
    }
    if (is_aer_bit(text)) {
        ev->source = FR_KLOG_PCIE_AER;
        ev->continuation = true;
        fr_klog_pci(text, ev->pci);
    }
}

static void by_message(const char *text, bool untagged, const struct fr_klog_codes *codes,
                       struct fr_klog_event *ev)
{
    if (fr_klog_like(text, "NVRM: Xid (")) {
        ev->source = FR_KLOG_NVIDIA_XID;
        fr_klog_xid(text, codes, ev);
    } else if (fr_klog_like(text, "nvidia-nvswitch*: SXid (")) {
        ev->source = FR_KLOG_NVSWITCH_SXID;
        fr_klog_sxid(text, codes, ev);
    } else {
        by_family(text, untagged, ev);
    }
}

void fr_klog_read(const char *line, size_t n, const struct fr_klog_codes *codes,
                  struct fr_klog_event *ret)
{
    char buf[FR_KLOG_BYTES + 1];
    struct fr_klog_prefix x;
    char *text;

    nothing(ret);
    n = n < FR_KLOG_BYTES ? n : FR_KLOG_BYTES;
    for (size_t i = 0; i < n; i++)
        buf[i] = line[i] ? line[i] : ' ';
    buf[n] = '\0';
    text = fr_klog_strip(buf, &x);
    if (x.foreign)
        return;
    by_message(text, x.untagged, codes, ret);
    if (ret->source == FR_KLOG_NONE && x.untagged) { /* the word after the date may be the host */
        nothing(ret);
        text += strcspn(text, " \t");
        by_message(text + strspn(text, " \t"), true, codes, ret);
    }
    if (ret->source != FR_KLOG_NONE && x.count && !ret->count)
        ret->count = x.count;
}

/* --- names --- */

const char *fr_klog_source_name(enum fr_klog_source s)
{
    static const char *const NAMES[FR_KLOG_SOURCES] = {
        "none",     "nvidia_xid", "nvidia_driver", "nvswitch_sxid", "mlx5",    "netdev",
        "pcie_aer", "mce",        "edac",          "apei",          "nvme",    "block",
        "fs",       "os",         "oom",           "hung_task",     "segfault"};

    return (unsigned)s < FR_KLOG_SOURCES ? NAMES[s] : "?";
}

const char *fr_klog_severity_name(enum fr_klog_severity s)
{
    static const char *const NAMES[] = {"info", "warning", "critical", "fatal"};

    return (unsigned)s < FR_KLOG_BY_TEXT ? NAMES[s] : "?";
}

const char *fr_klog_action_name(enum fr_klog_action a)
{
    static const char *const NAMES[FR_KLOG_ACTIONS] = {"ignore",    "monitor",   "restart_app",
                                                       "reset_gpu", "reboot",    "inspect",
                                                       "drain_rma", "follow_154"};

    return (unsigned)a < FR_KLOG_ACTIONS ? NAMES[a] : "?";
}
