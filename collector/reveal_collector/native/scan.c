/* Files to rows: reading, comparison with the last text, columns, lanes and gates. */
#define _GNU_SOURCE
#include "scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* seq_file returns whole records: a shorter read is the end of the file (see textfile.py) */
enum { FULL = 1024, LONGER = 3 };

/* Files that rest together, such as those of a cgroup without CPU time. */
enum { WATCHED = 64 }; /* the widest file whose values are compared after a read */

struct gate {
    int32_t quiet;   /* reads of the leading file without a change */
    int32_t moved;   /* whether the leading file changed in this tick */
    int32_t moved_in_slice; /* the same, since the slow files were last read */
};

int reveal_abi(void)
{
    return REVEAL_ABI;
}

int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t *numbers(long count)
{
    return calloc((size_t)(count > 0 ? count : 1), sizeof(int64_t));
}

/* Whether the row equals the picked values: then both share one buffer. */
static int is_plain(const struct file *file)
{
    return file->kind != MEMORY && file->sums.count < 0 && file->width == file->values;
}

static int prepare(const struct file *file, struct state *state)
{
    const int32_t elements = file->elements.count;
    long widest = 0;
    if (file->kind == MATRIX)
        for (int32_t row = 0; row < file->tokens; row++) {
            state->total += file->rows[row].counts;
            if (file->rows[row].counts > widest)
                widest = file->rows[row].counts;
        }
    if (file->kind == SUMS)
        state->total = (long)file->tokens * file->values;
    state->length = -1;
    state->last = malloc((size_t)file->capacity + GUARD);
    state->values = numbers(file->values);
    state->row = is_plain(file) ? state->values : numbers(file->width);
    state->before = numbers(elements);
    state->counts = numbers(state->total);
    state->sums = numbers(2L * file->vector_count);
    state->strides = calloc((size_t)file->vector_count + 1, sizeof *state->strides);
    state->steps = numbers(elements);
    state->narrow = calloc((size_t)elements + 1, sizeof *state->narrow);
    state->scratch = numbers(widest);
    if (!state->last || !state->values || !state->row || !state->before || !state->counts ||
        !state->sums || !state->strides || !state->steps || !state->narrow || !state->scratch)
        return 0;
    find_strides(file, state);
    return 1;
}

struct plan *reveal_plan_new(const struct file *files, int32_t count, const struct shape *shape)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->files = files;
    plan->count = count;
    plan->shape = *shape;
    plan->states = calloc((size_t)count + 1, sizeof *plan->states);
    plan->gates = calloc((size_t)shape->gates + 1, sizeof *plan->gates);
    plan->flags = calloc((size_t)shape->owners + 1, 1);
    plan->unread = shape->fast;
    size_t longest = 0, tokens = 0;
    int done = plan->states && plan->gates && plan->flags;
    for (int32_t n = 0; done && n < count; n++) {
        done = prepare(files + n, plan->states + n);
        plan->unread -= files[n].slot == EVERY_TICK ? files[n].width : 0;
        if ((size_t)files[n].capacity > longest)
            longest = (size_t)files[n].capacity;
        if ((size_t)files[n].tokens > tokens)
            tokens = (size_t)files[n].tokens;
    }
    plan->text = malloc(longest + GUARD);
    plan->converted = malloc(LONGER * longest + GUARD);
    plan->edges = malloc((2 * tokens + GUARD) * sizeof *plan->edges);
    if (done && plan->text && plan->converted && plan->edges)
        return plan;
    reveal_plan_free(plan);
    return NULL;
}

void reveal_plan_free(struct plan *plan)
{
    if (!plan)
        return;
    for (int32_t n = 0; plan->states && n < plan->count; n++) {
        struct state *state = plan->states + n;
        free(state->last);
        if (state->row != state->values)
            free(state->row);
        free(state->values);
        free(state->before);
        free(state->counts);
        free(state->sums);
        free(state->strides);
        free(state->steps);
        free(state->narrow);
        free(state->scratch);
    }
    free(plan->states);
    free(plan->gates);
    free(plan->flags);
    free(plan->text);
    free(plan->converted);
    free(plan->edges);
    free(plan);
}

