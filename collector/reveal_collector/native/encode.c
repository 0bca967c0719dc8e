/* One slice of raw readings -> the body of a wire v1 message (layout: reveal_contract.wire).
 *
 * The results are those of numpy_encoder.MessageBuilder and wire.encode in numpy: differences of
 * counters, levels of gauges, masks of missing values, distributed increments of rare counters,
 * zigzag, byte planes.  The caller owns all buffers.  Arithmetic wraps as the kernel's does.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MISSING INT64_MIN

enum { LEVEL = 1, RARE = 2 };              /* kinds of channels; 0: a counter */
enum { FAST_MISSING = 1, SLOW_MISSING = 2 }; /* flags of the header */

/* the levels that a channel can have, from `lowest` on, without `unknown` */
struct reveal_bounds {
    int64_t lowest;  /* above MISSING */
    uint64_t span;   /* the highest level minus the lowest */
    int64_t unknown; /* MISSING: none in between is unknown */
};

struct reveal_part {
    int64_t width;        /* channels */
    const int64_t *rows;  /* row-major, MISSING where not read */
    const uint8_t *kinds; /* for each channel */
    const struct reveal_bounds *bounds; /* for each channel, used for levels */
    int64_t *last;        /* in: the previous reading; out: the last of rows */
};

struct reveal_encoding {
    int64_t ticks;
    const int32_t *lateness; /* microseconds, for each tick */
    struct reveal_part fast; /* ticks rows */
    struct reveal_part slow; /* one row */
    int64_t *owed, *left;    /* of rare counters: what is left to distribute, slices left */
    int64_t *waited;         /* of rare counters: slices without a value since something is left */
    int64_t rare_slices;     /* 0: the table has no rare counter */
    uint64_t *zigzags;       /* scratch: fast.width x ticks + slow.width */
    uint8_t *masks;          /* scratch: a bit for each value, each part padded to bytes */
    uint8_t *body;           /* room for 4 x ticks + 8 x zigzags + masks */
    int64_t length;          /* out: bytes of the body */
    int32_t flags, first_planes, step_planes; /* out: fields of the header */
};

static uint64_t zigzag(uint64_t value)
{
    return value << 1 ^ (UINT64_C(0) - (value >> 63));
}

static void mark(uint8_t *mask, int64_t at)
{
    mask[at >> 3] |= (uint8_t)(0x80 >> (at & 7));
}

/* Increment between two readings; false if one is missing or the counter decreased. */
static bool step(int64_t from, int64_t to, uint64_t *by)
{
    *by = (uint64_t)to - (uint64_t)from;
    return from != MISSING && to != MISSING && *by >> 63 == 0;
}

