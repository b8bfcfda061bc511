/* SPDX-License-Identifier: MIT */
/* Channels without waiting: values, handles, overflow. */
#include "channels.h"

#include "base/rng.h"
#include "chan/chan.h"

#include <string.h>

/* Values. */

static int64_t ring_around(void *argument)
{
    (void)argument;
    for (uint64_t capacity = 1; capacity < 6; capacity++) {
        janus_channel channel = open_channel(capacity);
        int64_t       sent = 0, received = 0, value = 0;
        for (int round = 0; round < 20; round++) {
            while (janus_channel_try_send(channel, &sent) == JANUS_OK) sent++;
            CHECK_EQ(look(channel).length, capacity);
            CHECK_EQ(janus_channel_try_send(channel, &sent), JANUS_WOULD_WAIT);
            for (uint64_t i = 0; i <= (uint64_t)round % capacity; i++) {
                CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
                CHECK_EQ(value, received++);
            }
        }
        while (janus_channel_try_recv(channel, &value) == JANUS_OK) CHECK_EQ(value, received++);
        CHECK_EQ(sent, received);
        CHECK_EQ(look(channel).high_water, capacity);
        CHECK_EQ(look(channel).length, 0);
        CHECK_EQ(janus_channel_try_recv(channel, &value), JANUS_WOULD_WAIT);
        destroy(channel);
    }
    return 0;
}

TEST("values come out in the order they went in, up to the capacity, on tasks and threads")
{
    CHECK_EQ(ring_around(NULL), 0);
    rig_all(ring_around, NULL, REPEATS);
}

static int64_t all_sizes(void *argument)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 16, 64, 4099};
    (void)argument;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char in[4100], out[4100];
        janus_channel channel;
        memset(out, 0xee, sizeof out);
        CHECK_EQ(janus_channel_create(sizes[i], 3, NULL, &channel), JANUS_OK);
        for (unsigned char k = 1; k <= 3; k++) {
            memset(in, k, sizeof in);
            CHECK_EQ(janus_channel_send(channel, sizes[i] > 0 ? in : NULL), JANUS_OK);
        }
        for (unsigned char k = 1; k <= 3; k++) {
            CHECK_EQ(janus_channel_recv(channel, sizes[i] > 0 ? out : NULL), JANUS_OK);
            for (size_t at = 0; at < sizes[i]; at++) CHECK_EQ(out[at], k);
            CHECK_EQ(out[sizes[i]], 0xee);
        }
        CHECK_EQ(look(channel).item_bytes, sizes[i]);
        destroy(channel);
    }
    return 0;
}

TEST("values of any size are copied, and not a byte more") { rig_run(2, all_sizes, NULL, 2); }

/* Handles. */

