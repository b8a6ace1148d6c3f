/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { ONWARDS = 0, BACKWARDS = 1 }; /* message tags and index of fr_slot.sent */

void fr_schedule_1f1b(int stage, int stages, int micros, struct fr_op *ret)
{
    int ahead = stages - 1 - stage < micros ? stages - 1 - stage : micros;
    int forward = 0, backward = 0, n = 0;

    while (forward < ahead)
        ret[n++] = (struct fr_op){false, forward++};
    while (forward < micros) {
        ret[n++] = (struct fr_op){false, forward++};
        ret[n++] = (struct fr_op){true, backward++};
    }
    while (backward < micros)
        ret[n++] = (struct fr_op){true, backward++};
}

void fr_pipeline_init(struct fr_pipeline *p, struct fr_model *model, int micros)
{
    const struct fr_group *pp = &model->grid->pp;
    int in_flight = pp->size - pp->index;

    *p = (struct fr_pipeline){.model = model, .micros = micros};
    p->slots = in_flight < micros ? in_flight : micros;
    p->slot = fr_zalloc((size_t)p->slots, sizeof *p->slot);
    for (int i = 0; i < p->slots; i++) {
        fr_act_init(&p->slot[i].act, model);
        p->slot[i].sent[ONWARDS] = p->slot[i].sent[BACKWARDS] = MPI_REQUEST_NULL;
    }
    p->op = fr_zalloc(2 * (size_t)micros, sizeof *p->op);
    fr_schedule_1f1b(pp->index, pp->size, micros, p->op);
    p->bucket = fr_zalloc(model->layers + 2, sizeof(MPI_Request));
}

void fr_pipeline_fini(struct fr_pipeline *p)
{
    for (int i = 0; i < p->slots; i++)
        fr_act_fini(&p->slot[i].act);
    free(p->slot);
    free(p->op);
    free(p->bucket);
    *p = (struct fr_pipeline){0};
}

/* A buffer that is still being sent must not be written. */
static void wait_sent(MPI_Request *sent)
{
    if (*sent != MPI_REQUEST_NULL)
        MPI_Wait(sent, MPI_STATUS_IGNORE);
}

/* Micro-batch `micro` through this stage; returns its loss on the last one. */
static double forward(struct fr_pipeline *p, const struct fr_batch *batch, int micro, float scale)
{
    const struct fr_model *m = p->model;
    const struct fr_group *pp = &m->grid->pp;
    struct fr_slot *slot = &p->slot[micro % p->slots];
    size_t row = (size_t)micro * m->n;
    int floats = (int)(m->n * m->d);

    wait_sent(&slot->sent[ONWARDS]);
    if (!m->first)
        MPI_Recv(slot->act.layer[0].x, floats, MPI_FLOAT, pp->index - 1, ONWARDS, pp->comm,
                 MPI_STATUS_IGNORE);
    fr_model_forward(m, &slot->act, batch->inputs + row);
    if (m->last)
        return fr_model_loss(m, &slot->act, batch->targets + row, scale);
    MPI_Isend(slot->act.out, floats, MPI_FLOAT, pp->index + 1, ONWARDS, pp->comm,
              &slot->sent[ONWARDS]);
    return 0;
}

static void backward(struct fr_pipeline *p, const struct fr_batch *batch, int micro,
                     const struct fr_ready *ready)
{
    struct fr_model *m = p->model;
    const struct fr_group *pp = &m->grid->pp;
    struct fr_slot *slot = &p->slot[micro % p->slots];
    int floats = (int)(m->n * m->d);

    wait_sent(&slot->sent[BACKWARDS]);
    if (!m->last)
        MPI_Recv(slot->act.dx, floats, MPI_FLOAT, pp->index + 1, BACKWARDS, pp->comm,
                 MPI_STATUS_IGNORE);
    fr_model_backward(m, &slot->act, batch->inputs + (size_t)micro * m->n, ready);
    if (!m->first)
        MPI_Isend(slot->act.dx, floats, MPI_FLOAT, pp->index - 1, BACKWARDS, pp->comm,
                  &slot->sent[BACKWARDS]);
}

static void wait_all_sent(struct fr_pipeline *p)
{
    for (int i = 0; i < p->slots; i++) {
        wait_sent(&p->slot[i].sent[ONWARDS]);
        wait_sent(&p->slot[i].sent[BACKWARDS]);
    }
}

static void start_bucket(void *context, size_t at, size_t count)
{
    struct fr_pipeline *p = context;

    MPI_Iallreduce(MPI_IN_PLACE, p->model->g + at, (int)count, MPI_FLOAT, MPI_SUM,
                   p->model->grid->dp.comm, &p->bucket[p->buckets++]);
}

double fr_pipeline_train(struct fr_pipeline *p, const struct fr_batch *batch, float scale)
{
    struct fr_model *m = p->model;
    const struct fr_ready replicas = {start_bucket, p};
    double loss = 0;

    memset(m->g, 0, m->params * sizeof *m->g);
    p->buckets = 0;
    for (int i = 0; i < 2 * p->micros; i++) {
        const struct fr_op *op = &p->op[i];
        bool final = op->micro == p->micros - 1 && m->grid->dp.size > 1;

        if (op->backward)
            backward(p, batch, op->micro, final ? &replicas : NULL);
        else
            loss += forward(p, batch, op->micro, scale);
    }
    wait_all_sent(p);
    if (p->buckets > 0)
        MPI_Waitall(p->buckets, p->bucket, MPI_STATUSES_IGNORE);
    /* first and last stage have each seen one use of the tied embedding */
    fr_sum_f32(&m->grid->embed, m->g + m->wte, m->vocab * m->d);
    return loss;
}

double fr_pipeline_eval(struct fr_pipeline *p, const struct fr_batch *batch)
{
    double loss = 0;

    for (int i = 0; i < p->micros; i++)
        loss += forward(p, batch, i, 0.0f);
    wait_all_sent(p);
    return loss;
}
