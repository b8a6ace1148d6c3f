/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fortran.c - the wrappers that Fortran programs call
 *
 * Open MPI's Fortran library ends in PMPI, so that the C wrappers see none of its calls. Here
 * each call of the tables is wrapped a second time, around the library's own Fortran function,
 * which keeps all that is special to Fortran (sentinels, logicals, strings). One function
 * carries all names that compilers give it; `ompi_x_f` is the one that mpi_f08 ends in.
 *
 * Source: Open MPI 4.1, ompi/mpi/fortran/mpif-h/ (name mangling in prototypes_mpi.h).
 */
#include "probe/mpi/call.h"

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "counts are passed on as they are");

#define ALIAS(function, name)                                                                      \
    extern __typeof__(function) name __attribute__((alias(#function), visibility("default")));
/* lower_ is the function; these are its other names. */
#define NAMES(lower, UPPER, inner)                                                                 \
    ALIAS(lower##_, lower)                                                                         \
    ALIAS(lower##_, lower##__)                                                                     \
    ALIAS(lower##_, UPPER)                                                                         \
    ALIAS(lower##_, inner)
#define REAL(lower)   ((__typeof__(&mpi_##lower##_))fr_pmpi.f_##lower)
#define REAL_X(lower) ((__typeof__(&mpix_##lower##_))fr_pmpi.f_##lower)

static inline int result(const MPI_Fint *ierr)
{
    return ierr ? *ierr : MPI_SUCCESS;
}

#define COLLECTIVE(Name, lower, UPPER, opcode, root_, bytes_, type_, ...)                          \
    FR_EXPORT void mpi_##lower##_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *ierr);                \
    FR_EXPORT void mpi_##lower##_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *ierr)                 \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            FR_EACH(FR_F_CONV, __VA_ARGS__)                                                        \
            call_on(&k, c);                                                                        \
            coll_enter(&k, opcode, root_, bytes_, type_);                                          \
        }                                                                                          \
        REAL(lower)(FR_LIST(FR_F_NAME, __VA_ARGS__), ierr);                                        \
        if (fr_likely(on))                                                                         \
            coll_leave(&k, result(ierr));                                                          \
    }                                                                                              \
    NAMES(mpi_##lower, MPI_##UPPER, ompi_##lower##_f)                                              \
    FR_EXPORT void mpi_i##lower##_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *made,                \
                                   MPI_Fint *ierr);                                                \
    FR_EXPORT void mpi_i##lower##_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *made,                \
                                   MPI_Fint *ierr)                                                 \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            FR_EACH(FR_F_CONV, __VA_ARGS__)                                                        \
            call_on(&k, c);                                                                        \
            coll_describe(&k, opcode, root_, bytes_, type_);                                       \
            coll_enqueue(&k);                                                                      \
        }                                                                                          \
        REAL(i##lower)(FR_LIST(FR_F_NAME, __VA_ARGS__), made, ierr);                               \
        if (fr_likely(on))                                                                         \
            request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made), FR_REC_NONBLOCKING, NULL); \
    }                                                                                              \
    NAMES(mpi_i##lower, MPI_I##UPPER, ompi_i##lower##_f)                                           \
    FR_EXPORT void mpix_##lower##_init_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *info,           \
                                        MPI_Fint *made, MPI_Fint *ierr);                           \
    FR_EXPORT void mpix_##lower##_init_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *info,           \
                                        MPI_Fint *made, MPI_Fint *ierr)                            \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            FR_EACH(FR_F_CONV, __VA_ARGS__)                                                        \
            call_on(&k, c);                                                                        \
            coll_describe(&k, opcode, root_, bytes_, type_);                                       \
        }                                                                                          \
        REAL_X(lower##_init)(FR_LIST(FR_F_NAME, __VA_ARGS__), info, made, ierr);                   \
        if (fr_likely(on))                                                                         \
            request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made),                            \
                          FR_REC_NONBLOCKING | FR_REC_PERSISTENT, NULL);                           \
    }                                                                                              \
    NAMES(mpix_##lower##_init, MPIX_##UPPER##_INIT, ompix_##lower##_init_f)

#define SEND_DECL void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *to, MPI_Fint *tag, MPI_Fint *c
#define SEND_NAME b, n, t, to, tag, c
#define SEND(Name, lower, UPPER)                                                                   \
    FR_EXPORT void mpi_##lower##_(SEND_DECL, MPI_Fint *ierr);                                      \
    FR_EXPORT void mpi_##lower##_(SEND_DECL, MPI_Fint *ierr)                                       \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            call_on(&k, fr_pmpi.Comm_f2c(*c));                                                     \
            p2p_enter(&k, FR_OP_SEND, *n, fr_pmpi.Type_f2c(*t), *to);                              \
        }                                                                                          \
        REAL(lower)(SEND_NAME, ierr);                                                              \
        if (fr_likely(on))                                                                         \
            p2p_leave(&k, result(ierr), -1);                                                       \
    }                                                                                              \
    NAMES(mpi_##lower, MPI_##UPPER, ompi_##lower##_f)                                              \
    FR_EXPORT void mpi_i##lower##_(SEND_DECL, MPI_Fint *made, MPI_Fint *ierr);                     \
    FR_EXPORT void mpi_i##lower##_(SEND_DECL, MPI_Fint *made, MPI_Fint *ierr)                      \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            call_on(&k, fr_pmpi.Comm_f2c(*c));                                                     \
            p2p_describe(&k, FR_OP_SEND, *n, fr_pmpi.Type_f2c(*t), *to);                           \
            p2p_number(&k);                                                                        \
        }                                                                                          \
        REAL(i##lower)(SEND_NAME, made, ierr);                                                     \
        if (fr_likely(on))                                                                         \
            p2p_request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made), FR_REC_NONBLOCKING);   \
    }                                                                                              \
    NAMES(mpi_i##lower, MPI_I##UPPER, ompi_i##lower##_f)                                           \
    FR_EXPORT void mpi_##lower##_init_(SEND_DECL, MPI_Fint *made, MPI_Fint *ierr);                 \
    FR_EXPORT void mpi_##lower##_init_(SEND_DECL, MPI_Fint *made, MPI_Fint *ierr)                  \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            call_on(&k, fr_pmpi.Comm_f2c(*c));                                                     \
            p2p_describe(&k, FR_OP_SEND, *n, fr_pmpi.Type_f2c(*t), *to);                           \
        }                                                                                          \
        REAL(lower##_init)(SEND_NAME, made, ierr);                                                 \
        if (fr_likely(on))                                                                         \
            p2p_request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made),                        \
                              FR_REC_NONBLOCKING | FR_REC_PERSISTENT);                             \
    }                                                                                              \
    NAMES(mpi_##lower##_init, MPI_##UPPER##_INIT, ompi_##lower##_init_f)

#define CREATION(lower, UPPER, numbered, ...)                                                      \
    FR_EXPORT void mpi_##lower##_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *ierr);                \
    FR_EXPORT void mpi_##lower##_(FR_LIST(FR_F_DECL, __VA_ARGS__), MPI_Fint *ierr)                 \
    {                                                                                              \
        struct fr_call k;                                                                          \
        int on = fr_call_begin(&k);                                                                \
                                                                                                   \
        if (fr_likely(on)) {                                                                       \
            if (numbered)                                                                          \
                call_on(&k, fr_pmpi.Comm_f2c(*c_f));                                               \
            coll_enter(&k, FR_OP_COMM, -1, 0, FR_NO_TYPE);                                         \
        }                                                                                          \
        REAL(lower)(FR_LIST(FR_F_NAME, __VA_ARGS__), ierr);                                        \
        if (fr_likely(on)) {                                                                       \
            if (result(ierr) == MPI_SUCCESS)                                                       \
                fr_comm_created(fr_pmpi.Comm_f2c(*nc_f));                                          \
            coll_leave(&k, result(ierr));                                                          \
        }                                                                                          \
    }                                                                                              \
    NAMES(mpi_##lower, MPI_##UPPER, ompi_##lower##_f)
#define CREATE(Name, lower, UPPER, ...)       CREATION(lower, UPPER, 1, __VA_ARGS__)
#define CREATE_GROUP(Name, lower, UPPER, ...) CREATION(lower, UPPER, 0, __VA_ARGS__)

static inline void call_on(struct fr_call *k, MPI_Comm c)
{
    k->comm = fr_comm_find(c);
    if (fr_likely(k->comm != NULL)) {
        k->n = k->comm->size;
        k->r = (int)k->comm->rank;
    }
}

#include "probe/mpi/calls.def"

/* The calls of plain.def: FUNCTION declares, names and opens one. */
#define FUNCTION(lower, UPPER, ...)                                                                \
    FR_EXPORT void mpi_##lower##_(__VA_ARGS__);                                                    \
    NAMES(mpi_##lower, MPI_##UPPER, ompi_##lower##_f)                                              \
    FR_EXPORT void mpi_##lower##_(__VA_ARGS__)

FUNCTION(init, INIT, MPI_Fint *ierr)
{
    fr_mpi_start();
    fr_probe_open();
    REAL(init)(ierr);
    if (result(ierr) == MPI_SUCCESS)
        fr_mpi_initialized();
}

FUNCTION(init_thread, INIT_THREAD, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr)
{
    fr_mpi_start();
    fr_probe_open();
    REAL(init_thread)(required, provided, ierr);
    if (result(ierr) == MPI_SUCCESS)
        fr_mpi_initialized();
}

FUNCTION(finalize, FINALIZE, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin_on(&k, fr_mpi.comm_world);

    if (on)
        coll_enter(&k, FR_OP_FINALIZE, -1, 0, FR_NO_TYPE);
    fr_mpi_finalizing();
    REAL(finalize)(ierr);
    if (on)
        coll_leave(&k, result(ierr));
    fr_mpi_stopped();
}

FUNCTION(recv, RECV, void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c,
         MPI_Fint *status, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        p2p_enter(&k, FR_OP_RECV, *n, fr_pmpi.Type_f2c(*t), *from);
    }
    REAL(recv)(b, n, t, from, tag, c, status, ierr);
    if (fr_likely(on))
        p2p_leave(&k, result(ierr), -1);
}

FUNCTION(irecv, IRECV, void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *from, MPI_Fint *tag,
         MPI_Fint *c, MPI_Fint *made, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        p2p_describe(&k, FR_OP_RECV, *n, fr_pmpi.Type_f2c(*t), *from);
        p2p_number(&k);
    }
    REAL(irecv)(b, n, t, from, tag, c, made, ierr);
    if (fr_likely(on))
        p2p_request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made), FR_REC_NONBLOCKING);
}

