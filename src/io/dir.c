/* SPDX-License-Identifier: MIT */
/*
 * Directories, and paths below them.
 *
 * [dir-may]  A directory's handle remembers the rights (JANUS_RIGHT_FILE_) that its opener showed.
 *   The rights of the handle (read, write) narrow them: read covers file.read and file.list, and
 *   write covers the others. A call below a directory needs both. Without a directory the call asks
 *   for the capability itself.
 */
#include "io/file.h"

#include "base/options.h"
#include "host/file.h"
#include "means/call.h"
#include "means/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
    PATH_BYTES = 4096,
    HANDLE_BYTES = 512, /* memory charged for a handle */
    READS = JANUS_RIGHT_FILE_READ | JANUS_RIGHT_FILE_LIST,
    WRITES = JANUS_RIGHT_FILE_WRITE | JANUS_RIGHT_FILE_CREATE | JANUS_RIGHT_FILE_REMOVE,
};

static bool is_path(const char *path)
{
    return path != NULL && path[0] != '\0' && strnlen(path, PATH_BYTES) < PATH_BYTES;
}

static uint32_t rights_for(uint32_t may)
{
    return ((may & READS) != 0 ? JANUS_IO_MAY_READ : 0u) |
           ((may & WRITES) != 0 ? JANUS_IO_MAY_WRITE : 0u);
}

uint32_t jrt_dir_may(uint32_t rights)
{
    return ((rights & JANUS_IO_MAY_READ) != 0 ? (uint32_t)READS : 0u) |
           ((rights & JANUS_IO_MAY_WRITE) != 0 ? (uint32_t)WRITES : 0u);
}

/* A path below a directory, or anywhere. */
struct place {
    janus_io       dir;
    struct jrt_io *io; /* NULL: anywhere */
    int            fd;
    const char    *path;
};

/* Enters the directory, if the right is there, [dir-may]. */
static janus_status place_enter(struct place *place, uint32_t may)
{
    if (!is_path(place->path)) return JANUS_INVALID;
    if (jrt_io_is_none(place->dir)) {
        struct jrt_handle_ask ask = {.name = place->path};
        place->fd = JRT_FILE_ANYWHERE;
        return jrt_handle_check(JANUS_CAP_KIND_FILE, may, &ask);
    }
    janus_status status = jrt_io_enter(place->dir, rights_for(may), 0, &place->io);
    if (status != JANUS_OK) return status;
    if (place->io->kind != JANUS_IO_KIND_DIRECTORY) {
        status = JANUS_STATE;
    } else if ((may & ~place->io->cold->may) != 0) {
        status = jrt_trouble_directory(may & ~place->io->cold->may, place->path);
    }
    place->fd = place->io->fd;
    if (status != JANUS_OK) jrt_io_leave(place->io, 0);
    jrt_debug_invariant("dir-may",
                        status != JANUS_OK || (may & ~jrt_dir_may(jrt_io_rights(place->dir))) == 0);
    return status;
}

/* What failed there is about its path. */
static janus_status place_told(const struct place *place, janus_status status)
{
    bool anywhere = jrt_io_is_none(place->dir);
    if (status >= 0) return status;
    return jrt_trouble_about(status, anywhere ? JRT_SUBJECT_PATH : JRT_SUBJECT_BELOW, place->path);
}

static void place_leave(const struct place *place)
{
    if (place->io != NULL) jrt_io_leave(place->io, 0);
}

/* Opening. */

struct opening {
    struct place           place;
    int                    flags;
    uint32_t               permissions;
    uint32_t               may; /* what the call needs, [dir-may] */
    struct jrt_io_plan     plan;
    struct jrt_handle_toll toll;
};

static ptrdiff_t run_open(void *argument)
{
    const struct opening *opening = argument;
    bool                  strict = jrt_handle_is_bounded(&opening->toll);
    return (strict ? jrt_file_open_strictly : jrt_file_open)(opening->place.fd, opening->place.path,
                                                             opening->flags, opening->permissions);
}

