/* Parts of a message that is encoded (encode.c), and how its counters are (counter_increments.c). */
#ifndef REVEAL_ENCODE_H
#define REVEAL_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#define MISSING INT64_MIN

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

static inline uint64_t zigzag(uint64_t value)
{
    return value << 1 ^ (UINT64_C(0) - (value >> 63));
}

static inline void mark(uint8_t *mask, int64_t at)
{
    mask[at >> 3] |= (uint8_t)(0x80 >> (at & 7));
}

static inline void put_value(uint64_t *first, uint64_t *steps, int64_t tick, uint64_t value)
{
    *(tick ? &steps[tick - 1] : first) = zigzag(value);
}

bool reveal_step(int64_t from, int64_t to, uint64_t *by);
bool reveal_encode_counter(struct reveal_part *part, int64_t ticks, int64_t column,
                           uint64_t *first, uint64_t *steps, uint8_t *mask);
int64_t reveal_pay(struct reveal_encoding *e, int64_t column, bool good, uint64_t by);

#endif
