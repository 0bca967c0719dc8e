/* Text to numbers: shaping, splitting, strict parsing.  Every text ends in a blank that its
 * length does not count, so that the inner loops need not look for the end. */
#include "scan.h"

#include <string.h>

static const uint8_t BLANK[256] = {
    [' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
};

/* The bits of a number of up to 64 of them, or what its sign makes of 63; NULL: it is none. */
static inline const uint8_t *parse_decimal(const uint8_t *text, int64_t *value)
{
    const int negative = *text == '-';
    const uint8_t *at = text + negative, *from = at;
    uint64_t sum = 0;
    for (uint8_t digit; (digit = (uint8_t)(*at - '0')) <= 9; at++)
        sum = sum * 10 + digit;
    if (at == from)
        return NULL;
    if (at - from > 19) { /* may have wrapped: again, with care */
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

static inline const uint8_t *skip_blanks(const uint8_t *at, const uint8_t *end)
{
    static const uint8_t spaces[8] = "        ";
    if (at < end && BLANK[*at] && !BLANK[at[1]]) /* as between most tokens; the guard ends them */
        return at + 1;
    while (end - at >= 8 && memcmp(at, spaces, 8) == 0)
        at += 8;
    while (at < end && BLANK[*at])
        at++;
    return at;
}

/* Where the string ends in the text if that token is just it, else NULL. */
static const uint8_t *match(const struct strings *all, int32_t number, const uint8_t *at,
                            const uint8_t *end)
{
    const int32_t from = number ? all->ends[number - 1] : 0;
    const long length = all->ends[number] - from;
    if (end - at < length || (length && memcmp(at, all->bytes + from, (size_t)length) != 0))
        return NULL;
    return at + length;
}

/* One token by its op; where it ends, or NULL if it is not what was learned. */
static inline const uint8_t *take(const struct file *file, int32_t op, const uint8_t *at,
                           const uint8_t *end, int64_t *values)
{
    const uint8_t *after;
    if (op == SKIPPED) {
        while (!BLANK[*at])
            at++;
        return at;
    }
    if (op <= FIRST_WATCHED)
        after = match(&file->watched, FIRST_WATCHED - op, at, end);
    else if (file->form.base == 16)
        after = parse_hex(at, values + op);
    else
        after = parse_decimal(at, values + op);
    return after && BLANK[*after] ? after : NULL;
}

int parse_tokens(const struct file *file, const uint8_t *text, long length, int64_t *values)
{
    const uint8_t *at = text, *end = text + length;
    int32_t number = 0;
    for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
        if (number == file->tokens)
            return MISMATCH;
        at = take(file, file->ops[number++], at, end, values);
        if (!at)
            return MISMATCH;
    }
    return number == file->tokens ? 0 : MISMATCH;
}

/* The key that stands here, past which `after` is set; the number of keys where it is none. */
static int32_t find_key(const struct file *file, const uint8_t *at, const uint8_t *end,
                        const uint8_t **after)
{
    int32_t key = 0;
    for (; key < file->values; key++) {
        *after = match(&file->watched, key, at, end);
        if (*after && BLANK[**after])
            break;
    }
    return key;
}

/* Every key adds the number after it to its value; wraps at 64 bits. */
int parse_sums(const struct file *file, const uint8_t *text, long length, int64_t *values)
{
    const uint8_t *at = text, *end = text + length;
    memset(values, 0, sizeof *values * (size_t)file->values);
    for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
        const uint8_t *after = NULL;
        const int32_t key = find_key(file, at, end, &after);
        if (key == file->values) {
            while (!BLANK[*at])
                at++;
            continue;
        }
        int64_t number;
        at = parse_decimal(skip_blanks(after, end), &number);
        if (!at || !BLANK[*at])
            return MISMATCH;
        values[key] = (int64_t)((uint64_t)values[key] + (uint64_t)number);
    }
    return 0;
}

/* How much of a line counts: nothing where it is not kept, less where it is cut. */
static long line_length(const struct form *form, const uint8_t *line, long length, int first,
                        int last)
{
    if (form->keep_length && (length < form->keep_length ||
                              memcmp(line, form->keep, (size_t)form->keep_length) != 0))
        return -1;
    for (int32_t n = 0; !first && !last && n < form->cut.count; n++) {
        const uint8_t *number = match(&form->cut, n, line, line + length);
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

/* The text without what nobody wants; gives its new length, which is at most LONGER times as
 * long and a bit. */
long bring_into_shape(const struct form *form, const uint8_t *text, long length, uint8_t *into)
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
    into[kept] = ' ';
    return kept;
}

struct line {
    const uint8_t *at;
    const uint8_t *end;
};

/* Read `counts` numbers set apart by blanks; where the last one ends, or NULL. */
static const uint8_t *take_counts(const uint8_t *at, const uint8_t *end, int32_t counts,
                                  int64_t *into)
{
    for (int32_t n = 0; n < counts; n++) {
        const uint8_t *from = skip_blanks(at, end);
        if (from == at || from == end || *from == '-')
            return NULL;
        at = parse_decimal(from, into + n);
        if (!at || at > end || !BLANK[*at])
            return NULL;
    }
    return at;
}

/* One changed line: its counts into place, its total and the columns' sums moved. */
static int update_row(const struct file *file, struct state *state, int32_t number, int64_t *counts,
                      struct line line)
{
    const struct matrix_row *row = file->rows + number;
    const uint8_t *at = match(&file->watched, 1 + 2 * number, line.at, line.end);
    at = at ? take_counts(at, line.end, row->counts, state->scratch) : NULL;
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
    return row->shown >= 0 && (total > 0) != row->shown ? MISMATCH : 0;
}

static struct line next_line(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
    return (struct line){at, stop ? stop : end};
}

/* Lines that are as before cost a comparison.  On a mismatch the state is worth nothing: the
 * caller forgets it. */
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