FUNCTION(recv_init, RECV_INIT, void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *from, MPI_Fint *tag,
         MPI_Fint *c, MPI_Fint *made, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        p2p_describe(&k, FR_OP_RECV, *n, fr_pmpi.Type_f2c(*t), *from);
    }
    REAL(recv_init)(b, n, t, from, tag, c, made, ierr);
    if (fr_likely(on))
        p2p_request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made),
                          FR_REC_NONBLOCKING | FR_REC_PERSISTENT);
}

FUNCTION(sendrecv, SENDRECV, void *sb, MPI_Fint *sn, MPI_Fint *st, MPI_Fint *to, MPI_Fint *stag,
         void *rb, MPI_Fint *rn, MPI_Fint *rt, MPI_Fint *from, MPI_Fint *rtag, MPI_Fint *c,
         MPI_Fint *status, MPI_Fint *ierr)
{
    struct fr_call k;
    struct pair p;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        p = (struct pair){*to, *from, *sn, *rn, fr_pmpi.Type_f2c(*st), fr_pmpi.Type_f2c(*rt)};
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        pair_enter(&k, &p);
    }
    REAL(sendrecv)(sb, sn, st, to, stag, rb, rn, rt, from, rtag, c, status, ierr);
    if (fr_likely(on))
        pair_leave(&k, &p, result(ierr), -1);
}

