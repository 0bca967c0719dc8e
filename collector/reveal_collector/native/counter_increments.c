/* Counter resets and wraps: increments between readings, and which of them are unknown.
 *
 * shipping/counter_increments.py does the same in numpy, where there is no C library.
 */
#include "encode.h"

/* Increment between two readings; false if one is missing or the counter decreased. */
bool reveal_step(int64_t from, int64_t to, uint64_t *by)
{
    *by = (uint64_t)to - (uint64_t)from;
    return from != MISSING && to != MISSING && *by >> 63 == 0;
}

/* Distribute an increment over the ticks from `from` to `to` inclusive, the larger parts first. */
static void bridge(uint64_t by, int64_t from, int64_t to, uint64_t *first, uint64_t *steps)
{
    const uint64_t ticks = (uint64_t)(to - from + 1), more = by % ticks;

    for (int64_t tick = from; tick <= to; tick++)
        put_value(first, steps, tick, by / ticks + ((uint64_t)(tick - from) < more));
}

/* Encode a counter by its increments.  Where it was not read at some ticks, but is read again in
 * the same slice, the increment until then is distributed evenly over these ticks: their sum is
 * known, and a collector that misses every other tick would otherwise send no value at all. */
bool reveal_encode_counter(struct reveal_part *part, int64_t ticks, int64_t column,
                           uint64_t *first, uint64_t *steps, uint8_t *mask)
{
    int64_t before = part->last[column], unknown = 0; /* unknown: the next tick without a value */
    bool whole = true;

    for (int64_t tick = 0; tick < ticks; tick++) {
        const int64_t now = part->rows[tick * part->width + column];
        uint64_t by;
        const bool good = reveal_step(before, now, &by);

        put_value(first, steps, tick, good ? by : 0);
        if (now == MISSING)
            continue;
        if (!good) {
            whole = false;
            for (; unknown <= tick; unknown++)
                mark(mask, unknown * part->width + column);
        } else if (unknown < tick)
            bridge(by, unknown, tick, first, steps);
        unknown = tick + 1;
        before = now;
    }
    for (int64_t tick = unknown; tick < ticks; tick++)
        mark(mask, tick * part->width + column);
    part->last[column] = ticks > unknown ? MISSING : before;
    return whole && unknown == ticks;
}

/* n / over rounded up, as -(-n // over) in Python; over > 0. */
static int64_t share(int64_t n, int64_t over)
{
    return n / over + (n % over > 0);
}

/* The part of a rare counter's increment for this slice: the increment of ten seconds in one
 * slice would look like a burst.  While the counter is missing nothing is sent, so nothing is
 * deducted.  The rest waits for as many slices as it is distributed over, then it is outdated. */
int64_t reveal_pay(struct reveal_encoding *e, int64_t column, bool good, uint64_t by)
{
    int64_t *owed = e->owed + column, *left = e->left + column, *waited = e->waited + column;

    if (!good) {
        if (*owed && ++*waited > e->rare_slices)
            *owed = *left = 0;
        return 0;
    }
    *waited = 0;
    if (by > 0) {
        *owed = (int64_t)((uint64_t)*owed + by);
        *left = e->rare_slices;
    }
    const int64_t paid = share(*owed, *left > 1 ? *left : 1);

    *owed = (int64_t)((uint64_t)*owed - (uint64_t)paid);
    *left = *left > 1 ? *left - 1 : 0;
    return paid;
}