static int64_t rights(void *argument)
{
    janus_channel channel = open_channel(2), only[8], wider;
    int64_t       value = 5;
    (void)argument;
    for (uint32_t r = 1; r <= JANUS_CHANNEL_MAY_ALL; r++) {
        CHECK_EQ(janus_channel_attenuate(channel, r, &only[r]), JANUS_OK);
        CHECK_EQ(look(only[r]).rights, r);
    }
    for (uint32_t r = 1; r <= JANUS_CHANNEL_MAY_ALL; r++) {
        bool sends = r & JANUS_CHANNEL_MAY_SEND, receives = r & JANUS_CHANNEL_MAY_RECV;
        CHECK_EQ(janus_channel_try_send(only[r], &value), sends ? JANUS_OK : JANUS_CAP_RIGHT);
        CHECK_EQ(janus_channel_send(only[r], &value), sends ? JANUS_OK : JANUS_CAP_RIGHT);
        CHECK_EQ(look(channel).length, sends ? 2 : 0);
        if (!sends) CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        if (!sends) CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        CHECK_EQ(janus_channel_try_recv(only[r], &value), receives ? JANUS_OK : JANUS_CAP_RIGHT);
        CHECK_EQ(janus_channel_recv(only[r], &value), receives ? JANUS_OK : JANUS_CAP_RIGHT);
        while (janus_channel_try_recv(channel, &value) == JANUS_OK) continue;
        for (uint32_t w = 1; w <= JANUS_CHANNEL_MAY_ALL; w++) {
            janus_status wanted = (w & ~r) == 0 ? JANUS_OK : JANUS_CAP_WIDENS;
            CHECK_EQ(janus_channel_attenuate(only[r], w, &wider), wanted);
        }
        if (r != JANUS_CHANNEL_MAY_ALL) CHECK_EQ(janus_channel_destroy(only[r]), JANUS_CAP_RIGHT);
        if (!(r & JANUS_CHANNEL_MAY_CLOSE)) CHECK_EQ(janus_channel_close(only[r]), JANUS_CAP_RIGHT);
    }
    CHECK(!look(channel).closed);
    janus_select_case send_case = {
        .channel = only[JANUS_CHANNEL_MAY_RECV], .kind = JANUS_SELECT_KIND_SEND, .value = &value};
    CHECK_EQ(janus_try_select(&send_case, 1, NULL), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_channel_attenuate(channel, 0, &wider), JANUS_INVALID);
    CHECK_EQ(janus_channel_attenuate(channel, 8, &wider), JANUS_INVALID);
    CHECK_EQ(janus_channel_close(only[JANUS_CHANNEL_MAY_CLOSE]), JANUS_OK);
    CHECK(look(channel).closed);
    destroy(channel);
    return 0;
}

TEST("a handle allows what its rights say, and no other handle can be made from it")
{
    CHECK_EQ(rights(NULL), 0);
    rig_run(2, rights, NULL, 1);
}

/* Every call must return that status. */
static void check_all(janus_channel channel, janus_status status)
{
    int64_t            value = 1;
    size_t             chosen = 7;
    janus_channel      out;
    janus_channel_info info = JANUS_CHANNEL_INFO();
    janus_select_case  one = {.channel = channel, .value = &value};
    CHECK_EQ(janus_channel_send(channel, &value), status);
    CHECK_EQ(janus_channel_send_until(channel, &value, 0), status);
    CHECK_EQ(janus_channel_try_send(channel, &value), status);
    CHECK_EQ(janus_channel_recv(channel, &value), status);
    CHECK_EQ(janus_channel_recv_until(channel, &value, 0), status);
    CHECK_EQ(janus_channel_try_recv(channel, &value), status);
    CHECK_EQ(janus_channel_close(channel), status);
    CHECK_EQ(janus_channel_inspect(channel, &info), status);
    CHECK_EQ(janus_channel_attenuate(channel, 1, &out), status);
    if (status != JANUS_STALE) return;
    CHECK_EQ(janus_channel_destroy(channel), status);
    CHECK_EQ(janus_select(&one, 1, &chosen), status);
    CHECK_EQ(chosen, 0);
}

static int64_t stale(void *argument)
{
    janus_channel old[100];
    (void)argument;
    check_all((janus_channel){{0, 0}}, JANUS_INVALID);
    CHECK_EQ(janus_channel_destroy((janus_channel){{0, 0}}), JANUS_OK);
    for (int i = 0; i < 100; i++) {
        old[i] = open_channel(1);
        for (int k = 0; k < i; k++) check_all(old[k], JANUS_STALE); /* their memory is reused */
        CHECK_EQ(look(old[i]).length, 0);
        destroy(old[i]);
    }
    return 0;
}

TEST("a handle of a destroyed channel is STALE for ever")
{
    CHECK_EQ(stale(NULL), 0);
    rig_run(1, stale, NULL, 2);
    rig_run(2, stale, NULL, 2);
}