/* The descriptor becomes a handle, or is closed. */
static janus_status name_it(struct opening *opening, ptrdiff_t fd, janus_io *out)
{
    struct jrt_io_plan *plan = &opening->plan;
    uint32_t            rights = plan->rights;
    bool                directory = plan->kind == JANUS_IO_KIND_DIRECTORY;
    plan->fd = (int)fd;
    if (!directory) jrt_io_classify(plan);
    janus_status status = JANUS_OK;
    if (!directory && plan->kind == JANUS_IO_KIND_DIRECTORY) {
        status = JANUS_STATE; /* opened to read, as a file */
        jrt_handle_closed(&opening->toll);
    } else {
        plan->rights = rights;
        status = jrt_io_make(plan, &opening->toll, out);
    }
    if (status != JANUS_OK) (void)jrt_net_real.close((int)fd);
    return status;
}

/* To make a file empty counts as one written byte, [file-written]. */
static janus_status open_and_count(struct opening *opening, ptrdiff_t *fd)
{
    uint64_t     counts = (opening->flags & O_TRUNC) != 0 ? 1 : 0;
    janus_status status = jrt_handle_take_bytes(&opening->toll, counts);
    if (status != JANUS_OK) return status;
    status = jrt_file_help(run_open, opening, fd);
    if (status != JANUS_OK) jrt_handle_give_bytes(&opening->toll, counts);
    return status;
}

static janus_status open_it(struct opening *opening, janus_io *out)
{
    struct jrt_handle_ask ask = {.name = opening->place.path, .bytes = HANDLE_BYTES};
    ptrdiff_t             fd = -1;
    janus_status          status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    status = place_enter(&opening->place, opening->may);
    if (status == JANUS_OK) {
        status =
            jrt_handle_may_open(JANUS_CAP_KIND_FILE, 0, &ask, opening->plan.kept, &opening->toll);
        if (status == JANUS_OK) {
            status = place_told(&opening->place, open_and_count(opening, &fd));
            if (status != JANUS_OK) jrt_handle_closed(&opening->toll);
        }
        place_leave(&opening->place);
    }
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    if (status != JANUS_OK) return jrt_io_end(status);
    return name_it(opening, fd, out);
}

janus_status janus_dir_open(const char *path, uint32_t rights, const janus_io_options *given,
                            janus_io *out)
{
    janus_io_options options;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || rights == 0 || (rights & ~(uint32_t)(READS | WRITES)) != 0 ||
        !jrt_io_options_read(given, &options, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    bool           lists = (rights & JANUS_RIGHT_FILE_LIST) != 0;
    struct opening opening = {
        .place = {.path = path},
        .flags = O_DIRECTORY | (lists ? O_RDONLY : O_PATH),
        .may = rights,
        .plan = {.kind = JANUS_IO_KIND_DIRECTORY,
                 .helped = true,
                 .rights = rights_for(rights) | JANUS_IO_MAY_CLOSE,
                 .may = rights,
                 .kept = options.kept,
                 .name = options.name},
    };
    return jrt_io_told(open_it(&opening, out));
}

/* The rights of a directory's handle, as JANUS_RIGHT_FILE_ bits. */
static janus_status may_of(janus_io dir, uint32_t *out)
{
    struct jrt_io *io = NULL;
    janus_status   status = jrt_io_enter(dir, 0, 0, &io);
    if (status != JANUS_OK) return status;
    *out = io->cold->may & jrt_dir_may(jrt_io_rights(dir));
    if (io->kind != JANUS_IO_KIND_DIRECTORY) status = JANUS_STATE;
    jrt_io_leave(io, 0);
    return status;
}

janus_status janus_dir_open_in(janus_io dir, const char *path, const janus_io_options *given,
                               janus_io *out)
{
    janus_io_options options;
    uint32_t         may = 0;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_io_options_read(given, &options, sizeof options))
        return jrt_io_told(JANUS_INVALID);
    janus_status status = may_of(dir, &may);
    if (status != JANUS_OK) return jrt_io_told(status);
    if (may == 0) {
        return jrt_io_told(jrt_trouble_directory(JANUS_RIGHT_FILE_READ, is_path(path) ? path : ""));
    }
    bool           lists = (may & JANUS_RIGHT_FILE_LIST) != 0;
    struct opening opening = {
        .place = {.dir = dir, .path = path},
        .flags = O_DIRECTORY | (lists ? O_RDONLY : O_PATH),
        .may = may,
        .plan = {.kind = JANUS_IO_KIND_DIRECTORY,
                 .helped = true,
                 .rights = rights_for(may) | JANUS_IO_MAY_CLOSE,
                 .may = may,
                 .kept = options.kept,
                 .name = options.name},
    };
    return jrt_io_told(open_it(&opening, out));
}

