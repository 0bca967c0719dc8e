/* Lines of devices to running sums: device by device, so that none adds its history. */
#include "text.h"

/* Return the end of the token, which starts at this position. */
static const uint8_t *token_end(const uint8_t *at, const uint8_t *end)
{
    while (at < end && !BLANK[*at])
        at++;
    return at;
}

/* Return the end of the token here if it is the number of a device (MAJOR:MINOR), else NULL. */
static const uint8_t *device_end(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *colon = at;
    while (colon < end && *colon >= '0' && *colon <= '9')
        colon++;
    if (colon == at || colon == end || *colon != ':')
        return NULL;
    const uint8_t *after = colon + 1;
    while (after < end && *after >= '0' && *after <= '9')
        after++;
    return after > colon + 1 && (after == end || BLANK[*after]) ? after : NULL;
}

/* Return the device that a line is of: the last of those that it begins with. */
static const uint8_t *device_of(struct line line)
{
    const uint8_t *device = skip_blanks(line.at, line.end), *next = device, *after;
    while ((after = device_end(next, line.end))) {
        device = next;
        next = skip_blanks(after, line.end);
    }
    return device;
}

/* Return the number of the string from `from` to `to` that is the token here, and set `after` to its
 * end; return `to` if there is none.  The search begins at `guess`. */
static int32_t find_token(const struct file *file, int32_t from, int32_t to, int32_t guess,
                          struct line line, const uint8_t **after)
{
    int32_t number = guess;
    for (int32_t n = from; n < to; n++, number = number + 1 < to ? number + 1 : from) {
        *after = match(&file->watched, number, line.at, line.end);
        if (*after && BLANK[**after])
            return number;
    }
    return to;
}

/* Add the increment of a device's number to the sum of its key; return whether it was known. */
static int add_increment(struct state *state, int32_t key, int64_t *last, int64_t now)
{
    const int known = *last != MISSING;
    const uint64_t step = (uint64_t)now - (known ? (uint64_t)*last : 0);
    if (!known || (int64_t)step > 0)
        state->values[key] = (int64_t)((uint64_t)state->values[key] + step);
    *last = now;
    return known;
}

/* Parse the rest of a device's line; `last` are its numbers, or NULL for a device that is not known:
 * its line must have no key. */
static int parse_device(const struct file *file, struct state *state, int64_t *last,
                        struct line line)
{
    for (line.at = skip_blanks(line.at, line.end); line.at < line.end;
         line.at = skip_blanks(line.at, line.end)) {
        const uint8_t *after = NULL;
        const int32_t key = find_token(file, 0, file->values, 0, line, &after);
        if (key == file->values) {
            line.at = token_end(line.at, line.end);
            continue;
        }
        int64_t now;
        line.at = parse_decimal(skip_blanks(after, line.end), &now);
        if (!last || !line.at || !BLANK[*line.at] || now == MISSING)
            return MISMATCH;
        if (!add_increment(state, key, last + key, now) && state->length >= 0)
            return MISMATCH;
    }
    return 0;
}

static void start_sums(const struct file *file, struct state *state)
{
    for (int32_t key = 0; key < file->values; key++)
        state->values[key] = file->memory ? file->memory[key] : 0;
    for (long n = 0; n < state->total; n++)
        state->counts[n] = MISSING;
}

/* Whether every device has a number. */
static int is_complete(const struct file *file, const struct state *state)
{
    for (int32_t device = 0; device < file->tokens; device++) {
        int32_t missing = 0;
        for (int32_t key = 0; key < file->values; key++)
            missing += state->counts[device * file->values + key] == MISSING;
        if (missing == file->values)
            return 0;
    }
    return 1;
}

/* Running sums over devices.  The lines are mostly in the order of the devices. */
int parse_sums(const struct file *file, struct state *state, const uint8_t *text, long length)
{
    const int32_t first = file->values, ignored = first + file->tokens, all = file->watched.count;
    const uint8_t *end = text + length;
    int32_t guess = first;
    if (state->length < 0)
        start_sums(file, state);
    for (const uint8_t *at = text; at < end;) {
        struct line line = next_line(at, end);
        const uint8_t *after = NULL;
        at = line.end + 1;
        line.at = device_of(line);
        const int32_t device = find_token(file, first, all, guess, line, &after);
        if (device >= ignored && device < all)
            continue;
        line.at = token_end(line.at, line.end);
        int64_t *last = device < ignored ? state->counts + (device - first) * first : NULL;
        if (parse_device(file, state, last, line))
            return MISMATCH;
        guess = device < all ? device : guess;
    }
    return state->length >= 0 || is_complete(file, state) ? 0 : MISMATCH;
}
