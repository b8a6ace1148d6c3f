/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - fullrank-train: a byte-level GPT on a data x pipeline x tensor grid
 *
 * The reference workload of fullrank, and a foreign user of it: everything it
 * tells fullrank is a call of <fullrank/fullrank.h>, each at the one obvious
 * place below. Read from the bottom: main, run, then the loop.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fullrank/fullrank.h>

#include "checkpoint.h"
#include "flops.h"
#include "gradcheck.h"
#include "kernels.h"
#include "lossfile.h"
#include "trainer.h"

#ifndef FR_VERSION
#define FR_VERSION "0"
#endif

#define PEAK_SLICES 8

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct job {
    const struct fr_options *o;
    struct fr_grid grid;
    struct fr_data data;
    struct fr_trainer trainer;
    struct fr_checkpoint checkpoint;
    FILE *losses;          /* rank 0, when asked for */
    bool lead;             /* rank 0 speaks for the job */
    int64_t first_step;    /* that this process runs */
    double peak_flops;     /* of one rank */
    const char *peak_from; /* how it is known */
    double flops_per_step, tokens_per_step;
};

static int complain(bool lead, const struct fr_err *err, int status)
{
    if (lead)
        fprintf(stderr, "fullrank-train: error: %s\n", err->text);
    return status;
}

static void warn(bool lead, const struct fr_err *err, const char *what)
{
    if (lead)
        fprintf(stderr, "fullrank-train: warning: %s (%s)\n", err->text, what);
}

/* ---- stalls on purpose ---- */

