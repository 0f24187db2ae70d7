/* A deterministic OpenAI-compatible server on loopback: one thread, epoll, every send time logged.
 * server [--port=N] [--ttft_us=N] [--itl_us=N] [--tokens=N] [--grid_us=N] [--burst=N] [--stamps=0|1]
 * Token k of an answer is due at (request read) + ttft + k * itl. GET /ctl/load?ttft_us=N&... changes that and forgets
 * the log, /ctl/log gives it (log.c), /ctl/stats a few figures as JSON. Prints its port, then serves until it is ended. */
#include "server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct settings S = {.ttft_us = 200000, .itl_us = 20000, .tokens = 128, .stamps = 1};
static int loop_fd;

/* Streams by what they wait for. All have the same TTFT and ITL, so each queue is in the order of its due times. */
struct queue { struct conn *head, *tail; };
static struct queue first_tokens, next_tokens, unpaced;

static void push(struct queue *q, struct conn *c) {
    c->next = NULL;
    c->queued = 1;
    if (q->tail) q->tail->next = c;
    else q->head = c;
    q->tail = c;
}

static struct conn *pop(struct queue *q) {
    struct conn *c = q->head;
    if (!(q->head = c->next)) q->tail = NULL;
    c->queued = 0;
    return c;
}

static void keep(char **to, size_t *len, size_t *room, const char *bytes, size_t n) {
    if (*len + n > *room) *to = realloc(*to, *room = (*len + n) * 2);
    memcpy(*to + *len, bytes, n);
    *len += n;
}

static void flush(struct conn *c) {
    while (c->out_at < c->out_len) {
        ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno != EAGAIN) c->dead = 1;
            return;
        }
        c->out_at += n;
    }
    c->out_at = c->out_len = 0;
}

void put(struct conn *c, const char *bytes, size_t len) {
    ssize_t n = 0;
    if (c->out_len == 0) n = send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == (ssize_t)len) return;
    if (n < 0 && errno != EAGAIN) c->dead = 1;
    blocked_sends++;
    if (n < 0) n = 0;
    keep(&c->out, &c->out_len, &c->out_room, bytes + n, len - n);
}

void reply(struct conn *c, int status, const char *type, const char *body, size_t len) {
    char head[256];
    int n = sprintf(head, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %zu\r\n\r\n", status,
                    status == 200 ? "OK" : "Not Found", type, len);
    put(c, head, n);
    if (len) put(c, body, len);
}

static int set(const char *name, size_t len, long value) {
    struct { const char *name; long *at; } all[] = {
        {"port", &S.port},       {"ttft_us", &S.ttft_us}, {"itl_us", &S.itl_us}, {"tokens", &S.tokens},
        {"grid_us", &S.grid_us}, {"burst", &S.burst},     {"stamps", &S.stamps}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == len && !memcmp(all[i].name, name, len)) return *all[i].at = value, 1;
    return 0;
}

static int set_all(const char *query, const char *end) {
    int known = 1;
    for (const char *is; query < end && (is = memchr(query, '=', end - query)); query++) {
        char *behind;
        long value = strtol(is + 1, &behind, 10);
        known &= set(query, is - query, value);
        query = behind;
    }
    if (S.burst > 256) S.burst = 256; /* what fits a send buffer of ours */
    return known;
}

static void control(struct conn *c, const struct request *r) {
    char text[256];
    if (!strncmp(r->path, "/ctl/load?", 10)) {
        log_reset();
        int known = set_all(r->path + 10, r->path + r->path_len);
        reply(c, known ? 200 : 404, "text/plain", "\n", 1);
    } else if (!strncmp(r->path, "/ctl/log", 8)) {
        size_t len;
        char *bytes = log_bytes(&len);
        reply(c, 200, "application/octet-stream", bytes, len);
        free(bytes);
    } else {
        int n = sprintf(text, "{\"first_arrived_ns\":%ld,\"requests\":%u,\"blocked_sends\":%lu}", (long)first_arrived_ns,
                        log_count(), (unsigned long)blocked_sends);
        reply(c, 200, "application/json", text, n);
    }
}

static int is(const struct request *r, const char *path) {
    return r->path_len == strlen(path) && !memcmp(r->path, path, r->path_len);
}

static void route(struct conn *c, const struct request *r) {
    static const char models[] =
        "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\",\"owned_by\":\"bench\",\"max_model_len\":131072}]}";
    if (!strncmp(r->path, "/ctl/", 5)) return control(c, r);
    if (!first_arrived_ns) first_arrived_ns = c->arrived_ns;
    c->chat = is(r, "/v1/chat/completions");
    if (r->post && (c->chat || is(r, "/v1/completions"))) {
        begin(c, r, c->arrived_ns);
        push(S.burst ? &unpaced : &first_tokens, c);
    } else if (is(r, "/v1/models")) reply(c, 200, "application/json", models, sizeof models - 1);
    else if (is(r, "/version")) reply(c, 200, "application/json", "{\"version\":\"bench\"}", 19);
    else if (is(r, "/health")) reply(c, 200, "text/plain", "", 0);
    else reply(c, 404, "application/json", "{\"error\":{\"message\":\"not found\"}}", 33);
}

