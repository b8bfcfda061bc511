/* SPDX-License-Identifier: MIT */
#include "plat/net_unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int jrt_unix_credentials(int fd, janus_credentials *out)
{
    struct ucred who;
    socklen_t    bytes = sizeof who;
    if (!jrt_unix_is(fd)) return -EOPNOTSUPP;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return -errno;
    *out = (janus_credentials){.process = who.pid, .user = who.uid, .group = who.gid};
    return 0;
}

union control {
    char           bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header; /* for its alignment */
};

int jrt_unix_send(int fd, int passed, uint8_t byte)
{
    union control   control = {.bytes = {0}};
    struct iovec    piece = {&byte, 1};
    struct msghdr   message = {.msg_iov = &piece,
                               .msg_iovlen = 1,
                               .msg_control = control.bytes,
                               .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
    ssize_t sent;
    do sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? 0 : -errno;
}

/* Keeps the first descriptor of a message and closes the others. The room for one has padding, in
 * which the system puts a second one. */
static void keep_first(const struct cmsghdr *header, int *out_passed)
{
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int passed;
        memcpy(&passed, CMSG_DATA(header) + i * sizeof passed, sizeof passed);
        if (*out_passed < 0) {
            *out_passed = passed;
        } else {
            (void)close(passed);
        }
    }
}

int jrt_unix_receive(int fd, int *out_passed, uint8_t *out_byte)
{
    union control control;
    struct iovec  piece = {out_byte, 1};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t       got;
    *out_passed = -1;
    do got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) return -errno;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at != NULL; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
        keep_first(at, out_passed);
    }
    return (int)got;
}

ptrdiff_t jrt_unix_read(int fd, const struct iovec *to, int count, bool *out_parted)
{
    struct msghdr message = {.msg_iov = (struct iovec *)to, .msg_iovlen = (size_t)count};
    ssize_t       got;
    do { /* as jrt_net_receive_one */
        got = JRT_TSAN ? recvmsg(fd, &message, MSG_DONTWAIT)
                       : syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return -errno;
    *out_parted = (message.msg_flags & MSG_CTRUNC) != 0;
    return got;
}

bool jrt_unix_is(int fd)
{
    int       domain = 0;
    socklen_t bytes = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

static janus_io_kind socket_kind(int fd)
{
    int       type = 0, listens = 0;
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) return JANUS_IO_KIND_OTHER;
    bytes = sizeof listens;
    (void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
    if (listens) return JANUS_IO_KIND_LISTENER;
    if (type == SOCK_DGRAM) return JANUS_IO_KIND_DATAGRAM;
    return type == SOCK_STREAM ? JANUS_IO_KIND_STREAM : JANUS_IO_KIND_OTHER;
}

janus_io_kind jrt_descriptor_kind(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0) return JANUS_IO_KIND_OTHER;
    if (S_ISSOCK(status.st_mode)) return socket_kind(fd);
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) return JANUS_IO_KIND_FILE;
    if (S_ISDIR(status.st_mode)) return JANUS_IO_KIND_DIRECTORY;
    if (S_ISFIFO(status.st_mode)) return JANUS_IO_KIND_PIPE;
    return isatty(fd) ? JANUS_IO_KIND_TERMINAL : JANUS_IO_KIND_OTHER;
}