static int64_t changed(void *argument)
{
    janus_channel channels[40], narrow;
    (void)argument;
    for (int i = 0; i < 40; i++) { /* more than lie in one page */
        channels[i] = open_channel(1);
        CHECK_EQ(janus_channel_attenuate(channels[i], JANUS_CHANNEL_MAY_SEND, &narrow), JANUS_OK);
        for (int bit = 0; bit < 128; bit++) {
            janus_channel forged = i % 2 == 0 ? channels[i] : narrow;
            forged.opaque[bit / 64] ^= UINT64_C(1) << bit % 64;
            check_all(forged, JANUS_STALE);
            check_all((janus_channel){{forged.opaque[0], 0}}, JANUS_STALE);
            check_all((janus_channel){{0, forged.opaque[1]}}, JANUS_STALE);
        }
        CHECK_EQ(look(channels[i]).length, 0);
        CHECK(!look(channels[i]).closed);
    }
    for (int i = 0; i < 40; i++) destroy(channels[i]);
    return 0;
}

TEST("a handle with any single bit changed is refused, and nothing happens")
{
    CHECK_EQ(changed(NULL), 0);
    rig_run(1, changed, NULL, 1);
    rig_run(2, changed, NULL, 1);
}

/* What a holder can compute: its own handles with other rights, and with any word replaced. */
static int64_t widen(void *argument)
{
    janus_channel all = open_channel(1), narrow[2];
    (void)argument;
    CHECK_EQ(janus_channel_attenuate(all, JANUS_CHANNEL_MAY_SEND, &narrow[0]), JANUS_OK);
    CHECK_EQ(janus_channel_attenuate(all, JANUS_CHANNEL_MAY_RECV, &narrow[1]), JANUS_OK);
    uint64_t other_key = narrow[1].opaque[0] ^ narrow[1].opaque[1];
    for (uint64_t rights = 0; rights <= JANUS_CHANNEL_MAY_ALL; rights++) {
        if (rights == JANUS_CHANNEL_MAY_SEND) continue;
        uint64_t name = (narrow[0].opaque[0] & ~UINT64_C(7)) | rights;
        uint64_t key = narrow[0].opaque[0] ^ narrow[0].opaque[1];
        check_all((janus_channel){{name, narrow[0].opaque[1]}}, JANUS_STALE);
        check_all((janus_channel){{name, name ^ key}}, JANUS_STALE);
        check_all((janus_channel){{name, name}}, JANUS_STALE);
        if (rights != JANUS_CHANNEL_MAY_RECV)
            check_all((janus_channel){{name, name ^ other_key}}, JANUS_STALE);
        check_all((janus_channel){{name, name ^ key ^ other_key}}, JANUS_STALE);
    }
    destroy(all);
    return 0;
}

TEST("a handle with other rights is STALE, whatever a task computes from its handles")
{
    CHECK_EQ(widen(NULL), 0);
    rig_run(2, widen, NULL, 1);
}

/* Handles once held an address, with a check that anybody can compute. */
static uint64_t sealed(uint64_t below)
{
    const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15), of_zero = UINT64_C(0x5ea1) << 48;
    return below | ((below * spread ^ of_zero) & ~((UINT64_C(1) << 48) - 1));
}

/* Addresses, small and large numbers, and random ones. */
static int64_t forge(void *argument)
{
    janus_channel channel = open_channel(1);
    int64_t       here = 0;
    uint64_t      state = 7;
    (void)argument;
    for (int bit = 0; bit < 64; bit++) {
        uint64_t word = UINT64_C(1) << bit;
        check_all((janus_channel){{word, word}}, JANUS_STALE);
        check_all((janus_channel){{word - 1, word}}, JANUS_STALE);
        check_all((janus_channel){{(uintptr_t)&here | (word & 7), word}}, JANUS_STALE);
        if (bit < 48) check_all((janus_channel){{sealed(word & ~UINT64_C(63)), 1}}, JANUS_STALE);
    }
    for (int i = 0; i < 2000; i++) {
        uint64_t word = jrt_splitmix64(&state), other = jrt_splitmix64(&state);
        check_all((janus_channel){{word, other}}, JANUS_STALE);
        check_all((janus_channel){{word, word}}, JANUS_STALE);
    }
    CHECK_EQ(look(channel).length, 0);
    destroy(channel);
    return 0;
}

