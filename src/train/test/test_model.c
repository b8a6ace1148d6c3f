/* SPDX-License-Identifier: Apache-2.0 */
/* Shards against the whole model, and the gradient of one rank against its loss. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data.h"
#include "gradcheck.h"
#include "kernels.h"
#include "trainer.h"

static struct fr_options options(void)
{
    return (struct fr_options){.dp = 1,
                               .pp = 1,
                               .tp = 1,
                               .layers = 4,
                               .d_model = 32,
                               .heads = 4,
                               .seq = 16,
                               .batch = 4,
                               .micro_batch = 2,
                               .steps = 100,
                               .warmup = 4,
                               .seed = 3,
                               .lr = 5e-3,
                               .min_lr = 1e-4,
                               .weight_decay = 0.1,
                               .clip = 1,
                               .eval_batches = 1};
}

/* A place in a grid without anybody to talk to: enough to make the tensors. */
static struct fr_grid place(int pp, int pp_index, int tp, int tp_index)
{
    return (struct fr_grid){.world = {MPI_COMM_NULL, 0, 1},
                            .tp = {MPI_COMM_NULL, tp_index, tp},
                            .pp = {MPI_COMM_NULL, pp_index, pp},
                            .dp = {MPI_COMM_NULL, 0, 1},
                            .embed = {MPI_COMM_NULL, 0, 1}};
}

static const struct fr_tensor *find(const struct fr_model *m, enum fr_kind kind, int64_t layer)
{
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].kind == kind && m->tensor[i].layer == layer)
            return &m->tensor[i];
    return NULL;
}

static float element(const struct fr_model *m, enum fr_kind kind, int64_t layer, size_t r, size_t c)
{
    const struct fr_tensor *t = find(m, kind, layer);

    assert_non_null(t);
    assert_true(r < t->rows && c < t->cols);
    return m->w[t->at + r * t->cols + c];
}

static void shards_of_any_grid_start_as_parts_of_the_same_whole(void **state)
{
    struct fr_options o = options();
    struct fr_grid alone = place(1, 0, 1, 0);
    struct fr_model whole;
    size_t d = 32;

    (void)state;
    fr_model_init(&whole, &o, &alone);
    for (int stage = 0; stage < 2; stage++)
        for (int shard = 0; shard < 2; shard++) {
            struct fr_grid grid = place(2, stage, 2, shard);
            struct fr_model part;
            size_t x = (size_t)shard;

            fr_model_init(&part, &o, &grid);
            for (int64_t l = 2 * stage; l < 2 * stage + 2; l++)
                for (size_t i = 0; i < d / 2; i++)
                    for (size_t j = 0; j < d; j++) {
                        for (size_t q = 0; q < 3; q++) /* query, key, value */
                            assert_true(element(&part, FR_QKV_W, l, q * d / 2 + i, j) ==
                                        element(&whole, FR_QKV_W, l, q * d + x * d / 2 + i, j));
                        assert_true(element(&part, FR_PROJ_W, l, j, i) ==
                                    element(&whole, FR_PROJ_W, l, j, x * d / 2 + i));
                        assert_true(element(&part, FR_FC_W, l, i, j) ==
                                    element(&whole, FR_FC_W, l, x * 2 * d + i, j));
                        assert_true(element(&part, FR_FC2_W, l, j, i) ==
                                    element(&whole, FR_FC2_W, l, j, x * 2 * d + i));
                    }
            for (size_t j = 0; j < d; j++)
                assert_true(element(&part, FR_WTE, -1, 65, j) ==
                            element(&whole, FR_WTE, -1, 65, j));
            fr_model_fini(&part);
        }
    fr_model_fini(&whole);
}

static void every_parameter_counts_once_over_all_shards(void **state)
{
    static const int grids[][2] = {{1, 1}, {1, 4}, {4, 1}, {2, 2}, {4, 4}};
    struct fr_options o = options();
    /* GPT-2's count: V D + S D + L (12 D^2 + 13 D) + 2 D */
    double d = 32, expected = 256 * d + 16 * d + 4 * (12 * d * d + 13 * d) + 2 * d;

    (void)state;
    assert_true(fr_model_params_total(&o) == expected);
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        size_t counted = 0;

        for (int p = 0; p < grids[i][0]; p++)
            for (int t = 0; t < grids[i][1]; t++) {
                struct fr_grid grid = place(grids[i][0], p, grids[i][1], t);
                struct fr_model m;

                fr_model_init(&m, &o, &grid);
                for (size_t k = 0; k < m.tensors; k++)
                    if (m.tensor[k].counted)
                        counted += m.tensor[k].rows * m.tensor[k].cols;
                fr_model_fini(&m);
            }
        assert_true((double)counted == expected);
    }
}

