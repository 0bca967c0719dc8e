/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
 * Memory that the BPF programs of the lost-time ledger write, and its reader maps.
 *
 * The time in a state is a pair: `n`, the threads in it now, and `base`, the sum of their leave
 * times less that of their enter times.  At any time T it is n * T + base: open intervals count as
 * they pass, and the states of a thread add up to its life. */
#ifndef REVEAL_LEDGER_H
#define REVEAL_LEDGER_H

#ifndef __bpf__
#include <stdint.h>
typedef uint64_t ledger_u64;
typedef int64_t ledger_s64;
typedef uint32_t ledger_u32;
typedef int32_t ledger_s32;
#else
typedef __u64 ledger_u64;
typedef __s64 ledger_s64;
typedef __u32 ledger_u32;
typedef __s32 ledger_s32;
#endif

/* Slots count the states of a subject.  Those of busy subjects also have an index of the matrix:
 * who waited while who ran; the waits of all others are in its first row and column. */
enum { LEDGER_SLOTS = 256, LEDGER_BUSY = 64, LEDGER_STATES = 16, LEDGER_WAITS = 4 };
enum { LEDGER_DISKS = 8 }; /* in the order of their first request; the last is all others */
enum { SLOT_OTHER, SLOT_KERNEL, SLOT_IDLE, SLOT_FIRST }; /* indices of the matrix as well */

enum ledger_state {
    /* off the CPU: each thread is in one of them, or runs */
    L_WAIT, L_THROTTLED, L_IO, L_MEMORY, L_LOCKED, L_KILLABLE, L_STOPPED, L_SLEEP,
    L_ALIVE, /* threads */
    L_DISK,  /* requests under way */
    /* on the CPU: added from switch to switch, without `n` */
    L_RUN, L_RECLAIM, L_IRQ,
    L_SURPLUS, /* beside the others: threads that run or wait, above the CPUs they may use */
    L_NONE = 255
};

/* Kinds of keys in the map of subjects, in the upper bits; the rest is a number of the kernel. */
#define KEY_CGROUP 0ull
#define KEY_BLKIO (1ull << 60) /* a cgroup of the blkio hierarchy, version 1 */
#define KEY_GROUP (2ull << 60) /* a process group of the root cgroup */
#define KEY_SESSION (3ull << 60)

enum { LEDGER_UNIFIED, LEDGER_CPUACCT, LEDGER_CPU }; /* the hierarchy of the subjects */

struct ledger_cpu {
    ledger_u64 begun, ended; /* changes; no change is under way while both are equal */
    ledger_u64 last;         /* time of the last switch, CLOCK_MONOTONIC */
    ledger_u64 waiting;      /* indices that may have waiting threads */
    ledger_u64 irq_since;
    ledger_u32 slot, busy, stalled, pid; /* of who runs */
    ledger_u64 switches, wakeups, missed, cost;
    ledger_s32 nwait[LEDGER_BUSY];
    ledger_s64 waited[LEDGER_BUSY][LEDGER_BUSY]; /* [victim][who ran on that CPU meanwhile] */
    ledger_s32 n[LEDGER_SLOTS][LEDGER_STATES];
    ledger_s64 base[LEDGER_SLOTS][LEDGER_STATES];
    ledger_u32 waits[LEDGER_SLOTS][LEDGER_WAITS]; /* all, from 1, 10 and 100 ms on */
    ledger_s32 requests[LEDGER_SLOTS][LEDGER_DISKS]; /* L_DISK by disk: `n` and `base` */
    ledger_s64 requests_base[LEDGER_SLOTS][LEDGER_DISKS];
    ledger_u32 completed[LEDGER_SLOTS][LEDGER_DISKS]; /* requests, and their sectors of 512 bytes */
    ledger_u32 sectors[LEDGER_SLOTS][LEDGER_DISKS];
};

/* The threads of a slot that run or wait, on all CPUs.  Each has a cache line of its own. */
struct ledger_runnable {
    ledger_s32 threads, surplus;
    ledger_u32 cpus; /* the most that one of them may use */
    ledger_u32 seen; /* the same since the reader set it to 0 */
    ledger_u32 unused[12];
};

/* Settings, in the section .bss of the programs. */
struct ledger_settings {
    ledger_u32 generation; /* raised when the map of subjects changes: threads look again */
    ledger_u32 hierarchy;
    ledger_u64 root; /* id of its root */
    ledger_u32 online; /* CPUs */
    ledger_u32 unused;
};

#endif
