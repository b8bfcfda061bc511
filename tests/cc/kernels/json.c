/* SPDX-License-Identifier: MIT */
#include "kernel.h"
struct p {
    const char *at;
    uint64_t    sum;
};
static void value(struct p *p);
static void ws(struct p *p)
{
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t') p->at++;
}
static void string(struct p *p)
{
    p->at++;
    while (*p->at != '"') {
        if (*p->at == '\\') p->at++;
        p->sum = p->sum * 31 + (uint8_t)*p->at;
        p->at++;
    }
    p->at++;
}
static void number(struct p *p)
{
    uint64_t n = 0;
    while (*p->at >= '0' && *p->at <= '9') n = n * 10 + (uint64_t)(*p->at++ - '0');
    if (*p->at == '.') {
        p->at++;
        while (*p->at >= '0' && *p->at <= '9') n = n * 10 + (uint64_t)(*p->at++ - '0');
    }
    p->sum += n;
}
static void value(struct p *p)
{
    ws(p);
    switch (*p->at) {
    case '{':
        p->at++;
        ws(p);
        while (*p->at != '}') {
            ws(p);
            string(p);
            ws(p);
            p->at++;
            value(p);
            ws(p);
            if (*p->at == ',') p->at++;
        }
        p->at++;
        break;
    case '[':
        p->at++;
        ws(p);
        while (*p->at != ']') {
            value(p);
            ws(p);
            if (*p->at == ',') p->at++;
        }
        p->at++;
        break;
    case '"': string(p); break;
    case 't': p->at += 4; break;
    case 'f': p->at += 5; break;
    case 'n': p->at += 4; break;
    default: number(p);
    }
    ws(p);
}
static char *emit(char *o, uint64_t *s, int depth)
{
    uint64_t r = random_next(s) % (depth > 5 ? 3 : 5);
    if (r == 0) {
        *o++ = '0' + (char)(random_next(s) % 10);
        *o++ = '.';
        for (int i = 0; i < 6; i++) *o++ = '0' + (char)(random_next(s) % 10);
    } else if (r == 1) {
        *o++ = '"';
        for (uint64_t i = random_next(s) % 20; i > 0; i--) *o++ = 'a' + (char)(random_next(s) % 26);
        *o++ = '"';
    } else if (r == 2) {
        memcpy(o, "true", 4);
        o += 4;
    } else if (r == 3) {
        *o++ = '[';
        for (int i = 0; i < 6; i++) {
            if (i) {
                *o++ = ',';
                *o++ = ' ';
            }
            o = emit(o, s, depth + 1);
        }
        *o++ = ']';
    } else {
        *o++ = '{';
        for (int i = 0; i < 5; i++) {
            if (i) *o++ = ',';
            memcpy(o, "\"key\": ", 7);
            o += 7;
            o = emit(o, s, depth + 1);
        }
        *o++ = '}';
    }
    return o;
}
uint64_t kernel(void)
{
    char    *text = malloc(64 << 20), *o = text;
    uint64_t s = 4242;
    *o++ = '[';
    for (int i = 0; i < ROUNDS(150, 30) && o - text < (48 << 20); i++) {
        if (i) *o++ = ',';
        o = emit(o, &s, 0);
    }
    *o++ = ']';
    *o = 0;
    struct p p = {0};
    for (int r = 0; r < ROUNDS(40, 1); r++) {
        p.at = text;
        value(&p);
    }
    free(text);
    return p.sum;
}