/* Read the whole file; return its length, or -1. */
static long read_all(int fd, uint8_t *into, long room)
{
    long at = 0;
    for (;;) {
        const ssize_t got = pread(fd, into + at, (size_t)(room - at), at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        at += got;
        if (got == 0 || at == room || (at == got && got < FULL))
            return at;
    }
}

static void fill(int64_t *into, int64_t value, int32_t count)
{
    for (int32_t n = 0; n < count; n++)
        into[n] = value;
}

/* Parse a new text into the values; return flags. */
static int parse(const struct plan *plan, const struct file *file, struct state *state, long length)
{
    if (file->kind == MATRIX)
        return parse_matrix(file, state, plan->text, length);
    const uint8_t *text = plan->text;
    const struct form *form = &file->form;
    if (form->keep_length || form->truncate.count || form->translate || form->ends) {
        length = convert_text(form, text, length, plan->converted);
        text = plan->converted;
    }
    if (file->kind == SUMS)
        return parse_sums(file, state, text, length);
    return parse_tokens(file, text, length, plan->edges, state->values);
}

/* Update the row; return flags, and in `moved` whether the text has changed. */
static int read_text(const struct plan *plan, const struct file *file, struct state *state,
                     int *moved)
{
    *moved = 0;
    uint8_t *text = plan->text;
    const long length = read_all(file->fd, text, file->capacity);
    if (length < 0)
        return FAILED;
    if (length == file->capacity)
        return GROWN;
    if (length == state->length && memcmp(text, state->last, (size_t)length) == 0) {
        if (file->vector_count)
            make_columns(file, state);
        return 0;
    }
    memset(text + length, ' ', GUARD);
    const int flags = parse(plan, file, state, length);
    if (flags)
        return flags;
    *moved = 1;
    memcpy(state->last, text, (size_t)length);
    state->length = length;
    make_columns(file, state);
    return 0;
}

/* Update a gate after a read of its leading file. */
static void note_gate(struct gate *gate, int moved)
{
    gate->moved = moved;
    gate->moved_in_slice |= moved;
    gate->quiet = moved ? 0 : gate->quiet + (gate->quiet < INT32_MAX);
}

/* Whether a file behind a gate is due now. */
static int is_open(const struct plan *plan, const struct file *file, struct state *state)
{
    if (file->gate < 0 || state->length < 0)
        return 1;
    const struct gate *gate = plan->gates + file->gate;
    const uint64_t offset = (uint64_t)file->gate, every = (uint64_t)plan->shape.back_off;
    /* A slow file: due after activity in this slice, or if its last read changed a value: tasks
     * that wait use no CPU.  Else every `back_off` seconds.  The gate's number spreads the reads
     * of resting gates over time. */
    if (file->slot != EVERY_TICK)
        return gate->moved_in_slice || state->moving || (plan->second + offset) % every == 0;
    /* The leading file: due every tick until it has not changed for `quiet` reads. */
    if (file->leads)
        return gate->quiet < plan->shape.quiet || (plan->tick + offset) % every == 0;
    /* Another fast file: due with each change of the leading file, but rarely if it has not
     * changed itself for `quiet` reads. */
    if (!gate->moved || (state->quiet >= plan->shape.quiet && ++state->passed < plan->shape.back_off))
        return 0;
    state->passed = 0;
    return 1;
}

static int scan_file(const struct plan *plan, const struct file *file, struct state *state)
{
    if (file->kind == MEMORY) {
        for (int32_t n = 0; n < file->width; n++)
            state->row[n] = __atomic_load_n(file->memory + n, __ATOMIC_RELAXED);
        return 0;
    }
    const int leads = file->gate >= 0 && file->leads && file->slot == EVERY_TICK;
    if (leads)
        plan->gates[file->gate].moved = 0;
    if (!is_open(plan, file, state))
        return 0;
    const int watched = file->gate >= 0 && file->slot != EVERY_TICK && file->width <= WATCHED;
    const size_t size = watched ? sizeof(int64_t) * (size_t)file->width : 0;
    int64_t before[WATCHED];
    memcpy(before, state->row, size);
    int moved;
    const int flags = read_text(plan, file, state, &moved);
    state->moving = memcmp(before, state->row, size) != 0;
    if (leads)
        note_gate(plan->gates + file->gate, moved);
    state->quiet = moved ? 0 : state->quiet + (state->quiet < INT32_MAX);
    if (flags) {
        state->length = -1; /* the row is not that of the last text: parse the next one */
        fill(state->row, MISSING, file->width);
    }
    return flags;
}

static void read_into_row(struct plan *plan, int32_t number, int64_t *row, int32_t *spent,
                          int64_t *began)
{
    const struct file *file = plan->files + number;
    struct state *state = plan->states + number;
    __atomic_store_n(&plan->reading, file->owner + 1, __ATOMIC_RELAXED);
    plan->flags[file->owner] |= (uint8_t)scan_file(plan, file, state);
    memcpy(row + file->column, state->row, sizeof(int64_t) * (size_t)file->width);
    const int64_t now = monotonic_ns();
    spent[file->owner] += (int32_t)(now - *began);
    *began = now;
}

void reveal_begin(struct plan *plan, int64_t *slow)
{
    plan->second++;
    plan->next_slow = 0;
    memset(plan->flags, 0, (size_t)plan->shape.owners);
    fill(slow, MISSING, plan->shape.slow);
}

void reveal_blank(const struct plan *plan, int64_t *fast)
{
    fill(fast, MISSING, plan->shape.fast);
}

/* Files are in the order of the table: fast ones first, then slow ones by their ticks. */
void reveal_pass(struct plan *plan, int32_t tick, int64_t *fast, int64_t *slow, int32_t *spent)
{
    int64_t began = monotonic_ns();
    plan->tick++;
    if (plan->unread) /* columns without a file: a source is broken or read by Python */
        reveal_blank(plan, fast);
    int32_t number = 0;
    for (; number < plan->count && plan->files[number].slot == EVERY_TICK; number++)
        read_into_row(plan, number, fast, spent, &began);
    if (plan->next_slow < number)
        plan->next_slow = number;
    const int32_t waiting = plan->next_slow;
    while (plan->next_slow < plan->count && plan->files[plan->next_slow].slot <= tick)
        read_into_row(plan, plan->next_slow++, slow, spent, &began);
    __atomic_store_n(&plan->reading, 0, __ATOMIC_RELAXED);
    for (int32_t n = waiting; n < plan->next_slow; n++)
        if (plan->files[n].gate >= 0)
            plan->gates[plan->files[n].gate].moved_in_slice = 0;
}

const uint8_t *reveal_flags(const struct plan *plan)
{
    return plan->flags;
}
