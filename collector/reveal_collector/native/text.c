/* Text to numbers: conversion, splitting, strict parsing.  GUARD blanks follow every text and are
 * not in its length: inner loops need not check for the end and may load many bytes at once.
 * Splitting is a separate first step: the CPU need not wait for a number to find the next one. */
#include "text.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define EACH UINT64_C(0x0101010101010101) /* 1 in each of eight bytes */
#define HIGH (EACH * 0x80)

enum { BLOCK = 64 };

/* Return a bit for each blank byte of the block. */
#ifdef __SSE2__
static uint64_t find_blanks(const uint8_t *text)
{
    const __m128i space = _mm_set1_epi8(' '), tab = _mm_set1_epi8('\t');
    const __m128i others = _mm_set1_epi8('\r' - '\t');
    uint64_t bits = 0;
    for (int n = 0; n < BLOCK; n += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(text + n));
        const __m128i above = _mm_sub_epi8(bytes, tab); /* unsigned comparison */
        const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(above, others), above);
        const __m128i blank = _mm_or_si128(_mm_cmpeq_epi8(bytes, space), low);
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(blank) << n;
    }
    return bits;
}
#else
static uint64_t find_blanks(const uint8_t *text)
{
    uint8_t blank[BLOCK];
    uint64_t bits = 0;
    for (int n = 0; n < BLOCK; n++)
        blank[n] = (text[n] == ' ') | ((uint8_t)(text[n] - '\t') <= '\r' - '\t');
    for (int n = 0; n < BLOCK; n += WORD) /* gathers the lowest bits of eight bytes */
        bits |= (load(blank + n) * UINT64_C(0x0102040810204080)) >> 56 << n;
    return bits;
}
#endif

/* Store where tokens start and end, alternately; return the number of positions.  Stops after
 * `most` of them; `edges` needs room for BLOCK more. */
static long find_edges(const uint8_t *text, long length, int32_t *edges, long most)
{
    long count = 0;
    uint64_t before = 1;
    for (long block = 0; block <= length && count <= most; block += BLOCK) {
        const uint64_t blanks = find_blanks(text + block);
        for (uint64_t turns = blanks ^ (blanks << 1 | before); turns; turns &= turns - 1)
            edges[count++] = (int32_t)block + __builtin_ctzll(turns);
        before = blanks >> (BLOCK - 1);
    }
    return count;
}

/* Convert the first `count` (1 to 8) of eight ASCII digits to a number, by parallel steps for 2, 4
 * and 8 digits.  `others` becomes nonzero if a byte is not a digit. */
