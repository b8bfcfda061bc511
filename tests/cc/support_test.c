/* SPDX-License-Identifier: MIT */
/*
 * The wrappers of libjanusrt_cc: they return what the C library returns, and pay what they should.
 * This program brings its own janus_op and holds, which only count.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <threads.h>
#include <wchar.h>

/* The same types as the functions that they wrap. */
#define JANUS_CC_WRAP(name, kind) DECLARE_##kind(name)
#define DECLARE_LENGTH(name) extern __typeof__(name) janus_cc_##name;
#define DECLARE_CALLS(name) extern __typeof__(name) janus_cc_##name;
#define DECLARE_HOLD(name)
void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room);
void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room);
void *__memset_chk(void *to, int byte, size_t bytes, size_t room);
void *__mempcpy_chk(void *to, const void *from, size_t bytes, size_t room);
char *__strcpy_chk(char *to, const char *from, size_t room);
char *__stpcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t bytes, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncat_chk(char *to, const char *from, size_t bytes, size_t room);
#include "cc/support/wrapped.def"

extern __typeof__(pthread_mutex_lock)    janus_cc_pthread_mutex_lock;
extern __typeof__(pthread_mutex_trylock) janus_cc_pthread_mutex_trylock;
extern __typeof__(pthread_mutex_unlock)  janus_cc_pthread_mutex_unlock;
extern __typeof__(pthread_rwlock_rdlock) janus_cc_pthread_rwlock_rdlock;
extern __typeof__(pthread_rwlock_unlock) janus_cc_pthread_rwlock_unlock;
extern __typeof__(pthread_spin_lock)     janus_cc_pthread_spin_lock;
extern __typeof__(pthread_spin_unlock)   janus_cc_pthread_spin_unlock;
extern __typeof__(mtx_lock)              janus_cc_mtx_lock;
extern __typeof__(mtx_trylock)           janus_cc_mtx_trylock;
extern __typeof__(mtx_unlock)            janus_cc_mtx_unlock;
extern __typeof__(flockfile)             janus_cc_flockfile;
extern __typeof__(funlockfile)           janus_cc_funlockfile;
extern __typeof__(pthread_once)          janus_cc_pthread_once;
extern __typeof__(pthread_sigmask)       janus_cc_pthread_sigmask;
extern __typeof__(sigprocmask)           janus_cc_sigprocmask;
extern __typeof__(fopencookie)           janus_cc_fopencookie;

/* In place of the runtime. */
static uint64_t paid, payments, most;
static int      held, held_inside;
static uint64_t task = 1;
static bool     refuse_defer;
static void    *deferred;

void     janus_op(uint64_t cost);
void     janus_hold_begin(void);
void     janus_hold_end(void);
bool     janus_hold_pass(void);
uint64_t janus_task_current_id(void);
int      janus_defer(void (*function)(void *), void *argument);
int      janus_undefer(void (*function)(void *), void *argument);

void janus_op(uint64_t cost)
{
    paid += cost;
    payments++;
    if (cost > most) most = cost;
}
void     janus_hold_begin(void) { held++; }
void     janus_hold_end(void) { held--; }
bool     janus_hold_pass(void) { return false; }
uint64_t janus_task_current_id(void) { return task; }

int janus_defer(void (*function)(void *), void *argument)
{
    CHECK(function == free);
    if (refuse_defer) return -5; /* any status but OK and STATE */
    CHECK(deferred == NULL);
    deferred = argument;
    return 0;
}

int janus_undefer(void (*function)(void *), void *argument)
{
    CHECK(function == free);
    CHECK(argument == deferred);
    deferred = NULL;
    return 0;
}

/* What a statement pays. */
#define PAYS(cost, ...)                                                                            \
    do {                                                                                           \
        paid = payments = most = 0;                                                                \
        __VA_ARGS__;                                                                               \
        CHECK_EQ(paid, cost);                                                                      \
    } while (0)

enum { LARGE = 1 << 20 };
static char left[LARGE + 64], right[LARGE + 64], third[LARGE + 64];

static void fill(char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) at[i] = (char)(1 + (i * 31 + i / 251) % 250);
}