/* The flags of open(2); -1: `how` makes no sense. */
static int flags_of(uint32_t how)
{
    const uint32_t all = 2 * JANUS_OPEN_APPEND - 1;
    bool           reads = (how & JANUS_OPEN_READ) != 0, writes = (how & JANUS_OPEN_WRITE) != 0;
    if ((how & ~all) != 0 || (!reads && !writes)) return -1;
    if (!writes && (how & (JANUS_OPEN_TRUNCATE | JANUS_OPEN_APPEND)) != 0) return -1;
    if ((how & JANUS_OPEN_EXCLUSIVE) != 0 && (how & JANUS_OPEN_CREATE) == 0) return -1;
    int flags = reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY;
    if ((how & JANUS_OPEN_CREATE) != 0) flags |= O_CREAT;
    if ((how & JANUS_OPEN_EXCLUSIVE) != 0) flags |= O_EXCL;
    if ((how & JANUS_OPEN_TRUNCATE) != 0) flags |= O_TRUNC;
    if ((how & JANUS_OPEN_APPEND) != 0) flags |= O_APPEND;
    return flags | O_NONBLOCK | O_NOCTTY; /* a named pipe opens at once */
}

janus_status janus_file_open(janus_io dir, const char *path, uint32_t how,
                             const janus_file_options *given, janus_io *out)
{
    janus_file_options options;
    int                flags = flags_of(how);
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || flags < 0 || !jrt_io_options_read(given, &options, sizeof options)) {
        return jrt_io_told(JANUS_INVALID);
    }
    if (options.permissions > 07777) return jrt_io_told(JANUS_INVALID);
    uint32_t       reads = (how & JANUS_OPEN_READ) != 0, writes = (how & JANUS_OPEN_WRITE) != 0;
    uint32_t       creates = (how & JANUS_OPEN_CREATE) != 0;
    struct opening opening = {
        .place = {.dir = dir, .path = path},
        .flags = flags,
        .permissions = options.permissions != 0 ? options.permissions : 0666,
        .may = reads * JANUS_RIGHT_FILE_READ | writes * JANUS_RIGHT_FILE_WRITE |
               creates * JANUS_RIGHT_FILE_CREATE,
        .plan = {.rights =
                     reads * JANUS_IO_MAY_READ | writes * JANUS_IO_MAY_WRITE | JANUS_IO_MAY_CLOSE,
                 .kept = options.kept,
                 .name = options.name},
    };
    return jrt_io_told(open_it(&opening, out));
}

/* Calls with one path or two. */

struct deed {
    struct place     place, to;
    uint32_t         permissions;
    bool             flag; /* a directory is removed, or the rename is exclusive */
    janus_file_info *info;
};

static janus_status do_it(struct deed *deed, uint32_t may, ptrdiff_t (*run)(void *argument))
{
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_end(status);
    status = place_enter(&deed->place, may);
    if (status == JANUS_OK) {
        status = place_told(&deed->place, jrt_file_help(run, deed, NULL));
        place_leave(&deed->place);
    }
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    return jrt_io_end(status);
}

static ptrdiff_t run_inspect(void *argument)
{
    struct deed *deed = argument;
    int          fd = jrt_file_open(deed->place.fd, deed->place.path, O_PATH, 0);
    if (fd < 0) return fd;
    int error = jrt_file_inspect(fd, deed->info);
    (void)jrt_net_real.close(fd);
    return error;
}

janus_status janus_dir_inspect(janus_io dir, const char *path, janus_file_info *out)
{
    janus_file_info info;
    struct deed     deed = {.place = {.dir = dir, .path = path}, .info = &info};
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out))
        return jrt_io_told(JANUS_INVALID);
    janus_status status = do_it(&deed, JANUS_RIGHT_FILE_READ, run_inspect);
    if (status == JANUS_OK) jrt_struct_give(out, &info);
    return jrt_io_told(status);
}

