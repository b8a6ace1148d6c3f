/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - see config.h; the only user of inih */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/xalloc.h"

#define FILE_MAX_BYTES (1u << 20)
#define LINE_MAX_BYTES 190 /* inih reads lines of up to 200 bytes */

/* Where a value came from, and the text it had then; kept as long as the process, which is what
 * holds the strings of the settings. Guarded by lock. */
struct origin {
    struct origin *next;
    const void *cfg;
    const struct fr_config_row *row;
    char *from;  /* "default", "file:line" or the variable's name */
    char *value; /* NULL: the row has no default and nothing was said */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct origin *origins;

static void *field_of(const struct fr_config_row *row, const void *cfg)
{
    return (char *)cfg + row->offset;
}

static struct origin *find_origin(const struct fr_config_row *row, const void *cfg)
{
    struct origin *o = origins;

    while (o && (o->row != row || o->cfg != cfg))
        o = o->next;
    return o;
}

static void remember(const struct fr_config_row *row, const void *cfg, char *from, char *value)
{
    struct origin *o = fr_xalloc(sizeof *o);

    *o = (struct origin){.cfg = cfg, .row = row, .from = from, .value = value};
    pthread_mutex_lock(&lock);
    o->next = origins; /* the newest is found first; older ones stay, a copy of *cfg may use their
                          strings */
    origins = o;
    pthread_mutex_unlock(&lock);
}

static int set_value(const struct fr_config_row *row, void *cfg, const char *text, const char *from,
                     struct fr_err *err)
{
    const char *expected;
    char *value = fr_xstrdup(text);

