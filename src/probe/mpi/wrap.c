/* SPDX-License-Identifier: Apache-2.0 */
/* wrap.c - the wrappers that C programs call: from calls.def, and the ones of plain.def */
#include "probe/mpi/call.h"

#define COLLECTIVE(Name, lower, UPPER, opcode, root_, bytes_, type_, ...)                          \
    FR_EXPORT int MPI_##Name(FR_LIST(FR_C_DECL, __VA_ARGS__))                                      \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on))                                                                         \
            coll_enter(&k, opcode, root_, bytes_, type_);                                          \
        rc = fr_pmpi.Name(FR_LIST(FR_C_NAME, __VA_ARGS__));                                        \
        if (fr_likely(on))                                                                         \
            coll_leave(&k, rc);                                                                    \
        return rc;                                                                                 \
    }                                                                                              \
    FR_EXPORT int MPI_I##lower(FR_LIST(FR_C_DECL, __VA_ARGS__), MPI_Request *made)                 \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            coll_describe(&k, opcode, root_, bytes_, type_);                                       \
            coll_enqueue(&k);                                                                      \
        }                                                                                          \
        rc = fr_pmpi.I##lower(FR_LIST(FR_C_NAME, __VA_ARGS__), made);                              \
        if (fr_likely(on))                                                                         \
            request_leave(&k, rc, *made, FR_REC_NONBLOCKING, NULL);                                \
        return rc;                                                                                 \
    }                                                                                              \
    FR_EXPORT int MPIX_##Name##_init(FR_LIST(FR_C_DECL, __VA_ARGS__), MPI_Info info,               \
                                     MPI_Request *made)                                            \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on))                                                                         \
            coll_describe(&k, opcode, root_, bytes_, type_);                                       \
        rc = fr_pmpi.lower##_init(FR_LIST(FR_C_NAME, __VA_ARGS__), info, made);                    \
        if (fr_likely(on))                                                                         \
            request_leave(&k, rc, *made, FR_REC_NONBLOCKING | FR_REC_PERSISTENT, NULL);            \
        return rc;                                                                                 \
    }
#define SEND(Name, lower, UPPER)                                                                   \
    FR_EXPORT int MPI_##Name(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c)    \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on))                                                                         \
            p2p_enter(&k, FR_OP_SEND, n, t, to);                                                   \
        rc = fr_pmpi.Name(b, n, t, to, tag, c);                                                    \
        if (fr_likely(on))                                                                         \
            p2p_leave(&k, rc, -1);                                                                 \
        return rc;                                                                                 \
    }                                                                                              \
    FR_EXPORT int MPI_I##lower(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c,  \
                               MPI_Request *made)                                                  \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            p2p_describe(&k, FR_OP_SEND, n, t, to);                                                \
            p2p_number(&k);                                                                        \
        }                                                                                          \
        rc = fr_pmpi.I##lower(b, n, t, to, tag, c, made);                                          \
        if (fr_likely(on))                                                                         \
            p2p_request_leave(&k, rc, *made, FR_REC_NONBLOCKING);                                  \
        return rc;                                                                                 \
    }                                                                                              \
    FR_EXPORT int MPI_##Name##_init(const void *b, int n, MPI_Datatype t, int to, int tag,         \
                                    MPI_Comm c, MPI_Request *made)                                 \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on))                                                                         \
            p2p_describe(&k, FR_OP_SEND, n, t, to);                                                \
        rc = fr_pmpi.Name##_init(b, n, t, to, tag, c, made);                                       \
        if (fr_likely(on))                                                                         \
            p2p_request_leave(&k, rc, *made, FR_REC_NONBLOCKING | FR_REC_PERSISTENT);              \
        return rc;                                                                                 \
    }
