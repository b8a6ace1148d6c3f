/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kernel.c - kernel messages behind every prefix, codes of NVIDIA's drivers, a site's changes
 *
 * Expected values: the rules of the families, read off the drivers' sources and NVIDIA's catalogue
 * by hand, and (where the folder is there) the published samples with their answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "scan/kernel/kernel.h"

struct row {
    const char *message, *source, *pci, *severity, *action;
    int xid;
    bool continuation;
    unsigned count;
};

#define XID "NVRM: Xid (PCI:0000:3B:00): "

static const struct row ROWS[] = {
    {XID "48, pid=1, name=x, DBE", "nvidia_xid", "0000:3b:00.0", "critical", "reset_gpu", 48},
    {XID "79", "nvidia_xid", "0000:3b:00.0", "fatal", "reboot", 79},
    {XID "64, Failed to remap", "nvidia_xid", "0000:3b:00.0", "fatal", "drain_rma", 64},
    {XID "999, what is this", "nvidia_xid", "0000:3b:00.0", "warning", "monitor", 999},
    {XID "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
     "nvidia_xid", "0000:3b:00.0", "info", "ignore", 154},
    {XID "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
     "nvidia_xid", "0000:3b:00.0", "critical", "reboot", 154},
    {XID "154, GPU recovery action changed from 0x2 (Node Reboot Required) to 0x3 (Drain P2P)",
     "nvidia_xid", "0000:3b:00.0", "warning", "monitor", 154},
    {XID "45, pid=7, name=a b: c, Ch 00000008", "nvidia_xid", "0000:3b:00.0", "info", "ignore", 45},
    {XID "45, pid=7, name=x, Ch 1 caused by previous Xid 79", "nvidia_xid", "0000:3b:00.0", "fatal",
     "reboot", 45},
    /* sub-code tables: an error status that is harmless, and the same unit with a grave one */
    {XID "144, SAW_MVB Fatal XC0 i0 Link 02 (0x00000021 0x00000004 0x0 0x0 0x0 0x0)", "nvidia_xid",
     "0000:3b:00.0", "info", "ignore", 144},
    {XID "144, SAW_MVB Nonfatal XC0 i0 Link 02 (0x00000021 0x00000002 0x0 0x0 0x0 0x0)",
     "nvidia_xid", "0000:3b:00.0", "critical", "reset_gpu", 144},
    {XID "147, TREX Nonfatal XC0 i0 Link -1 (0xffffffff 0x80000000 0x0 0x0 0x0 0x0)", "nvidia_xid",
     "0000:3b:00.0", "warning", "monitor", 147},
    {XID "149, NETIR_LINK_EVT Fatal XC0 i1 Link 01 (0x021001c6 0x0 0x0 0x0 0x0 0x0)", "nvidia_xid",
     "0000:3b:00.0", "info", "ignore", 149}, /* injected by a tester */
    {"NVRM: Xid (PCI:0000:3b", "nvidia_xid", "", "warning", "monitor", -1},
    {"NVRM: Xid (0018:01:00): 31, Ch 1", "nvidia_xid", "0018:01:00.0", "critical", "restart_app",
     31},
    {"NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", "nvidia_driver", "0000:29:00.0",
     "fatal", "reboot", 79},
    {"NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b80)", "none", "", "info", "ignore", -1},
    {"NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x40:2387)", "nvidia_driver",
     "0000:3b:00.0", "fatal", "reboot", -1},
    {"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15", "none", "", "info", "ignore", -1},
    {"NVRM: GPU at PCI:0000:3b:00: GPU-6d5cb7a1-0000-1111-2222-333344445555", "none", "", "info",
     "ignore", -1},
    {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013, Fatal, Link 00 Minion Link DLREQ interrupt",
     "nvswitch_sxid", "0000:c1:00.0", "warning", "monitor", 22013},
    {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 03 multicast crumbstore "
     "timeout",
     "nvswitch_sxid", "0000:c1:00.0", "warning", "monitor", 28006},
    {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Severity 1 Engine instance 30 Sub-engine "
     "instance 00",
     "nvswitch_sxid", "0000:c1:00.0", "info", "ignore", 20034, true},
    {"mlx5_core 0000:5c:00.0 ibs1: Link up", "mlx5", "0000:5c:00.0", "info", "ignore", -1},
    {"mlx5_core 0000:17:00.0: Port module event: module 0, Cable unplugged", "mlx5", "0000:17:00.0",
     "warning", "monitor", -1},
    {"mlx5_core 0000:17:00.0: mlx5_pcie_event:299:(pid 255): Detected insufficient power on the "
     "PCIe "
     "slot (27W).",
     "mlx5", "0000:17:00.0", "warning", "monitor", -1},
    {"mlx5_core 0000:17:00.0: wait_func:1195:(pid 967): ENABLE_HCA(0x104) timeout. Will cause a "
     "leak "
     "of a command resource",
     "mlx5", "0000:17:00.0", "fatal", "reboot", -1},
    {"mlx5_core 0000:17:00.0: probe_one:1764:(pid 1): mlx5_init_one failed with error code -110",
     "mlx5", "0000:17:00.0", "fatal", "inspect", -1},
    {"mlx5_core 0000:17:00.0: firmware version: 28.39.1002", "none", "", "info", "ignore", -1},
    {"mlx5_core 0000:17:00.0 eth2: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5001 ms",
     "netdev", "0000:17:00.0", "warning", "monitor", -1},
    {"pcieport 0000:16:00.0: AER: Uncorrected (Fatal) error received: 0000:16:00.0", "pcie_aer",
     "0000:16:00.0", "fatal", "inspect", -1},
    {"nvme 0000:e1:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
     "pcie_aer", "0000:e1:00.0", "critical", "inspect", -1},
    {"pcieport 0000:16:00.0:   device [8086:2030] error status/mask=00000001/00002000", "pcie_aer",
     "0000:16:00.0", "info", "ignore", -1, true},
    {"pcieport 0000:16:00.0:    [ 0] RxErr                  (First)", "pcie_aer", "0000:16:00.0",
     "info", "ignore", -1, true},
    {"pcieport 0000:16:00.0: AER: enabled with IRQ 25", "none", "", "info", "ignore", -1},
    {"mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 5: be00000000800400", "mce", "",
     "critical", "inspect", -1},
    {"mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 7: 8c00004000010090", "mce", "",
     "warning", "monitor", -1},
    {"mce: [Hardware Error]: TSC 0 ADDR 1234 MISC 86", "mce", "", "info", "ignore", -1, true},
    {"{7}[Hardware Error]: event severity: fatal", "apei", "", "fatal", "inspect", -1},
    {"{7}[Hardware Error]:   section_type: memory error", "apei", "", "info", "ignore", -1, true},
    {"EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0", "edac", "", "critical",
     "inspect", -1, false, 1},
    {"EDAC sbridge MC0: HANDLING MCE MEMORY ERROR", "edac", "", "info", "ignore", -1, true},
    {"EDAC MC0: Giving out device to module i10nm_edac controller", "none", "", "info", "ignore",
     -1},
    {"nvme nvme2: I/O 12 QID 3 timeout, aborting", "nvme", "", "warning", "monitor", -1},
    {"nvme nvme2: Shutdown timeout set to 10 seconds", "none", "", "info", "ignore", -1},
    {"blk_update_request: I/O error, dev sdb, sector 1234 op 0x0:(READ)", "block", "", "warning",
     "monitor", -1},
    {"md/raid1:md127: Disk failure on nvme1n1p1, disabling device.", "block", "", "fatal",
     "drain_rma", -1},
    {"EXT4-fs error (device sda2): ext4_find_entry:1455: inode #1: comm ls", "fs", "", "critical",
     "inspect", -1},
    {"EXT4-fs (sda2): mounted filesystem 0f3c ro with ordered data mode", "none", "", "info",
     "ignore", -1},
    {"XFS (dm-3): Metadata corruption detected at xfs_agf_read_verify", "fs", "", "critical",
     "inspect", -1},
    {"python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", "oom", "", "warning",
     "restart_app", -1},
    {"Out of memory: Killed process 33 (java) total-vm:1kB", "oom", "", "warning", "restart_app",
     -1},
    {"INFO: task kworker/u64:1:99 blocked for more than 120 seconds.", "hung_task", "", "warning",
     "monitor", -1},
    {"VFS: file-max limit 65536 reached", "os", "", "warning", "inspect", -1},
    {"python3[4242]: segfault at 0 ip 00007f sp 00007ffd error 4 in libc.so.6[7f+1]", "segfault",
     "", "warning", "restart_app", -1},
    {"usb 1-1: new high-speed USB device number 3 using xhci_hcd", "none", "", "info", "ignore",
     -1},
    {"", "none", "", "info", "ignore", -1},
};

