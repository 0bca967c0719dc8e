/* Columns of a row: values, sums of values, and extremes of vectors with a number for each CPU. */
#include "scan.h"

#include <string.h>

static inline int32_t first_of(const int32_t *ends, int32_t number)
{
    return number ? ends[number - 1] : 0;
}

/* Wraps at 64 bits, as the kernel's counters do. */
static inline int64_t sum_of(const struct file *file, const struct lists *all, int32_t number,
                      const int64_t *values)
{
    uint64_t sum = 0;
    const int32_t from = first_of(all->ends, number), to = all->ends[number];
    if (!file->weights) {
        for (int32_t n = from; n < to; n++)
            sum += (uint64_t)values[all->items[n]];
        return (int64_t)sum;
    }
    for (int32_t n = from; n < to; n++)
        sum += (uint64_t)values[all->items[n]] * (uint64_t)file->weights[all->items[n]];
    return (int64_t)sum;
}

/* An increment that is too large for 32 bits becomes INT32_MAX in `narrow`. */
static inline void update_step(struct state *state, int32_t element, int32_t index, int64_t now)
{
    const int64_t moved = (int64_t)((uint64_t)now - (uint64_t)state->before[element]);
    const int64_t step = moved > 0 ? moved : 0;
    state->before[element] = now;
    state->steps[index] = step;
    state->narrow[index] = (int32_t)(step < INT32_MAX ? step : INT32_MAX);
}

/* Update the elements of a vector and their increments.  A decrease counts as no increment. */
static void update_steps(const struct file *file, struct state *state, int32_t number)
{
    const int32_t from = first_of(file->vectors, number), count = file->vectors[number] - from;
    const int32_t stride = state->strides[number];
    if (stride) {
        const int32_t first = file->elements.items[first_of(file->elements.ends, from)];
        for (int32_t n = 0; n < count; n++)
            update_step(state, from + n, n, state->values[first + n * stride]);
    } else
        for (int32_t n = 0; n < count; n++)
            update_step(state, from + n, n, sum_of(file, &file->elements, from + n, state->values));
}

/* Distance between the values of a vector's elements; 0 if it varies or elements are sums. */
static int32_t stride_of(const struct file *file, int32_t number)
{
    const int32_t from = first_of(file->vectors, number), to = file->vectors[number];
    const int32_t first = first_of(file->elements.ends, from);
    const int32_t *items = file->elements.items + first;
    if (file->weights || to - from < 2)
        return 0;
    for (int32_t n = 0; n < to - from; n++)
        if (file->elements.ends[from + n] != first + n + 1)
            return 0;
    for (int32_t n = 2; n < to - from; n++)
        if (items[n] - items[n - 1] != items[1] - items[0])
            return 0;
    return items[1] - items[0];
}

void find_strides(const struct file *file, struct state *state)
{
    for (int32_t number = 0; number < file->vector_count; number++)
        state->strides[number] = stride_of(file, number);
}

/* The compiler compares several narrow increments at once, which is why they exist. */
static int64_t largest_of(const struct state *state, int32_t count)
{
    int32_t narrow = 0;
    for (int32_t n = 0; n < count; n++)
        narrow = state->narrow[n] > narrow ? state->narrow[n] : narrow;
    if (narrow < INT32_MAX)
        return narrow;
    int64_t largest = narrow;
    for (int32_t n = 0; n < count; n++)
        largest = state->steps[n] > largest ? state->steps[n] : largest;
    return largest;
}

static int32_t count_up_to(const struct state *state, int32_t count, int64_t limit)
{
    int32_t found = 0;
    if (limit < INT32_MAX)
        for (int32_t n = 0; n < count; n++)
            found += state->narrow[n] <= (int32_t)limit;
    else
        for (int32_t n = 0; n < count; n++)
            found += state->steps[n] <= limit;
    return found;
}

/* The increment of this rank, from 0 on, by bisection of 0..`most`: the increments of a tick are
 * small, and no branch depends on their values. */
static int64_t at_rank(const struct state *state, int32_t count, int32_t rank, int64_t most)
{
    int64_t low = 0, high = most;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (count_up_to(state, count, middle) > rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* 95th minus 50th percentile, each as the nearest rank. */
static int64_t spread_of(const struct state *state, int32_t count, int64_t most)
{
    const int64_t upper = at_rank(state, count, (95 * count + 99) / 100 - 1, most);
    return upper - at_rank(state, count, (count + 1) / 2 - 1, upper);
}

/* Sum modulo 2^64: counters in malformed text may overflow. */
static int64_t wrapped(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Columns of a vector: sum of the largest increments, label of the last one, sum of spreads. */
static void make_extremes(const struct file *file, struct state *state, int32_t number,
                          int64_t *row)
{
    const int32_t from = first_of(file->vectors, number), count = file->vectors[number] - from;
    update_steps(file, state, number);
    if (!state->known) {
        row[0] = row[2] = 0;
        row[1] = MISSING;
        return;
    }
    const int64_t most = largest_of(state, count);
    int64_t *sums = state->sums + 2 * number;
    int32_t who = 0;
    while (who < count - 1 && state->steps[who] != most)
        who++;
    sums[0] = wrapped(sums[0], most);
    sums[1] = wrapped(sums[1], spread_of(state, count, most));
    row[0] = sums[0];
    row[1] = file->labels[from + who];
    row[2] = sums[1];
}

void make_columns(const struct file *file, struct state *state)
{
    int64_t *row = state->row;
    if (file->sums.count < 0) {
        if (row != state->values)
            memcpy(row, state->values, sizeof(int64_t) * (size_t)file->values);
        row += file->values;
    } else
        for (int32_t n = 0; n < file->sums.count; n++)
            *row++ = sum_of(file, &file->sums, n, state->values);
    for (int32_t n = 0; n < file->vector_count; n++, row += 3)
        make_extremes(file, state, n, row);
    state->known = 1;
}