TEST("copies of every length around a portion are right, and pay a 64th of their bytes")
{
    static const size_t lengths[] = {0,     1,     63,    64,     65,     4096,   65535,
                                     65536, 65537, 65600, 131072, 131073, 200000, LARGE};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t n = lengths[i];
        fill(left, LARGE);
        memset(right, 0, sizeof right);
        PAYS(n / 64, CHECK(janus_cc_memcpy(right, left, n) == right));
        CHECK(memcmp(right, left, n) == 0);
        CHECK(right[n] == 0);
        CHECK(most <= 1024);
        PAYS(n / 64, CHECK(janus_cc_memset(right, 7, n) == right));
        for (size_t k = 0; k < n; k++) CHECK(right[k] == 7);
        CHECK(right[n] == 0);
        PAYS(n / 64, CHECK(janus_cc_mempcpy(right, left, n) == right + n));
        PAYS(n / 64, janus_cc_bzero(right, n));
        CHECK(n == 0 || (right[0] == 0 && right[n - 1] == 0));
    }
}

TEST("moves that overlap in either direction are right")
{
    static const size_t offsets[] = {0, 1, 64, 4096, 65536, 70000};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        size_t n = LARGE - offsets[i];
        fill(left, LARGE);
        memcpy(third, left, LARGE);
        memmove(third + offsets[i], third, n);
        PAYS(n / 64, janus_cc_memmove(left + offsets[i], left, n));
        CHECK(memcmp(left, third, LARGE) == 0);
        memmove(third, third + offsets[i], n);
        PAYS(n / 64, janus_cc_memmove(left, left + offsets[i], n));
        CHECK(memcmp(left, third, LARGE) == 0);
        fill(left, LARGE);
        janus_cc_bcopy(left + offsets[i], left, n);
        fill(third, LARGE);
        CHECK(memcmp(left, third + offsets[i], n) == 0);
    }
}

static int sign(int order) { return (order > 0) - (order < 0); }

TEST("comparisons find the first difference, and pay for each 4 KiB before it")
{
    static const size_t places[] = {0, 1, 4095, 4096, 4097, 8191, 8192, 100000};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t at = places[i];
        fill(left, LARGE);
        memcpy(right, left, LARGE);
        left[LARGE] = right[LARGE] = '\0';
        right[at] = (char)(right[at] + 1);
        uint64_t cost = at / 4096 * 64;
        PAYS(cost,
             CHECK_EQ(sign(janus_cc_memcmp(left, right, LARGE)), sign(memcmp(left, right, LARGE))));
        PAYS(cost, CHECK(janus_cc_bcmp(left, right, LARGE) != 0));
        PAYS(cost, CHECK_EQ(sign(janus_cc_strcmp(left, right)), sign(strcmp(left, right))));
        PAYS(cost, CHECK_EQ(sign(janus_cc_strncmp(left, right, at + 1)),
                            sign(strncmp(left, right, at + 1))));
        PAYS(at / 4096 * 64, CHECK_EQ(janus_cc_strncmp(left, right, at), 0));
        PAYS(at / 4096 * 64, CHECK_EQ(janus_cc_memcmp(left, right, at), 0));
    }
    PAYS(LARGE / 64, CHECK_EQ(janus_cc_strcmp(left, left), 0));
    PAYS(0, CHECK_EQ(janus_cc_strcmp("", ""), 0));
    PAYS(0, CHECK(janus_cc_strcmp("a", "") > 0));
    PAYS(0, CHECK_EQ(janus_cc_strcasecmp("HeLLo", "hEllO"), 0));
    PAYS(0, CHECK(janus_cc_strncasecmp("abX", "ABy", 2) == 0));
    PAYS(0, CHECK(janus_cc_strncasecmp("abX", "ABy", 3) < 0));
}

