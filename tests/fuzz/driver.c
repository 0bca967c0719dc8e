/* Stands in for libFuzzer where there is none: seeds, mutated by a fixed sequence of dice.
 *
 *   driver SECONDS FILE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 8000, SEEDS = 64 };

static struct {
    uint8_t bytes[MOST];
    size_t size;
} seeds[SEEDS];
static uint64_t dice = 0x9e3779b97f4a7c15u;

static size_t below(size_t limit)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return limit ? (size_t)(dice % limit) : 0;
}

static int load(const char *path, int number)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    seeds[number].size = fread(seeds[number].bytes, 1, MOST / 2 - 64, file);
    fclose(file);
    return seeds[number].size > 0;
}

static size_t mutate(uint8_t *text, size_t size)
{
    static const char *const words[] = {"0", "18446744073709551615", "-1", " ", "\n", "intr ",
                                        "cpu", ":", "99999999999999999999", "=", "\n\n", "x"};
    const size_t at = below(size + 1), span = below(size - at < 24 ? size - at + 1 : 24);
    const char *word = words[below(sizeof words / sizeof *words)];
    switch (below(5)) {
    case 0: /* any byte */
        if (at < size)
            text[at] = (uint8_t)below(256);
        return size;
    case 1: /* gone */
        memmove(text + at, text + at + span, size - at - span);
        return size - span;
    case 2: /* twice */
        memmove(text + at + span, text + at, size - at);
        return size + span;
    case 3: /* a digit more or less */
        for (size_t n = at; n < size; n++)
            if (text[n] >= '0' && text[n] <= '9') {
                text[n] = (uint8_t)('0' + below(10));
                break;
            }
        return size;
    default: /* a word put in */
        memmove(text + at + strlen(word), text + at, size - at);
        memcpy(text + at, word, strlen(word));
        return size + strlen(word);
    }
}

/* how, seed, NUL, the same seed mutated; sometimes the first part is mutated as well */
static size_t compose(uint8_t *into, int count)
{
    const size_t seed = below((size_t)count);
    size_t size = seeds[seed].size;
    *into = (uint8_t)below(256);
    memcpy(into + 1, seeds[seed].bytes, size);
    for (size_t n = below(4) ? 0 : below(4); n > 0; n--)
        size = mutate(into + 1, size);
    into[1 + size] = 0;
    uint8_t *second = into + 2 + size;
    memcpy(second, into + 1, size);
    size_t rest = size;
    for (size_t n = below(6); n > 0 && rest < MOST / 2; n--)
        rest = mutate(second, rest);
    return 2 + size + rest;
}

int main(int argc, char **argv)
{
    static uint8_t input[4 * MOST];
    int count = 0;
    for (int n = 2; n < argc && count < SEEDS; n++)
        count += load(argv[n], count);
    if (!count) {
        fprintf(stderr, "usage: driver SECONDS FILE...\n");
        return 2;
    }
    const time_t end = time(NULL) + atol(argv[1]);
    long runs = 0;
    while (runs % 256 || time(NULL) < end) {
        const size_t size = compose(input, count);
        uint8_t *exact = malloc(size); /* so that a byte too far is seen */
        memcpy(exact, input, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        runs++;
    }
    printf("%ld inputs, nothing found\n", runs);
    return 0;
}
