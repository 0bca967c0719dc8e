/* One slice of raw readings -> the body of a wire v1 message (layout: reveal_contract.wire).
 *
 * The results are those of numpy_encoder.MessageBuilder and wire.encode in numpy: differences of
 * counters, levels of gauges, masks of missing values, distributed increments of rare counters,
 * zigzag, byte planes.  The caller owns all buffers.  Arithmetic wraps as the kernel's does.
 */
#include "encode.h"

#include <string.h>

enum { LEVEL = 1, RARE = 2 };                /* kinds of channels; 0: a counter */
enum { FAST_MISSING = 1, SLOW_MISSING = 2 }; /* flags of the header */

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

static bool encode_slow(struct reveal_encoding *e, uint64_t *out, uint8_t *mask)
{
    bool whole = true;

    for (int64_t column = 0; column < e->slow.width; column++) {
        uint8_t kind = e->slow.kinds[column];
        int64_t now = e->slow.rows[column];
        uint64_t value = (uint64_t)now;
        const bool good = kind & LEVEL ? is_level(&e->slow.bounds[column], now)
                                       : reveal_step(e->slow.last[column], now, &value);

        if (kind & RARE)
            value = (uint64_t)reveal_pay(e, column, good, value);
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
        whole &= (e->fast.kinds[column] & LEVEL ? encode_level : reveal_encode_counter)(
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