/* A communicator counts its creation as one operation of its parent. */
#define CREATE(Name, lower, UPPER, ...)                                                            \
    FR_EXPORT int MPI_##Name(FR_LIST(FR_C_DECL, __VA_ARGS__))                                      \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin_on(&k, c);                                                      \
                                                                                                   \
        if (fr_likely(on))                                                                         \
            coll_enter(&k, FR_OP_COMM, -1, 0, FR_NO_TYPE);                                         \
        rc = fr_pmpi.Name(FR_LIST(FR_C_NAME, __VA_ARGS__));                                        \
        if (fr_likely(on)) {                                                                       \
            if (rc == MPI_SUCCESS)                                                                 \
                fr_comm_created(*nc);                                                              \
            coll_leave(&k, rc);                                                                    \
        }                                                                                          \
        return rc;                                                                                 \
    }
#define CREATE_GROUP(Name, lower, UPPER, ...)                                                      \
    FR_EXPORT int MPI_##Name(FR_LIST(FR_C_DECL, __VA_ARGS__))                                      \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int rc, on = fr_call_begin(&k);                                                            \
                                                                                                   \
        if (fr_likely(on))                                                                         \
            coll_enter(&k, FR_OP_COMM, -1, 0, FR_NO_TYPE);                                         \
        rc = fr_pmpi.Name(FR_LIST(FR_C_NAME, __VA_ARGS__));                                        \
        if (fr_likely(on)) {                                                                       \
            if (rc == MPI_SUCCESS)                                                                 \
                fr_comm_created(*nc);                                                              \
            coll_leave(&k, rc);                                                                    \
        }                                                                                          \
        return rc;                                                                                 \
    }
#include "probe/mpi/calls.def"

/* Beginning and end */

FR_EXPORT int MPI_Init(int *argc, char ***argv)
{
    int rc;

    fr_mpi_start();
    fr_probe_open(); /* before: a rank that never gets out of here is seen, too */
    rc = fr_pmpi.Init(argc, argv);
    if (rc == MPI_SUCCESS)
        fr_mpi_initialized();
    return rc;
}

FR_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc;

    fr_mpi_start();
    fr_probe_open();
    rc = fr_pmpi.Init_thread(argc, argv, required, provided);
    if (rc == MPI_SUCCESS)
        fr_mpi_initialized();
    return rc;
}

/* Collective over the world, and numbered there: who comes here while the others wait in another
 * collective will never join it, and is named for that. No barrier: its end, after the teardown,
 * is not the same moment on all ranks. */
FR_EXPORT int MPI_Finalize(void)
{
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, fr_mpi.comm_world);

    if (on)
        coll_enter(&k, FR_OP_FINALIZE, -1, 0, FR_NO_TYPE);
    fr_mpi_finalizing();
    rc = fr_pmpi.Finalize();
    if (on)
        coll_leave(&k, rc);
    fr_mpi_stopped();
    return rc;
}

/* Point-to-point, the receiving side */

FR_EXPORT int MPI_Recv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c,
                       MPI_Status *status)
{
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on)) {
        p2p_enter(&k, FR_OP_RECV, n, t, from);
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Recv(b, n, t, from, tag, c, status);
    if (fr_likely(on))
        p2p_leave(&k, rc, rc == MPI_SUCCESS ? status->MPI_SOURCE : -1);
    return rc;
}

FR_EXPORT int MPI_Irecv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c,
                        MPI_Request *made)
{
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on)) {
        p2p_describe(&k, FR_OP_RECV, n, t, from);
        p2p_number(&k);
    }
    rc = fr_pmpi.Irecv(b, n, t, from, tag, c, made);
    if (fr_likely(on))
        p2p_request_leave(&k, rc, *made, FR_REC_NONBLOCKING);
    return rc;
}

FR_EXPORT int MPI_Recv_init(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c,
                            MPI_Request *made)
{
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on))
        p2p_describe(&k, FR_OP_RECV, n, t, from);
    rc = fr_pmpi.Recv_init(b, n, t, from, tag, c, made);
    if (fr_likely(on))
        p2p_request_leave(&k, rc, *made, FR_REC_NONBLOCKING | FR_REC_PERSISTENT);
    return rc;
}