static void put_value(uint64_t *first, uint64_t *steps, int64_t tick, uint64_t value)
{
    *(tick ? &steps[tick - 1] : first) = zigzag(value);
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
static bool encode_counter(struct reveal_part *part, int64_t ticks, int64_t column,
                           uint64_t *first, uint64_t *steps, uint8_t *mask)
{
    int64_t before = part->last[column], unknown = 0; /* unknown: the next tick without a value */
    bool whole = true;

    for (int64_t tick = 0; tick < ticks; tick++) {
        const int64_t now = part->rows[tick * part->width + column];
        uint64_t by;
        const bool good = step(before, now, &by);

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

/* Whether this is a level of the channel.  MISSING is below every lowest level. */
static inline bool is_level(const struct reveal_bounds *bounds, int64_t now)
{
    return (uint64_t)now - (uint64_t)bounds->lowest <= bounds->span && now != bounds->unknown;
}

/* Encode a gauge by its first level and the changes.  A missing level counts as unchanged. */
static bool encode_level(struct reveal_part *part, int64_t ticks, int64_t column, uint64_t *first,
                         uint64_t *steps, uint8_t *mask)
{
    const struct reveal_bounds bounds = part->bounds[column];
    uint64_t before = 0;
    bool whole = true;

    for (int64_t tick = 0; tick < ticks; tick++) {
        const int64_t now = part->rows[tick * part->width + column];

        if (!is_level(&bounds, now)) {
            whole = false;
            mark(mask, tick * part->width + column);
            put_value(first, steps, tick, 0);
        } else {
            put_value(first, steps, tick, (uint64_t)now - before);
            before = (uint64_t)now;
        }
        part->last[column] = now;
    }
    return whole;
}

/* n / over rounded up, as -(-n // over) in Python; over > 0. */
static int64_t share(int64_t n, int64_t over)
{
    return n / over + (n % over > 0);
}

/* The part of a rare counter's increment for this slice: the increment of ten seconds in one
 * slice would look like a burst.  While the counter is missing nothing is sent, so nothing is
 * deducted.  The rest waits for as many slices as it is distributed over, then it is outdated. */
static int64_t pay(struct reveal_encoding *e, int64_t column, bool good, uint64_t by)
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

static bool encode_slow(struct reveal_encoding *e, uint64_t *out, uint8_t *mask)
{
    bool whole = true;

    for (int64_t column = 0; column < e->slow.width; column++) {
        uint8_t kind = e->slow.kinds[column];
        int64_t now = e->slow.rows[column];
        uint64_t value = (uint64_t)now;
        const bool good = kind & LEVEL ? is_level(&e->slow.bounds[column], now)
                                       : step(e->slow.last[column], now, &value);

        if (kind & RARE)
            value = (uint64_t)pay(e, column, good, value);
        if (!good) {
            value = 0;
            whole = false;
            mark(mask, column);
        }
        out[column] = zigzag(value);
        e->slow.last[column] = now;
    }
    return whole;
}

static int32_t planes_of(const uint64_t *values, int64_t count)
{
    uint64_t any = 0;
    int32_t planes = 0;

    for (int64_t at = 0; at < count; at++)
        any |= values[at];
    for (; any; any >>= 8)
        planes++;
    return planes;
}

static uint8_t *put_planes(uint8_t *to, const uint64_t *values, int64_t count, int32_t planes)
{
    for (int32_t plane = 0; plane < planes; plane++, to += count)
        for (int64_t at = 0; at < count; at++)
            to[at] = (uint8_t)(values[at] >> (8 * plane));
    return to;
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *from, int64_t count)
{
    memcpy(to, from, (size_t)count);
    return to + count;
}

static uint8_t *put_lateness(uint8_t *to, const int32_t *lateness, int64_t ticks)
{
    for (int64_t tick = 0; tick < ticks; tick++)
        for (int shift = 0; shift < 32; shift += 8)
            *to++ = (uint8_t)((uint32_t)lateness[tick] >> shift);
    return to;
}

/* Fill the output fields and the body; the caller has checked all lengths. */
void reveal_encode(struct reveal_encoding *e)
{
    int64_t width = e->fast.width, further = width * (e->ticks - 1);
    int64_t fast_bytes = (width * e->ticks + 7) / 8, slow_bytes = (e->slow.width + 7) / 8;
    int64_t first_count = width + e->slow.width;
    uint64_t *firsts = e->zigzags, *steps = firsts + first_count;
    bool whole = true;
    uint8_t *to = e->body;

    if (fast_bytes + slow_bytes > 0)
        memset(e->masks, 0, (size_t)(fast_bytes + slow_bytes));
    for (int64_t column = 0; column < width; column++)
        whole &= (e->fast.kinds[column] & LEVEL ? encode_level : encode_counter)(
            &e->fast, e->ticks, column, &firsts[column], &steps[column * (e->ticks - 1)],
            e->masks);
    e->flags = whole ? 0 : FAST_MISSING;
    if (!encode_slow(e, firsts + width, e->masks + fast_bytes))
        e->flags |= SLOW_MISSING;
    e->first_planes = planes_of(firsts, first_count);
    e->step_planes = planes_of(steps, further);

    to = put_lateness(to, e->lateness, e->ticks);
    to = put_planes(to, firsts, first_count, e->first_planes);
    to = put_planes(to, steps, further, e->step_planes);
    if (e->flags & FAST_MISSING)
        to = put_bytes(to, e->masks, fast_bytes);
    if (e->flags & SLOW_MISSING)
        to = put_bytes(to, e->masks + fast_bytes, slow_bytes);
    e->length = to - e->body;
}