TEST("string functions return what libc returns, and pay for what they looked at")
{
    char text[1001], copy[2100];
    memset(text, 'a', 1000);
    text[1000] = '\0';
    PAYS(15, CHECK_EQ(janus_cc_strlen(text), 1000));
    PAYS(1, CHECK_EQ(janus_cc_strnlen(text, 127), 127));
    PAYS(15, CHECK_STR(janus_cc_strcpy(copy, text), text));
    PAYS(15, CHECK(janus_cc_stpcpy(copy, text) == copy + 1000));
    PAYS(30, CHECK_EQ(strlen(janus_cc_strcat(copy, text)), 2000)); /* 15 to find the end */
    copy[3] = '\0';
    PAYS(0, CHECK_STR(janus_cc_strncat(copy, "bcd", 2), "aaabc"));
    PAYS(32, CHECK_STR(janus_cc_strncpy(copy, "x", 2048), "x"));
    CHECK(copy[2047] == 0);
    PAYS(32, CHECK(janus_cc_stpncpy(copy, "x", 2048) == copy + 1));
    text[700] = 'b';
    PAYS(10, CHECK(janus_cc_strchr(text, 'b') == text + 700));
    PAYS(15, CHECK(janus_cc_strchr(text, 'c') == NULL));
    PAYS(15, CHECK(janus_cc_strchr(text, '\0') == text + 1000));
    PAYS(15, CHECK(janus_cc_strchrnul(text, 'c') == text + 1000));
    PAYS(15, CHECK(janus_cc_strrchr(text, 'b') == text + 700));
    PAYS(15, CHECK(janus_cc_strrchr(text, 'c') == NULL));
    PAYS(15, CHECK(janus_cc_strrchr(text, '\0') == text + 1000));
    PAYS(10, CHECK(janus_cc_strstr(text, "ba") == text + 700));
    PAYS(15, CHECK(janus_cc_strstr(text, "bb") == NULL));
    PAYS(10, CHECK(janus_cc_strcasestr(text, "BA") == text + 700));
    PAYS(10, CHECK_EQ(janus_cc_strspn(text, "a"), 700));
    PAYS(10, CHECK_EQ(janus_cc_strcspn(text, "b"), 700));
    PAYS(10, CHECK(janus_cc_strpbrk(text, "xb") == text + 700));
    PAYS(15, CHECK(janus_cc_strpbrk(text, "xy") == NULL));
    PAYS(10, CHECK(janus_cc_memchr(text, 'b', 1000) == text + 700));
    PAYS(15, CHECK(janus_cc_memchr(text, 'c', 1000) == NULL));
    PAYS(4, CHECK(janus_cc_memrchr(text, 'b', 1000) == text + 700));
    PAYS(10, CHECK(janus_cc_rawmemchr(text, 'b') == text + 700));
    PAYS(10, CHECK(janus_cc_memmem(text, 1000, "ba", 2) == text + 700));
    PAYS(10, CHECK(janus_cc_memccpy(copy, text, 'b', 1000) == copy + 701));
    PAYS(2, CHECK(janus_cc_memccpy(copy, text, 'b', 128) == NULL));
    char *twin, *half;
    PAYS(15, twin = janus_cc_strdup(text));
    PAYS(7, half = janus_cc_strndup(text, 500));
    CHECK_STR(twin, text);
    CHECK_EQ(strlen(half), 500);
    free(twin);
    free(half);
}

TEST("functions that cut words pay for the whole text, once")
{
    char text[1001], *rest = text;
    for (int round = 0; round < 3; round++) {
        uint64_t sum = 0, words = 0;
        memset(text, ' ', 1000);
        memset(text + 200, 'a', 200);
        memset(text + 600, 'b', 100);
        text[1000] = '\0';
        rest = text;
        for (char *word = text; word != NULL; words++) {
            paid = 0;
            char *from = words == 0 ? text : NULL;
            if (round == 0)
                word = janus_cc_strtok(from, " ");
            else if (round == 1)
                word = janus_cc_strtok_r(from, " ", &rest);
            else
                word = janus_cc_strsep(&rest, "a");
            sum += paid;
        }
        CHECK_EQ(words, round < 2 ? 3 : 202);
        CHECK(sum >= 9 && sum <= 15); /* each call rounds down */
    }
}

TEST("functions that cut words pay for the set of separators, each time")
{
    char set[6401], text[] = "x", *rest = text;
    memset(set, 'a', 6400);
    set[6400] = '\0';
    PAYS(100, CHECK_STR(janus_cc_strtok_r(text, set, &rest), "x"));
    PAYS(100, CHECK(janus_cc_strtok_r(NULL, set, &rest) == NULL));
    rest = text;
    PAYS(100, CHECK_STR(janus_cc_strsep(&rest, set), "x"));
    PAYS(0, CHECK(janus_cc_strsep(&rest, set) == NULL));
    PAYS(100, CHECK_STR(janus_cc_strtok(text, set), "x"));
    PAYS(100, CHECK(janus_cc_strtok(NULL, set) == NULL));
}

TEST("wide characters pay for their bytes")
{
    static wchar_t from[300], to[300];
    wmemset(from, L'x', 299);
    PAYS(18, CHECK_EQ(janus_cc_wcslen(from), 299));
    PAYS(18, CHECK(janus_cc_wmemcpy(to, from, 300) == to));
    CHECK(wmemcmp(to, from, 300) == 0);
    PAYS(18, CHECK(janus_cc_wmemmove(to, from, 300) == to));
    PAYS(18, CHECK(janus_cc_wmemset(to, L'y', 300) == to));
    CHECK(to[299] == L'y');
}

