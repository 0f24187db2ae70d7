/* Answers: the texts of events, and when they leave. */
#include "server.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREATED 1700000000
#define HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"

/* A chunk of one event; only the id's ten digits and the word's two differ from token to token. */
static struct template { char text[512]; int len, id_at, word_at; } templates[2][2]; /* [chat][last] */

static int chunked(char *out, const char *event) { return sprintf(out, "%zx\r\n%s\r\n", strlen(event), event); }

static const char *prefix(int chat) { return chat ? "chatcmpl-" : "cmpl-"; }
static const char *object(int chat) { return chat ? "chat.completion.chunk" : "text_completion"; }

void make_templates(void) {
    for (int chat = 0; chat < 2; chat++)
        for (int last = 0; last < 2; last++) {
            struct template *t = &templates[chat][last];
            char event[400];
            sprintf(event,
                    "data: {\"id\":\"%s0000000000\",\"object\":\"%s\",\"created\":%d,\"model\":\"bench\","
                    "\"choices\":[{\"index\":0,%s w##\"%s,\"logprobs\":null,\"finish_reason\":%s}]}\n\n",
                    prefix(chat), object(chat), CREATED, chat ? "\"delta\":{\"content\":\"" : "\"text\":\"",
                    chat ? "}" : "", last ? "\"length\"" : "null");
            t->len = chunked(t->text, event);
            t->id_at = strstr(t->text, "0000000000") - t->text;
            t->word_at = strstr(t->text, "##") - t->text;
        }
}

static int put_token(char *out, const struct conn *c, uint32_t k) {
    const struct template *t = &templates[c->chat][k + 1 == c->n];
    memcpy(out, t->text, t->len);
    uint32_t serial = c->serial;
    for (int i = 9; serial; i--, serial /= 10) out[t->id_at + i] = '0' + serial % 10;
    out[t->word_at] = '0' + k / 10 % 10;
    out[t->word_at + 1] = '0' + k % 10;
    return t->len;
}

static int usage_json(char *out, const struct conn *c) {
    return sprintf(out, "\"usage\":{\"prompt_tokens\":%u,\"total_tokens\":%u,\"completion_tokens\":%u}", c->prompt_tokens,
                   c->prompt_tokens + c->n, c->n);
}

static int put_tail(char *out, const struct conn *c) {
    char event[512], usage[128];
    int n = 0;
    if (c->usage) {
        usage_json(usage, c);
        sprintf(event, "data: {\"id\":\"%s%010u\",\"object\":\"%s\",\"created\":%d,\"model\":\"bench\",\"choices\":[],%s}\n\n",
                prefix(c->chat), c->serial, object(c->chat), CREATED, usage);
        n = chunked(out, event);
    }
    n += chunked(out + n, "data: [DONE]\n\n");
    return n + sprintf(out + n, "0\r\n\r\n");
}

static void whole_answer(struct conn *c) {
    char *body = malloc(512 + c->n * 4), usage[128], *p = body;
    p += sprintf(p, "{\"id\":\"%s%010u\",\"object\":\"%s\",\"created\":%d,\"model\":\"bench\",\"choices\":[{\"index\":0,%s",
                 prefix(c->chat), c->serial, c->chat ? "chat.completion" : "text_completion", CREATED,
                 c->chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"" : "\"text\":\"");
    for (uint32_t k = 0; k < c->n; k++) p += sprintf(p, " w%02u", k % 100);
    usage_json(usage, c);
    p += sprintf(p, "\"%s,\"finish_reason\":\"length\"}],%s}", c->chat ? "}" : "", usage);
    log_events(c->serial, 1, now_ns());
    reply(c, 200, "application/json", body, p - body);
    free(body);
}

void begin(struct conn *c, const struct request *r, int64_t arrived_ns) {
    read_body(r, c);
    c->serial = log_request(r->id, c->n, arrived_ns);
    c->k = 0;
    c->busy = 1;
    c->due_ns = now_ns() + (S.burst || !c->stream ? 0 : S.ttft_us * 1000);
    if (S.grid_us && !S.burst) c->due_ns = (c->due_ns / (S.grid_us * 1000) + 1) * (S.grid_us * 1000);
    logged(c->serial)->first_due_ns = c->due_ns;
    if (c->stream) put(c, HEAD, sizeof HEAD - 1);
}

int emit(struct conn *c) {
    static char out[1 << 18];
    if (!c->stream) {
        whole_answer(c);
        return 1;
    }
    uint32_t left = c->n - c->k, most = S.burst ? (uint32_t)S.burst : 1, count = left < most ? left : most;
    int len = 0;
    for (uint32_t i = 0; i < count; i++) len += put_token(out + len, c, c->k++);
    int over = c->k == c->n;
    if (over && S.burst) len += put_tail(out + len, c);
    log_events(c->serial, count, now_ns());
    put(c, out, len);
    if (over && !S.burst) put(c, out, put_tail(out, c)); /* a send of its own, behind the last token */
    return over;
}