static void initial_weights_have_the_mean_and_deviation_that_they_should(void **state)
{
    struct fr_options o = options();
    struct fr_grid alone = place(1, 0, 1, 0);
    struct fr_model m;
    const struct fr_tensor *t;
    double s = 0, s2 = 0, n;

    (void)state;
    fr_model_init(&m, &o, &alone);
    t = find(&m, FR_WTE, -1);
    n = (double)(t->rows * t->cols); /* 8192: the mean is good to 0.02 / 90 */
    for (size_t i = 0; i < t->rows * t->cols; i++) {
        double w = (double)m.w[t->at + i];
        s += w;
        s2 += w * w;
    }
    assert_true(fabs(s / n) < 4 * 0.02 / sqrt(n));
    assert_true(fabs(sqrt(s2 / n) / 0.02 - 1) < 0.04);
    fr_model_fini(&m);
}

static void gradients_of_every_tensor_agree_with_finite_differences(void **state)
{
    struct fr_options o = options();
    struct fr_grid alone = place(1, 0, 1, 0);
    const char *path = FR_SOURCE_DIR "/LICENSE";
    struct fr_data data;
    struct fr_trainer t;
    double worst = -1;

    (void)state;
    assert_int_equal(fr_data_open(&path, 1, (size_t)o.seq, &data, NULL), 0);
    fr_trainer_init(&t, &o, &alone, &data);
    assert_int_equal(fr_gradcheck(&t, false, &worst), 0);
    assert_true(worst >= 0 && worst < FR_GRADCHECK_TOLERANCE);
    fr_trainer_fini(&t);
    fr_data_close(&data);
}

static void the_same_seed_gives_the_same_bits_and_another_one_does_not(void **state)
{
    struct fr_grid alone = place(1, 0, 1, 0);
    const char *path = FR_SOURCE_DIR "/LICENSE";
    struct fr_data data;
    double loss[3] = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fr_options o = options();
        struct fr_trainer t;
        double norm;

        o.seed = i < 2 ? 3 : 4;
        assert_int_equal(fr_data_open(&path, 1, (size_t)o.seq, &data, NULL), 0);
        fr_trainer_init(&t, &o, &alone, &data);
        for (int64_t step = 1; step <= 12; step++) {
            fr_trainer_load(&t, FR_SPLIT_TRAIN, step);
            loss[i] = fr_trainer_gradient(&t, &norm);
            fr_trainer_update(&t, step, norm);
        }
        fr_trainer_fini(&t);
        fr_data_close(&data);
    }
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    assert_true(loss[0] != loss[2]);
    assert_true(loss[0] < 5.4); /* it learns: log 256 = 5.545 */
}

/* A mean does not depend on how the batch is cut. */
static void micro_batches_give_the_gradient_of_the_whole_batch(void **state)
{
    struct fr_grid alone = place(1, 0, 1, 0);
    const char *path = FR_SOURCE_DIR "/LICENSE";
    struct fr_data data;
    double loss[2], norm[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fr_options o = options();
        struct fr_trainer t;

        o.micro_batch = i ? 4 : 1;
        assert_int_equal(fr_data_open(&path, 1, (size_t)o.seq, &data, NULL), 0);
        fr_trainer_init(&t, &o, &alone, &data);
        fr_trainer_load(&t, FR_SPLIT_TRAIN, 1);
        loss[i] = fr_trainer_gradient(&t, &norm[i]);
        fr_trainer_fini(&t);
        fr_data_close(&data);
    }
    assert_true(fabs(loss[0] / loss[1] - 1) < 1e-6);
    assert_true(fabs(norm[0] / norm[1] - 1) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_of_any_grid_start_as_parts_of_the_same_whole),
        cmocka_unit_test(every_parameter_counts_once_over_all_shards),
        cmocka_unit_test(initial_weights_have_the_mean_and_deviation_that_they_should),
        cmocka_unit_test(gradients_of_every_tensor_agree_with_finite_differences),
        cmocka_unit_test(the_same_seed_gives_the_same_bits_and_another_one_does_not),
        cmocka_unit_test(micro_batches_give_the_gradient_of_the_whole_batch),
    };

    fr_kernels_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
