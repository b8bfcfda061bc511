/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked list. The head is a node too, so no link is ever NULL. */
#ifndef JRT_BASE_LIST_H
#define JRT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct jrt_list_node {
    struct jrt_list_node *next, *prev;
};

#define jrt_list_entry(node, type, member) ((type *)((char *)(node) - offsetof(type, member)))

static inline void jrt_list_init(struct jrt_list_node *head) { head->next = head->prev = head; }

static inline bool jrt_list_empty(const struct jrt_list_node *head) { return head->next == head; }

static inline void jrt_list_push_front(struct jrt_list_node *head, struct jrt_list_node *node)
{
    node->next = head->next;
    node->prev = head;
    head->next->prev = node;
    head->next = node;
}

static inline void jrt_list_remove(struct jrt_list_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = node;
}

#endif
