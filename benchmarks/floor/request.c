/* HTTP/1.1 requests with a Content-Length, and the few JSON keys that decide an answer. */
#include "server.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *header(const char *head, const char *end, const char *name, size_t *len) {
    size_t name_len = strlen(name);
    for (const char *line = head; line < end;) {
        const char *eol = memchr(line, '\r', end - line);
        if (!eol) eol = end;
        if ((size_t)(eol - line) > name_len && line[name_len] == ':' && !strncasecmp(line, name, name_len)) {
            const char *value = line + name_len + 1;
            while (value < eol && *value == ' ') value++;
            *len = eol - value;
            return value;
        }
        line = eol + 2;
    }
    return NULL;
}

int parse_request(const char *bytes, size_t len, struct request *r) {
    const char *end = memmem(bytes, len, "\r\n\r\n", 4);
    if (!end) return len > 65536 ? -1 : 0;
    const char *eol = memchr(bytes, '\r', len), *blank = memchr(bytes, ' ', eol - bytes);
    const char *second = blank ? memchr(blank + 1, ' ', eol - blank - 1) : NULL;
    if (!second) return -1;
    size_t n, body_len = 0;
    const char *value = header(eol + 2, end, "content-length", &n);
    if (value) body_len = strtoul(value, NULL, 10);
    else if (header(eol + 2, end, "transfer-encoding", &n)) return -1;
    *r = (struct request){.path = blank + 1, .path_len = second - blank - 1, .body = end + 4, .body_len = body_len};
    r->whole_len = r->body - bytes + body_len;
    r->post = !strncmp(bytes, "POST", 4);
    value = header(eol + 2, end, "x-request-id", &n);
    r->id = value && n && *value >= '0' && *value <= '9' ? (uint32_t)strtoul(value, NULL, 10) : NO_ID;
    value = header(eol + 2, end, "connection", &n);
    r->close = value && n >= 5 && !strncasecmp(value, "close", 5);
    return r->whole_len <= len;
}

/* The value behind `"key":`, from `at` on; a quoted key within a string has its quotes escaped and is not found. */
static const char *value_of(const char *at, const char *end, const char *key) {
    size_t n = strlen(key);
    while ((at = memmem(at, end - at, key, n))) {
        at += n;
        while (at < end && *at == ' ') at++;
        if (at == end || *at != ':') continue;
        do at++;
        while (at < end && *at == ' ');
        return at < end ? at : NULL;
    }
    return NULL;
}

static uint32_t words_of(const char *body, const char *end, const char *key) {
    uint32_t words = 0;
    for (const char *p = body; (p = value_of(p, end, key));) {
        if (*p != '"') continue;
        int within = 0;
        for (p++; p < end && *p != '"'; p++) {
            if (*p == '\\') p++;
            if (*p == ' ') within = 0;
            else words += !within, within = 1;
        }
    }
    return words;
}

void read_body(const struct request *r, struct conn *c) {
    const char *body = r->body, *end = body + r->body_len, *v = value_of(body, end, "\"stream\"");
    c->stream = v && *v == 't';
    c->usage = (v = value_of(body, end, "\"include_usage\"")) && *v == 't';
    if (!(v = value_of(body, end, "\"max_tokens\""))) v = value_of(body, end, "\"max_completion_tokens\"");
    long asked = v ? strtol(v, NULL, 10) : 0;
    c->n = asked > 0 ? asked : S.tokens;
    uint32_t words = words_of(body, end, "\"content\"") + words_of(body, end, "\"prompt\"") + words_of(body, end, "\"text\"");
    c->prompt_tokens = words + (c->chat ? 7 : 1); /* a template of fixed length, then a token a word */
}
