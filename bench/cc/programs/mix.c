/* SPDX-License-Identifier: MIT */
/* What embedded CPUs are measured with: lists, small matrices, a state machine and a checksum. */
#include <stddef.h>
#include <stdint.h>

enum { NODES = 500, SIDE = 20, ROUNDS = 1500 };

struct node {
    struct node *next;
    int          key, value;
};

uint64_t program(void);

static struct node nodes[NODES];
static int32_t     a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];

static uint16_t checksum(uint16_t sum, uint32_t value)
{
    for (int i = 0; i < 32; i++) {
        unsigned low = (sum ^ value) & 1;
        sum >>= 1;
        if (low) sum ^= 0xA001;
        value >>= 1;
    }
    return sum;
}

static struct node *merge(struct node *left, struct node *right)
{
    struct node head = {NULL, 0, 0}, *last = &head;
    while (left && right) {
        struct node **least = left->key <= right->key ? &left : &right;
        last = last->next = *least;
        *least = (*least)->next;
    }
    last->next = left ? left : right;
    return head.next;
}

static struct node *sort(struct node *list)
{
    if (list == NULL || list->next == NULL) return list;
    struct node *slow = list, *fast = list->next;
    while (fast && fast->next) {
        slow = slow->next;
        fast = fast->next->next;
    }
    struct node *half = slow->next;
    slow->next = NULL;
    return merge(sort(list), sort(half));
}

static uint16_t lists(uint16_t sum, int round)
{
    for (int i = 0; i < NODES; i++)
        nodes[i] =
            (struct node){i + 1 < NODES ? &nodes[i + 1] : NULL, (i * 7919 + round) % 1009, i};
    struct node *list = sort(nodes);
    for (int key = 0; key < 1009; key += 100) {
        struct node *at = list;
        while (at && at->key < key) at = at->next;
        sum = checksum(sum, at ? (uint32_t)at->value : 0);
    }
    return sum;
}

static uint16_t matrices(uint16_t sum, int round)
{
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) a[i][k] = i + k + round, b[i][k] = i - k;
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++) {
            c[i][k] = 0;
            for (int j = 0; j < SIDE; j++) c[i][k] += a[i][j] * b[j][k];
        }
    return checksum(sum, (uint32_t)c[round % SIDE][3]);
}

/* Tells kinds of numbers apart: "12", "-1.5", "3e7", and text that is no number. */
static uint16_t states(uint16_t sum)
{
    static const char text[] = "12,-1.5,3e7,+x,0.25,7e-3,..,900,1e,-,44.44,5E+9,";
    enum { START, SIGN, WHOLE, PART, POWER, WRONG } state = START;
    uint32_t counts[6] = {0};
    for (size_t i = 0; text[i]; i++) {
        char at = text[i];
        if (at == ',') {
            counts[state]++;
            state = START;
            continue;
        }
        int digit = at >= '0' && at <= '9';
        switch (state) {
        case START: state = digit ? WHOLE : at == '+' || at == '-' ? SIGN : WRONG; break;
        case SIGN: state = digit ? WHOLE : WRONG; break;
        case WHOLE:
            state = digit ? WHOLE : at == '.' ? PART : (at | 32) == 'e' ? POWER : WRONG;
            break;
        case PART: state = digit ? PART : (at | 32) == 'e' ? POWER : WRONG; break;
        case POWER: state = digit || at == '+' || at == '-' ? POWER : WRONG; break;
        default: break;
        }
    }
    for (int i = 0; i < 6; i++) sum = checksum(sum, counts[i]);
    return sum;
}

uint64_t program(void)
{
    uint16_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        sum = lists(sum, round);
        sum = matrices(sum, round);
        for (int i = 0; i < 8; i++) sum = states(sum);
    }
    return sum;
}
