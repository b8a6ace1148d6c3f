/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - see ledger.h: opening and closing; the rest of it is in writer.c, reader.c and query.c
 */
#include "store/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "store/schema.h"
#include "store/writer.h"

/* A file up to this size is read through at the start (quick_check, some 0.2 s); a larger one would
 * keep the controller away from its jobs for too long, and tells of its damage when the damaged
 * page is read. */
#define CHECK_BYTES (64ll << 20)

static void closep(struct fr_ledger **p)
{
    fr_ledger_close(*p);
}

static int sqlite_open(struct fr_ledger *lg, struct fr_err *err)
{
    int rc = sqlite3_open_v2(
        lg->path, &lg->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK) {
        rc = fr_db_errno(lg->db, rc);
        return fr_fail(err, rc, "%s: cannot open the ledger: %s (%s)", lg->path,
                       sqlite3_errmsg(lg->db), strerror(-rc));
    }
    fr_db_settle(lg->db);
    /* Until the file is known to be ours and whole, closing it must not write its WAL back into it.
     */
    sqlite3_db_config(lg->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return 0;
}

static int refuse_damage(struct fr_ledger *lg, struct fr_err *err)
{
    sqlite3_stmt *st = NULL;
    const char *said;
    int rc = sqlite3_prepare_v2(lg->db, "PRAGMA quick_check(1)", -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : sqlite3_errmsg(lg->db);
    rc = said && strcmp(said, "ok") == 0 ? 0 : -EUCLEAN;
    if (rc < 0) {
        char *line = fr_xstrdup(said ? said : "out of memory");

        line[strcspn(line, "\n")] = ' ';
        fr_fail(err, rc,
                "%s: ledger is damaged (%s); nothing was changed (restore a copy, or give another"
                " --state)",
                lg->path, line);
        free(line);
    }
    sqlite3_finalize(st);
    return rc;
}

/* WAL: readers do not wait for the writer. FULL: a commit is on the disk when it returns. The WAL
 * file stays when the last connection closes, so that readers without the right to write the folder
 * can open the ledger. */
static int settle_journal(struct fr_ledger *lg, struct fr_err *err)
{
    int keep = 1, rc;

    rc = fr_db_exec(lg->db, lg->path, "set up the ledger's journal",
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                    " PRAGMA journal_size_limit = 67108864",
                    err);
    if (rc < 0)
        return rc;
    sqlite3_file_control(lg->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    sqlite3_db_config(lg->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return 0;
}

/* A file that was just made is only there after a power loss when its folder is on the disk too. */
static int sync_folder(const char *path, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *folder = fr_xstrdup(path);
    char *slash = strrchr(folder, '/');
    int fd, rc = 0;

    if (slash)
        slash[slash == folder] = '\0'; /* "/x" lies in "/" */
    fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems cannot sync a folder and say EINVAL: there it needs none. */
    if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
        rc = fr_fail(err, -errno, "%s: cannot sync its folder: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

int fr_ledger_open(const char *path, struct fr_ledger **ret, struct fr_err *err)
{
    FR_CLEANUP(closep) struct fr_ledger *lg = fr_xalloc(sizeof *lg);
    struct stat st = {0};
    int rc, version;

    lg->path = fr_xstrdup(path);
    lg->lock.fd = -1;
    fr_writer_init(lg);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return fr_fail(err, -EMEDIUMTYPE, "%s: is no file, so no ledger (give another --state)",
                       path);
    if (st.st_size == 1) /* which SQLite takes for an empty file, and would overwrite */
        return fr_fail(err, -EMEDIUMTYPE,
                       "%s: is no ledger, nor any SQLite database (give another --state)", path);
    rc = fr_lock_take(&lg->lock, path, err);
    if (rc < 0)
        return rc;

    rc = sqlite_open(lg, err);
    if (rc < 0)
        return rc;
    version = fr_schema_check(lg->db, path, err);
    if (version < 0)
        return version;
    if (version > 0 && st.st_size <= CHECK_BYTES && (rc = refuse_damage(lg, err)) < 0)
        return rc;

    if ((rc = settle_journal(lg, err)) < 0 ||
        (rc = fr_schema_migrate(lg->db, path, version, err)) < 0 ||
        (rc = sync_folder(path, err)) < 0 || (rc = fr_writer_start(lg, err)) < 0)
        return rc;

    *ret = lg;
    lg = NULL; /* the caller owns it now */
    return 0;
}

void fr_ledger_close(struct fr_ledger *lg)
{
    if (!lg)
        return;
    fr_writer_stop(lg);
    sqlite3_close(lg->db);
    fr_lock_drop(&lg->lock);
    pthread_cond_destroy(&lg->work);
    pthread_cond_destroy(&lg->room);
    pthread_cond_destroy(&lg->done);
    pthread_mutex_destroy(&lg->mutex);
    free(lg->path);
    free(lg);
}
