/* SPDX-License-Identifier: MIT */
/*
 * Files and directories. A directory is a handle, and a path is below it:
 *
 *     janus_io dir, file;
 *     if (janus_dir_open("/srv/data", JANUS_RIGHT_FILE_READ, NULL, &dir) != JANUS_OK) return -100;
 *     if (janus_file_open(dir, "7.json", JANUS_OPEN_READ, NULL, &file) != JANUS_OK) return -101;
 *     while (janus_io_read(file, bytes, sizeof bytes, &got) == JANUS_OK) consume(bytes, got);
 *     janus_io_close(file);
 *
 * janus_dir_open needs a capability of the kind FILE. From then on the handle is enough: code that
 * holds a directory reaches what lies below it, and nothing else. An absolute path, a "..", or a
 * symbolic link that leads outside gives DENIED, also if somebody renames directories meanwhile.
 * Links that stay inside work. janus_io_attenuate with JANUS_IO_MAY_READ makes a directory in which
 * nothing can be changed.
 *
 * To give a plugin one directory and nothing else, pass it the handle. Where a profile gives more,
 * bind a capability with JANUS_RIGHT_FILE_BELOW alone to its nursery (file_cap).
 *
 * Where a call takes a directory, a handle of all zeros stands for the whole file system. Then the
 * path is one of the process, and the call itself needs the capability. A task that a capability or
 * a pool bounds opens no memory of a process, and nothing below /proc/self/fd: DENIED.
 *
 * A file is a janus_io of the kind FILE. janus_io_read and janus_io_write use its position, which
 * all handles of one open file share. At the end of a file janus_io_read returns CLOSED. A read of
 * what is in memory gets at most 256 KiB; janus_io_read_full reads on.
 *
 * Reads of what is in memory return at once. All other calls run on a helper thread, as
 * janus_blocking does, and the task waits. A cancel before the helper begins gives CANCELLED, and
 * nothing happened. Once the helper has begun, the call runs to its end, and its result counts. A
 * deadline of the handle is looked at before a transfer. In a simulated run files are real.
 *
 * Each call costs one op and one syscall of the budget. A path has fewer than 4096 bytes. Written
 * bytes count against max_written of the capability under which the handle was made.
 */
#ifndef JANUSRT_FILE_H
#define JANUSRT_FILE_H

#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a file is opened; bits. */
enum janus_open {
    JANUS_OPEN_READ = 1,
    JANUS_OPEN_WRITE = 2,
    JANUS_OPEN_CREATE = 4,    /* makes a new file if needed */
    JANUS_OPEN_EXCLUSIVE = 8, /* with CREATE: EXISTS if there is one, or a link */
    JANUS_OPEN_TRUNCATE = 16, /* with WRITE: it becomes empty */
    JANUS_OPEN_APPEND = 32,   /* with WRITE: each write goes to the end */
};

typedef struct janus_file_options {
    size_t      struct_bytes; /* sizeof this struct; JANUS_FILE_OPTIONS sets it */
    uint32_t    permissions;  /* of a new file, before the umask; 0: 0666 */
    bool        kept;         /* as in janus_io_options */
    const char *name;         /* as in janus_io_options */
} janus_file_options;
#define JANUS_FILE_OPTIONS(...) JANUS_OPTIONS_(janus_file_options, __VA_ARGS__)

/* What lies at a path. */
typedef enum janus_file_kind {
    JANUS_FILE_KIND_OTHER = 0, /* a device, a socket, a pipe, or the file system does not say */
    JANUS_FILE_KIND_FILE,
    JANUS_FILE_KIND_DIRECTORY,
    JANUS_FILE_KIND_LINK, /* symbolic */
} janus_file_kind;

typedef struct janus_file_info {
    size_t          struct_bytes; /* sizeof this struct; JANUS_FILE_INFO sets it */
    janus_file_kind kind;
    uint32_t        permissions; /* the low 12 bits of st_mode */
    uint32_t        user, group;
    uint64_t        bytes;
    uint64_t        links; /* names of it */
    uint64_t        device, inode;
    int64_t         modified_ns; /* since 1970 */
} janus_file_info;
#define JANUS_FILE_INFO() JANUS_SIZED_(janus_file_info)