    if (fr_opt_assign(row->kind, field_of(row, cfg), value, &expected) < 0) {
        free(value);
        return fr_fail(err, -EINVAL, "%s: %s.%s: '%.100s' is not %s", from, row->section, row->key,
                       text, expected);
    }
    remember(row, cfg, fr_xstrdup(from), value);
    return 0;
}

/* What the two callbacks of inih share. */
struct reading {
    const struct fr_config_row *rows;
    void *cfg;
    const char *path;
    const char *text; /* what is left of the file */
    int line;         /* the one that inih saw last */
    int rc;           /* the first failure; the rest is then skipped */
    struct fr_err *err;
};

static int refuse(struct reading *r, const char *what)
{
    if (r->rc == 0)
        r->rc = fr_fail(r->err, -EINVAL, "%s:%d: %s", r->path, r->line, what);
    return 0;
}

/* inih's fgets: it counts lines for our messages and takes indentation away, which inih would read
 * as the continuation of the line before. */
static char *next_line(char *out, int room, void *arg)
{
    struct reading *r = arg;
    size_t n = strcspn(r->text, "\n");
    const char *p = r->text;

    if (!*p || r->rc < 0)
        return NULL;
    r->text += n + (p[n] == '\n');
    r->line++;
    while (n && (*p == ' ' || *p == '\t')) {
        p++;
        n--;
    }
    if (n > LINE_MAX_BYTES || (int)n + 2 > room) {
        refuse(r, "the line is longer than 190 bytes");
        return NULL;
    }
    memcpy(out, p, n);
    out[n] = '\n';
    out[n + 1] = '\0';
    return out;
}

static int unknown_key(struct reading *r, const char *section, const char *key)
{
    FR_CLEANUP(fr_freep) const char **words = NULL;
    const struct fr_config_row *row;
    const char *near;
    size_t n = 0, count = 0;
    char text[FR_ERR_TEXT_BYTES];

    for (row = r->rows; row->key; row++)
        n++;
    words = fr_xcalloc(n + 1, sizeof *words);
    for (row = r->rows; row->key; row++)
        if (strcmp(row->section, section) == 0)
            words[count++] = row->key;
    if (count == 0) {
        snprintf(text, sizeof text, "unknown section [%.100s]", section);
        return refuse(r, text);
    }
    near = fr_opt_nearest(key, words);
    snprintf(text, sizeof text, "unknown key '%.100s' in [%.100s]%s%s%s", key, section,
             near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    return refuse(r, text);
}

static int take_setting(void *arg, const char *section, const char *key, const char *value)
{
    struct reading *r = arg;
    const struct fr_config_row *row = r->rows;
    FR_CLEANUP(fr_freep) char *from = NULL;

    if (r->rc < 0)
        return 0;
    while (row->key && (strcmp(row->section, section) != 0 || strcmp(row->key, key) != 0))
        row++;
    if (!row->key)
        return unknown_key(r, section, key);
    from = fr_xasprintf("%s:%d", r->path, r->line);
    r->rc = set_value(row, r->cfg, value, from, r->err);
    return r->rc == 0;
}

static int load_file(const struct fr_config_row *rows, void *cfg, const char *path,
                     struct fr_err *err)
{
    struct reading r = {.rows = rows, .cfg = cfg, .path = path, .err = err};
    FR_CLEANUP(fr_buf_fini) struct fr_buf text = FR_BUF_INIT;
    int rc = fr_fs_read(path, FILE_MAX_BYTES, &text, err);

    if (rc == -ENOENT || rc == -ENOTDIR)
        return 0;
    if (rc < 0)
        return rc;
    if (memchr(fr_buf_str(&text), '\0', text.len))
        return fr_fail(err, -EINVAL, "%s: is no text file", path);
    r.text = fr_buf_str(&text);
    rc = ini_parse_stream(next_line, &r, take_setting, &r);
    if (r.rc < 0)
        return r.rc;
    if (rc > 0)
        return fr_fail(err, -EINVAL, "%s:%d: neither [section] nor key = value", path, rc);
    return rc < 0 ? fr_fail(err, -ENOMEM, "%s: cannot parse", path) : 0;
}

/* FULLRANK_<SECTION>_<KEY> */
static char *variable_of(const struct fr_config_row *row)
{
    char *name = fr_xasprintf("FULLRANK_%s_%s", row->section, row->key);

    for (char *p = name; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return name;
}

static int load_environment(const struct fr_config_row *rows, void *cfg, struct fr_err *err)
{
    for (const struct fr_config_row *row = rows; row->key; row++) {
        FR_CLEANUP(fr_freep) char *name = variable_of(row);
        const char *value = getenv(name);
        int rc = value ? set_value(row, cfg, value, name, err) : 0;

        if (rc < 0)
            return rc;
    }
    return 0;
}

int fr_config_load(const struct fr_config_row *rows, void *cfg, const char *const *files,
                   struct fr_err *err)
{
    int rc;

    for (const struct fr_config_row *row = rows; row->key; row++) {
        if (!row->def) { /* the caller's zero stands: NULL for a string */
            remember(row, cfg, fr_xstrdup("default"), NULL);
            continue;
        }
        rc = set_value(row, cfg, row->def, "default", err);
        if (rc < 0)
            return rc;
    }
    for (; files && *files; files++) {
        rc = load_file(rows, cfg, *files, err);
        if (rc < 0)
            return rc;
    }
    return load_environment(rows, cfg, err);
}

/* The origin, or "option" when the value was changed after loading. */
static const char *origin_text(const struct fr_config_row *row, const void *cfg, const char *value)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf loaded = FR_BUF_INIT;
    const struct origin *o = find_origin(row, cfg);
    union {
        bool flag;
        const char *str;
        int64_t i;
        double num;
        uint64_t bytes;
        int count;
    } again = {.bytes = 0};

    if (o && o->value && fr_opt_assign(row->kind, &again, o->value, NULL) < 0)
        return o->from;
    fr_opt_text(row->kind, &again, &loaded);
    if (strcmp(fr_buf_str(&loaded), value) != 0)
        return "option";
    return o ? o->from : "default";
}

void fr_config_print(const struct fr_config_row *rows, const void *cfg, FILE *to)
{
    const char *section = "";

    pthread_mutex_lock(&lock);
    for (const struct fr_config_row *row = rows; row->key; row++) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf value = FR_BUF_INIT;

        if (strcmp(section, row->section) != 0)
            fprintf(to, "%s[%s]\n", *section ? "\n" : "", row->section);
        section = row->section;
        fr_opt_text(row->kind, field_of(row, cfg), &value);
        fprintf(to, "# %s\n# default: %s; from: %s\n%s = %s\n", row->text,
                row->def ? row->def : "(none)", origin_text(row, cfg, fr_buf_str(&value)), row->key,
                fr_buf_str(&value));
    }
    pthread_mutex_unlock(&lock);
}
