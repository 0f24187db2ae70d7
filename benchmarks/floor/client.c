/* The floor: what the same load costs a client in C. One thread, epoll, recv, a scan for lines of server-sent events.
 * client PORT REQUESTS STREAMS TOKENS [user|kernel STAMPS]
 * With REST_US in its environment it sleeps that long before each look: nearly idle, it shows what the server can send.
 * With STAMPS each event's arrival goes to that file, taken after recv (user) or from the kernel's SO_TIMESTAMPNS (kernel):
 * little-endian, per request u32 id, u32 events, i64 sent, then an i64 an event. CLOCK_MONOTONIC.
 * Prints JSON: seconds of processor and of wall from the first send to the last answer, events, answers that said [DONE]. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM (1 << 18)

struct request { uint32_t id, events; int64_t sent_ns, *came_ns; };
struct stream { int fd, done; struct request *asked; size_t held; char carry[4096]; };

static struct request *requests;
static int total, next_request, finished, tokens, kernel, port;
static long done_seen, events_seen;
static int64_t to_monotonic, offset_read_ns;

static int64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void ask(struct stream *s) {
    static const char form[] = "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                               "X-Request-Id: %u\r\nContent-Length: %d\r\n\r\n%s";
    char body[256], bytes[1024];
    int n = sprintf(body, "{\"model\":\"bench\",\"messages\":[{\"role\":\"user\",\"content\":\"one two three four\"}],"
                          "\"max_tokens\":%d,\"stream\":true,\"stream_options\":{\"include_usage\":true}}", tokens);
    s->asked = &requests[next_request];
    s->asked->id = next_request++;
    s->done = 0;
    s->held = 0;
    n = sprintf(bytes, form, port, s->asked->id, n, body);
    s->asked->sent_ns = read_clock(CLOCK_MONOTONIC);
    if (send(s->fd, bytes, n, MSG_NOSIGNAL) != n) fail("send");
}

static int64_t kernel_stamp(struct msghdr *message) {
    int64_t now = read_clock(CLOCK_MONOTONIC);
    if (now - offset_read_ns > 100000000) {
        offset_read_ns = now;
        to_monotonic = now - read_clock(CLOCK_REALTIME);
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            return t.tv_sec * 1000000000LL + t.tv_nsec + to_monotonic;
        }
    return now;
}

static ssize_t receive(struct stream *s, char *into, int64_t *at_ns) {
    if (!kernel) {
        ssize_t n = recv(s->fd, into, ROOM, 0);
        *at_ns = requests[0].came_ns ? read_clock(CLOCK_MONOTONIC) : 0;
        return n;
    }
    char control[64];
    struct iovec part = {into, ROOM};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(s->fd, &message, 0);
    *at_ns = kernel_stamp(&message);
    return n;
}

/* One line; 1 when it ends the answer: the last chunk's size, once [DONE] was said. */
static int take_line(struct stream *s, const char *line, size_t len, int64_t at_ns) {
    if (len > 6 && !memcmp(line, "data: ", 6)) {
        if (line[6] == '{') {
            struct request *r = s->asked;
            if (r->came_ns && r->events < (uint32_t)tokens) r->came_ns[r->events] = at_ns;
            r->events++;
            events_seen++;
        } else if (!memcmp(line + 6, "[DONE]", 6)) s->done = 1;
    }
    return s->done && len == 2 && line[0] == '0';
}

static void take(struct stream *s) {
    static char bytes[4096 + ROOM];
    int64_t at_ns;
    memcpy(bytes, s->carry, s->held);
    ssize_t n = receive(s, bytes + s->held, &at_ns);
    if (n <= 0) {
        if (n < 0 && errno == EAGAIN) return;
        fail("the server closed a stream");
    }
    char *line = bytes, *end = bytes + s->held + n, *eol;
    s->held = 0;
    while ((eol = memchr(line, '\n', end - line))) {
        int over = take_line(s, line, eol - line, at_ns);
        line = eol + 1;
        if (over) {
            done_seen += s->done;
            finished++;
            if (next_request < total) ask(s);
            return;
        }
    }
    s->held = end - line;
    if (s->held > sizeof s->carry) fail("a line is too long");
    memcpy(s->carry, line, s->held);
}

static struct stream *connected(int count, int loop) {
    struct stream *all = calloc(count, sizeof *all);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    for (int i = 0; i < count; i++) {
        all[i].fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(all[i].fd, (void *)&at, sizeof at)) fail("connect");
        setsockopt(all[i].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (kernel) setsockopt(all[i].fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(loop, EPOLL_CTL_ADD, all[i].fd, &ev);
    }
    return all;
}

static void write_stamps(const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) fail(path);
    for (int i = 0; i < total; i++) {
        if (requests[i].events > (uint32_t)tokens) requests[i].events = tokens; /* the usage chunk is no token */
        fwrite(&requests[i], 16, 1, file);
        fwrite(requests[i].came_ns, 8, requests[i].events, file);
    }
    fclose(file);
}

static double cpu_s(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 7) return 2;
    port = atoi(argv[1]), total = atoi(argv[2]), tokens = atoi(argv[4]);
    int count = atoi(argv[3]), loop = epoll_create1(0);
    kernel = argc == 7 && !strcmp(argv[5], "kernel");
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    requests = calloc(total, sizeof *requests);
    if (argc == 7)
        for (int i = 0; i < total; i++) requests[i].came_ns = malloc(tokens * 8);
    struct stream *streams = connected(count, loop);
    double cpu = cpu_s();
    int64_t began = read_clock(CLOCK_MONOTONIC);
    for (int i = 0; i < count && next_request < total; i++) ask(&streams[i]);
    static struct epoll_event events[1024];
    const char *rest = getenv("REST_US");
    while (finished < total) {
        if (rest) usleep(atoi(rest));
        int n = epoll_wait(loop, events, 1024, 20000);
        if (n <= 0) fail("the server sent nothing for 20 s");
        for (int i = 0; i < n; i++) take(events[i].data.ptr);
    }
    printf("{\"cpu_s\":%.6f,\"wall_s\":%.6f,\"events\":%ld,\"done\":%ld}\n", cpu_s() - cpu,
           (read_clock(CLOCK_MONOTONIC) - began) / 1e9, events_seen, done_seen);
    if (argc == 7) write_stamps(argv[6]);
}
