/* Columns of a row: values as they are, sums of them, and what is left of one number a CPU. */
#include "scan.h"

#include <string.h>

/* Wraps at 64 bits, as the kernel's counters do. */
static inline int64_t sum_of(const struct file *file, const struct lists *all, int32_t number,
                      const int64_t *values)
{
    uint64_t sum = 0;
    const int32_t from = number ? all->ends[number - 1] : 0, to = all->ends[number];
    if (!file->weights) {
        for (int32_t n = from; n < to; n++)
            sum += (uint64_t)values[all->items[n]];
        return (int64_t)sum;
    }
    for (int32_t n = from; n < to; n++)
        sum += (uint64_t)values[all->items[n]] * (uint64_t)file->weights[all->items[n]];
    return (int64_t)sum;
}

/* The value that `rank` others do not exceed, counted from 0; moves the values about. */
static int64_t nth(int64_t *values, int32_t count, int32_t rank)
{
    int32_t low = 0, high = count - 1;
    while (low < high) {
        const int64_t middle = values[low + (high - low) / 2];
        int32_t left = low, right = high;
        while (left <= right) {
            while (values[left] < middle)
                left++;
            while (values[right] > middle)
                right--;
            if (left <= right) {
                const int64_t other = values[left];
                values[left++] = values[right];
                values[right--] = other;
            }
        }
        if (rank <= right)
            high = right;
        else if (rank >= left)
            low = left;
        else
            break;
    }
    return values[rank];
}

/* 95th less 50th percentile, each the nearest rank. */
static int64_t spread_of(int64_t *steps, int32_t count)
{
    const int64_t upper = nth(steps, count, (95 * count + 99) / 100 - 1);
    return upper - nth(steps, count, (count + 1) / 2 - 1);
}

/* Renew the elements [from, to); their steps into scratch.  One that fell made no step. */
static void take_steps(const struct file *file, struct state *state, int32_t from, int32_t to)
{
    for (int32_t n = from; n < to; n++) {
        const int64_t now = sum_of(file, &file->elements, n, state->values);
        const int64_t step = (int64_t)((uint64_t)now - (uint64_t)state->before[n]);
        state->scratch[n - from] = step > 0 ? step : 0;
        state->before[n] = now;
    }
}

/* The sum as 64 bits hold it: counters that jump about (garbled text) may add up to more. */
static int64_t wrapped(int64_t one, int64_t other)
{
    return (int64_t)((uint64_t)one + (uint64_t)other);
}

/* Of one vector: the sum of the largest steps so far, who made the last, the sum of spreads. */
static void show_vector(const struct file *file, struct state *state, int32_t number, int64_t *row)
{
    const int32_t from = number ? file->vectors[number - 1] : 0, to = file->vectors[number];
    take_steps(file, state, from, to);
    if (!state->known) {
        row[0] = row[2] = 0;
        row[1] = MISSING;
        return;
    }
    int32_t largest = 0;
    for (int32_t n = 1; n < to - from; n++)
        if (state->scratch[n] > state->scratch[largest])
            largest = n;
    const int64_t most = state->scratch[largest];
    state->sums[2 * number] = wrapped(state->sums[2 * number], most);
    if (most > 0)
        state->sums[2 * number + 1] =
            wrapped(state->sums[2 * number + 1], spread_of(state->scratch, to - from));
    row[0] = state->sums[2 * number];
    row[1] = file->labels[from + largest];
    row[2] = state->sums[2 * number + 1];
}

void make_columns(const struct file *file, struct state *state)
{
    int64_t *row = state->row;
    if (file->sums.count < 0) {
        memcpy(row, state->values, sizeof(int64_t) * (size_t)file->values);
        row += file->values;
    } else
        for (int32_t n = 0; n < file->sums.count; n++)
            *row++ = sum_of(file, &file->sums, n, state->values);
    for (int32_t n = 0; n < file->vector_count; n++, row += 3)
        show_vector(file, state, n, row);
    state->known = 1;
}