static void stand_still(const struct job *j, enum fr_pause_kind kind, int64_t step)
{
    double s = fr_options_pause_s(j->o, kind, step, j->grid.world.index), until = fr_now_s() + s;
    struct timespec t = {(time_t)s, (long)((s - floor(s)) * 1e9)};

    if (s <= 0)
        return;
    if (kind == FR_PAUSE_COMPILE) {
        while (fr_now_s() < until)
            ;
        return;
    }
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* ---- start ---- */

/* A rank can have a core, or its share of one where a machine holds more ranks than
 * cores: cores x what a core does / ranks of this machine. The mean over all ranks is the job's. */
static void find_peak(struct job *j)
{
    MPI_Comm machine;
    double flops;
    int ranks;

    if (j->o->peak_flops > 0) {
        j->peak_flops = j->o->peak_flops;
        j->peak_from = "given by --peak-flops";
    } else if (j->checkpoint.stamp.peak_flops > 0) {
        j->peak_flops = (double)j->checkpoint.stamp.peak_flops;
        j->peak_from = "as measured before the checkpoint";
    } else {
        MPI_Comm_split_type(j->grid.world.comm, MPI_COMM_TYPE_SHARED, j->grid.world.index,
                            MPI_INFO_NULL, &machine);
        MPI_Comm_size(machine, &ranks);
        MPI_Comm_free(&machine);
        flops = fr_flops_core(PEAK_SLICES) * fmin(1.0, (double)fr_cores() / ranks);
        fr_sum_f64(&j->grid.world, &flops, 1);
        j->peak_flops = floor(flops / j->grid.world.size);
        j->peak_from = "float32 GEMM 256^3 in CPU time, cores shared by the ranks of a machine";
    }
    j->checkpoint.stamp.peak_flops = (uint64_t)j->peak_flops;
}

static void print_header(const struct job *j)
{
    const struct fr_options *o = j->o;

    if (!j->lead || o->quiet)
        return;
    printf("model    layers %" PRId64 ", d-model %" PRId64 ", heads %" PRId64 ", seq %" PRId64
           ", %.0f parameters\n",
           o->layers, o->d_model, o->heads, o->seq, fr_model_params_total(o));
    printf("grid     dp %" PRId64 " x pp %" PRId64 " x tp %" PRId64 " = %d ranks\n", o->dp, o->pp,
           o->tp, j->grid.world.size);
    printf("batch    %" PRId64 " sequences, micro-batches of %" PRId64 ", %.0f tokens\n", o->batch,
           o->micro_batch, j->tokens_per_step);
    printf("data     %zu bytes, hash %016" PRIx64 "\n", j->data.len, j->data.hash);
    printf("flops    %.4g a step (forward and backward, causal, logits counted)\n",
           j->flops_per_step);
    printf("peak     %.2f GFLOP/s a rank (%s)\n", j->peak_flops * 1e-9, j->peak_from);
    if (j->first_step > 1)
        printf("resume   from step %" PRId64 "\n", j->first_step - 1);
    fflush(stdout);
}

static void state_grid(const struct fr_grid *grid)
{
    fullrank_grid(FULLRANK_DIM_TP, grid->tp.index, grid->tp.size);
    fullrank_grid(FULLRANK_DIM_PP, grid->pp.index, grid->pp.size);
    fullrank_grid(FULLRANK_DIM_DP, grid->dp.index, grid->dp.size);
}

static void state_plan(const struct job *j)
{
    const struct fullrank_plan plan = {
        .first_step = (uint64_t)j->first_step,
        .total_steps = (uint64_t)j->o->steps,
        .checkpoint_every = j->o->checkpoint_dir ? (uint64_t)j->o->checkpoint_every : 0,
        .last_checkpoint = (uint64_t)(j->first_step - 1),
        .tokens_per_step = j->tokens_per_step,
        .flops_per_step = j->flops_per_step,
        .peak_flops_per_rank = j->peak_flops,
    };

    fullrank_plan(&plan);
}

/* All ranks must have read the same text, or the run means nothing. */
static int same_data(const struct job *j, struct fr_err *err)
{
    uint64_t hash = j->data.hash;

    fr_share(&j->grid.world, &hash, sizeof hash);
    if (hash == j->data.hash)
        return 0;
    return fr_fail(
        err, -EINVAL,
        "data: rank %d has read other bytes than rank 0 (give all nodes the same --data)",
        j->grid.world.index);
}

/* Collective; a failure is the same on all ranks. */
static int open_job(struct job *j, struct fr_err *err)
{
    const struct fr_options *o = j->o;
    int64_t step = 0;
    int rc;

    rc = fr_data_open(o->data, o->data_count, (size_t)o->seq, &j->data, err);
    if ((rc = fr_agree(&j->grid, rc, err)) < 0 ||
        (rc = fr_agree(&j->grid, same_data(j, err), err)) < 0)
        return rc;
    fr_trainer_init(&j->trainer, o, &j->grid, &j->data);
    fr_checkpoint_init(&j->checkpoint, o, &j->grid, &j->trainer.model, j->data.hash);
    if (o->checkpoint_dir && (rc = fr_checkpoint_prepare(&j->checkpoint, err)) < 0)
        return rc;
    if (o->checkpoint_dir && o->resume) {
        fullrank_phase(FULLRANK_PHASE_RESTORE);
        if ((rc = fr_checkpoint_restore(&j->checkpoint, &step, err)) < 0)
            return rc;
        fullrank_phase(FULLRANK_PHASE_INIT);
    }
    j->first_step = step + 1;
    if (o->loss_file) {
        rc = j->lead ? fr_lossfile_open(o->loss_file, step, &j->losses, err) : 0;
        if ((rc = fr_agree(&j->grid, rc, err)) < 0)
            return rc;
    }
    j->tokens_per_step = (double)(o->batch * o->seq);
    j->flops_per_step =
        j->tokens_per_step * fr_flops_per_token(o->layers, o->d_model, o->seq, FR_VOCAB);
    return 0;
}

static void close_job(struct job *j)
{
    if (j->losses)
        fclose(j->losses);
    if (j->trainer.o)
        fr_trainer_fini(&j->trainer);
    fr_data_close(&j->data);
    fr_grid_fini(&j->grid);
}

/* ---- the loop ---- */

/* One optimizer step; returns the loss, the same on every rank, or NaN when the
 * gradient is no number: then the weights are left as they were. */
static double run_step(struct job *j, int64_t step)
{
    struct fullrank_step_result result = {.tokens = j->tokens_per_step};
    double norm;

    fullrank_step_begin((uint64_t)step);
    stand_still(j, FR_PAUSE_LOADER, step);
    stand_still(j, FR_PAUSE_COMPILE, step);
    fr_trainer_load(&j->trainer, FR_SPLIT_TRAIN, step);
    result.loss = fr_trainer_gradient(&j->trainer, &norm);
    if (isfinite(norm))
        fr_trainer_update(&j->trainer, step, norm);
    else
        result.loss = NAN;
    fullrank_step_end(&result);
    return result.loss;
}

static void run_eval(struct job *j, int64_t step)
{
    double loss;

    fullrank_phase(FULLRANK_PHASE_EVAL);
    stand_still(j, FR_PAUSE_EVAL, step);
    loss = fr_trainer_eval(&j->trainer);
    if (j->lead && !j->o->quiet) {
        printf("step %6" PRId64 "  eval loss %.4f\n", step, loss);
        fflush(stdout);
    }
    fullrank_phase(FULLRANK_PHASE_IDLE);
}

static void run_checkpoint(struct job *j, int64_t step)
{
    struct fr_err err = {0};

    fullrank_phase(FULLRANK_PHASE_CHECKPOINT);
    stand_still(j, FR_PAUSE_CHECKPOINT, step);
    if (fr_checkpoint_save(&j->checkpoint, step, &err) == 0)
        fullrank_checkpoint_done((uint64_t)step);
    else
        warn(j->lead, &err, "the older checkpoints stay, training goes on");
    fullrank_phase(FULLRANK_PHASE_IDLE);
}

/* The line of the steps since the last one. */
static void print_progress(const struct job *j, int64_t step, double loss, double seconds,
                           int64_t steps)
{
    double step_s = seconds / (double)steps, flops = j->flops_per_step / step_s;

    if (!j->lead || j->o->quiet)
        return;
    printf("step %6" PRId64 "  loss %.4f  %7.1f ms  %8.0f tokens/s  %7.2f GFLOP/s  MFU %5.1f %%\n",
           step, loss, step_s * 1e3, j->tokens_per_step / step_s, flops * 1e-9,
           100 * flops / (j->peak_flops * j->grid.world.size));
    fflush(stdout);
}

static void write_loss(struct job *j, int64_t step, double loss, double step_s)
{
    struct fr_err err;
    int rc;

    if (!j->losses || (rc = fr_lossfile_add(j->losses, step, loss, step_s)) == 0)
        return;
    fr_fail(&err, rc, "--loss-file %s: %s", j->o->loss_file, strerror(-rc));
    warn(j->lead, &err, "no more losses are written, training goes on");
    fclose(j->losses);
    j->losses = NULL;
}

static int train(struct job *j, struct fr_err *err)
{
    const struct fr_options *o = j->o;
    double loss = 0, seconds = 0;
    int64_t steps = 0;

    for (int64_t step = j->first_step; step <= o->steps; step++) {
        double start = fr_now_s(), step_s;
        bool last = step == o->steps;

        loss = run_step(j, step);
        step_s = fr_now_s() - start;
        seconds += step_s;
        steps++;
        if (!isfinite(loss)) /* alike on all ranks, so all leave here */
            return fr_fail(err, -EDOM,
                           "step %" PRId64 ": the loss is %f: training has diverged (lower --lr)",
                           step, loss);
        write_loss(j, step, loss, step_s);
        if (step % o->log_every == 0 || last || step == j->first_step) {
            print_progress(j, step, loss, seconds, steps);
            seconds = 0;
            steps = 0;
        }
        if (o->eval_every && step % o->eval_every == 0)
            run_eval(j, step);
        if (o->checkpoint_dir && (step % o->checkpoint_every == 0 || last))
            run_checkpoint(j, step);
    }
    if (j->lead && !o->quiet)
        printf("done     %" PRId64 " steps\n", o->steps);
    return 0;
}

static int check_gradients(struct job *j)
{
    double worst;
    int bad = fr_gradcheck(&j->trainer, !j->o->quiet, &worst);

    if (j->lead)
        printf("gradient check: %d tensors disagree, largest error %.2e, allowed %.2e\n", bad,
               worst, FR_GRADCHECK_TOLERANCE);
    return bad ? EXIT_FAILED : EXIT_DONE;
}

static int run(const struct fr_options *o)
{
    struct job j = {.o = o};
    struct fr_err err = {0};
    int world, rank, status = EXIT_DONE;

    fullrank_phase(FULLRANK_PHASE_INIT);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    j.lead = rank == 0;
    if (fr_options_check(o, world, &err) < 0)
        return complain(j.lead, &err, EXIT_USAGE);

    fr_kernels_init();
    fr_grid_init(&j.grid, (int)o->dp, (int)o->pp, (int)o->tp);
    state_grid(&j.grid);
    if (open_job(&j, &err) < 0) {
        status = complain(j.lead, &err, EXIT_FAILED);
    } else if (o->grad_check) {
        status = check_gradients(&j);
    } else {
        find_peak(&j);
        state_plan(&j);
        print_header(&j);
        if (train(&j, &err) < 0)
            status = complain(j.lead, &err, EXIT_FAILED);
    }
    fullrank_phase(FULLRANK_PHASE_IDLE);
    close_job(&j);
    return status;
}

/* Text for a person, once for the job. */
static int say(const struct fr_options *o, int rc, const struct fr_err *err, bool lead)
{
    if (rc < 0)
        return complain(lead, err, EXIT_USAGE);
    if (lead && o->help)
        fr_options_help();
    else if (lead)
        printf("fullrank-train %s\n", FR_VERSION);
    fflush(stdout);
    return EXIT_DONE;
}

/* Were we started by something that starts ranks? */
static bool is_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

int main(int argc, char *argv[])
{
    struct fr_options o;
    struct fr_err err = {0};
    int rc = fr_options_parse(argc, argv, &o, &err), rank, status;
    bool only_text = rc < 0 || o.help || o.version;

    if (only_text && !is_launched())
        return say(&o, rc, &err, true);
    /* A rank that waits gives its core away. Open MPI does so by itself only when
     * it knows that ranks outnumber cores, which it does not see across jobs or
     * containers; a busy wait there costs a factor of ten. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is a failed write, not a death */
    /* Also for a text alone: the launcher kills the others when one rank leaves
     * with an error, and only MPI_Finalize lets rank 0 speak before that. */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = only_text ? say(&o, rc, &err, rank == 0) : run(&o);
    MPI_Finalize();
    return status;
}
