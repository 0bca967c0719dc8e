/* The scanner: reads kernel text files by a plan that Python made, into rows of int64.
 *
 * Python learns what stands where (slowly, by name) and describes it as `struct file`; here a
 * file is read, checked against that description and its numbers put into place.  Whatever does
 * not fit is MISSING and flagged: nothing is guessed.  The meaning of every field is stated in
 * reveal_collector/readers/plan.py, whose reference reader gives the same rows.
 */
#ifndef REVEAL_SCAN_H
#define REVEAL_SCAN_H

#include <stdint.h>

enum { REVEAL_ABI = 3 };

#define MISSING INT64_MIN

/* blanks after every text that is parsed */
enum { GUARD = 64 };

enum kind { TOKENS, MATRIX, HELD, SUMS };

/* what a pass says of a file; Python looks at every file whose flags are not 0 */
enum flag { MISMATCH = 1, FAILED = 2, GROWN = 4 };

enum { EVERY_TICK = -1, NO_GATE = -1, SKIPPED = -1, FIRST_WATCHED = -2 };

/* lists of lists: list k is items[ends[k - 1]..ends[k]), list 0 begins at 0 */
struct lists {
    const int32_t *ends;
    const int32_t *items;
    int32_t count;
};

/* byte strings, one after the other, cut the same way; 8 bytes may be read of the last */
struct strings {
    const int32_t *ends;
    const uint8_t *bytes;
    int32_t count;
};

/* how the text is brought into shape before it is split */
struct form {
    const uint8_t *keep; /* only lines that begin so */
    int32_t keep_length;
    int32_t base;            /* of the picked numbers: 10 or 16 */
    int32_t ends;            /* whether a token `;` is put at the end of each line */
    struct strings cut;      /* lines that begin so are cut after their first number */
    const int16_t *translate; /* 256: another byte, or -1 to drop it; NULL: as it is */
};

/* one row of a matrix: a head, counts, the rest; no counts: the line as a whole */
struct matrix_row {
    int32_t counts;
    int32_t by_column; /* whether the counts belong to the columns */
    int32_t shown;     /* its total must be above 0 (1), must be 0 (0), may be anything (-1) */
};

struct file {
    int32_t fd;
    int32_t kind;
    int32_t slot;  /* the tick of the slice it is read at, or EVERY_TICK */
    int32_t owner; /* whose time and flags: the source's number */
    int32_t gate;  /* files that rest together while nothing happens, or NO_GATE */
    int32_t leads; /* whether it is the file that shows that something happens */
    int32_t column; /* of the fast or the slow row */
    int32_t tokens; /* TOKENS: how many there must be; MATRIX: rows; else unused */
    int32_t values; /* numbers picked; MATRIX: rows, then columns; SUMS: one a key */
    int32_t width;  /* columns of the row that come of it */
    const int32_t *ops;       /* TOKENS: of each token SKIPPED, its value, FIRST_WATCHED - n */
    struct strings watched;   /* MATRIX: header, then head and rest of every row; SUMS: keys */
    const struct matrix_row *rows;
    const int64_t *held;      /* HELD: where another thread keeps the newest values */
    struct form form;
    const int32_t *weights;   /* a factor a value, or NULL */
    struct lists sums;        /* columns as sums of values; count -1: the values themselves */
    struct lists elements;    /* what the vectors are made of: one sum of values each */
    const int32_t *vectors;   /* ends of each vector in `elements` */
    const int32_t *labels;    /* what the largest of a vector is called */
    int32_t vector_count;
    int32_t capacity; /* the longest text taken */
};

struct shape {
    int32_t fast;
    int32_t slow;
    int32_t owners;
    int32_t fast_owners; /* the first so many are read every tick */
    int32_t gates;
    int32_t quiet;    /* reads of a leading file without a change until its gate rests */
    int32_t back_off; /* a resting gate is looked at every so many ticks */
};

struct state;

struct plan {
    const struct file *files;
    int32_t count;
    struct shape shape;
    struct state *states;
    struct gate *gates;
    uint8_t *text;   /* what was just read */
    uint8_t *shaped; /* and the same brought into shape */
    int32_t *edges;  /* where its tokens begin and end */
    int32_t unread;  /* fast columns that no file fills */
    uint64_t tick;   /* passes made */
    uint64_t second;
    int32_t next_slow;
    uint8_t *flags; /* per owner, of the running slice */
};

int reveal_abi(void);
struct plan *reveal_plan_new(const struct file *files, int32_t count, const struct shape *shape);
void reveal_plan_free(struct plan *plan);
/* begin a slice: nothing of it is known */
void reveal_begin(struct plan *plan, int64_t *slow);
/* one tick; spent: ns each owner's files took */
void reveal_pass(struct plan *plan, int32_t tick, int64_t *fast, int64_t *slow, int32_t *spent);
/* of each owner, of the running slice */
const uint8_t *reveal_flags(const struct plan *plan);
/* a tick that was missed: all of its row */
void reveal_blank(const struct plan *plan, int64_t *fast);

/* within the library */
int64_t monotonic_ns(void);
int parse_tokens(const struct file *file, const uint8_t *text, long length, int32_t *edges,
                 int64_t *values);
int parse_sums(const struct file *file, const uint8_t *text, long length, int64_t *values);
int parse_matrix(const struct file *file, struct state *state, const uint8_t *text, long length);
long bring_into_shape(const struct form *form, const uint8_t *text, long length, uint8_t *into);

/* what is kept of a file between two reads */
struct state {
    uint8_t *last; /* the text */
    long length;   /* -1: nothing read yet */
    int64_t *values;
    int64_t *row;
    int64_t *before;  /* elements of the vectors */
    int64_t *counts;  /* MATRIX: every count, row after row */
    long total;       /* and how many of them */
    int64_t *sums;    /* of each vector: of its largest steps, of its spreads */
    int32_t *strides; /* of each vector (find_strides) */
    int64_t *steps;   /* of a vector */
    int32_t *narrow;  /* the same, in 32 bits */
    int64_t *scratch; /* a line's counts */
    int known;        /* whether `before` is */
    int32_t quiet;    /* reads without a change, of a file behind a gate */
    int32_t passed;   /* times it was due since the last one */
};

void find_strides(const struct file *file, struct state *state);
void make_columns(const struct file *file, struct state *state);

#endif