enum { NROWS = sizeof ROWS / sizeof ROWS[0] };

static struct fr_klog_event verdict(const char *line)
{
    struct fr_klog_event e;

    fr_klog_read(line, strlen(line), NULL, &e);
    return e;
}

static void expect(const char *line, const struct row *r)
{
    struct fr_klog_event e = verdict(line);

    if (strcmp(fr_klog_source_name(e.source), r->source) != 0 || strcmp(e.pci, r->pci) != 0 ||
        strcmp(fr_klog_severity_name(e.severity), r->severity) != 0 ||
        strcmp(fr_klog_action_name(e.action), r->action) != 0 || e.xid != r->xid ||
        e.continuation != r->continuation)
        fail_msg("%s\n  gave %s %d '%s' %s %s%s", line, fr_klog_source_name(e.source), e.xid, e.pci,
                 fr_klog_severity_name(e.severity), fr_klog_action_name(e.action),
                 e.continuation ? " continuation" : "");
    if (r->count)
        assert_int_equal(e.count, r->count);
}

static void each_family_gets_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < NROWS; i++)
        expect(ROWS[i].message, &ROWS[i]);
}

/* Whatever logger wrote the line, the verdict is that of the bare message. */
static void the_verdict_is_the_same_behind_every_prefix(void **state)
{
    static const char *const PREFIXES[] = {"[12345.678901] ",
                                           "[    0.000000] ",
                                           "[12345.678901][  T291] ",
                                           "[12345.678901] [ C12] ",
                                           "[Mon Jul 25 16:46:04 2022] ",
                                           "Feb 14 05:03:41 node-17.cluster kernel: ",
                                           "Feb  4 05:03:41 kernel: ",
                                           "Sep 19 16:18:02 host kernel: [68183.615790] ",
                                           "2025-01-21T04:41:44.283302+00:00 host kernel: [ 1.5] ",
                                           "2025-01-21 04:41:44 host kernel: ",
                                           "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ",
                                           "kern  :err   : [  12.5] ",
                                           "<3>",
                                           "<4>[  12.500000] ",
                                           "6,1234,5678901,-;",
                                           "3,99,100,c,caller=T55;",
                                           "kwi 12 00:48:02 h kernel: ",
                                           "janv. 12 00:48:02 h kernel: ",
                                           "  \t",
                                           "kernel: ",
                                           "node2 kernel: ",
                                           "node2: [ 1234.500000] ",
                                           "[Sun Dec  1 14:54:40 2024] node2 kernel: ",
                                           "kernel: [   17.982092] ",
                                           "\xef\xbb\xbf[1.5] "};
    char line[1024];

    (void)state;
    for (size_t p = 0; p < sizeof PREFIXES / sizeof PREFIXES[0]; p++)
        for (size_t i = 0; i < NROWS; i++) {
            snprintf(line, sizeof line, "%s%s", PREFIXES[p], ROWS[i].message);
            expect(line, &ROWS[i]);
        }
    for (size_t i = 0; i < NROWS; i++) {
        struct row r = ROWS[i];

        r.count = r.count || strcmp(r.source, "none") == 0 ? r.count : 3;
        snprintf(line, sizeof line, "Feb 1 05:03:41 h kernel: message repeated 3 times: [ %s]",
                 r.message);
        expect(line, &r);
    }
}