/* One name in a directory. */
typedef struct janus_dir_entry {
    uint64_t        inode;
    janus_file_kind kind;
    char            name[256];
} janus_dir_entry;

JANUS_BEGIN_DECLS

/*
 * Opens a directory. `rights` is a set of JANUS_RIGHT_FILE_ bits: what may be done below it. It
 * says what the call needs, too. READ: open files to read, and inspect. LIST: list names. WRITE:
 * open existing files to write. CREATE: make files and directories. REMOVE: remove and rename.
 *
 * Context: anyone with all of `rights`.
 * Yields:  always, in a task.
 * Owns:    *out is the caller's; see io.h. janus_io_close closes it.
 * Cost:    1 op and 1 syscall; a helper, some 20 us.
 * Errors:  NOT_FOUND    there is nothing with this name
 *          STATE        it is no directory
 *          DENIED       the system forbids it
 *          NO_FILE_CAP  the task may not; CAP_RIGHT: not with all of these rights
 *          FULL         no descriptor is left; or too many blocking calls wait for helpers
 *          HANDLE_LIMIT, CANCELLED, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_dir_open(const char *path, uint32_t rights,
                                                      const janus_io_options *options,
                                                      janus_io               *out);

/*
 * Opens a directory below another, with the same rights.
 *
 * Context: anyone.
 * Yields:  as janus_dir_open.
 * Owns:    as janus_dir_open.
 * Cost:    as janus_dir_open.
 * Errors:  as janus_dir_open, and STALE. DENIED: the path leads outside. CAP_RIGHT: the handle has
 *          no right of a directory. NO_FILE_CAP: never.
 */
JANUS_NODISCARD JANUS_API janus_status janus_dir_open_in(janus_io dir, const char *path,
                                                         const janus_io_options *options,
                                                         janus_io               *out);

