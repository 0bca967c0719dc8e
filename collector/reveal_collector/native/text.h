/* Blanks, words and lines of a text.  GUARD blanks follow every text: see text.c. */
#ifndef REVEAL_TEXT_H
#define REVEAL_TEXT_H

#include "scan.h"

#include <string.h>

enum { WORD = 8 };

static const uint8_t BLANK[256] = {
    [' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
};

/* Load eight bytes, the first one as the lowest. */
static inline uint64_t load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline const uint8_t *skip_blanks(const uint8_t *at, const uint8_t *end)
{
    static const uint8_t spaces[8] = "        ";
    if (at < end && BLANK[*at] && !BLANK[at[1]]) /* a single blank, as between most tokens */
        return at + 1;
    while (end - at >= 8 && memcmp(at, spaces, 8) == 0)
        at += 8;
    while (at < end && BLANK[*at])
        at++;
    return at;
}

/* Return the end of the string in the text if the text starts with it, else NULL. */
static inline const uint8_t *match(const struct strings *all, int32_t number, const uint8_t *at,
                                   const uint8_t *end)
{
    const int32_t from = number ? all->ends[number - 1] : 0;
    const long length = all->ends[number] - from;
    const uint8_t *bytes = all->bytes + from;
    if (end - at < length)
        return NULL;
    if (length == 0)
        return at;
    const int differs = length <= WORD ? (load(at) ^ load(bytes)) << (64 - 8 * length) != 0
                                    : memcmp(at, bytes, (size_t)length) != 0;
    return differs ? NULL : at + length;
}

struct line {
    const uint8_t *at;
    const uint8_t *end;
};

static inline struct line next_line(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
    return (struct line){at, stop ? stop : end};
}

/* Parse a decimal number of 64 bits unsigned, or signed with a minus; NULL if it is none. */
const uint8_t *parse_decimal(const uint8_t *text, int64_t *value);

#endif