FUNCTION(sendrecv_replace, SENDRECV_REPLACE, void *b, MPI_Fint *n, MPI_Fint *t, MPI_Fint *to,
         MPI_Fint *stag, MPI_Fint *from, MPI_Fint *rtag, MPI_Fint *c, MPI_Fint *status,
         MPI_Fint *ierr)
{
    struct fr_call k;
    struct pair p;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        p = (struct pair){*to, *from, *n, *n, fr_pmpi.Type_f2c(*t), fr_pmpi.Type_f2c(*t)};
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        pair_enter(&k, &p);
    }
    REAL(sendrecv_replace)(b, n, t, to, stag, from, rtag, c, status, ierr);
    if (fr_likely(on))
        pair_leave(&k, &p, result(ierr), -1);
}

FUNCTION(probe, PROBE, MPI_Fint *from, MPI_Fint *tag, MPI_Fint *c, MPI_Fint *status, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        p2p_describe(&k, FR_OP_RECV, 0, FR_NO_TYPE, *from);
        fr_lane_now(k.lane, k.t0, k.op, slot_of(k.comm), 0, 0, k.peer, 0);
    }
    REAL(probe)(from, tag, c, status, ierr);
    if (fr_likely(on))
        fr_lane_leave(k.lane, k.t0, fr_ticks());
}

