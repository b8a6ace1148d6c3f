/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - the HTML report: hostile names stay text, nothing is asked of the network; loss
 * files */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "cli/losses.h"
#include "cli/report.h"
#include "cli/svg.h"

#define EVIL "\\\"><script>alert(1)</script><img src=x onerror='y'>&"

static struct fr_json *parse(const char *text)
{
    struct fr_json *json = NULL;
    struct fr_err err = FR_ERR_INIT;

    if (fr_json_parse(text, strlen(text), &json, &err) < 0)
        fail_msg("%s", err.text);
    return json;
}

static void hostile_names_stay_text_in_the_html_report(void **state)
{
    static const char JOB[] =
        "{\"job\":\"" EVIL "\",\"name\":\"" EVIL "\",\"state\":\"" EVIL
        "\",\"step\":3,\"total_steps\":3,\"attempt\":1,\"submitted_at\":\"2026-03-01T12:00:00."
        "000Z\","
        "\"attempts\":[{\"attempt\":1,\"nodes\":[\"" EVIL
        "\"],\"started_at\":\"2026-03-01T12:00:01.000Z\",\"end_reason\":\"" EVIL "\"}],"
        "\"goodput\":{\"wall_s\":2,\"error_s\":0,\"goodput_ratio\":0.5,\"buckets\":[{\"name\":"
        "\"" EVIL "\",\"seconds\":2,\"ratio\":1,\"text\":\"" EVIL "\"}]}}";
    static const char INCIDENTS[] = "{\"items\":[{\"id\":1,\"kind\":\"" EVIL "\",\"node\":\"" EVIL
                                    "\",\"cause\":\"" EVIL "\",\"evidence\":[\"" EVIL "\"],"
                                    "\"named_at\":\"2026-03-01T12:00:01.500Z\"}]}";
    static const char DECISION[] =
        "{\"id\":1,\"incident\":1,\"choice\":\"" EVIL "\",\"node\":\"" EVIL "\",\"reason\":\"" EVIL
        "\",\"decided_at\":\"2026-03-01T12:00:01.600Z\","
        "\"actions\":[{\"kind\":\"" EVIL "\",\"target\":\"" EVIL
        "\",\"state\":\"done\",\"started_at\":\"2026-03-01T12:00:01.700Z\"}]}";
    struct fr_report_step steps[3];
    struct fr_json *decision = parse(DECISION);
    struct fr_fault fault = {.kind = "kill",
                             .at_unix_ns = 1772366401000000000ll,
                             .node = "<b>\"'&",
                             .rank = 1,
                             .incident = 1,
                             .named_rank = 1,
                             .detect_s = 0.5,
                             .recover_s = NAN,
                             .detect_steps = NAN};
    struct fr_report r = {.job = parse(JOB),
                          .incidents = parse(INCIDENTS),
                          .decision = &decision,
                          .ndecision = 1,
                          .steps = steps,
                          .nsteps = 3,
                          .submitted_unix_ns = 1772366400000000000ll,
                          .wall_s = 2,
                          .faults = &fault,
                          .nfaults = 1,
                          .title = "<t>",
                          .loss_bit_exact = 1,
                          .seed = 1};
    struct fr_buf out = FR_BUF_INIT;
    const char *html;

    (void)state;
    for (int i = 0; i < 3; i++)
        steps[i] = (struct fr_report_step){.attempt = 1,
                                           .step = (uint64_t)i + 1,
                                           .begin_s = 0.1 * i,
                                           .end_s = 0.1 * i + 0.1,
                                           .step_s = 0.1,
                                           .loss = 5 - i};
    fr_report_html(&r, &out);
    html = fr_buf_str(&out);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "<img"));
    assert_null(strstr(html, "<b>\""));
    assert_null(strstr(html, "<t>"));
    assert_non_null(strstr(html, "&lt;script&gt;"));
    assert_null(strstr(html, "http://")); /* nothing from elsewhere, not even a namespace */
    assert_null(strstr(html, "https://"));
    assert_null(strstr(html, "url("));
    assert_null(strstr(html, "=\"nan"));
    for (const char *p = html; (p = strchr(p, '<'));
         p++) /* no attribute was broken out of: every tag closes before the next begins */
        assert_true(strcspn(p + 1, "<>") == (size_t)(strchr(p, '>') - p - 1));
    fr_buf_fini(&out);
    fr_json_free(r.job);
    fr_json_free(r.incidents);
    fr_json_free(decision);
}

