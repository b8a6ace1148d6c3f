/* SPDX-License-Identifier: Apache-2.0 */
/* shim.c - find the real MPI, start and stop watching, know data types; see shim.h */
#define _GNU_SOURCE
#include "probe/mpi/shim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "probe/libc_compat.h"

FR_OLD_VERSION(dlsym);
FR_OLD_VERSION(dlopen);

struct fr_pmpi fr_pmpi;
struct fr_mpi fr_mpi;

#if defined(OPEN_MPI)
#define FR_MPI_LIBRARY  "libmpi.so.40"
#define FR_PERSISTENT   "PMPIX_"
#define FR_PERSISTENT_F "pmpix_"
#else
#error "this MPI family is not known: its handles and library name belong here"
#endif

/* Where each real function's address goes. */
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define AT(field) offsetof(struct fr_pmpi, field)
#define COLLECTIVE(Name, lower, UPPER, op, root, bytes, type, ...)                                 \
    {"PMPI_" #Name, AT(Name)}, {"PMPI_I" #lower, AT(I##lower)},                                    \
        {FR_PERSISTENT #Name "_init", AT(lower##_init)}, {"pmpi_" #lower "_", AT(f_##lower)},      \
        {"pmpi_i" #lower "_", AT(f_i##lower)},                                                     \
        {FR_PERSISTENT_F #lower "_init_", AT(f_##lower##_init)},
#define SEND(Name, lower, UPPER)                                                                   \
    {"PMPI_" #Name, AT(Name)}, {"PMPI_I" #lower, AT(I##lower)},                                    \
        {"PMPI_" #Name "_init", AT(Name##_init)}, {"pmpi_" #lower "_", AT(f_##lower)},             \
        {"pmpi_i" #lower "_", AT(f_i##lower)}, {"pmpi_" #lower "_init_", AT(f_##lower##_init)},
#define CREATE(Name, lower, UPPER, ...)                                                            \
    {"PMPI_" #Name, AT(Name)}, {"pmpi_" #lower "_", AT(f_##lower)},
#define CREATE_GROUP CREATE
#include "probe/mpi/calls.def"
#undef COLLECTIVE
#undef SEND
#undef CREATE
#undef CREATE_GROUP
#define PLAIN(Name, lower, UPPER) {"PMPI_" #Name, AT(Name)}, {"pmpi_" #lower "_", AT(f_##lower)},
#define QUERY(Name)               {"PMPI_" #Name, AT(Name)},
#include "probe/mpi/plain.def"
#undef PLAIN
#undef QUERY
#undef AT
};

/* Predefined types: never freed, so their handles may be remembered. */
static const struct {
    const char *symbol;
    uint8_t code;
} type_names[] = {
    {"ompi_mpi_byte", FR_DTYPE_BYTE},
    {"ompi_mpi_char", FR_DTYPE_BYTE},
    {"ompi_mpi_signed_char", FR_DTYPE_BYTE},
    {"ompi_mpi_unsigned_char", FR_DTYPE_BYTE},
    {"ompi_mpi_int8_t", FR_DTYPE_BYTE},
    {"ompi_mpi_uint8_t", FR_DTYPE_BYTE},
    {"ompi_mpi_character", FR_DTYPE_BYTE},
    {"ompi_mpi_packed", FR_DTYPE_BYTE},
    {"ompi_mpi_int", FR_DTYPE_INT32},
    {"ompi_mpi_int32_t", FR_DTYPE_INT32},
    {"ompi_mpi_integer", FR_DTYPE_INT32},
    {"ompi_mpi_integer4", FR_DTYPE_INT32},
    {"ompi_mpi_unsigned", FR_DTYPE_UINT32},
    {"ompi_mpi_uint32_t", FR_DTYPE_UINT32},
    {"ompi_mpi_long", FR_DTYPE_INT64},
    {"ompi_mpi_int64_t", FR_DTYPE_INT64},
    {"ompi_mpi_long_long_int", FR_DTYPE_INT64},
    {"ompi_mpi_integer8", FR_DTYPE_INT64},
    {"ompi_mpi_aint", FR_DTYPE_INT64},
    {"ompi_mpi_offset", FR_DTYPE_INT64},
    {"ompi_mpi_count", FR_DTYPE_INT64},
    {"ompi_mpi_unsigned_long", FR_DTYPE_UINT64},
    {"ompi_mpi_uint64_t", FR_DTYPE_UINT64},
    {"ompi_mpi_unsigned_long_long", FR_DTYPE_UINT64},
    {"ompi_mpi_float", FR_DTYPE_FLOAT32},
    {"ompi_mpi_real", FR_DTYPE_FLOAT32},
    {"ompi_mpi_real4", FR_DTYPE_FLOAT32},
    {"ompi_mpi_double", FR_DTYPE_FLOAT64},
    {"ompi_mpi_dblprec", FR_DTYPE_FLOAT64},
    {"ompi_mpi_real8", FR_DTYPE_FLOAT64},
    {"ompi_mpi_short", FR_DTYPE_OTHER},
    {"ompi_mpi_int16_t", FR_DTYPE_OTHER},
    {"ompi_mpi_uint16_t", FR_DTYPE_OTHER},
    {"ompi_mpi_logical", FR_DTYPE_OTHER},
    {"ompi_mpi_c_bool", FR_DTYPE_OTHER},
    {"ompi_mpi_cplex", FR_DTYPE_OTHER},
    {"ompi_mpi_dblcplex", FR_DTYPE_OTHER},
    {"ompi_mpi_c_float_complex", FR_DTYPE_OTHER},
    {"ompi_mpi_c_double_complex", FR_DTYPE_OTHER},
};

struct fr_type_slot fr_types[FR_TYPES];

/* A function that this MPI does not have: nobody can call it through the shim by right. */
static int no_such_function(void)
{
    return MPI_ERR_INTERN;
}

/* In the global scope; or, when a language runtime loaded MPI privately, in that library. */
static void *find(void **library, const char *name)
{
    void *p = dlsym(RTLD_DEFAULT, name);

    if (p)
        return p;
    if (!*library)
        *library = dlopen(FR_MPI_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    return *library ? dlsym(*library, name) : NULL;
}

static void resolve(void)
{
    void *library = NULL;

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *p = find(&library, functions[i].name);

        if (!p)
            p = (void *)no_such_function;
        __atomic_store_n((void **)((char *)&fr_pmpi + functions[i].offset), p, __ATOMIC_RELAXED);
    }
    fr_mpi.comm_world = find(&library, "ompi_mpi_comm_world");
    fr_mpi.comm_self = find(&library, "ompi_mpi_comm_self");
    fr_mpi.comm_null = find(&library, "ompi_mpi_comm_null");
    fr_mpi.request_null = find(&library, "ompi_request_null");
    fr_mpi.request_empty = find(&library, "ompi_request_empty");
}

static void learn_types(void)
{
    void *library = NULL;

    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0]; i++) {
        MPI_Datatype t = find(&library, type_names[i].symbol);
        uint32_t h;
        int size = 0;

        if (!t || fr_pmpi.Type_size(t, &size) != MPI_SUCCESS || size < 0)
            continue;
        for (h = fr_type_hash(t); fr_types[h].handle; h = (h + 1) % FR_TYPES)
            if (fr_types[h].handle == t)
                break;
        fr_types[h].handle = t;
        fr_types[h].type.size_bytes = (uint32_t)size;
        fr_types[h].type.code = type_names[i].code;
    }
}

struct fr_type fr_type_slow(MPI_Datatype t)
{
    struct fr_type ret = {0, FR_DTYPE_OTHER};
    int size = 0;

    if (t == FR_NO_TYPE)
        return ret;
    for (uint32_t h = fr_type_hash(t); fr_types[h].handle; h = (h + 1) % FR_TYPES)
        if (fr_types[h].handle == t)
            return fr_types[h].type;
    if (fr_pmpi.Type_size(t, &size) == MPI_SUCCESS && size > 0)
        ret.size_bytes = (uint32_t)size;
    return ret;
}

static void set_state(int state)
{
    __atomic_store_n(&fr_mpi.state, state, __ATOMIC_RELEASE);
}

/* MPI is up: say who we are and follow the two communicators that exist. */
void fr_mpi_initialized(void)
{
    int level = MPI_THREAD_SINGLE, rank = -1, world = 0;
    void *counters;

    if (!fr_probe_open()) {
        set_state(FR_MPI_OFF);
        return;
    }
    fr_pmpi.Query_thread(&level);
    fr_mpi.multiple = level == MPI_THREAD_MULTIPLE;
    fr_pmpi.Comm_rank(fr_mpi.comm_world, &rank);
    fr_pmpi.Comm_size(fr_mpi.comm_world, &world);
    counters = mmap(NULL, 2 * (size_t)world * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rank < 0 || counters == MAP_FAILED) {
        set_state(FR_MPI_OFF);
        return;
    }
    fr_mpi.rank = rank;
    fr_mpi.world = world;
    fr_mpi.sent = counters;
    fr_mpi.received = fr_mpi.sent + world;
    fr_pmpi.Comm_group(fr_mpi.comm_world, &fr_mpi.world_group);
    learn_types();
    fr_probe_rank(rank, world);
    fr_probe_source(FR_SOURCE_MPI);
    fr_probe_tune();
    fr_comm_setup();
    set_state(FR_MPI_WATCHING);
}

int fr_mpi_start(void)
{
    int started = 0;

    if (__atomic_load_n(&fr_mpi.state, __ATOMIC_ACQUIRE) == FR_MPI_UNRESOLVED) {
        resolve(); /* two threads may do it at once: both write the same */
        set_state(FR_MPI_WAITING);
    }
    if (fr_mpi.state != FR_MPI_WAITING || fr_lane_self.inside)
        return 0;
    /* MPI may have been started past the shim, by PMPI_Init. */
    if (fr_pmpi.Initialized(&started) != MPI_SUCCESS || !started)
        return 0;
    fr_mpi_initialized();
    return fr_mpi.state == FR_MPI_WATCHING;
}

/* After this no MPI function is called by the shim itself. */
void fr_mpi_finalizing(void)
{
    if (fr_mpi.state == FR_MPI_WATCHING)
        fr_pmpi.Group_free(&fr_mpi.world_group);
    set_state(FR_MPI_OFF);
}

void fr_mpi_stopped(void)
{
    fr_probe_finalized();
}