/*
 * Opens or makes a file below a directory. `how` is a set of JANUS_OPEN_ bits.
 *
 * Context: anyone. Without a directory: anyone with the rights file.read, file.write, file.create
 *          that `how` needs.
 * Yields:  always, in a task.
 * Owns:    *out is the caller's; see io.h. janus_io_close closes it.
 * Cost:    1 op and 1 syscall; a helper, some 20 us.
 * Errors:  NOT_FOUND  there is nothing with this name
 *          EXISTS     with EXCLUSIVE
 *          STATE      it is a directory, or a part of the path is a file
 *          DENIED     the path leads outside, or the system forbids it
 *          CAP_RIGHT  the directory's handle has not the right
 *          FULL       no room on the disk, no descriptor, or too many blocking calls wait
 *          NO_FILE_CAP, HANDLE_LIMIT, CANCELLED, STALE, INVALID, NO_MEMORY,
 *          BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_open(janus_io dir, const char *path, uint32_t how,
                                                       const janus_file_options *options,
                                                       janus_io                 *out);

/*
 * Reads at a place of a file, at most `max` bytes, and leaves the position alone.
 *
 * Context: a task or a plain thread. Several may read at once.
 * Yields:  if the bytes are not in memory, or the turn is over.
 * Owns:    `to` stays the caller's.
 * Cost:    1 op and 1 syscall; one system call, or a helper.
 * Errors:  CLOSED       the file ends at or before `offset`
 *          UNAVAILABLE  it has no places: a pipe, a terminal
 *          as janus_io_read
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_read_at(janus_io file, uint64_t offset, void *to,
                                                          size_t max, size_t *out_got);

/*
 * Writes all `count` bytes at a place of a file, and leaves the position alone. A file that was
 * opened with APPEND gets them at its end.
 *
 * Context: a task or a plain thread. Several may write at once.
 * Yields:  always, in a task.
 * Owns:    `from` stays the caller's.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  FULL       the disk is full, or a quota is used up
 *          CAP_LIMIT  the capability has fewer bytes left to write
 *          as janus_io_write. On any error *out_done bytes were written; it may be NULL.
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_write_at(janus_io file, uint64_t offset,
                                                           const void *from, size_t count,
                                                           size_t *out_done);

/*
 * Sets the position of a file, in bytes from its beginning. A directory accepts 0: the list begins
 * again.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall of the budget; a system call.
 * Errors:  UNAVAILABLE  it has no position: a pipe, a terminal
 *          STALE, INVALID, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_seek(janus_io file, uint64_t offset);

/*
 * Waits until what was written is on the disk: bytes and length, and with `everything` also times
 * and the like.
 *
 * Context: a task or a plain thread.
 * Yields:  always, in a task.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall; a helper, some milliseconds.
 * Errors:  SYSTEM       some bytes are lost; janus_explain names the system's error
 *          UNAVAILABLE  it has no disk: a pipe, a socket
 *          FULL         the disk is full; or too many blocking calls wait for helpers
 *          CANCELLED, CAP_RIGHT, STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_sync(janus_io file, bool everything);

/*
 * Makes a file `bytes` long: cuts it, or appends zeros.
 *
 * Context: a task or a plain thread.
 * Yields:  always, in a task.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  UNAVAILABLE  it is no file
 *          DENIED       the system forbids it: the file is sealed
 *          and as janus_file_sync
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_truncate(janus_io file, uint64_t bytes);

/*
 * Copies what the system knows about an open file or directory.
 *
 * Context: anyone. Any right will do.
 * Yields:  always, in a task.
 * Owns:    *out is the caller's; JANUS_FILE_INFO initialises it.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  UNAVAILABLE  a socket of a simulated run
 *          FULL         too many blocking calls wait for helpers
 *          CANCELLED, STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_inspect(janus_io file, janus_file_info *out);

/*
 * Copies what the system knows about what lies at a path. Follows links that stay below.
 *
 * Context: as janus_file_open, with the right file.read.
 * Yields:  always, in a task.
 * Owns:    *out is the caller's; JANUS_FILE_INFO initialises it.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  as janus_file_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_dir_inspect(janus_io dir, const char *path,
                                                         janus_file_info *out);

/*
 * Lists the next names in a directory, at most `max` of them, and never "." or "..". The handle has
 * the position; janus_file_seek to 0 begins again. Names that come or go meanwhile may be missed.
 *
 * Context: a task or a plain thread. One lists at a time. Needs the right file.list.
 * Yields:  always, in a task.
 * Owns:    *out_count entries are written to `out`.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  CLOSED  there are no more; *out_count is 0
 *          STATE   another one lists there, or it is no directory
 *          as janus_file_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_dir_list(janus_io dir, janus_dir_entry *out,
                                                      size_t max, size_t *out_count);

/*
 * Makes a directory. `permissions` before the umask; 0: 0777.
 *
 * Context: as janus_file_open, with the right file.create.
 * Yields:  always, in a task.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  EXISTS, and as janus_file_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_dir_make(janus_io dir, const char *path,
                                                      uint32_t permissions);

/*
 * Removes a file, a link or the like. Removes a link itself, and not what it leads to.
 *
 * Context: as janus_file_open, with the right file.remove.
 * Yields:  always, in a task.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  STATE  it is a directory
 *          as janus_file_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_remove(janus_io dir, const char *path);

/*
 * Removes an empty directory.
 *
 * Context: as janus_file_remove.
 * Yields:  always, in a task.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  STATE  it is a file, or not empty
 *          as janus_file_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_dir_remove(janus_io dir, const char *path);

/*
 * Renames a file or a directory in one step. It replaces what had the new name, unless
 * `exclusive`.
 *
 * Context: as janus_file_open, with file.remove in `from_dir` and file.create in `to_dir`. Unless
 *          `exclusive`, with file.remove in `to_dir`, too.
 * Yields:  always, in a task.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall; a helper.
 * Errors:  EXISTS       exclusive, and there is something with the new name
 *          DENIED       a path leads outside, or to another file system
 *          UNAVAILABLE  the file system cannot rename exclusively
 *          as janus_file_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_file_rename(janus_io from_dir, const char *from,
                                                         janus_io to_dir, const char *to,
                                                         bool exclusive);

JANUS_END_DECLS
#endif
