/* SPDX-License-Identifier: MIT */
/* The test harness; harness.h says how to use it. All output goes through put() and flush(). */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_NOTHING_MATCHED = 2, EXIT_ALL_SKIPPED = 77 };

static struct harness_test *tests; /* by line */
static struct harness_test *current;
static int                  current_number;
static const char          *skip_reason; /* of the current test; NULL: not skipped */
static atomic_flag          failing = ATOMIC_FLAG_INIT;

static char   line_text[HARNESS_TEXT_BYTES];
static size_t line_bytes;

/* Appends text, and cuts what does not fit. */
static void put(const char *text)
{
    if (text == NULL) text = "NULL";
    while (*text != '\0' && line_bytes < sizeof line_text) line_text[line_bytes++] = *text++;
}

static void put_number(unsigned long long value, unsigned base)
{
    char  digits[24];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    put(at);
}

/* In decimal. Large and negative numbers also in hexadecimal, as they may be addresses. */
static void put_integer(long long value)
{
    unsigned long long bits = (unsigned long long)value;
    if (value < 0) put("-");
    put_number(value < 0 ? 0 - bits : bits, 10);
    if (value >= 0 && value < 65536) return;
    put(" (0x");
    put_number(bits, 16);
    put(")");
}

static void flush(void)
{
    size_t done = 0;
    while (done < line_bytes) {
        ssize_t n = write(STDOUT_FILENO, line_text + done, line_bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break; /* a failed write cannot be reported */
        done += (size_t)n;
    }
    line_bytes = 0;
}

static void put_result(const char *result)
{
    put(result);
    put_number((unsigned long long)current_number, 10);
    put(" - ");
    put(current == NULL ? "outside any test" : current->sentence);
    if (skip_reason != NULL) {
        put(" # SKIP ");
        put(skip_reason);
    }
    put("\n");
}

/* The first thread to fail reports. Others wait here until it ends the process. */
static void fail_begin(const char *file, int line, const char *what)
{
    while (atomic_flag_test_and_set(&failing)) pause();
    line_bytes = 0;
    skip_reason = NULL;
    put_result("not ok ");
    put("# ");
    put(file);
    put(":");
    put_number((unsigned long long)line, 10);
    put(": ");
    put(what);
    put("\n");
}

__attribute__((noreturn)) static void fail_end(void)
{
    flush();
    _exit(EXIT_FAILED);
}

void harness_fail(const char *file, int line, const char *what)
{
    fail_begin(file, line, what);
    fail_end();
}

void harness_fail_eq(const char *file, int line, const char *what, long long left, long long right)
{
    fail_begin(file, line, what);
    put("#   left:  ");
    put_integer(left);
    put("\n#   right: ");
    put_integer(right);
    put("\n");
    fail_end();
}

void harness_fail_str(const char *file, int line, const char *what, const char *left,
                      const char *right)
{
    fail_begin(file, line, what);
    put("#   left:  ");
    put(left);
    put("\n#   right: ");
    put(right);
    put("\n");
    fail_end();
}

bool harness_same(const char *left, const char *right)
{
    if (left == NULL || right == NULL) return left == right;
    return strcmp(left, right) == 0;
}

void harness_skip(const char *reason) { skip_reason = reason; }

/* Constructors may run in any order, but a reader expects the file's order. */
void harness_register(struct harness_test *test)
{
    struct harness_test **at = &tests;
    while (*at != NULL && (*at)->line < test->line) at = &(*at)->next;
    test->next = *at;
    *at = test;
}

__attribute__((noreturn)) static void child_run(void (*body)(void *), void *argument, int out)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0) _exit(EXIT_FAILED);
    close(out);
    body(argument);
    fflush(NULL);
    _exit(0);
}

const char *harness_child(void (*body)(void *argument), void *argument, int *out_status)
{
    static char text[HARNESS_TEXT_BYTES];
    size_t      bytes = 0;
    int         ends[2];

    fflush(NULL);
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        child_run(body, argument, ends[1]);
    }
    close(ends[1]);
    for (;;) {
        char    rest[256];
        bool    full = bytes == sizeof text - 1;
        ssize_t n = full ? read(ends[0], rest, sizeof rest)
                         : read(ends[0], text + bytes, sizeof text - 1 - bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        if (!full) bytes += (size_t)n;
    }
    close(ends[0]);
    text[bytes] = '\0';
    while (waitpid(child, out_status, 0) < 0) CHECK(errno == EINTR);
    return text;
}

#ifdef HARNESS_TOGETHER
enum { TOGETHER = 1 };
#else
enum { TOGETHER = 0 };
#endif

/* In a program of several files, this names the file to run, as "fiber/ctx_test". */
static const char *only;

static bool is_of(const char *file, const char *name)
{
    const char *at = strstr(file, name);
    return at != NULL && (at == file || at[-1] == '/') && at[strlen(name)] == '.';
}

static bool wanted(const struct harness_test *test, const char *word)
{
    if (TOGETHER && (only == NULL || !is_of(test->file, only))) return false;
    return word == NULL || strstr(test->sentence, word) != NULL;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 + TOGETHER ? argv[1 + TOGETHER] : NULL;
    int         total = 0;
    int         skipped = 0;

    if (TOGETHER && argc > 1) only = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0); /* a test's own printf keeps its place */
    for (struct harness_test *test = tests; test != NULL; test = test->next)
        total += wanted(test, word);
    put("1..");
    put_number((unsigned long long)total, 10);
    put("\n");
    flush();
    if (total == 0) {
        put("# no test matches\n");
        flush();
        return EXIT_NOTHING_MATCHED;
    }
    for (struct harness_test *test = tests; test != NULL; test = test->next) {
        if (!wanted(test, word)) continue;
        current = test;
        current_number++;
        skip_reason = NULL;
        test->body();
        skipped += skip_reason != NULL;
        put_result("ok ");
        flush();
    }
    return skipped == total ? EXIT_ALL_SKIPPED : 0;
}
