/* When each request arrived and each event sent. Dumped little-endian: per request u32 id, u32 events, u32 tokens asked,
 * u32 0, i64 arrived, i64 first token due, i64 last send, then an i64 an event (none when stamps are off). CLOCK_MONOTONIC. */
#include "server.h"
#include <stdlib.h>
#include <string.h>

uint64_t blocked_sends;
int64_t first_arrived_ns;
static struct served *all;
static uint32_t count, room;

struct served *logged(uint32_t serial) { return &all[serial]; }
uint32_t log_count(void) { return count; }

uint32_t log_request(uint32_t id, uint32_t tokens, int64_t arrived_ns) {
    if (count == room) {
        room = room ? room * 2 : 4096;
        all = realloc(all, room * sizeof *all);
    }
    all[count] = (struct served){.id = id, .asked = tokens, .arrived_ns = arrived_ns};
    if (S.stamps) all[count].sent_ns = malloc(tokens * sizeof(int64_t));
    return count++;
}

void log_events(uint32_t serial, int events, int64_t at_ns) {
    struct served *r = &all[serial];
    for (int i = 0; i < events; i++, r->events++)
        if (r->sent_ns) r->sent_ns[r->events] = at_ns;
    r->last_ns = at_ns;
}

void log_reset(void) {
    for (uint32_t i = 0; i < count; i++) free(all[i].sent_ns);
    count = 0;
    blocked_sends = 0;
    first_arrived_ns = 0;
}

char *log_bytes(size_t *len) {
    const size_t head = offsetof(struct served, sent_ns);
    *len = 0;
    for (uint32_t i = 0; i < count; i++) *len += head + (all[i].sent_ns ? all[i].events * 8 : 0);
    char *bytes = malloc(*len + 1), *p = bytes;
    for (uint32_t i = 0; i < count; i++) {
        size_t stamps = all[i].sent_ns ? all[i].events * 8 : 0;
        memcpy(p, &all[i], head);
        if (stamps) memcpy(p + head, all[i].sent_ns, stamps);
        p += head + stamps;
    }
    return bytes;
}