static void escaping_leaves_no_character_with_a_meaning(void **state)
{
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    fr_html_escape(&out, "<a href='x' b=\"y\">&\001\x7f\xc3\xa9");
    assert_string_equal(
        fr_buf_str(&out),
        "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
    fr_buf_reset(&out);
    fr_html_escape(&out, NULL);
    assert_string_equal(fr_buf_str(&out), "");
    fr_buf_fini(&out);
}

/* Property: a tick is 1, 2 or 5 times a power of ten and cuts the range into half to twice as many
 * parts as asked for. */
static void ticks_are_round_and_about_as_many_as_asked(void **state)
{
    (void)state;
    for (double range = 1e-6; range < 1e9; range *= 1.07) {
        double step = fr_svg_nice(range, 8), m = step / pow(10, floor(log10(step) + 1e-9));

        assert_true(fabs(m - 1) < 1e-6 || fabs(m - 2) < 1e-6 || fabs(m - 5) < 1e-6);
        assert_true(range / step > 4 && range / step < 16);
    }
}

static char loss_dir[64];

static const char *write_file(const char *name, const char *text)
{
    static char path[2][128];
    static int turn;
    struct fr_err err = FR_ERR_INIT;

    turn = !turn;
    snprintf(path[turn], sizeof path[0], "%s/%s", loss_dir, name);
    assert_int_equal(fr_fs_write_atomic(path[turn], text, strlen(text), 0600, &err), 0);
    return path[turn];
}

static int compare(const char *a, const char *b, uint64_t steps)
{
    const char *pa = write_file("a", a), *pb = write_file("b", b);

    return fr_losses_compare(pa, pb, steps, NULL);
}

static void losses_are_equal_only_when_every_step_is_there_with_the_same_bits(void **state)
{
#define L(step, bits) "{\"step\":" #step ",\"loss\":1.5,\"loss_bits\":\"" bits "\"}\n"
#define A             L(1, "3ff8000000000000") L(2, "3ff0000000000001")

    (void)state;
    strcpy(loss_dir, "/tmp/fullrank-test-loss-XXXXXX");
    assert_non_null(mkdtemp(loss_dir));
    assert_int_equal(compare(A, A, 2), 1);
    assert_int_equal(compare(A, A, 3), 0); /* step 3 is nowhere */
    assert_int_equal(compare(A, L(1, "3ff8000000000000") L(2, "3ff0000000000000"), 2),
                     0);                                            /* one bit */
    assert_int_equal(compare(A, L(1, "3ff8000000000000"), 2), 0);   /* missing */
    assert_int_equal(compare(A "{\"step\":2,\"loss_b", A, 2), 1);   /* a torn line */
    assert_int_equal(compare(A L(2, "3ff0000000000001"), A, 2), 1); /* done again, alike */
    assert_int_equal(compare(A L(2, "3ff0000000000002"), A, 2), 0); /* done again, not alike */
    assert_true(fr_losses_compare("/nonexistent", "/nonexistent", 2, NULL) < 0);
    fr_fs_remove_tree(loss_dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_names_stay_text_in_the_html_report),
        cmocka_unit_test(escaping_leaves_no_character_with_a_meaning),
        cmocka_unit_test(ticks_are_round_and_about_as_many_as_asked),
        cmocka_unit_test(losses_are_equal_only_when_every_step_is_there_with_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
