/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int runs;

/* The lines are numbered by hand, so that a formatter cannot move them. */
static void fail_check(void *argument)
{
#line 1001
    CHECK(argument != NULL && 1 > 2);
}

static void fail_eq(void *argument)
{
#line 1002
    CHECK_EQ(*(int *)argument, 42);
}

static void fail_str(void *argument)
{
#line 1003
    CHECK_STR(argument, "right");
}

static void pass(void *argument)
{
    CHECK(argument == NULL);
    CHECK_EQ(-1, -1L);
    CHECK_STR("a", "a");
    CHECK_STR(NULL, NULL);
}

static void die(void *argument)
{
    (void)argument;
    abort();
}

static void write_much(void *argument)
{
    for (int i = 0; i < 3000; i++)
        if (write(STDERR_FILENO, argument, strlen(argument)) < 0) abort();
}

TEST("tests run in the order they stand in the file") { CHECK_EQ(runs++, 0); }

TEST("a test may come after another") { CHECK_EQ(runs++, 1); }

TEST("a failing check ends its process with status 1 and names the line and the expression")
{
    int         status = 0;
    const char *text = harness_child(fail_check, &runs, &status);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 1);
    CHECK(strstr(text, "not ok 3 - a failing check ends its process") != NULL);
    CHECK(strstr(text, "harness_test.c:1001: argument != NULL && 1 > 2\n") != NULL);
}

TEST("a failing CHECK_EQ shows both numbers")
{
    int         status = 0;
    int         wrong = -7;
    const char *text = harness_child(fail_eq, &wrong, &status);
    CHECK_EQ(WEXITSTATUS(status), 1);
    CHECK(strstr(text, "harness_test.c:1002: *(int *)argument == 42\n") != NULL);
    CHECK(strstr(text, "left:  -7 (0xfffffffffffffff9)\n") != NULL);
    CHECK(strstr(text, "right: 42\n") != NULL);
}

TEST("a failing CHECK_STR shows both strings, also NULL")
{
    int         status = 0;
    char        wrong[] = "left";
    const char *text = harness_child(fail_str, wrong, &status);
    CHECK(strstr(text, "harness_test.c:1003: argument is \"right\"\n") != NULL);
    CHECK(strstr(text, "left:  left\n#   right: right\n") != NULL);
    CHECK_EQ(WEXITSTATUS(status), 1);
    CHECK(strstr(harness_child(fail_str, NULL, &status), "left:  NULL\n") != NULL);
    CHECK_EQ(WEXITSTATUS(status), 1);
}

TEST("checks that hold are silent and leave status 0")
{
    int status = -1;
    CHECK_STR(harness_child(pass, NULL, &status), "");
    CHECK_EQ(status, 0);
}

TEST("the status of a child names the signal that killed it")
{
    int status = 0;
    (void)harness_child(die, NULL, &status);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
}

TEST("text of a child beyond the buffer is dropped and does not block it")
{
    int  status = -1;
    char ten_letters[] = "0123456789";
    CHECK_EQ(strlen(harness_child(write_much, ten_letters, &status)), HARNESS_TEXT_BYTES - 1);
    CHECK_EQ(status, 0);
}

static void run_self(void *argument)
{
    setenv("HARNESS_TEST_SKIP", "1", 1);
    execl("/proc/self/exe", "harness_test", argument, NULL);
    _exit(99);
}

TEST("a skipped test is shown with its reason, and a file of nothing else exits with 77")
{
    if (getenv("HARNESS_TEST_SKIP") != NULL) SKIP("asked to");

    int         status = 0;
    char        word[] = "shown with its reason";
    const char *text = harness_child(run_self, word, &status);
    if (WEXITSTATUS(status) == 99) SKIP("a program cannot run itself here");
    CHECK(strstr(text, "1..1\nok 1 - a skipped test is shown with its reason") == text);
    CHECK(strstr(text, " # SKIP asked to\n") != NULL);
    CHECK_EQ(WEXITSTATUS(status), 77);
}