TEST("a forged handle is STALE, whatever it names, and causes no fault")
{
    CHECK_EQ(forge(NULL), 0);
    rig_run(1, forge, NULL, 1);
    rig_run(2, forge, NULL, 1);
}

TEST("impossible options are refused and no channel is made")
{
    janus_channel         channel = {{1, 2}};
    janus_channel_options options = {.struct_bytes = sizeof options, .overflow = 3};
    janus_channel_options shorter = {.struct_bytes = sizeof(size_t), .overflow = 3};
    janus_channel_info    info = {.struct_bytes = 4};
    janus_overflow        drop = JANUS_OVERFLOW_DROP_OLDEST;
    CHECK_EQ(janus_channel_create(8, 1, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_channel_create(8, 1, &options, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_create(8, UINT64_MAX / 8, NULL, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_create(SIZE_MAX, 1, NULL, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_create(8, 0, JANUS_CHANNEL_OPTIONS(.overflow = drop), &channel),
             JANUS_INVALID);
    CHECK_EQ(janus_channel_create_unbounded(8, 7, NULL, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_create_unbounded(8, 0, NULL, &channel), JANUS_INVALID);
    if (!JRT_ASAN && !JRT_TSAN) { /* sanitizers end the process if memory is refused */
        CHECK_EQ(janus_channel_create(1, PTRDIFF_MAX, NULL, &channel), JANUS_NO_MEMORY);
    }
    CHECK_EQ(channel.opaque[0], 1);
    CHECK_EQ(channel.opaque[1], 2);
    CHECK_EQ(janus_channel_create(8, 1, &shorter, &channel), JANUS_OK); /* without `overflow` */
    CHECK_EQ(janus_channel_inspect(channel, NULL), JANUS_INVALID);
    CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_INVALID);
    CHECK_EQ(janus_channel_send(channel, NULL), JANUS_INVALID);
    CHECK_EQ(janus_channel_recv(channel, NULL), JANUS_INVALID);
    CHECK_EQ(janus_select(NULL, 1, NULL), JANUS_INVALID);
    CHECK_EQ(look(channel).length, 0);
    destroy(channel);
}

/* Overflow. */

static int64_t policies(void *argument)
{
    janus_channel failing, dropping;
    int64_t       value = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create(8, 3, JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_FAIL),
                                  &failing),
             JANUS_OK);
    CHECK_EQ(janus_channel_create(
                 8, 3, JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_DROP_OLDEST), &dropping),
             JANUS_OK);
    for (int64_t i = 0; i < 10; i++) {
        CHECK_EQ(janus_channel_send(failing, &i), i < 3 ? JANUS_OK : JANUS_FULL);
        CHECK_EQ(janus_channel_try_send(failing, &i), i < 2 ? JANUS_OK : JANUS_FULL);
        if (i < 2) CHECK_EQ(janus_channel_recv(failing, &value), JANUS_OK);
        CHECK_EQ(janus_channel_send(dropping, &i), JANUS_OK);
    }
    CHECK_EQ(look(failing).length, 3);
    CHECK_EQ(look(failing).dropped, 0);
    CHECK_EQ(look(dropping).length, 3);
    CHECK_EQ(look(dropping).dropped, 7);
    CHECK_EQ(look(dropping).high_water, 3);
    for (int64_t i = 7; i < 10; i++) {
        CHECK_EQ(janus_channel_recv(dropping, &value), JANUS_OK);
        CHECK_EQ(value, i);
    }
    CHECK_EQ(janus_channel_try_recv(dropping, &value), JANUS_WOULD_WAIT);
    destroy(failing);
    destroy(dropping);
    return 0;
}

TEST("a full channel fails, or drops its oldest value and counts it, as its options say")
{
    rig_run(2, policies, NULL, 1);
}

static int64_t unbounded(void *argument)
{
    enum { MOST = 9000 };
    janus_channel channel;
    int64_t       value = 0, sent = 0, received = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create_unbounded(8, MOST * 8 + 7, NULL, &channel), JANUS_OK);
    CHECK_EQ(look(channel).capacity, MOST);
    CHECK(look(channel).unbounded);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++, sent++) CHECK_EQ(janus_channel_send(channel, &sent), JANUS_OK);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
            CHECK_EQ(value, received++);
        }
        while (janus_channel_try_send(channel, &sent) == JANUS_OK) sent++;
        CHECK_EQ(look(channel).length, MOST);
        while (janus_channel_try_recv(channel, &value) == JANUS_OK) CHECK_EQ(value, received++);
        CHECK_EQ(sent, received);
    }
    CHECK_EQ(look(channel).high_water, MOST);
    destroy(channel);
    return 0;
}