static void answer_input(struct conn *c) {
    struct request r;
    int whole = 0;
    while (!c->busy && !c->dead && c->in_len && (whole = parse_request(c->in, c->in_len, &r)) > 0) {
        c->closing = r.close;
        route(c, &r);
        c->in_len -= r.whole_len;
        memmove(c->in, c->in + r.whole_len, c->in_len);
    }
    if (whole < 0) c->dead = 1;
}

/* The kernel's stamp of what was read, on the monotonic clock; the time now where there is none. */
static int64_t arrival(struct msghdr *message) {
    struct timespec at, wall;
    for (struct cmsghdr *m = CMSG_FIRSTHDR(message); m; m = CMSG_NXTHDR(message, m))
        if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SO_TIMESTAMPNS) {
            memcpy(&at, CMSG_DATA(m), sizeof at);
            clock_gettime(CLOCK_REALTIME, &wall);
            return now_ns() - (wall.tv_sec - at.tv_sec) * 1000000000LL - (wall.tv_nsec - at.tv_nsec);
        }
    return now_ns();
}

static void take(struct conn *c) {
    static char bytes[1 << 18], control[64];
    for (;;) {
        struct iovec part = {bytes, sizeof bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT);
        if (n <= 0) {
            if (n == 0 || errno != EAGAIN) c->dead = 1;
            break;
        }
        c->arrived_ns = arrival(&message);
        keep(&c->in, &c->in_len, &c->in_room, bytes, n);
        if (n < (ssize_t)sizeof bytes) break;
    }
    if (c->in_len) answer_input(c);
}

/* Closed once no queue holds it. */
static int bury(struct conn *c) {
    if (c->closing && !c->busy && !c->out_len) c->dead = 1;
    if (!c->dead || c->queued) return c->dead;
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
    return 1;
}

static void welcome(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct conn *c = calloc(1, sizeof *c);
        c->fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
        struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
        epoll_ctl(loop_fd, EPOLL_CTL_ADD, fd, &ev);
    }
}

static void step(struct conn *c, struct queue *then) {
    if (c->dead) {
        bury(c);
        return;
    }
    if (S.burst && c->out_len) { /* the client does not keep up: look again when it has taken what was sent */
        push(then, c);
        return;
    }
    if (emit(c)) {
        c->busy = 0;
        answer_input(c);
        bury(c);
    } else {
        c->due_ns += S.itl_us * 1000;
        push(then, c);
    }
}

static void emit_due(struct queue *q) {
    while (q->head && q->head->due_ns <= now_ns()) step(pop(q), &next_tokens);
}

static void emit_unpaced(void) {
    struct conn *last = unpaced.tail, *c;
    while (unpaced.head) {
        c = pop(&unpaced);
        step(c, &unpaced);
        if (c == last) break;
    }
}

static struct timespec patience(void) {
    int64_t due = INT64_MAX, now = now_ns();
    if (first_tokens.head) due = first_tokens.head->due_ns;
    if (next_tokens.head && next_tokens.head->due_ns < due) due = next_tokens.head->due_ns;
    int64_t left = unpaced.head || due <= now ? 0 : due == INT64_MAX ? 1000000000 : due - now;
    return (struct timespec){left / 1000000000, left % 1000000000};
}

static void serve(int listener) {
    static struct epoll_event events[1024];
    for (;;) {
        struct timespec wait = patience();
        int n = epoll_pwait2(loop_fd, events, 1024, &wait, NULL);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (!c) {
                welcome(listener);
                continue;
            }
            if (events[i].events & EPOLLOUT && c->out_len) flush(c);
            if (events[i].events & ~EPOLLOUT) take(c);
            bury(c);
        }
        emit_due(&first_tokens);
        emit_due(&next_tokens);
        emit_unpaced();
    }
}

static int listen_on(long port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    if (bind(fd, (void *)&at, sizeof at) || listen(fd, 8192) || getsockname(fd, (void *)&at, &len)) {
        perror("server");
        exit(1);
    }
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) || !set_all(argv[i] + 2, argv[i] + strlen(argv[i]))) {
            fprintf(stderr, "server: unknown option %s\n", argv[i]);
            return 2;
        }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    make_templates();
    loop_fd = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_on(S.port);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(loop_fd, EPOLL_CTL_ADD, listener, &ev);
    serve(listener);
}
