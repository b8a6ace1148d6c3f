/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_fortran_job.c - the calls that a Fortran compiler makes, made from C (see mpi_job.c) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

extern void mpi_init_(MPI_Fint *);
extern void mpi_allreduce_(void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                           MPI_Fint *);
extern void MPI_BARRIER(MPI_Fint *, MPI_Fint *);
extern void mpi_comm_dup__(MPI_Fint *, MPI_Fint *, MPI_Fint *);
extern void mpi_iallreduce(void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                           MPI_Fint *, MPI_Fint *);
extern void mpi_waitall_(MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
extern void mpi_comm_rank_(MPI_Fint *, MPI_Fint *, MPI_Fint *);
extern void mpi_finalize_(MPI_Fint *);
/* What mpi_f08 ends in. */
extern void ompi_bcast_f(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);

int main(void)
{
    MPI_Fint ierr, world, dup, n = 6, type, op, root = 1, req[2], two = 2, rank;
    MPI_Fint statuses[2 * sizeof(MPI_Status) / sizeof(MPI_Fint)];
    double in[6] = {1}, out[6] = {0};
    char path[512];

    mpi_init_(&ierr);
    world = MPI_Comm_c2f(MPI_COMM_WORLD);
    type = MPI_Type_c2f(MPI_DOUBLE_PRECISION);
    op = MPI_Op_c2f(MPI_SUM);
    mpi_comm_rank_(&world, &rank, &ierr);
    mpi_allreduce_(in, out, &n, &type, &op, &world, &ierr);
    if (ierr != MPI_SUCCESS || out[0] < 2)
        return 1;
    MPI_BARRIER(&world, &ierr);
    mpi_comm_dup__(&world, &dup, &ierr);
    mpi_iallreduce(in, out, &n, &type, &op, &dup, &req[0], &ierr);
    mpi_iallreduce(in, out, &n, &type, &op, &dup, &req[1], &ierr);
    mpi_waitall_(&two, req, statuses, &ierr);
    ompi_bcast_f(in, &n, &type, &root, &dup, &ierr);
    snprintf(path, sizeof path, "%s/done.%d", getenv("FR_TEST_DIR"), rank);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/go", getenv("FR_TEST_DIR"));
    while (access(path, F_OK) != 0)
        usleep(5000);
    mpi_finalize_(&ierr);
    return 0;
}
