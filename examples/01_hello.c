/* SPDX-License-Identifier: MIT */
/*
 * Hello: three tasks run side by side and greet in three languages. The program learns where all of
 * them have ended: at the closing brace of the nursery.
 */
#include <janusrt/janus.h>
#include <stdio.h>

struct guest {
    const char *word, *name;
    char        greeting[32];
};

static int64_t greet(void *argument)
{
    struct guest *guest = argument;
    if (janus_sleep(1 * JANUS_MS) != JANUS_OK) return JANUS_CANCELLED; /* only this task waits */
    snprintf(guest->greeting, sizeof guest->greeting, "%s, %s", guest->word, guest->name);
    return 0;
}

static int64_t first_task(void *argument)
{
    struct guest guests[] = {{.word = "Hello", .name = "Anna"},
                             {.word = "Hej", .name = "Bo"},
                             {.word = "Hola", .name = "Carla"}};
    janus_status status;
    (void)argument;
    JANUS_NURSERY(greeting, status)
    {
        for (int i = 0; i < 3; i++) {
            if (janus_spawn(greeting, greet, &guests[i]) != JANUS_OK) return -100;
        }
    } /* all three tasks have ended here, so their memory may lie on this stack */
    for (int i = 0; i < 3; i++) printf("%s\n", guests[i].greeting);
    return status;
}

int main(void) { return janus_run(NULL, first_task, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * Hello, Anna
 * Hej, Bo
 * Hola, Carla
 */