/* What a program writes is not the kernel's word, whatever it quotes. */
static void quoted_text_is_nobodys_fault(void **state)
{
    static const char *const LINES[] = {
        "Feb 14 05:03:41 h dcgm-exporter[12]: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off",
        "Feb 14 05:03:41 h kubelet[12]: python3 invoked oom-killer: gfp_mask=0x1",
        "dcgm: saw \"NVRM: Xid (PCI:0000:3b:00): 79\"",
        "user  :err   : 2025-01-21T04:41:44,2+00:00 NVRM: Xid (PCI:0000:3b:00): 79, x",
        "<11>NVRM: Xid (PCI:0000:3b:00): 79, x",
        "12,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79, x", /* what a user wrote to /dev/kmsg */
        "node-problem-detector: kernel: NVRM: Xid (PCI:0000:3b:00): 79, x",
        " SUBSYSTEM=pci",
    };

    (void)state;
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++)
        if (verdict(LINES[i]).source != FR_KLOG_NONE)
            fail_msg("%s", LINES[i]);
}

static void numbers_of_the_line_are_read(void **state)
{
    (void)state;
    assert_int_equal(verdict(XID "45, Ch 1 caused by previous Xid 149").caused_by, 149);
    assert_int_equal(verdict(XID "145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x1 0x2)").link, 13);
    assert_int_equal(verdict(XID "147, TREX Nonfatal XC0 i0 Link -1 (0x1 0x2)").link, -1);
    assert_int_equal(verdict(XID "79").link, FR_KLOG_NO_LINK);
    assert_int_equal(verdict("EDAC MC1: 262 CE memory read error on X").count, 262);
    assert_true(verdict("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.").implied);
    assert_string_equal(verdict("mlx5_core 0000:1d:00.0 eth1: Link down").link_event, "down");
    /* raw kmsg escapes a line break; the record is one */
    assert_int_equal(verdict("3,1,2,-;NVRM: The NVIDIA GPU 0000:82:00.0\\x0aNVRM: (PCI ID: "
                             "10de:26b5) installed in this system has\\x0aNVRM: fallen off the bus "
                             "and is not responding to commands.")
                         .xid,
                     79);
}

