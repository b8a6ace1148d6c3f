/* SPDX-License-Identifier: Apache-2.0 */
/* restarts.c - see restarts.h */
#define _GNU_SOURCE 1 /* popen "e" */
#include "cli/restarts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define WORD_BYTES 256

/* Launchers that can restart workers, and whether they do where nothing is said: torchrun's own
 * default is not to; NVRx's is there for nothing else. */
static const struct {
    const char *word; /* the last part of a path, or a module */
    bool restarts;
} LAUNCHERS[] = {
    {"torchrun", false},
    {"torch.distributed.run", false},
    {"torch.distributed.launch", false},
    {"ft_launcher", true},
    {"nvidia_resiliency_ext.fault_tolerance.launcher", true},
};

/* The next word of a shell line (or of a single argument, which has none of its blanks split off
 * when quoted: good enough to look for options), false at the end. */
static bool next_word(const char **at, char *word)
{
    static const char *const BLANK = " \t\n;&|()'\"";
    size_t n;

    *at += strspn(*at, BLANK);
    n = strcspn(*at, BLANK);
    if (n == 0)
        return false;
    snprintf(word, WORD_BYTES, "%.*s", (int)(n < WORD_BYTES ? n : WORD_BYTES - 1), *at);
    *at += n;
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

struct look {
    const char *launcher;
    bool restarts, said; /* said: by an option, with this number */
    uint64_t number;
    bool value; /* the next word is the number */
};

static void take_number(struct look *l, const char *text)
{
    uint64_t n;

    if (fr_parse_uint(text, 0, 1u << 30, &n) != 0)
        return;
    l->number = n;
    l->restarts = n > 0;
    l->said = true;
}

static void look_at(struct look *l, const char *word)
{
    for (size_t i = 0; !l->launcher && i < sizeof LAUNCHERS / sizeof LAUNCHERS[0]; i++)
        if (strcmp(base_name(word), LAUNCHERS[i].word) == 0) {
            l->launcher = LAUNCHERS[i].word;
            l->restarts = LAUNCHERS[i].restarts;
            return;
        }
    if (!l->launcher)
        return;
    if (l->value) {
        take_number(l, word);
        l->value = false;
    } else if (strcmp(word, "--max-restarts") == 0 || strcmp(word, "--max_restarts") == 0) {
        l->value = true;
    } else if (strncmp(word, "--max-restarts=", 15) == 0 ||
               strncmp(word, "--max_restarts=", 15) == 0) {
        take_number(l, word + 15);
    }
}

static uint64_t number(fr_getenv_fn *env, const char *name)
{
    const char *text = env(name);
    uint64_t n = 0;

    if (!text || fr_parse_uint(text, 0, 1u << 30, &n) != 0)
        return 0;
    return n;
}

static bool is_yes(const char *text)
{
    return text && *text && strcmp(text, "0") != 0 && strcmp(text, "no") != 0;
}

/* The value behind "key=" or "key   = " in text: a whole word. */
static bool has_setting(const char *text, const char *key, char value)
{
    size_t n = strlen(key);

    for (const char *at = text; (at = strstr(at, key)) != NULL; at += n) {
        const char *v = at + n;

        if (at != text && at[-1] != ' ' && at[-1] != '\n')
            continue;
        v += strspn(v, " ");
        if (*v != '=')
            continue;
        v++;
        v += strspn(v, " ");
        return v[0] == value && (v[1] == '\0' || v[1] == ' ' || v[1] == '\n');
    }
    return false;
}

bool fr_restarts_slurm_requeues(const char *job, const char *config)
{
    return has_setting(job, "Requeue", '1') && has_setting(config, "JobRequeue", '0');
}

/* What a command prints, cut to the room. */
static void run(const char *command, char *text, size_t room)
{
    FILE *f = popen(command, "re");
    size_t n = f ? fread(text, 1, room - 1, f) : 0;

    text[n] = '\0';
    if (f)
        pclose(f);
}

bool fr_restarts_ask_slurm(const char *job_id)
{
    static char job[8192], config[65536];
    char command[96];
    uint64_t id;

    if (fr_parse_uint(job_id, 1, UINT32_MAX, &id) != 0)
        return false;
    snprintf(command, sizeof command, "timeout 3 scontrol show job -o %llu 2>/dev/null",
             (unsigned long long)id);
    run(command, job, sizeof job);
    if (!job[0])
        return false;
    run("timeout 3 scontrol show config 2>/dev/null", config, sizeof config);
    return fr_restarts_slurm_requeues(job, config);
}

char *fr_restarts_owner(char *const *command, fr_getenv_fn *env, char *text, size_t n)
{
    struct look l = {0};
    char word[WORD_BYTES];

    *text = '\0';
    for (size_t i = 0; command && command[i]; i++)
        for (const char *at = command[i]; next_word(&at, word);)
            look_at(&l, word);
    if (l.launcher && !l.said && env("PET_MAX_RESTARTS"))
        take_number(&l, env("PET_MAX_RESTARTS")); /* torchrun reads its options from there, too */
    if (l.restarts && l.said)
        snprintf(text, n, "%s --max-restarts %llu", l.launcher, (unsigned long long)l.number);
    else if (l.restarts)
        snprintf(text, n, "%s", l.launcher);
    else if (number(env, "TORCHELASTIC_MAX_RESTARTS"))
        snprintf(text, n, "torchrun, whose worker this is");
    else if (is_yes(env("SUBMITIT_EXECUTOR")))
        snprintf(text, n, "submitit");
    else if (env("SLURM_JOB_ID") && is_yes(env("SBATCH_REQUEUE")))
        snprintf(text, n, "Slurm (--requeue)");
    else if (env("SLURM_JOB_ID") && number(env, "SLURM_RESTART_COUNT"))
        snprintf(text, n, "Slurm, which has requeued this job");
    return text;
}