/* Fortran counts indices from 1. */
static inline void wait_leave(struct fr_call *k, struct waits *w, const MPI_Fint *ierr,
                              const int *which, int n)
{
    uint64_t t1 = fr_ticks();

    waits_end(k, w, t1, result(ierr), which, n, 1, NULL, 0);
    if (!w->found)
        wait_record(k, t1);
    fr_lane_leave(k->lane, k->t0, t1);
}

static inline void test_leave(struct fr_call *k, struct waits *w, const MPI_Fint *ierr,
                              const int *which, int n)
{
    uint64_t t1 = fr_ticks();

    waits_end(k, w, t1, result(ierr), which, n, 1, NULL, 0);
    fr_lane_leave_quietly(k->lane, k->t0, t1);
}

#define LOOK(requests, count)                                                                      \
    struct fr_call k;                                                                              \
    struct waits w = {.f = (requests), .n = (count)};                                              \
    struct fr_request *oldest = NULL;                                                              \
    int on = fr_call_begin(&k);                                                                    \
                                                                                                   \
    if (fr_likely(on))                                                                             \
    oldest = waits_look(&w)

FUNCTION(wait, WAIT, MPI_Fint *r, MPI_Fint *status, MPI_Fint *ierr)
{
    LOOK(r, 1);
    if (fr_likely(on))
        waits_show(&k, oldest);
    REAL(wait)(r, status, ierr);
    if (fr_likely(on))
        wait_leave(&k, &w, ierr, NULL, 0);
}

FUNCTION(waitall, WAITALL, MPI_Fint *n, MPI_Fint *r, MPI_Fint *s, MPI_Fint *ierr)
{
    LOOK(r, *n);
    if (fr_likely(on))
        waits_show(&k, oldest);
    REAL(waitall)(n, r, s, ierr);
    if (fr_likely(on))
        wait_leave(&k, &w, ierr, NULL, 0);
}

FUNCTION(waitany, WAITANY, MPI_Fint *n, MPI_Fint *r, MPI_Fint *index, MPI_Fint *s, MPI_Fint *ierr)
{
    LOOK(r, *n);
    if (fr_likely(on))
        waits_show(&k, oldest);
    REAL(waitany)(n, r, index, s, ierr);
    if (fr_likely(on))
        wait_leave(&k, &w, ierr, index, 1);
}

FUNCTION(waitsome, WAITSOME, MPI_Fint *n, MPI_Fint *r, MPI_Fint *count, MPI_Fint *indices,
         MPI_Fint *s, MPI_Fint *ierr)
{
    LOOK(r, *n);
    if (fr_likely(on))
        waits_show(&k, oldest);
    REAL(waitsome)(n, r, count, indices, s, ierr);
    if (fr_likely(on))
        wait_leave(&k, &w, ierr, indices, *count);
}

/* A test that completed nothing has left all requests as they were: only what is named by an
 * index or the flag may count for persistent ones. */
FUNCTION(test, TEST, MPI_Fint *r, MPI_Fint *flag, MPI_Fint *s, MPI_Fint *ierr)
{
    static const int none[1] = {0};
    LOOK(r, 1);
    (void)oldest;
    REAL(test)(r, flag, s, ierr);
    if (fr_likely(on))
        test_leave(&k, &w, ierr, *flag ? NULL : none, 1);
}