static void a_site_changes_what_a_code_means(void **state)
{
    static const char FILE_TEXT[] =
        "# ours\nxid 43 warning monitor\nsxid 20034 fatal inspect # x\n\n"
        "xid 45 fatal reboot\nxid 43 info ignore\n";
    static const char *const BAD[] = {"xid 43 warning\n",        "xid x warning monitor\n",
                                      "xid 43 grave monitor\n",  "xid 43 warning dance\n",
                                      "id 43 warning monitor\n", "xid 1 info ignore more\n"};
    struct fr_klog_codes *c = NULL;
    struct fr_klog_event e;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(fr_klog_codes_parse(FILE_TEXT, sizeof FILE_TEXT - 1, "site", &c, &err), 0);
    fr_klog_read(XID "43", sizeof XID + 1, c, &e);
    assert_int_equal(e.severity, FR_KLOG_INFO); /* the last line wins */
    fr_klog_read(XID "79", sizeof XID + 1, c, &e);
    assert_int_equal(e.severity, FR_KLOG_FATAL);
    fr_klog_codes_free(c);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fr_klog_codes_parse(BAD[i], strlen(BAD[i]), "site", &c, &err), -22);
        assert_non_null(strstr(err.text, "site:1:"));
    }
}

/* No bytes crash the reader, and no critical verdict comes from noise. */
static void random_and_cut_lines_are_survived(void **state)
{
    struct fr_rng r = {7};

    (void)state;
    for (int k = 0; k < 200000; k++) {
        const struct row *row = &ROWS[fr_rng_below(&r, NROWS)];
        size_t n = strlen(row->message);
        char line[600];
        struct fr_klog_event e;

        memcpy(line, row->message, n);
        for (int i = (int)fr_rng_below(&r, 4); i > 0 && n; i--)
            line[fr_rng_below(&r, n)] = (char)fr_rng_below(&r, 256);
        fr_klog_read(line, n ? fr_rng_below(&r, n + 1) : 0, NULL, &e);
        assert_true(e.source < FR_KLOG_SOURCES && e.severity < FR_KLOG_BY_TEXT);
        for (size_t i = 0; i < n; i++)
            line[i] = (char)fr_rng_below(&r, 256);
        fr_klog_read(line, n, NULL, &e);
        assert_true(e.severity < FR_KLOG_CRITICAL);
    }
}

static void the_published_samples_are_all_right(void **state)
{
    const char *shared = getenv("FULLRANK_SHARED");
    struct fr_buf b = FR_BUF_INIT;
    char path[512];
    int n = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/reference/kernel-log-samples.jsonl",
             shared ? shared : FR_SOURCE_DIR "/../shared");
    if (fr_fs_read(path, 1u << 20, &b, NULL) < 0) {
        print_message("skipped: no kernel-log-samples.jsonl (FULLRANK_SHARED names its folder)\n");
        skip();
    }
    for (char *p = b.p, *lf; p < b.p + b.len && (lf = strchr(p, '\n')); p = lf + 1, n++) {
        struct fr_json *j = NULL;
        const struct fr_json *want;
        const char *line;
        struct fr_klog_event e;

        assert_int_equal(fr_json_parse(p, (size_t)(lf - p), &j, NULL), 0);
        line = fr_json_str(j, "line", "");
        want = fr_json_get(j, "expect");
        fr_klog_read(line, strlen(line), NULL, &e);
        assert_string_equal(fr_klog_source_name(e.source), fr_json_str(want, "source", ""));
        assert_string_equal(fr_klog_severity_name(e.severity), fr_json_str(want, "severity", ""));
        assert_string_equal(fr_klog_action_name(e.action), fr_json_str(want, "action", ""));
        assert_string_equal(e.pci, fr_json_str(want, "pci", ""));
        assert_int_equal(e.xid, (int)fr_json_num(want, "xid", -1));
        assert_int_equal(e.link, (int)fr_json_num(j, "link", (double)FR_KLOG_NO_LINK));
        assert_int_equal(e.count, (int)fr_json_num(j, "count", 0));
        fr_json_freep(&j);
    }
    assert_int_equal(n, 40);
    fr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_gets_its_verdict),
        cmocka_unit_test(the_verdict_is_the_same_behind_every_prefix),
        cmocka_unit_test(quoted_text_is_nobodys_fault),
        cmocka_unit_test(numbers_of_the_line_are_read),
        cmocka_unit_test(a_site_changes_what_a_code_means),
        cmocka_unit_test(random_and_cut_lines_are_survived),
        cmocka_unit_test(the_published_samples_are_all_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
