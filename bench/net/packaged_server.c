/* SPDX-License-Identifier: MIT */
/*
 * A server that is a program of the system, NET_PACKAGED: nginx or h2o (protocol.h).
 *
 * This program finds a free port and becomes the server. So the process that is measured is the
 * server's. A grandchild announces the port when the server accepts connections.
 *
 * nginx answers with `return 200`. It runs as one process without a master, so it has one worker.
 * It has no handlers: on /burn it compresses a text with gzip -9, for about as long as net_burn
 * takes. On /stream it sends a file.
 * h2o has no such directive: it answers with a file, which it opens for each request.
 * Both have no log. No limit of theirs ends a connection early. Everything else is as by default.
 */
#include "protocol.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TRIES = 10000, BURN_TEXT_BYTES = 65536 };

static uint16_t port;
static unsigned descriptors;

#if NET_PACKAGED_NGINX
static const char name[] = "nginx";

/* A file of a gigabyte without a block on the disk, and a text that takes gzip milliseconds. */
static void write_files(void)
{
    FILE    *stream = fopen(NET_FOLDER "/stream", "w"), *text = fopen(NET_FOLDER "/burn", "w");
    uint64_t random = 1;
    net_need(stream != NULL && text != NULL, NET_FOLDER);
    net_need(ftruncate(fileno(stream), (off_t)NET_STREAM_BYTES) == 0, "ftruncate");
    for (int i = 0; i < BURN_TEXT_BYTES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        fputc("etaoinshrdlu \n"[random >> 60 < 14 ? random >> 60 : 0], text);
    }
    net_need(fclose(stream) == 0 && fclose(text) == 0, "the files of nginx");
}

static void configure(FILE *file, const struct net_order *order)
{
    const char *tls = order->https ? getenv("NET_TLS") : NULL;
    write_files();
    fprintf(file, "daemon off; master_process off; worker_processes 1;\n");
    fprintf(file, "worker_rlimit_nofile %u;\n", descriptors);
    fprintf(file, "events { worker_connections %u; }\n", descriptors - 8);
    fputs("pid " NET_FOLDER "/nginx.pid; error_log " NET_FOLDER "/nginx.log crit;\n"
          "http {\n"
          "  client_body_temp_path " NET_FOLDER "/b; proxy_temp_path " NET_FOLDER "/p;\n"
          "  fastcgi_temp_path " NET_FOLDER "/f; uwsgi_temp_path " NET_FOLDER "/u;\n"
          "  scgi_temp_path " NET_FOLDER "/s;\n"
          "  access_log off; server_tokens off; default_type text/plain;\n"
          "  keepalive_requests 1000000000; keepalive_timeout 3600s;\n"
          "  server {\n"
          "    location / { return 200 \"" NET_BODY "\"; }\n"
          "    location = /stream { sendfile on; alias " NET_FOLDER "/stream; }\n"
          "    location = /burn {\n"
          "      gzip on; gzip_comp_level 9; gzip_types *; alias " NET_FOLDER "/burn;\n"
          "    }\n",
          file);
    if (tls != NULL) fprintf(file, "    ssl_certificate %s/cert.pem;\n", tls);
    if (tls != NULL) fprintf(file, "    ssl_certificate_key %s/key.pem;\n", tls);
    if (tls != NULL) fprintf(file, "    ssl_protocols TLSv1.3;\n");
    fprintf(file, "    listen 127.0.0.1:%u backlog=%d%s;\n  }\n}\n", port, NET_BACKLOG,
            tls != NULL ? " ssl" : "");
}

static void become(const char *config)
{
    execl(NET_PACKAGED, NET_PACKAGED, "-c", config, (char *)NULL);
}
#else
static const char name[] = "h2o_file";

static void configure(FILE *file, const struct net_order *order)
{
    FILE *hello = fopen(NET_FOLDER "/hello.txt", "w");
    net_need(hello != NULL && fputs(NET_BODY, hello) >= 0 && fclose(hello) == 0, "hello.txt");
    if (getuid() == 0) fprintf(file, "user: root\n");
    fprintf(file, "listen:\n  host: 127.0.0.1\n  port: %u\n", port);
    fprintf(file, "num-threads: %u\nmax-connections: %u\n", order->workers, descriptors - 64);
    fputs("http1-request-timeout: 3600\n" /* also of an idle connection */
          "server-name: bench\n"
          "hosts:\n"
          "  default:\n"
          "    paths:\n"
          "      /:\n"
          "        file.file: " NET_FOLDER "/hello.txt\n",
          file);
}

static void become(const char *config)
{
    execl(NET_PACKAGED, NET_PACKAGED, "-m", "worker", "-c", config, (char *)NULL);
}
#endif

/* In the grandchild: tries to connect, and announces the port. */
static void announce(void)
{
    struct timespec    pause = {.tv_nsec = 1000000};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < START_TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
        net_need(fd >= 0, "socket");
        bool is_up = connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
        close(fd);
        if (is_up) {
            net_announce(port, name, NET_VERSION);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static void announce_later(void)
{
    pid_t child = fork();
    net_need(child >= 0, "fork");
    if (child == 0) {
        if (fork() == 0) announce();
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    struct net_order order = net_order_read(argc, argv);
    char             config[64];
    int              memory = memfd_create("config", 0);
    FILE            *file = fdopen(dup(memory), "w");
    net_need(memory >= 0 && file != NULL, "memfd_create");
    descriptors = (unsigned)sysconf(_SC_OPEN_MAX);
    close(net_listener(&port));
    configure(file, &order);
    net_need(fclose(file) == 0, "the configuration");
    snprintf(config, sizeof config, "/proc/self/fd/%d", memory);
    announce_later();
    close(STDOUT_FILENO);
    net_need(open("/dev/null", O_WRONLY) == STDOUT_FILENO, "/dev/null");
    become(config);
    net_need(false, NET_PACKAGED);
}