FUNCTION(testall, TESTALL, MPI_Fint *n, MPI_Fint *r, MPI_Fint *flag, MPI_Fint *s, MPI_Fint *ierr)
{
    static const int none[1] = {0};
    LOOK(r, *n);
    (void)oldest;
    REAL(testall)(n, r, flag, s, ierr);
    if (fr_likely(on))
        test_leave(&k, &w, ierr, *flag ? NULL : none, 1);
}

FUNCTION(testany, TESTANY, MPI_Fint *n, MPI_Fint *r, MPI_Fint *index, MPI_Fint *flag, MPI_Fint *s,
         MPI_Fint *ierr)
{
    LOOK(r, *n);
    (void)oldest;
    REAL(testany)(n, r, index, flag, s, ierr);
    if (fr_likely(on))
        test_leave(&k, &w, ierr, index, *flag ? 1 : 0);
}

FUNCTION(testsome, TESTSOME, MPI_Fint *n, MPI_Fint *r, MPI_Fint *count, MPI_Fint *indices,
         MPI_Fint *s, MPI_Fint *ierr)
{
    LOOK(r, *n);
    (void)oldest;
    REAL(testsome)(n, r, count, indices, s, ierr);
    if (fr_likely(on))
        test_leave(&k, &w, ierr, indices, *count);
}

FUNCTION(request_free, REQUEST_FREE, MPI_Fint *r, MPI_Fint *ierr)
{
    struct fr_call k;
    struct waits w = {.f = r, .n = 1};
    int on = fr_call_begin(&k);

    if (fr_likely(on))
        request_freeing(&w);
    REAL(request_free)(r, ierr);
    if (fr_likely(on)) {
        uint64_t t1 = fr_ticks();

        if (result(ierr) == MPI_SUCCESS && w.first != FR_NO_REQUEST)
            request_freed(&k, w.first, t1);
        fr_lane_leave_quietly(k.lane, k.t0, t1);
    }
}

FUNCTION(start, START, MPI_Fint *r, MPI_Fint *ierr)
{
    struct fr_call k;
    struct waits w = {.f = r, .n = 1};
    int on = fr_call_begin(&k);

    if (fr_likely(on))
        starts_enter(&k, &w);
    REAL(start)(r, ierr);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
}

FUNCTION(startall, STARTALL, MPI_Fint *n, MPI_Fint *r, MPI_Fint *ierr)
{
    struct fr_call k;
    struct waits w = {.f = r, .n = *n};
    int on = fr_call_begin(&k);

    if (fr_likely(on))
        starts_enter(&k, &w);
    REAL(startall)(n, r, ierr);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
}

/* The new communicator is followed from its first use: its handle is Fortran's until then. */
FUNCTION(comm_idup, COMM_IDUP, MPI_Fint *c, MPI_Fint *nc, MPI_Fint *made, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    if (fr_likely(on)) {
        call_on(&k, fr_pmpi.Comm_f2c(*c));
        coll_describe(&k, FR_OP_COMM, -1, 0, FR_NO_TYPE);
        coll_enqueue(&k);
    }
    REAL(comm_idup)(c, nc, made, ierr);
    if (fr_likely(on))
        request_leave(&k, result(ierr), fr_pmpi.Request_f2c(*made), FR_REC_NONBLOCKING, NULL);
}

FUNCTION(comm_free, COMM_FREE, MPI_Fint *c, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    REAL(comm_free)(c, ierr);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
}

FUNCTION(comm_disconnect, COMM_DISCONNECT, MPI_Fint *c, MPI_Fint *ierr)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    REAL(comm_disconnect)(c, ierr);
    if (fr_likely(on))
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
}

/* Compilers pass a string's length behind the arguments. */
FUNCTION(comm_set_name, COMM_SET_NAME, MPI_Fint *c, char *name, MPI_Fint *ierr, int name_bytes)
{
    struct fr_call k;
    int on = fr_call_begin(&k);

    REAL(comm_set_name)(c, name, ierr, name_bytes);
    if (fr_likely(on)) {
        if (result(ierr) == MPI_SUCCESS)
            fr_comm_named(fr_pmpi.Comm_f2c(*c));
        fr_lane_leave_quietly(k.lane, k.t0, fr_ticks());
    }
}
