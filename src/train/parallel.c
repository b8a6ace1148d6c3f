/* SPDX-License-Identifier: Apache-2.0 */
#include "parallel.h"

#include <limits.h>
#include <string.h>

void fr_grid_place(int rank, int pp, int tp, int *ret_dp, int *ret_pp, int *ret_tp)
{
    *ret_tp = rank % tp;
    *ret_pp = rank / tp % pp;
    *ret_dp = rank / tp / pp;
}

/* The ranks with the same color, ordered by key, become one named group. */
static void split_group(struct fr_group *group, const char *name, int color, int key)
{
    MPI_Comm_split(MPI_COMM_WORLD, color, key, &group->comm);
    *group = (struct fr_group){group->comm, 0, 1};
    if (group->comm == MPI_COMM_NULL)
        return;
    MPI_Comm_set_name(group->comm, name);
    MPI_Comm_rank(group->comm, &group->index);
    MPI_Comm_size(group->comm, &group->size);
}

void fr_grid_init(struct fr_grid *grid, int dp, int pp, int tp)
{
    int d, p, t;
    bool at_end;

    *grid = (struct fr_grid){.world.comm = MPI_COMM_WORLD};
    MPI_Comm_set_name(MPI_COMM_WORLD, "world");
    MPI_Comm_rank(MPI_COMM_WORLD, &grid->world.index);
    MPI_Comm_size(MPI_COMM_WORLD, &grid->world.size);
    fr_grid_place(grid->world.index, pp, tp, &d, &p, &t);
    split_group(&grid->tp, "tp", d * pp + p, t);
    split_group(&grid->pp, "pp", d * tp + t, p);
    split_group(&grid->dp, "dp", p * tp + t, d);
    at_end = pp > 1 && (p == 0 || p == pp - 1);
    split_group(&grid->embed, "embed", at_end ? d * tp + t : MPI_UNDEFINED, p);
    (void)dp;
}

void fr_grid_fini(struct fr_grid *grid)
{
    struct fr_group *all[] = {&grid->tp, &grid->pp, &grid->dp, &grid->embed};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->comm != MPI_COMM_NULL)
            MPI_Comm_free(&all[i]->comm);
}

void fr_sum_f32(const struct fr_group *group, float *x, size_t n)
{
    if (group->size > 1)
        MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM, group->comm);
}

void fr_sum_f64(const struct fr_group *group, double *x, size_t n)
{
    if (group->size > 1)
        MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, MPI_SUM, group->comm);
}

void fr_share(const struct fr_group *group, void *p, size_t bytes)
{
    if (group->size > 1)
        MPI_Bcast(p, (int)bytes, MPI_BYTE, 0, group->comm);
}

void fr_collect(const struct fr_group *group, const void *mine, size_t bytes, void *all)
{
    if (group->size > 1)
        MPI_Gather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, group->comm);
    else
        memcpy(all, mine, bytes);
}

int fr_agree(const struct fr_grid *grid, int rc, struct fr_err *err)
{
    int first = rc < 0 ? grid->world.index : INT_MAX;

    if (grid->world.size == 1)
        return rc;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, grid->world.comm);
    if (first == INT_MAX)
        return 0;
    MPI_Bcast(&rc, 1, MPI_INT, first, grid->world.comm);
    MPI_Bcast(err->text, (int)sizeof err->text, MPI_CHAR, first, grid->world.comm);
    return rc;
}