static ptrdiff_t run_make(void *argument)
{
    const struct deed *deed = argument;
    return jrt_file_make_directory(deed->place.fd, deed->place.path, deed->permissions);
}

janus_status janus_dir_make(janus_io dir, const char *path, uint32_t permissions)
{
    struct deed deed = {.place = {.dir = dir, .path = path},
                        .permissions = permissions != 0 ? permissions : 0777};
    jrt_stack_check(); /* [stack-reserve] */
    if (permissions > 07777) return jrt_io_told(JANUS_INVALID);
    return jrt_io_told(do_it(&deed, JANUS_RIGHT_FILE_CREATE, run_make));
}

static ptrdiff_t run_remove(void *argument)
{
    const struct deed *deed = argument;
    return jrt_file_remove(deed->place.fd, deed->place.path, deed->flag);
}

janus_status janus_file_remove(janus_io dir, const char *path)
{
    struct deed deed = {.place = {.dir = dir, .path = path}};
    jrt_stack_check(); /* [stack-reserve] */
    return jrt_io_told(do_it(&deed, JANUS_RIGHT_FILE_REMOVE, run_remove));
}

janus_status janus_dir_remove(janus_io dir, const char *path)
{
    struct deed deed = {.place = {.dir = dir, .path = path}, .flag = true};
    jrt_stack_check(); /* [stack-reserve] */
    return jrt_io_told(do_it(&deed, JANUS_RIGHT_FILE_REMOVE, run_remove));
}

static ptrdiff_t run_rename(void *argument)
{
    const struct deed *deed = argument;
    return jrt_file_rename(deed->place.fd, deed->place.path, deed->to.fd, deed->to.path,
                           deed->flag);
}

janus_status janus_file_rename(janus_io from_dir, const char *from, janus_io to_dir, const char *to,
                               bool exclusive)
{
    struct deed deed = {.place = {.dir = from_dir, .path = from},
                        .to = {.dir = to_dir, .path = to},
                        .flag = exclusive};
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = jrt_io_pay(0);
    if (status != JANUS_OK) return jrt_io_told(jrt_io_end(status));
    /* What had the new name is removed. */
    uint32_t may = JANUS_RIGHT_FILE_CREATE | (exclusive ? 0u : (uint32_t)JANUS_RIGHT_FILE_REMOVE);
    status = place_enter(&deed.to, may);
    if (status == JANUS_OK) {
        status = place_enter(&deed.place, JANUS_RIGHT_FILE_REMOVE);
        if (status == JANUS_OK) {
            status = jrt_file_help(run_rename, &deed, NULL);
            if (status < 0) (void)jrt_trouble_about(status, JRT_SUBJECT_MOVE, from);
            place_leave(&deed.place);
        }
        place_leave(&deed.to);
    }
    if (status == JANUS_CANCELLED) jrt_io_pay_back();
    return jrt_io_told(jrt_io_end(status));
}

/* Listing. */

struct listing {
    int              fd;
    janus_dir_entry *out;
    size_t           max;
    ptrdiff_t        count;
};

static ptrdiff_t run_list(void *argument)
{
    const struct listing *listing = argument;
    return jrt_file_list(listing->fd, listing->out, listing->max);
}

static janus_status list_inside(struct jrt_io *io, void *argument)
{
    struct listing *listing = argument;
    if (io->kind != JANUS_IO_KIND_DIRECTORY) return JANUS_STATE;
    if ((io->cold->may & JANUS_RIGHT_FILE_LIST) == 0) {
        return jrt_trouble_directory(JANUS_RIGHT_FILE_LIST, ".");
    }
    listing->fd = io->fd;
    janus_status status = jrt_file_help(run_list, listing, &listing->count);
    return status == JANUS_OK && listing->count == 0 ? JANUS_CLOSED : status;
}

janus_status janus_dir_list(janus_io dir, janus_dir_entry *out, size_t max, size_t *out_count)
{
    struct listing listing = {.out = out, .max = max};
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || max == 0 || out_count == NULL || jrt_io_is_none(dir))
        return jrt_io_told(JANUS_INVALID);
    *out_count = 0;
    janus_status status =
        jrt_file_call(dir, JANUS_IO_MAY_READ, JRT_IO_READER, list_inside, &listing);
    *out_count = (size_t)listing.count;
    return jrt_io_told(status);
}
