/* The paced server's parts: loop and routes (server.c), requests (request.c), streams (stream.c), log (log.c). */
#ifndef SERVER_H
#define SERVER_H
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NO_ID UINT32_MAX

struct settings {
    long port, ttft_us, itl_us, tokens;
    long grid_us; /* streams step together at multiples of this; 0: each in its own phase */
    long burst;   /* events a send, as fast as the socket takes them; 0: paced, one a send */
    long stamps;  /* whether the send time of every event is kept */
};
extern struct settings S;

struct served { /* one request in the log */
    uint32_t id, events, asked, padding;
    int64_t arrived_ns; /* by the kernel's stamp of its last bytes: what queues before this process counts as serving */
    int64_t first_due_ns, last_ns;
    int64_t *sent_ns; /* right before send(2), an entry an event */
};

struct conn {
    int fd, closing, dead, queued, busy;
    char *in, *out;
    size_t in_len, in_room, out_len, out_at, out_room;
    int chat, stream, usage; /* of the request under way */
    uint32_t serial, k, n, prompt_tokens;
    int64_t due_ns, arrived_ns;
    struct conn *next;
};

struct request { /* what a client asked */
    const char *path, *body;
    size_t path_len, body_len, whole_len;
    uint32_t id;
    int close, post;
};

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* request.c: 1 when a whole request was read, 0 when more must come, -1 when it is none */
int parse_request(const char *bytes, size_t len, struct request *r);
void read_body(const struct request *r, struct conn *c);

/* stream.c */
void make_templates(void);
void begin(struct conn *c, const struct request *r, int64_t arrived_ns);
int emit(struct conn *c); /* the events that are due; 1 when the answer is over */

/* log.c */
extern uint64_t blocked_sends;
extern int64_t first_arrived_ns; /* of any request, control calls aside */
struct served *logged(uint32_t serial);
uint32_t log_request(uint32_t id, uint32_t tokens, int64_t arrived_ns);
void log_events(uint32_t serial, int count, int64_t at_ns);
void log_reset(void);
char *log_bytes(size_t *len);
uint32_t log_count(void);

/* server.c */
void put(struct conn *c, const char *bytes, size_t len); /* send, or keep what the socket does not take */
void reply(struct conn *c, int status, const char *type, const char *body, size_t len);
#endif
