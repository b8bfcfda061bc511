/* SPDX-License-Identifier: MIT */
/* The numbers of error.Name: those of the runtime's statuses, or the program's own from -100. */
#include "meaning/check.h"

#include <janusrt/status.h>
#include <string.h>

enum { FIRST_OWN = -100 };

static const struct {
    const char *name;
    int         number;
} of_runtime[] = {
    {"Cancelled", JANUS_CANCELLED},
    {"Invalid", JANUS_INVALID},
    {"State", JANUS_STATE},
    {"NoMemory", JANUS_NO_MEMORY},
    {"Full", JANUS_FULL},
    {"Unavailable", JANUS_UNAVAILABLE},
    {"Closed", JANUS_CLOSED},
    {"Stale", JANUS_STALE},
    {"Profile", JANUS_PROFILE},
    {"ChildFailed", JANUS_CHILD_FAILED},
    {"Deadlock", JANUS_DEADLOCK},
    {"NurseryNotActive", JANUS_NO_NURSERY},
    {"Deadline", JANUS_DEADLINE},
    {"WouldWait", JANUS_WOULD_WAIT},
    {"ChildCancelled", JANUS_CHILD_CANCELLED},
    {"Reset", JANUS_RESET},
    {"Refused", JANUS_REFUSED},
    {"Unreachable", JANUS_UNREACHABLE},
    {"InUse", JANUS_IN_USE},
    {"NotFound", JANUS_NOT_FOUND},
    {"Exists", JANUS_EXISTS},
    {"Denied", JANUS_DENIED},
    {"Broken", JANUS_BROKEN},
    {"System", JANUS_SYSTEM},
    {"HandleLimitExceeded", JANUS_HANDLE_LIMIT},
    {"Gone", JANUS_GONE},
    {"Restarted", JANUS_RESTARTED},
    {"NoReply", JANUS_NO_REPLY},
    {"Starting", JANUS_STARTING},
    {"Stuck", JANUS_STUCK},
    {"TooOften", JANUS_TOO_OFTEN},
    {"Ignored", JANUS_IGNORED},
    {"NoNameCapability", JANUS_NO_NAME_CAP},
    {"NoNetCapability", JANUS_NO_NET_CAP},
    {"NoFileCapability", JANUS_NO_FILE_CAP},
    {"NoProcessCapability", JANUS_NO_PROCESS_CAP},
    {"NoSpawnCapability", JANUS_NO_SPAWN_CAP},
    {"NoBudgetCapability", JANUS_NO_BUDGET_CAP},
    {"NoChannelCapability", JANUS_NO_CHANNEL_CAP},
    {"NoExecutorCapability", JANUS_NO_EXECUTOR_CAP},
    {"CapabilityForged", JANUS_CAP_FORGED},
    {"CapabilityStale", JANUS_CAP_STALE},
    {"CapabilityForeign", JANUS_CAP_FOREIGN},
    {"CapabilityRevoked", JANUS_CAP_REVOKED},
    {"CapabilityKind", JANUS_CAP_KIND},
    {"CapabilityRight", JANUS_CAP_RIGHT},
    {"BudgetLimitExceeded", JANUS_CAP_LIMIT},
    {"CapabilityWidens", JANUS_CAP_WIDENS},
    {"NotDelegatable", JANUS_NOT_DELEGATABLE},
    {"NoAuthority", JANUS_NO_AUTHORITY},
    {"TaskLimitExceeded", JANUS_TASK_LIMIT},
    {"ChannelLimitExceeded", JANUS_CHANNEL_LIMIT},
    {"AuditFull", JANUS_AUDIT_FULL},
    {"BudgetExhausted", JANUS_BUDGET_EXHAUSTED},
    {"SpawnBudgetExhausted", JANUS_SPAWN_BUDGET},
};

int64_t jl_error_number(struct jl_checker *c, const char *name)
{
    if (!name) return FIRST_OWN;
    for (size_t i = 0; i < sizeof of_runtime / sizeof of_runtime[0]; i++)
        if (!strcmp(of_runtime[i].name, name)) return of_runtime[i].number;
    struct jl_unit *unit = c->unit;
    uint32_t       *index = jl_map_at(c, &c->errors, name);
    if (!*index) {
        int64_t number = FIRST_OWN - (int64_t)unit->error_count;
        JL_PUSH(c->arena, unit->errors, unit->error_count, unit->error_room) =
            (struct jl_error){name, number};
        *index = unit->error_count;
    }
    return unit->errors[*index - 1].number;
}