static inline uint64_t join_digits(uint64_t bytes, long count, uint64_t *others)
{
    bytes = (bytes ^ EACH * '0') << (64 - 8 * count);
    *others |= ((bytes + EACH * 0x76) | bytes) & HIGH;
    bytes = (bytes * 10 + (bytes >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    bytes = (bytes * 100 + (bytes >> 16)) & UINT64_C(0x0000ffff0000ffff);
    return (bytes * 10000 + (bytes >> 32)) & UINT32_MAX;
}

/* Parse a decimal number of 64 bits unsigned, or signed with a minus; NULL if it is none. */
const uint8_t *parse_decimal(const uint8_t *text, int64_t *value)
{
    const int negative = *text == '-';
    const uint8_t *at = text + negative, *from = at;
    uint64_t sum = 0;
    for (uint8_t digit; (digit = (uint8_t)(*at - '0')) <= 9; at++)
        sum = sum * 10 + digit;
    if (at == from)
        return NULL;
    if (at - from > 19) { /* may have overflowed: repeat with checks */
        sum = 0;
        for (const uint8_t *p = from; p < at; p++)
            if (__builtin_mul_overflow(sum, 10, &sum) ||
                __builtin_add_overflow(sum, (uint64_t)(*p - '0'), &sum))
                return NULL;
    }
    if (negative && sum > (uint64_t)1 << 63)
        return NULL;
    *value = (int64_t)(negative ? 0 - sum : sum);
    return at;
}

/* The same for a token of known length; return whether it is a number. */
static inline int decimal_token(const uint8_t *text, long length, int64_t *value)
{
    uint64_t others = 0;
    if (length <= WORD)
        *value = (int64_t)join_digits(load(text), length, &others);
    else if (length <= 2 * WORD) {
        const uint64_t upper = join_digits(load(text), length - WORD, &others);
        const uint64_t lower = join_digits(load(text + length - WORD), WORD, &others);
        *value = (int64_t)(upper * 100000000 + lower);
    }
    if (length <= 2 * WORD && !others)
        return 1;
    return parse_decimal(text, value) == text + length;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const uint8_t *parse_hex(const uint8_t *text, int64_t *value)
{
    uint64_t sum = 0;
    const uint8_t *at = text;
    for (int digit; (digit = hex_digit(*at)) >= 0; at++) {
        if (sum >> 60)
            return NULL;
        sum = sum << 4 | (unsigned)digit;
    }
    *value = (int64_t)sum;
    return at == text ? NULL : at;
}

/* Process one token by its op; return whether it fits the layout. */
static inline int parse_token(const struct file *file, int32_t op, const uint8_t *text, long length,
                       int64_t *values)
{
    if (op == SKIPPED)
        return 1;
    if (op <= FIRST_WATCHED)
        return match(&file->watched, FIRST_WATCHED - op, text, text + length) == text + length;
    if (file->form.base == 16)
        return parse_hex(text, values + op) == text + length;
    return decimal_token(text, length, values + op);
}

/* `edges` has room for two positions for each token and BLOCK more. */
int parse_tokens(const struct file *file, const uint8_t *text, long length, int32_t *edges,
                 int64_t *values)
{
    const long most = 2L * file->tokens;
    if (find_edges(text, length, edges, most) != most)
        return MISMATCH;
    for (int32_t number = 0; number < file->tokens; number++, edges += 2)
        if (!parse_token(file, file->ops[number], text + edges[0], edges[1] - edges[0], values))
            return MISMATCH;
    return 0;
}

/* Return the length to keep of a line; -1 if it is dropped, less if it is truncated. */
static long line_length(const struct form *form, const uint8_t *line, long length, int first,
                        int last)
{
    if (form->keep_length && (length < form->keep_length ||
                              memcmp(line, form->keep, (size_t)form->keep_length) != 0))
        return -1;
    for (int32_t n = 0; !first && !last && n < form->truncate.count; n++) {
        const uint8_t *number = match(&form->truncate, n, line, line + length);
        const uint8_t *stop = number ? memchr(number, ' ', (size_t)(line + length - number)) : NULL;
        if (stop)
            return stop - line;
    }
    return length;
}

static long translated(const int16_t *table, uint8_t *text, long length)
{
    long kept = 0;
    for (long at = 0; at < length; at++)
        if (table[text[at]] >= 0)
            text[kept++] = (uint8_t)table[text[at]];
    return kept;
}

/* Convert the text; return its new length, at most LONGER times the old one plus a few bytes. */
long convert_text(const struct form *form, const uint8_t *text, long length, uint8_t *into)
{
    long kept = 0;
    const uint8_t *end = text + length;
    for (const uint8_t *line = text; line <= end;) {
        const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
        const int last = !stop;
        if (last)
            stop = end;
        const long part = line_length(form, line, stop - line, line == text, last);
        if (part >= 0) {
            memcpy(into + kept, line, (size_t)part);
            kept += part;
            if (form->ends && !last) {
                into[kept++] = ' ';
                into[kept++] = ';';
            }
            into[kept++] = '\n';
        }
        line = stop + 1;
    }
    if (form->translate)
        kept = translated(form->translate, into, kept);
    memset(into + kept, ' ', GUARD);
    return kept;
}

/* Parse `counts` numbers separated by blanks; return the end of the last one, or NULL.  The head of
 * a line ends with a colon: the first number may follow it without a blank. */
static const uint8_t *parse_counts(const uint8_t *at, const uint8_t *end, int32_t counts,
                                  int64_t *into)
{
    for (int32_t n = 0; n < counts; n++) {
        const uint8_t *from = skip_blanks(at, end);
        if ((n > 0 && from == at) || from == end || *from == '-')
            return NULL;
        at = parse_decimal(from, into + n);
        if (!at || at > end || !BLANK[*at])
            return NULL;
    }
    return at;
}

/* Update the counts of one changed line, its total, and the sums of the columns. */
static int update_row(const struct file *file, struct state *state, int32_t number, int64_t *counts,
                      struct line line)
{
    const struct matrix_row *row = file->rows + number;
    const uint8_t *at = match(&file->watched, 1 + 2 * number, line.at, line.end);
    at = at ? parse_counts(at, line.end, row->counts, state->scratch) : NULL;
    const uint8_t *rest = at ? match(&file->watched, 2 + 2 * number, at, line.end) : NULL;
    if (!rest || rest != line.end)
        return MISMATCH;
    int64_t *by_column = state->values + file->tokens;
    uint64_t total = 0;
    for (int32_t n = 0; n < row->counts; n++) {
        const uint64_t now = (uint64_t)state->scratch[n];
        total += now;
        if (row->by_column)
            by_column[n] = (int64_t)((uint64_t)by_column[n] + now - (uint64_t)counts[n]);
        counts[n] = (int64_t)now;
    }
    state->values[number] = (int64_t)total;
    return row->required >= 0 && (total > 0) != row->required ? MISMATCH : 0;
}

/* An unchanged line costs one comparison.  After a mismatch the state is invalid: the caller
 * discards it. */
int parse_matrix(const struct file *file, struct state *state, const uint8_t *text, long length)
{
    const uint8_t *end = text + length, *old_end = state->last + state->length;
    while (end > text && end[-1] == '\n')
        end--;
    if (state->length < 0) {
        memset(state->values, 0, sizeof(int64_t) * (size_t)file->values);
        memset(state->counts, 0, sizeof(int64_t) * (size_t)state->total);
    }
    struct line line = next_line(text, end);
    struct line old = state->length < 0 ? line : next_line(state->last, old_end);
    if (match(&file->watched, 0, line.at, line.end) != line.end)
        return MISMATCH;
    int64_t *counts = state->counts;
    for (int32_t number = 0; number < file->tokens; number++) {
        if (line.end == end)
            return MISMATCH;
        line = next_line(line.end + 1, end);
        const long size = line.end - line.at;
        int same = 0;
        if (state->length >= 0) {
            old = next_line(old.end + 1, old_end);
            same = old.end - old.at == size && memcmp(line.at, old.at, (size_t)size) == 0;
        }
        if (!same && update_row(file, state, number, counts, line))
            return MISMATCH;
        counts += file->rows[number].counts;
    }
    return line.end == end ? 0 : MISMATCH;
}
