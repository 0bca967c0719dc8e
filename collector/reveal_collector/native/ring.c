/* The memory of slices; see ticker.h. */
#include "ticker.h"

#include <stdlib.h>

static size_t rounded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63; /* whole cache lines: no false sharing */
}

static void *carve(uint8_t **memory, size_t bytes)
{
    void *const part = *memory;
    *memory += rounded(bytes);
    return part;
}

struct sizes {
    size_t header, fast, slow, spent, flags;
};

static struct sizes sizes_of(const struct plan *plan, int32_t ticks)
{
    const struct shape *shape = &plan->shape;
    const size_t owners = (size_t)shape->owners;
    return (struct sizes){
        .header = sizeof(struct header) + sizeof(int64_t) * (size_t)ticks,
        .fast = sizeof(int64_t) * (size_t)shape->fast * (size_t)ticks,
        .slow = sizeof(int64_t) * (size_t)shape->slow,
        .spent = sizeof(int32_t) * (size_t)ticks * owners,
        .flags = owners,
    };
}

int64_t reveal_ring_bytes(const struct plan *plan, int32_t ticks)
{
    const struct sizes size = sizes_of(plan, ticks);
    return (int64_t)(DEPTH * (rounded(size.header) + rounded(size.fast) + rounded(size.slow) +
                              rounded(size.spent) + rounded(size.flags)));
}

struct ring *reveal_ring_new(struct plan *plan, int64_t number, int32_t ticks, uint8_t *memory)
{
    const struct sizes size = sizes_of(plan, ticks);
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return NULL;
    ring->plan = plan;
    ring->ticks = ticks;
    for (int n = 0; n < DEPTH; n++)
        ring->slices[n] = (struct slice){
            .name = number * POSITIONS + n,
            .header = carve(&memory, size.header),
            .fast = carve(&memory, size.fast),
            .slow = carve(&memory, size.slow),
            .spent = carve(&memory, size.spent),
            .flags = carve(&memory, size.flags),
        };
    return ring;
}

const struct slice *reveal_ring_slice(const struct ring *ring, int32_t position)
{
    return ring->slices + position;
}

void reveal_ring_free(struct ring *ring)
{
    free(ring);
}
