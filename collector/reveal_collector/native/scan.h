/* The native scanner: reads kernel text files by plans of Python into rows of int64.
 *
 * Python learns the layout of a file (slowly, by name) and describes it as `struct file`.  The
 * scanner reads the file, checks it against that description and stores its numbers.  Text that
 * does not fit gives MISSING and a flag: nothing is guessed.  reveal_collector/readers/plan.py
 * documents every field; readers/reference_reader.py returns the same rows.
 */
#ifndef REVEAL_SCAN_H
#define REVEAL_SCAN_H

#include <stdint.h>

enum { REVEAL_ABI = 5 };

#define MISSING INT64_MIN

/* blanks after every text that is parsed, so that loops need no check for its end */
enum { GUARD = 64 };

enum kind { TOKENS, MATRIX, MEMORY, SUMS };

/* result of reading a file; Python reads every source whose flags are not 0 itself */
enum flag { MISMATCH = 1, FAILED = 2, GROWN = 4 };

enum { EVERY_TICK = -1, NO_GATE = -1, SKIPPED = -1, FIRST_WATCHED = -2 };

/* lists of lists: list k is items[ends[k - 1]..ends[k]), list 0 starts at 0 */
struct lists {
    const int32_t *ends;
    const int32_t *items;
    int32_t count;
};

/* concatenated byte strings, divided the same way; 8 bytes may be read from the last one's start */
struct strings {
    const int32_t *ends;
    const uint8_t *bytes;
    int32_t count;
};

/* how the text is converted before it is split */
struct form {
    const uint8_t *keep; /* only lines with this prefix */
    int32_t keep_length;
    int32_t base;            /* of the picked numbers: 10 or 16 */
    int32_t ends;            /* whether a token `;` is appended to each line */
    struct strings truncate; /* lines with these prefixes end after their first number */
    const int16_t *translate; /* 256: another byte, or -1 to delete it; NULL: unchanged */
};

/* one row of a matrix: head, counts, rest; without counts the whole line */
struct matrix_row {
    int32_t counts;
    int32_t by_column; /* whether the counts belong to the columns */
    int32_t required;  /* the total must be above 0 (1), must be 0 (0), may be any number (-1) */
};

struct file {
    int32_t fd;
    int32_t kind;
    int32_t slot;  /* the tick of the slice at which it is read, or EVERY_TICK */
    int32_t owner; /* number of its source: for times and flags */
    int32_t gate;  /* files that rest together while their object is idle, or NO_GATE */
    int32_t leads; /* whether a change of this file opens the gate */
    int32_t column; /* of the fast or the slow row */
    int32_t tokens; /* TOKENS: required number; MATRIX: rows; SUMS: devices; else unused */
    int32_t values; /* numbers picked; MATRIX: rows, then columns; SUMS: one for each key */
    int32_t width;  /* columns in the row */
    const int32_t *ops;       /* TOKENS: for each token SKIPPED, its value, or FIRST_WATCHED - n */
    struct strings watched;   /* MATRIX: header, then head and rest of every row; SUMS: keys,
                                 devices, devices to ignore */
    const struct matrix_row *rows;
    const int64_t *memory;    /* MEMORY: where another thread writes the newest values; SUMS: what
                                 is added to the first sums, or NULL */
    struct form form;
    const int32_t *weights;   /* a factor for each value, or NULL */
    struct lists sums;        /* columns as sums of values; count -1: the values themselves */
    struct lists elements;    /* elements of the vectors: a sum of values each */
    const int32_t *vectors;   /* ends of each vector in `elements` */
    const int32_t *labels;    /* label of each element, reported for the largest one */
    int32_t vector_count;
    int32_t capacity; /* the longest text accepted */
};

struct shape {
    int32_t fast;
    int32_t slow;
    int32_t owners;
    int32_t fast_owners; /* the first ones, which are read every tick */
    int32_t gates;
    int32_t quiet;    /* reads of a leading file without a change until its gate closes */
    int32_t back_off; /* ticks between two reads behind a closed gate */
};

struct state;

struct plan {
    const struct file *files;
    int32_t count;
    struct shape shape;
    struct state *states;
    struct gate *gates;
    uint8_t *text;   /* the text just read */
    uint8_t *converted; /* the converted text */
    int32_t *edges;  /* where its tokens start and end */
    int32_t unread;  /* number of fast columns without a file */
    uint64_t tick;   /* ticks run so far */
    uint64_t second;
    int32_t next_slow;
    uint8_t *flags; /* for each owner, in the current slice */
    int32_t reading; /* the owner whose file is read now, plus 1; 0 between two ticks */
};

int reveal_abi(void);
struct plan *reveal_plan_new(const struct file *files, int32_t count, const struct shape *shape);
void reveal_plan_free(struct plan *plan);
/* start a slice: all its slow values are MISSING */
void reveal_begin(struct plan *plan, int64_t *slow);
/* run a tick; spent: ns for the files of each owner */
void reveal_pass(struct plan *plan, int32_t tick, int64_t *fast, int64_t *slow, int32_t *spent);
/* flags of each owner in the current slice */
const uint8_t *reveal_flags(const struct plan *plan);
/* fill the row of a missed tick with MISSING */
void reveal_blank(const struct plan *plan, int64_t *fast);

/* within the library */
int64_t monotonic_ns(void);
int parse_tokens(const struct file *file, const uint8_t *text, long length, int32_t *edges,
                 int64_t *values);
int parse_sums(const struct file *file, struct state *state, const uint8_t *text, long length);
int parse_matrix(const struct file *file, struct state *state, const uint8_t *text, long length);
long convert_text(const struct form *form, const uint8_t *text, long length, uint8_t *into);

/* state of a file between two reads */
struct state {
    uint8_t *last; /* the text */
    long length;   /* -1: nothing read yet */
    int64_t *values;
    int64_t *row;
    int64_t *before;  /* elements of the vectors at the last read */
    int64_t *counts;  /* MATRIX: all counts, row by row; SUMS: numbers of every device */
    long total;       /* number of counts */
    int64_t *sums;    /* for each vector: sum of largest increments, sum of spreads */
    int32_t *strides; /* for each vector (find_strides) */
    int64_t *steps;   /* increments of one vector */
    int32_t *narrow;  /* the same, limited to 32 bits */
    int64_t *scratch; /* the counts of a line */
    int known;        /* whether `before` is valid */
    int32_t quiet;    /* reads without a change, for a file behind a gate */
    int32_t passed;   /* ticks skipped since its last read */
    int32_t moving;   /* whether that changed a value, for a slow file behind a gate */
};

void find_strides(const struct file *file, struct state *state);
void make_columns(const struct file *file, struct state *state);

#endif
