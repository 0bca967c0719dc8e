/* Fuzzes the scanner: a plan learned from one text is run over another.
 *
 * Input: a byte that says which form, then two texts parted by a NUL byte.  The first is split
 * here, by other means than the scanner's, into what a plan watches and picks; then both are
 * read through a real descriptor.  Checked besides what the sanitizers check: a flagged file has
 * no value at all, one that is not flagged has all of them, and the same text twice is the same
 * row.  `make fuzz` builds it with libFuzzer where clang has it, else with driver.c.
 */
#define _GNU_SOURCE
#include "scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 512, MOST_TEXT = 8192 };

struct learned {
    int32_t ops[MOST], ends[2 * MOST + 2], sums_ends[MOST], items[MOST];
    uint8_t bytes[4 * MOST_TEXT];
    struct matrix_row rows[MOST];
    int32_t tokens, words, values, length;
};

static const char CUT[16] = "intr ";
static int16_t translation[256];
static int text_fd = -1;

static void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

static void put(const uint8_t *text, size_t length)
{
    require(ftruncate(text_fd, 0) == 0 && pwrite(text_fd, text, length, 0) == (ssize_t)length,
            "memfd refuses");
}

static void add_string(struct learned *into, const uint8_t *text, size_t length)
{
    memcpy(into->bytes + into->length, text, length);
    into->length += (int32_t)length;
    into->ends[into->words++] = into->length;
}

static int is_decimal(const uint8_t *text, size_t length)
{
    return length > 0 && length < 19 && strspn((const char *)text, "0123456789") >= length;
}

/* Tokens of the shaped text: numbers are picked, words watched, every seventh token skipped. */
static int learn_tokens(struct learned *into, const struct form *form, uint8_t *text, long length)
{
    static uint8_t shaped[3 * MOST_TEXT + GUARD];
    length = convert_text(form, text, length, shaped);
    shaped[length] = 0;
    for (long at = 0; at < length;) {
        const size_t blank = strspn((char *)shaped + at, " \t\n\r\v\f");
        const size_t size = strcspn((char *)shaped + at + blank, " \t\n\r\v\f");
        const uint8_t *token = shaped + at + blank;
        if (size == 0)
            return at + (long)blank == length;
        if (into->tokens == MOST)
            return 0;
        int32_t *op = into->ops + into->tokens++;
        if (into->tokens % 7 == 0)
            *op = SKIPPED;
        else if (is_decimal(token, size))
            *op = into->values++;
        else {
            *op = FIRST_WATCHED - into->words;
            add_string(into, token, size);
        }
        at += (long)(blank + size);
    }
    return 1;
}

/* Lines: the first is the header; `HEAD: 1 2 3 REST` are rows, others are as a whole. */
static int learn_matrix(struct learned *into, const uint8_t *text, long length)
{
    while (length > 0 && text[length - 1] == '\n')
        length--;
    for (long at = 0, line = 0; at <= length; line++) {
        const uint8_t *stop = memchr(text + at, '\n', (size_t)(length - at));
        const long size = (stop ? stop - text : length) - at;
        const uint8_t *colon = memchr(text + at, ':', (size_t)size);
        if (line > MOST - 2)
            return 0;
        if (line == 0)
            add_string(into, text + at, (size_t)size);
        else {
            struct matrix_row *row = into->rows + into->tokens++;
            long next = colon ? colon + 1 - (text + at) : size;
            add_string(into, text + at, (size_t)next);
            *row = (struct matrix_row){.required = -1};
            for (;;) {
                long from = next, to;
                while (from < size && text[at + from] == ' ')
                    from++;
                for (to = from; to < size && text[at + to] >= '0' && text[at + to] <= '9';)
                    to++;
                if (from == next || to == from || to - from > 18 ||
                    (to < size && text[at + to] != ' '))
                    break;
                row->counts++;
                next = to;
            }
            row->by_column = row->counts == 2;
            add_string(into, text + at + next, (size_t)(size - next));
        }
        at += size + 1;
    }
    into->values = into->tokens + 2;
    return 1;
}

/* Which plan, by the form's byte; a plan of sums has the words of the text for keys and devices. */
static int learn(struct file *file, struct learned *into, uint8_t how, uint8_t *text, long length)
{
    file->kind = !(how & 16) ? TOKENS : how & 1 ? SUMS : MATRIX;
    const int learned = file->kind == MATRIX ? learn_matrix(into, text, length)
                                             : learn_tokens(into, &file->form, text, length);
    if (file->kind == SUMS) {
        into->values = into->words / 2;
        into->tokens = into->words - into->values;
    }
    return learned;
}