TEST("an unbounded channel grows to its cap of bytes and not beyond, and keeps the order")
{
    CHECK_EQ(unbounded(NULL), 0);
    rig_run(2, unbounded, NULL, 1);
}

/* Two senders found the ring full, and one of them comes late. */
static int64_t grow_late(void *argument)
{
    janus_channel channel;
    int64_t       value = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create_unbounded(8, 8000, NULL, &channel), JANUS_OK);
    for (int64_t i = 0; i < 100; i++) CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
    uint64_t slots = jrt_chan_of(channel)->slots;
    CHECK(slots >= 100);
    for (uint64_t seen = 0; seen < slots; seen = seen == 0 ? 16 : seen * 2) {
        CHECK_EQ(jrt_chan_grow(channel, jrt_worker_self(), seen), JANUS_OK);
        CHECK_EQ(jrt_chan_of(channel)->slots, slots);
    }
    for (int64_t i = 0; i < 100; i++) {
        CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
        CHECK_EQ(value, i);
    }
    destroy(channel);
    CHECK_EQ(jrt_chan_grow(channel, jrt_worker_self(), slots), JANUS_STALE);
    return 0;
}

TEST("a task that comes late to enlarge a channel leaves it unchanged")
{
    CHECK_EQ(grow_late(NULL), 0);
    rig_run(1, grow_late, NULL, 1);
}

/* Bytes of the ring. No other task uses the channel. */
static uint64_t kept_bytes(janus_channel channel)
{
    return jrt_chan_of(channel)->slots * jrt_chan_of(channel)->item_bytes;
}

static janus_status receive_by(int way, janus_channel channel, int64_t *value)
{
    janus_select_case one = {.channel = channel, .kind = JANUS_SELECT_KIND_RECV, .value = value};
    switch (way) {
    case 0: return janus_channel_recv(channel, value);
    case 1: return janus_channel_try_recv(channel, value);
    case 2: return janus_channel_recv_until(channel, value, 0);
    case 3: return janus_select(&one, 1, NULL);
    default: return janus_try_select(&one, 1, NULL);
    }
}

static int64_t shrink(void *argument)
{
    enum { MOST = 9000, KEPT_BYTES = 65536, WAYS = 5 };
    janus_channel channel;
    int64_t       value = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create_unbounded(8, (uint64_t)MOST * 8, NULL, &channel), JANUS_OK);
    for (int way = 0; way < WAYS; way++) {
        for (int64_t i = 0; i < MOST; i++) CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
        CHECK(kept_bytes(channel) > KEPT_BYTES);
        for (int64_t i = 0; i < MOST; i++) {
            CHECK_EQ(receive_by(way, channel, &value), JANUS_OK);
            CHECK_EQ(value, i);
        }
        CHECK(kept_bytes(channel) <= KEPT_BYTES);
    }
    for (int way = 0; way < WAYS; way++) { /* small rings are kept */
        for (int64_t i = 0; i < 100; i++) CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
        for (int64_t i = 0; i < 100; i++) CHECK_EQ(receive_by(way, channel, &value), JANUS_OK);
        CHECK(kept_bytes(channel) >= 100 * sizeof value);
    }
    destroy(channel);
    return 0;
}

TEST("an unbounded channel that is empty again keeps at most 64 KiB, whichever task emptied it")
{
    CHECK_EQ(shrink(NULL), 0);
    rig_run(1, shrink, NULL, 1);
    rig_run(2, shrink, NULL, 1);
}
