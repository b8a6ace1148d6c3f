/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_log_lines.h - lines as other releases and other sites print them, with what they must be
 *
 * Written for this test after the message formats of PyTorch 1.9 to 2.10, NCCL 2.8 to 2.30, Gloo,
 * Open MPI 4 and 5, PRRTE, MPICH, Intel MPI, Slurm 20 to 25, CUDA 11 to 13, Ray, kubectl and the
 * kernel; hosts, addresses and numbers are made up. rank -2: not checked.
 */
#include <stdint.h>

struct case_line {
    const char *text, *family, *blame, *signature, *action;
    int64_t rank;
    const char *host, *peer; /* NULL: not checked */
};

static const struct case_line LINES[] = {
    /* PyTorch: no SeqNum (1.9), PG number (2.2), GUID (2.4), sequence id (2.6) */
    {"[E ProcessGroupNCCL.cpp:587] [Rank 0] Watchdog caught collective operation timeout: "
     "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802710 milliseconds before timing "
     "out.",
     "torch", "unknown", "collective_timeout", "find_origin", 0, NULL, NULL},
    {"[rank12]:[E422 11:02:03.123456789 ProcessGroupNCCL.cpp:632] [PG ID 3 PG GUID 17(tp) Rank 12] "
     "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=_ALLGATHER_BASE, "
     "NumelIn=4096, NumelOut=32768, Timeout(ms)=480000) ran for 480023 milliseconds before timing "
     "out.",
     "torch", "unknown", "collective_timeout", "find_origin", 12, NULL, NULL},
    {"1: [rank1]:[E1 00:00:00.000000001 ProcessGroupNCCL.cpp:2299] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 1]"
     "  failure detected by watchdog at work sequence id: 5 PG status: last enqueued work: 5, last "
     "completed work: 4",
     "torch", "unknown", "watchdog_progress", "compare_ranks", 1, NULL, NULL},
    {"[rank9]:[E1104 03:17:14.4 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 9] "
     "Received "
     "a dump signal due to a collective timeout from  rank 7 and we will try our best to dump the "
     "debug "
     "info. Last enqueued NCCL work: 56116, last completed NCCL work: 56116.This is most likely",
     "torch", "unknown", "watchdog_progress", "compare_ranks", 9, NULL, NULL},
    {"[rank2]:[F1104 03:27:05.482 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank "
     "2] "
     "[PG ID 0 PG GUID 0(default_pg) Rank 2] Terminating the process after attempting to dump "
     "debug info, "
     "due to ProcessGroupNCCL watchdog hang.",
     "torch", "unknown", "watchdog_stuck", "find_origin", 2, NULL, NULL},
    {"[rank4]: terminate called after throwing an instance of 'c10::DistBackendError'", "torch",
     "unknown", "watchdog_teardown", "find_origin", 4, NULL, NULL},
    {"RuntimeError: Detected mismatch between collectives on ranks. Rank 3 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[10]), but Rank 0 is "
     "running "
     "collective: CollectiveFingerPrint(SequenceNumber=7, OpType=REDUCE).",
     "torch", "app", "collective_mismatch", "fix_job", -2, NULL, NULL},
    {"[E ProcessGroupGloo.cpp:138] Rank 5 successfully reached monitoredBarrier, but received "
     "errors while "
     "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
     "torch", "unknown", "collective_timeout", "find_origin", -2, NULL, NULL},
    /* CUDA, whoever prints it */
    {"[rank3]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", "cuda",
     "gpu", "gpu_memory_error", "drain_node", 3, NULL, NULL},
    {"RuntimeError: CUDA error: an illegal memory access was encountered", "cuda", "app",
     "program_error", "fix_job", -2, NULL, NULL},
    {"terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: "
     "device-side assert "
     "triggered",
     "cuda", "app", "program_error", "fix_job", -2, NULL, NULL},
    {"RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "cuda",
     "gpu", "nvlink_failure", "drain_node", -2, NULL, NULL},
    {"Error 802: system not yet initialized", "cuda", "node", "fabric_state", "fix_host", -2, NULL,
     NULL},
    {"[1,5]<stderr>:gpu-07: Test CUDA failure all_reduce.cu:55 'uncorrectable ECC error "
     "encountered'",
     "cuda", "gpu", "gpu_memory_error", "drain_node", 5, NULL, NULL},
    {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
     "capacity",
     "cuda", "app", "gpu_oom", "fix_job", -2, NULL, NULL},
    /* NCCL, network: each age of the completion line */
    {"n1:10:11 [0] transport/net_ib.cc:757 NCCL WARN NET/IB : Got completion from peer "
     "10.0.0.2<4444> with "
     "error 12, opcode 1, len 32600, vendor err 129 (Recv)",
     "nccl_net", "network", "rdma_retry_exceeded", "check_link", -2, "n1", "10.0.0.2<4444>"},
    {"[2025-11-04 03:18:40] n1:10:11 [0] transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got "
     "completion from "
     "peer 10.0.0.2<4444> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=64 "
     "vendor_err=129 req_type=Send localGid fe80::1 remoteGidsfe80::2 hca mlx5_0",
     "nccl_net", "network", "rdma_retry_exceeded", "check_link", -2, "n1", "10.0.0.2<4444>"},
    {"n1:10:11 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4444> with status=5 "
     "opcode=0 len=0 "
     "vendor err 249 (Recv) hca mlx5_2",
     "nccl_net", "unknown", "rdma_flushed", "find_origin", -2, NULL, NULL},
    {"n1:10:11 [0] transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got completion from peer "
     "10.0.0.2<4444> with "
     "status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0) vendor_err=81",
     "nccl_net", "node", "rdma_protection", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] transport/net_ib.cc:99 NCCL WARN NET/IB : mlx5_3:1 Got async fatal event: local "
     "catastrophic error",
     "nccl_net", "node", "nic_dead", "drain_node", -2, NULL, NULL},
    {"n1:10:11 [0] transport/net_ib/init.cc:123 NCCL WARN NET/IB : mlx5_3:1 async fatal event: "
     "local "
     "catastrophic error",
     "nccl_net", "node", "nic_dead", "drain_node", -2, NULL, NULL},
    {"n1:10:11 [0] transport/net_ib/init.cc:179 NCCL WARN NET/IB : mlx5_3:1 Got non-fatal async "
     "event: port "
     "error(10)",
     "nccl_net", "network", "link_flap", "check_link", -2, NULL, NULL},
    {"n1:10:11 [0] transport/net_ib/init.cc:153 NCCL WARN NET/IB : mlx5_3:1 GID table changed",
     "nccl_net", "node", "address_changed", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] misc/ibvwrap.cc:200 NCCL WARN Call to ibv_modify_qp failed with error "
     "Connection timed out "
     "errno 110",
     "nccl_net", "network", "connect_failed", "check_link", -2, NULL, NULL},
    {"n1:10:11 [0] include/socket.h:403 NCCL WARN Net : Connection closed by remote peer "
     "n2.cluster<39022>",
     "nccl_net", "unknown", "peer_gone", "follow_peer", -2, NULL, "n2.cluster<39022>"},
    {"n1:10:11 [3] misc/socket.cc:46 NCCL WARN socketProgressOpt: Call to recv from "
     "10.0.0.9<35000> failed : "
     "Connection reset by peer",
     "nccl_net", "unknown", "peer_gone", "follow_peer", -2, NULL, "10.0.0.9<35000>"},
    {"n1:10:11 [3] misc/socket.cc:538 NCCL WARN socketStartConnect: Connect to 10.0.0.9<35000> "
     "failed : No "
     "route to host",
     "nccl_net", "network", "connect_failed", "check_link", -2, NULL, NULL},
    {"n1:10:11 [0] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Success", "nccl_net",
     "unknown", "proxy_failed", "find_origin", -2, NULL, NULL},
    {"n1:10:11 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found", "nccl_net",
     "node", "interface_wrong", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] bootstrap.cc:77 NCCL WARN Message truncated : received 1024,8 bytes instead of "
     "256,8",
     "nccl_net", "app", "bootstrap_failed", "fix_job", -2, NULL, NULL},
    {"ip-10-0-0-1:1:2 [0] nccl_net_ofi_cq:88 NCCL WARN NET/OFI Request 0x7f completed with error. "
     "RC: 5. "
     "Error: Unresponsive receiver",
     "nccl_net", "unknown", "transfer_failed", "find_origin", -2, NULL, NULL},
    /* NCCL, node */
    {"n1:10:11 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on "
     "device",
     "nccl_node", "node", "shm_exhausted", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] misc/shmutils.cc:90 NCCL WARN Error while creating shared memory segment "
     "/dev/shm/nccl-a "
     "(size 33030528), error: No space left on device (28)",
     "nccl_node", "node", "shm_exhausted", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] misc/shmutils.cc:113 NCCL WARN Error while attaching to shared memory segment "
     "/dev/shm/nccl-b7 (size 9637888), error: No such file or directory (2)",
     "nccl_node", "node", "shm_unreachable", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] misc/shmutils.cc:51 NCCL WARN Error: failed to open /dev/shm/nccl-b7, error: No "
     "such file or "
     "directory (2)",
     "nccl_node", "node", "shm_unreachable", "fix_host", -2, NULL, NULL},
    {"n1:10:11 [0] init.cc:1033 NCCL WARN Mismatched NCCL version detected : rank 0 version 22605 "
     "rank 8 "
     "version 22705",
     "nccl_node", "app", "version_mismatch", "fix_job", -2, NULL, NULL},
    {"n1:10:11 [0] init.cc:700 NCCL WARN Duplicate GPU detected : rank 13 and rank 12 both on CUDA "
     "device "
     "0000:1b:00.0",
     "nccl_node", "app", "gpu_assignment", "fix_job", -2, NULL, NULL},
    {"n1:10:11 [0] enqueue.cc:1500 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'",
     "nccl_node", "gpu", "gpu_memory_error", "drain_node", -2, NULL, NULL},
    {"n1:10:11 [0] init.cc:55 NCCL WARN Cuda failure 719 'unspecified launch failure'", "nccl_node",
     "app", "program_error", "fix_job", -2, NULL, NULL},
    /* RAS */
    {"#1-3 (00ff00ff00ff00ff) INCOMPLETE,MISMATCH\n  Communicator ranks have different AllReduce "
     "operation "
     "counts",
     "ras", "unknown", "ras_mismatch", "poll_again", -2, NULL, NULL},
    /* deaths */
    {"E1104 03:18:40.1 99 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: "
     "-7) "
     "local_rank: 0 (pid: 4) of binary: /opt/conda/bin/python",
     "process", "unknown", "exit_bus_error", "find_origin", -2, NULL, NULL},
    {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 3 "
     "(pid: 7) of "
     "binary: python",
     "process", "app", "exit_crashed", "fix_job", -2, NULL, NULL},
    {"mpirun noticed that process rank 3 with PID 0 on node gpu-2 exited on signal 9 (Killed).",
     "process", "unknown", "exit_killed", "find_origin", 3, "gpu-2", NULL},
    {"prterun noticed that process rank 6 with PID 812 on node gpu-4 exited on\nsignal 7 (Bus "
     "error).",
     "process", "unknown", "exit_bus_error", "find_origin", 6, "gpu-4", NULL},
    {"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD", "process", "unknown",
     "exit_aborted", "find_origin", 2, NULL, NULL},
    {"=   KILLED BY SIGNAL: 9 (Killed)", "process", "unknown", "exit_killed", "find_origin", -2,
     NULL, NULL},
    {"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Bus error (signal 7)", "process", "unknown",
     "exit_bus_error", "find_origin", -2, NULL, NULL},
    {"srun: error: gpu-013: task 21: Killed", "process", "unknown", "exit_killed", "find_origin",
     21, "gpu-013", NULL},
    {"srun: error: gpu-013: tasks 16-20,22: Out Of Memory", "scheduler", "app", "host_oom",
     "fix_job", 16, "gpu-013", NULL},
    {"slurmstepd-gpu-27: error: Detected 3 oom-kill event(s) in StepId=9.0 cgroup. Some of your "
     "processes may have "
     "been killed by the cgroup out-of-memory handler.",
     "scheduler", "app", "host_oom", "fix_job", -2, NULL, NULL},
    {"(RayTrainWorker pid=77, ip=10.1.2.3) RuntimeError: "
     "[../third_party/gloo/gloo/transport/tcp/pair.cc:553] "
     "Connection closed by peer [fe80::1]:4242",
     "gloo", "unknown", "peer_gone", "follow_peer", -2, "10.1.2.3", "[fe80::1]:4242"},
    {"RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
     "waiting "
     "1800000ms for recv operation to complete",
     "gloo", "unknown", "collective_timeout", "find_origin", -2, NULL, NULL},
    /* kernel, where somebody mixed it in */
    {"Nov  4 03:18:40 gpu-009 kernel: [70412.118830] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, "
     "name=python3, GPU has "
     "fallen off the bus.",
     "kernel", "gpu", "gpu_off_bus", "drain_node", -2, "gpu-009", NULL},
    {"[12.5] NVRM: Xid (PCI:0000:1b:00): 119, pid=5, name=p, Timeout after 6s of waiting for RPC "
     "response from GPU4 "
     "GSP! Expected function 76 (GSP_RM_CONTROL)",
     "kernel", "gpu", "gsp_timeout", "reset_gpu", -2, NULL, NULL},
    {"[12.5] NVRM: Xid (PCI:0000:1b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 "
     "0x00000008)",
     "kernel", "gpu", "nvlink_failure", "drain_node", -2, NULL, NULL},
    {"[12.5] NVRM: Xid (PCI:0000:1b:00): 31, pid=9, name=p, Ch 0000001b, intr 00000000. MMU Fault",
     "kernel", "app", "program_error", "fix_job", -2, NULL, NULL},
    /* prefixes: one message, many labels */
    {"\x1b[31m[rank7]:[E1104 03:17:12.4 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught "
     "collective operation "
     "timeout: WorkNCCL(SeqNum=1)\x1b[0m\r",
     "torch", "unknown", "collective_timeout", "find_origin", 7, NULL, NULL},
    {"[prterun-head-4@1,3]<stderr>: n2:5:6 [0] misc/socket.cc:57 NCCL WARN socketProgress: "
     "Connection closed by "
     "remote peer n9<1>",
     "nccl_net", "unknown", "peer_gone", "follow_peer", 3, "n2", "n9<1>"},
    {"[pod/train-worker-3/pytorch] 2025-11-04T03:18:40.123Z [rank24]: RuntimeError: CUDA error: "
     "misaligned address",
     "cuda", "app", "program_error", "fix_job", 24, "train-worker-3", NULL},
    {"worker-2  | [default0]:RuntimeError: CUDA error: unspecified launch failure", "cuda", "app",
     "program_error", "fix_job", -1, "worker-2", NULL},
    {" 13: Traceback (most recent call last):\n 13: ValueError: bad shape", "process", "app",
     "python_error", "fix_job", 13, NULL, NULL},
    {"Epoch 3:  10%|#  | 10/100\rEpoch 3:  11%|#  | 11/100\rKeyError: 'loss'", "process", "app",
     "python_error", "fix_job", -1, NULL, NULL},
    {"x\xff\xfe\x80 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
     "nccl_node", "app", "gpu_assignment", "fix_job", -2, NULL, NULL},
};
