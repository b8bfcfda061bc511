/* SPDX-License-Identifier: MIT */
#include "kernel.h"
struct node {
    struct node *l, *r;
    uint64_t     key;
};
static struct node *insert(struct node *n, uint64_t key, struct node **pool)
{
    if (n == NULL) {
        n = (*pool)++;
        n->l = n->r = NULL;
        n->key = key;
        return n;
    }
    if (key < n->key)
        n->l = insert(n->l, key, pool);
    else
        n->r = insert(n->r, key, pool);
    return n;
}
static uint64_t walk(const struct node *n, uint64_t depth)
{
    return n == NULL ? depth : walk(n->l, depth + 1) + walk(n->r, depth + 1) + (n->key & 1);
}
uint64_t kernel(void)
{
    enum { N = ROUNDS(60000, 2000) };
    struct node *pool = malloc(N * sizeof *pool), *at = pool, *root = NULL;
    uint64_t     s = 17, sum = 0;
    for (int i = 0; i < N; i++) root = insert(root, random_next(&s), &at);
    for (int i = 0; i < ROUNDS(40, 3); i++) {
        root->key ^= 1;
        sum = sum * 3 + walk(root, 0);
    } /* so that no two walks are equal */
    free(pool);
    return sum;
}