FR_EXPORT int MPI_Sendrecv(const void *sb, int sn, MPI_Datatype st, int to, int stag, void *rb,
                           int rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c,
                           MPI_Status *status)
{
    struct pair p = {to, from, sn, rn, st, rt};
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on)) {
        pair_enter(&k, &p);
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Sendrecv(sb, sn, st, to, stag, rb, rn, rt, from, rtag, c, status);
    if (fr_likely(on))
        pair_leave(&k, &p, rc, rc == MPI_SUCCESS ? status->MPI_SOURCE : -1);
    return rc;
}

FR_EXPORT int MPI_Sendrecv_replace(void *b, int n, MPI_Datatype t, int to, int stag, int from,
                                   int rtag, MPI_Comm c, MPI_Status *status)
{
    struct pair p = {to, from, n, n, t, t};
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on)) {
        pair_enter(&k, &p);
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Sendrecv_replace(b, n, t, to, stag, from, rtag, c, status);
    if (fr_likely(on))
        pair_leave(&k, &p, rc, rc == MPI_SUCCESS ? status->MPI_SOURCE : -1);
    return rc;
}

/* Shown while it waits; the receive that follows is the record. */
FR_EXPORT int MPI_Probe(int from, int tag, MPI_Comm c, MPI_Status *status)
{
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on)) {
        p2p_describe(&k, FR_OP_RECV, 0, FR_NO_TYPE, from);
        fr_lane_now(k.lane, k.t0, k.op, slot_of(k.comm), 0, 0, k.peer, 0);
    }
    rc = fr_pmpi.Probe(from, tag, c, status);
    if (fr_likely(on))
        fr_lane_leave(k.lane, k.t0, fr_ticks());
    return rc;
}

/* Completion */