static int is_missing(const int64_t *row, int32_t width)
{
    int32_t missing = 0;
    for (int32_t n = 0; n < width; n++)
        missing += row[n] == MISSING;
    return missing == width;
}

static int scan(struct plan *plan, int64_t *row)
{
    int64_t slow;
    int32_t spent = 0;
    reveal_begin(plan, &slow);
    reveal_pass(plan, 0, row, &slow, &spent);
    return *reveal_flags(plan);
}

/* The plan over the text it was learned from, over the other, and over the first again. */
static void run(const struct file *file, const uint8_t *first, size_t first_size,
                const uint8_t *second, size_t second_size)
{
    const struct shape shape = {.fast = file->width, .owners = 1, .quiet = 3, .back_off = 2};
    struct plan *plan = reveal_plan_new(file, 1, &shape);
    const size_t bytes = sizeof(int64_t) * (size_t)(file->width ? file->width : 1);
    int64_t *row = malloc(bytes), *again = malloc(bytes);
    require(plan && row && again, "no memory");
    put(first, first_size);
    const int flags = scan(plan, row);
    require(flags || !is_missing(row, file->width) || file->width == 0, "a row of nothing");
    require(scan(plan, again) == flags, "the same text, another flag");
    require(flags || file->vector_count || memcmp(row, again, bytes) == 0 || file->width == 0,
            "the same text, another row");
    put(second, second_size);
    if (scan(plan, again))
        require(is_missing(again, file->width), "a refused text has values");
    put(first, first_size);
    require(scan(plan, again) == flags, "a text that was read is refused");
    free(again);
    free(row);
    reveal_plan_free(plan);
}

static struct form form_of(uint8_t how)
{
    static const int32_t cut_ends[] = {5};
    struct form form = {.base = how & 1 ? 16 : 10};
    if (how & 2)
        form.truncate = (struct strings){cut_ends, (const uint8_t *)CUT, 1};
    if (how & 4) {
        form.keep = (const uint8_t *)"c";
        form.keep_length = 1;
    }
    if (how & 8)
        form.translate = translation;
    form.ends = (how & 128) != 0;
    return form;
}

static void set_up(void)
{
    text_fd = memfd_create("text", 0);
    for (int16_t byte = 0; byte < 256; byte++)
        translation[byte] = byte;
    translation['='] = ' ';
    translation['.'] = -1;
}

/* Sums of pairs and one vector over all values, where the form asks for them. */
static void add_columns(struct file *file, struct learned *from, uint8_t how)
{
    static int32_t vector_ends[1], labels[MOST];
    file->sums.count = -1;
    file->width = file->values;
    if (!(how & 32) || file->values > MOST)
        return;
    for (int32_t n = 0; n < file->values; n++) {
        from->items[n] = labels[n] = n;
        from->sums_ends[n] = n + 1;
    }
    file->sums = (struct lists){from->sums_ends, from->items, file->values};
    file->elements = file->sums;
    file->vectors = vector_ends;
    file->labels = labels;
    file->vector_count = file->values > 0;
    vector_ends[0] = file->values;
    file->width = file->values + 3 * file->vector_count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct learned from;
    static uint8_t first[MOST_TEXT + GUARD];
    if (text_fd < 0)
        set_up();
    if (size < 2 || size > MOST_TEXT)
        return 0;
    const uint8_t how = *data++, *cut = memchr(data, 0, --size);
    const size_t length = cut ? (size_t)(cut - data) : size;
    const uint8_t *second = cut ? cut + 1 : data;
    const size_t rest = cut ? size - length - 1 : size;
    memset(&from, 0, sizeof from);
    memcpy(first, data, length);
    memset(first + length, ' ', GUARD);
    struct file file = {.fd = text_fd, .slot = EVERY_TICK, .gate = NO_GATE, .form = form_of(how)};
    if (!learn(&file, &from, how, first, (long)length))
        return 0;
    file.tokens = from.tokens;
    file.values = from.values;
    file.ops = from.ops;
    file.rows = from.rows;
    file.watched = (struct strings){from.ends, from.bytes, from.words};
    file.capacity = (int32_t)length + (how & 64 ? 16 : MOST_TEXT);
    add_columns(&file, &from, how);
    run(&file, data, length, second, rest);
    return 0;
}