TEST("functions of _FORTIFY_SOURCE pay the same")
{
    char text[200], copy[400];
    memset(text, 'a', 199);
    text[199] = '\0';
    PAYS(3, CHECK(janus_cc___memcpy_chk(copy, text, 200, 400) == copy));
    PAYS(3, CHECK(janus_cc___memmove_chk(copy, text, 200, 400) == copy));
    PAYS(3, CHECK(janus_cc___mempcpy_chk(copy, text, 200, 400) == copy + 200));
    PAYS(6, CHECK(janus_cc___memset_chk(copy, 0, 400, 400) == copy));
    PAYS(3, CHECK_STR(janus_cc___strcpy_chk(copy, text, 400), text));
    PAYS(3, CHECK(janus_cc___stpcpy_chk(copy, text, 400) == copy + 199));
    PAYS(6, CHECK_EQ(strlen(janus_cc___strcat_chk(copy, text, 400)), 398));
    PAYS(6, CHECK(janus_cc___strncpy_chk(copy, text, 400, 400) == copy));
    PAYS(4, CHECK_EQ(strlen(janus_cc___strncat_chk(copy,
                                                   "bcdef"
                                                   "0123456789012345678901234567890123"
                                                   "45678901234567890123456789",
                                                   60, 400)),
                     259));
}

struct pair {
    int key, order;
};

static uint64_t calls;

static int by_key(const void *one, const void *other)
{
    calls++;
    return ((const struct pair *)one)->key - ((const struct pair *)other)->key;
}

static int by_key_and(const void *one, const void *other, void *argument)
{
    CHECK(argument == &calls);
    return by_key(one, other);
}

static void check_sorted(const struct pair *pairs, size_t count, bool stable)
{
    for (size_t i = 1; i < count; i++) {
        CHECK(pairs[i - 1].key <= pairs[i].key);
        if (stable && pairs[i - 1].key == pairs[i].key) CHECK(pairs[i - 1].order < pairs[i].order);
    }
}

static void fill_pairs(struct pair *pairs, size_t count, int keys)
{
    uint32_t state = 7;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        pairs[i] = (struct pair){(int)(state >> 8) % keys, (int)i};
    }
}

TEST("qsort is stable, and pays for each comparison and for its moves")
{
    static struct pair pairs[5000];
    for (size_t count = 0; count < 5000; count = count * 2 + 1) {
        for (int keys = 1; keys < 100000; keys *= 10) {
            fill_pairs(pairs, count, keys);
            calls = paid = 0;
            janus_cc_qsort(pairs, count, sizeof pairs[0], by_key);
            check_sorted(pairs, count, true);
            CHECK(paid >= calls && paid <= calls + count * 16 * 8 / 64);
            CHECK(deferred == NULL);
            uint64_t before = paid;
            calls = paid = 0;
            janus_cc_qsort_r(pairs, count, sizeof pairs[0], by_key_and, &calls);
            CHECK(count < 2 || calls == count - 1); /* sorted: one look at each join */
            CHECK(paid <= before);
        }
    }
}

static int by_bytes(const void *one, const void *other) { return memcmp(one, other, 13); }

TEST("qsort sorts elements of any size")
{
    static char elements[100][13];
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 13; k++) elements[i][k] = (char)((i * 37 + k * 11) % 101);
    }
    janus_cc_qsort(elements, 100, 13, by_bytes);
    for (int i = 1; i < 100; i++) CHECK(memcmp(elements[i - 1], elements[i], 13) <= 0);
    janus_cc_qsort(elements, 0, 8, by_bytes);
    janus_cc_qsort(elements, 10, 0, by_bytes);
}

TEST("qsort sorts without a buffer too")
{
    static struct pair pairs[3000];
    refuse_defer = true;
    fill_pairs(pairs, 3000, 500);
    calls = paid = 0;
    janus_cc_qsort(pairs, 3000, sizeof pairs[0], by_key);
    refuse_defer = false;
    check_sorted(pairs, 3000, false);
    CHECK(paid >= calls);
    long sum = 0;
    for (int i = 0; i < 3000; i++) sum += pairs[i].order;
    CHECK_EQ(sum, 3000L * 2999 / 2); /* none lost */
}