FR_EXPORT int MPI_Wait(MPI_Request *r, MPI_Status *status)
{
    struct waits w = {.c = r, .n = 1};
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_show(&k, waits_look(&w));
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Wait(r, status);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        waits_end(&k, &w, t1, rc, NULL, 0, 0, status, 1);
        if (!w.found)
            wait_record(&k, t1);
        fr_lane_leave(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Waitall(int n, MPI_Request r[], MPI_Status s[])
{
    struct waits w = {.c = r, .n = n};
    MPI_Status own[FR_OWN_STATUSES];
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_show(&k, waits_look(&w));
        s = waits_statuses(&w, s, own);
    }
    rc = fr_pmpi.Waitall(n, r, s);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        waits_end(&k, &w, t1, rc, NULL, 0, 0, s == MPI_STATUSES_IGNORE ? NULL : s, 0);
        if (!w.found)
            wait_record(&k, t1);
        fr_lane_leave(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Waitany(int n, MPI_Request r[], int *index, MPI_Status *status)
{
    struct waits w = {.c = r, .n = n};
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_show(&k, waits_look(&w));
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Waitany(n, r, index, status);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        waits_end(&k, &w, t1, rc, index, 1, 0, status, 1);
        if (!w.found)
            wait_record(&k, t1);
        fr_lane_leave(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Waitsome(int n, MPI_Request r[], int *count, int indices[], MPI_Status s[])
{
    struct waits w = {.c = r, .n = n};
    MPI_Status own[FR_OWN_STATUSES];
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_show(&k, waits_look(&w));
        s = waits_statuses(&w, s, own);
    }
    rc = fr_pmpi.Waitsome(n, r, count, indices, s);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        waits_end(&k, &w, t1, rc, indices, *count, 0, s == MPI_STATUSES_IGNORE ? NULL : s, 0);
        if (!w.found)
            wait_record(&k, t1);
        fr_lane_leave(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Test(MPI_Request *r, int *flag, MPI_Status *status)
{
    struct waits w = {.c = r, .n = 1};
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_look(&w);
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Test(r, flag, status);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        if (*flag)
            waits_end(&k, &w, t1, rc, NULL, 0, 0, status, 1);
        fr_lane_leave_quietly(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Testall(int n, MPI_Request r[], int *flag, MPI_Status s[])
{
    struct waits w = {.c = r, .n = n};
    MPI_Status own[FR_OWN_STATUSES];
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_look(&w);
        s = waits_statuses(&w, s, own);
    }
    rc = fr_pmpi.Testall(n, r, flag, s);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        if (*flag)
            waits_end(&k, &w, t1, rc, NULL, 0, 0, s == MPI_STATUSES_IGNORE ? NULL : s, 0);
        fr_lane_leave_quietly(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Testany(int n, MPI_Request r[], int *index, int *flag, MPI_Status *status)
{
    struct waits w = {.c = r, .n = n};
    MPI_Status own;
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_look(&w);
        if (status == MPI_STATUS_IGNORE)
            status = &own;
    }
    rc = fr_pmpi.Testany(n, r, index, flag, status);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        if (*flag)
            waits_end(&k, &w, t1, rc, index, 1, 0, status, 1);
        fr_lane_leave_quietly(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Testsome(int n, MPI_Request r[], int *count, int indices[], MPI_Status s[])
{
    struct waits w = {.c = r, .n = n};
    MPI_Status own[FR_OWN_STATUSES];
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on)) {
        waits_look(&w);
        s = waits_statuses(&w, s, own);
    }
    rc = fr_pmpi.Testsome(n, r, count, indices, s);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        waits_end(&k, &w, t1, rc, indices, *count, 0, s == MPI_STATUSES_IGNORE ? NULL : s, 0);
        fr_lane_leave_quietly(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Request_free(MPI_Request *r)
{
    struct waits w = {.c = r, .n = 1};
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on))
        waits_look(&w);
    rc = fr_pmpi.Request_free(r);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        if (rc == MPI_SUCCESS && w.first != FR_NO_REQUEST)
            request_freed(&k, w.first, t1);
        fr_lane_leave_quietly(k.lane, k.t0, t1);
    }
    return rc;
}

FR_EXPORT int MPI_Start(MPI_Request *r)
{
    struct waits w = {.c = r, .n = 1};
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on))
        starts_enter(&k, &w);
    rc = fr_pmpi.Start(r);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
    return rc;
}

FR_EXPORT int MPI_Startall(int n, MPI_Request r[])
{
    struct waits w = {.c = r, .n = n};
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    if (fr_likely(on))
        starts_enter(&k, &w);
    rc = fr_pmpi.Startall(n, r);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
    return rc;
}

/* Communicators */

FR_EXPORT int MPI_Comm_idup(MPI_Comm c, MPI_Comm *nc, MPI_Request *made)
{
    struct fr_call k;
    int rc, on = fr_call_begin_on(&k, c);

    if (fr_likely(on)) {
        coll_describe(&k, FR_OP_COMM, -1, 0, FR_NO_TYPE);
        coll_enqueue(&k);
    }
    rc = fr_pmpi.Comm_idup(c, nc, made);
    if (fr_likely(on))
        request_leave(&k, rc, *made, FR_REC_NONBLOCKING, nc);
    return rc;
}

/* The slot is closed by the attribute that MPI deletes inside the call. */
FR_EXPORT int MPI_Comm_free(MPI_Comm *c)
{
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    rc = fr_pmpi.Comm_free(c);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
    return rc;
}

FR_EXPORT int MPI_Comm_disconnect(MPI_Comm *c)
{
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    rc = fr_pmpi.Comm_disconnect(c);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
    return rc;
}

FR_EXPORT int MPI_Comm_set_name(MPI_Comm c, const char *name)
{
    struct fr_call k;
    int rc, on = fr_call_begin(&k);

    rc = fr_pmpi.Comm_set_name(c, name);
    if (fr_likely(on)) {
        if (rc == MPI_SUCCESS)
            fr_comm_named(c);
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
    }
    return rc;
}
