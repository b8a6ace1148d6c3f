/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c - settings: precedence, and errors that name file and line */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/fs.h"

struct cfg {
    const char *listen, *site;
    int64_t port;
    double interval_s, ratio;
    uint64_t spool_bytes;
    bool act;
};

static const struct fr_config_row ROWS[] = {
    {"http", "listen", FR_OPT_STR, offsetof(struct cfg, listen), "127.0.0.1",
     "Address to listen on."},
    {"http", "port", FR_OPT_INT, offsetof(struct cfg, port), "7880", "Port to listen on."},
    {"agent", "interval", FR_OPT_SECONDS, offsetof(struct cfg, interval_s), "50ms",
     "How often rings are read."},
    {"agent", "spool-size", FR_OPT_BYTES, offsetof(struct cfg, spool_bytes), "64MiB",
     "How large the spool may grow."},
    {"policy", "act", FR_OPT_FLAG, offsetof(struct cfg, act), "false",
     "Whether decisions are carried out."},
    {"policy", "ratio", FR_OPT_NUM, offsetof(struct cfg, ratio), "0.75", "Where slow begins."},
    {"policy", "site", FR_OPT_STR, offsetof(struct cfg, site), NULL, "The site's name."},
    {0},
};

static char dir[64], one[96], two[96];
static struct fr_err err;

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fullrank-config-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(one, sizeof one, "%s/one.conf", dir);
    snprintf(two, sizeof two, "%s/two.conf", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("FULLRANK_HTTP_PORT");
    unsetenv("FULLRANK_AGENT_SPOOL_SIZE");
    return fr_fs_remove_tree(dir, NULL);
}

static void put(const char *path, const char *text)
{
    assert_int_equal(fr_fs_write_atomic(path, text, strlen(text), 0644, NULL), 0);
}

static void defaults_hold_where_nothing_else_is_said(void **state)
{
    const char *const files[] = {"/nonexistent/fullrank.conf", NULL};
    struct cfg c = {0};

    (void)state;
    assert_int_equal(fr_config_load(ROWS, &c, files, &err), 0);
    assert_string_equal(c.listen, "127.0.0.1");
    assert_int_equal(c.port, 7880);
    assert_true(c.interval_s == 0.05 && c.ratio == 0.75 && !c.act);
    assert_int_equal(c.spool_bytes, 64 << 20);
    assert_null(c.site);
    assert_int_equal(fr_config_load(ROWS, &c, NULL, &err), 0);
}

static void environment_beats_the_later_file_beats_the_earlier_beats_the_default(void **state)
{
    const char *const files[] = {one, two, NULL};
    struct cfg c = {0};

    (void)state;
    put(one,
        "[http]\nport = 1 ; a remark\nlisten=0.0.0.0\n[agent]\ninterval = 1s\nspool-size = 1KiB\n");
    put(two, "# remark\n[http]\r\n  port = 2\r\n\n[agent]\n\tinterval = 2s\n[policy]\nact = "
             "yes\nsite = Halle 3");
    setenv("FULLRANK_HTTP_PORT", "3", 1);
    setenv("FULLRANK_AGENT_SPOOL_SIZE", "3KiB", 1);
    assert_int_equal(fr_config_load(ROWS, &c, files, &err), 0);
    assert_int_equal(c.port, 3);
    assert_int_equal(c.spool_bytes, 3072);
    assert_true(c.interval_s == 2);
    assert_string_equal(c.listen, "0.0.0.0");
    assert_true(c.act);
    assert_string_equal(c.site, "Halle 3");
    assert_true(c.ratio == 0.75);
}

static void an_error_names_file_line_and_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *place, *says;
    } BAD[] = {
        {"[http]\n\n# x\nprot = 1\n", ":4:", "unknown key 'prot' in [http] (did you mean 'port'?)"},
        {"[http]\nfrobnicate = 1\n", ":2:", "unknown key 'frobnicate' in [http]"},
        {"[htpt]\nport = 1\n", ":2:", "unknown section [htpt]"},
        {"port = 1\n", ":1:", "unknown section []"},
        {"[http]\nport = many\n", ":2:", "http.port: 'many' is not a whole number"},
        {"[agent]\ninterval = 5 weeks\n", ":2:", "is not a duration"},
        {"[policy]\nact = perhaps\n", ":2:", "is not true or false"},
        {"[http]\nport = 5\njust words\n", ":3:", "neither [section] nor key = value"},
        {"[http]\nlisten = a\n   prot = 5\n", ":3:", "unknown key"}, /* indented: no continuation */
    };
    const char *const files[] = {one, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        struct cfg c = {0};

        put(one, BAD[i].text);
        assert_int_equal(fr_config_load(ROWS, &c, files, &err), -EINVAL);
        if (strncmp(err.text, one, strlen(one)) != 0 || !strstr(err.text, BAD[i].place) ||
            !strstr(err.text, BAD[i].says))
            fail_msg("'%s' lacks '%s' or '%s'", err.text, BAD[i].place, BAD[i].says);
    }
}

static void long_lines_and_binary_files_are_refused(void **state)
{
    const char *const files[] = {one, NULL};
    struct cfg c = {0};
    char text[600];

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "[http]\nlisten = ", 16);
    text[sizeof text - 1] = '\0';
    put(one, text);
    assert_int_equal(fr_config_load(ROWS, &c, files, &err), -EINVAL);
    assert_non_null(strstr(err.text, ":2: the line is longer"));
    assert_int_equal(fr_fs_write_atomic(one, "[http]\nport = 1\0\n", 17, 0644, NULL), 0);
    assert_int_equal(fr_config_load(ROWS, &c, files, &err), -EINVAL);
    assert_int_equal(fr_config_load(ROWS, &c, (const char *const[]){dir, NULL}, &err), -EISDIR);
}

static void a_bad_variable_is_named(void **state)
{
    struct cfg c = {0};

    (void)state;
    setenv("FULLRANK_HTTP_PORT", "-1", 1);
    assert_int_equal(fr_config_load(ROWS, &c, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "FULLRANK_HTTP_PORT: http.port: '-1' is not"));
}

static void printing_shows_value_and_origin_of_every_key(void **state)
{
    const char *const files[] = {one, NULL};
    struct cfg c = {0};
    char *text = NULL, place[192];
    size_t n;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    put(one, "[agent]\ninterval = 1500ms\n");
    setenv("FULLRANK_HTTP_PORT", "9", 1);
    assert_int_equal(fr_config_load(ROWS, &c, files, &err), 0);
    c.act = true; /* as an option would */
    fr_config_print(ROWS, &c, f);
    fclose(f);
    snprintf(place, sizeof place, "# default: 50ms; from: %s:2\ninterval = 1.5s\n", one);
    assert_non_null(strstr(text, place));
    assert_non_null(strstr(text, "[http]\n# Address to listen on.\n# default: 127.0.0.1; from: "
                                 "default\nlisten = 127.0.0.1\n"));
    assert_non_null(strstr(text, "from: FULLRANK_HTTP_PORT\nport = 9\n"));
    assert_non_null(strstr(text, "# default: false; from: option\nact = true\n"));
    assert_non_null(strstr(text, "# default: (none); from: default\nsite = \n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(defaults_hold_where_nothing_else_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(
            environment_beats_the_later_file_beats_the_earlier_beats_the_default, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_names_file_line_and_what_is_wrong, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(long_lines_and_binary_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_variable_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(printing_shows_value_and_origin_of_every_key, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