TEST("bsearch finds what is there, and pays for each comparison")
{
    static struct pair pairs[1000];
    for (int i = 0; i < 1000; i++) pairs[i] = (struct pair){2 * i, i};
    for (int key = -1; key <= 2000; key++) {
        struct pair wanted = {key, 0}, *found;
        for (size_t count = 1; count <= 1000; count += 333) {
            calls = paid = 0;
            found = janus_cc_bsearch(&wanted, pairs, count, sizeof pairs[0], by_key);
            CHECK_EQ(paid, calls);
            CHECK(calls <= 10);
            bool there = key >= 0 && key % 2 == 0 && (size_t)key / 2 < count;
            CHECK(found == (there ? &pairs[key / 2] : NULL));
        }
    }
    CHECK(janus_cc_bsearch(&pairs[0], pairs, 0, sizeof pairs[0], by_key) == NULL);
}

TEST("a lock begins a hold, its unlock ends it, and a failed lock leaves none")
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CHECK_EQ(janus_cc_pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(held, 0);
    CHECK_EQ(janus_cc_pthread_mutex_trylock(&mutex), 0);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_pthread_mutex_unlock(&mutex), 0);

    pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
    CHECK_EQ(janus_cc_pthread_rwlock_rdlock(&shared), 0);
    CHECK_EQ(janus_cc_pthread_rwlock_rdlock(&shared), 0);
    CHECK_EQ(held, 2);
    CHECK_EQ(janus_cc_pthread_rwlock_unlock(&shared), 0);
    CHECK_EQ(janus_cc_pthread_rwlock_unlock(&shared), 0);
    CHECK_EQ(held, 0);

    pthread_spinlock_t spin;
    CHECK_EQ(pthread_spin_init(&spin, 0), 0);
    CHECK_EQ(janus_cc_pthread_spin_lock(&spin), 0);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_pthread_spin_unlock(&spin), 0);

    mtx_t plain;
    CHECK_EQ(mtx_init(&plain, mtx_plain), thrd_success);
    CHECK_EQ(janus_cc_mtx_lock(&plain), thrd_success);
    CHECK_EQ(janus_cc_mtx_trylock(&plain), thrd_busy);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_mtx_unlock(&plain), thrd_success);
    CHECK_EQ(held, 0);

    janus_cc_flockfile(stderr);
    CHECK_EQ(held, 1);
    janus_cc_funlockfile(stderr);
    CHECK_EQ(held, 0);
}

static void note_hold(void) { held_inside = held; }

TEST("a function that the library calls under a lock runs in a hold")
{
    pthread_once_t once = PTHREAD_ONCE_INIT;
    held_inside = 0;
    CHECK_EQ(janus_cc_pthread_once(&once, note_hold), 0);
    CHECK_EQ(held_inside, 1);
    CHECK_EQ(held, 0);
}

static ssize_t write_noting(void *cookie, const char *bytes, size_t count)
{
    held_inside = held;
    memcpy(cookie, bytes, count);
    return (ssize_t)count;
}

TEST("the functions of an own stream run in a hold")
{
    char  written[16] = "";
    FILE *file = janus_cc_fopencookie(written, "w", (cookie_io_functions_t){.write = write_noting});
    CHECK(file != NULL);
    held_inside = 0;
    CHECK(fputs("hello", file) >= 0);
    CHECK_EQ(fclose(file), 0);
    CHECK_STR(written, "hello");
    CHECK_EQ(held_inside, 1);
    CHECK_EQ(held, 0);
}

TEST("a task that blocks signals is held until the mask is as before")
{
    sigset_t one, two, old;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigemptyset(&two);
    sigaddset(&two, SIGUSR2);
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_BLOCK, &one, &old), 0);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_sigprocmask(SIG_BLOCK, &two, NULL), 0);
    CHECK_EQ(held, 1);
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
    CHECK_EQ(held, 1); /* SIGUSR2 is still blocked */
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    CHECK_EQ(held, 0);
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_BLOCK, NULL, &old), 0);
    CHECK_EQ(held, 0);
    CHECK_EQ(janus_cc_sigprocmask(12345, &one, NULL), -1);
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(held, 0);
    task = 0; /* outside of tasks the mask is the thread's own business */
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_BLOCK, &one, &old), 0);
    CHECK_EQ(held, 0);
    CHECK_EQ(janus_cc_pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    task = 1;
}
