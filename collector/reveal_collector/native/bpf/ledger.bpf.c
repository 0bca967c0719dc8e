/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
 * The lost-time ledger: where the time of each subject's threads went, and who ran meanwhile.
 *
 * Only states off the CPU are kept for each thread.  Time on it is added for each CPU, from switch
 * to switch: some kernels do not report a few of a thousand switches, and one that is missing then
 * costs a slice and leaves nothing behind.
 *
 * Waits are kept for each run queue: the number of waiting threads of each busy subject.  At a
 * switch, the time since the last one is added to the pairs of who waited and who ran.  A wait that
 * begins or ends in between corrects this by its offset.
 *
 * Threads of one subject wait for each other where there are more of them than CPUs, and also where
 * others occupy the CPUs that they would have used.  So the runnable threads of each subject above
 * the number of its CPUs are counted: only that many wait because of themselves. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "kernel.h"
#include "ledger.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ANCESTORS 12  /* levels of cgroups; pods in pods lie 7 deep */
#define SAMPLED 64    /* one of so many runs of a program is timed */
#define OVERHEAD_NS 40 /* of a run, outside of what it can measure itself */
#define LONGEST_NS 50000 /* of a run; if it took longer, an interrupt or the hypervisor did */
#define MS 1000000ull

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* the loader sets the number of CPUs */
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct ledger_cpu);
} cpus SEC(".maps");

/* Slot and index of the matrix (in the upper half) by key. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 2048);
    __type(key, __u64);
    __type(value, __u32);
} subjects SEC(".maps");

/* CPU time of keys without a subject, until the reader takes it. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, __u64);
    __type(value, __u64);
} unnamed SEC(".maps");

struct thread {
    __u64 key, since;
    __u64 executed; /* CPU time by the kernel's account, at its last switch */
    __u32 state, slot, busy; /* what `state` was entered with */
    __u32 cpu;               /* whose run queue it waits in */
    __u32 alive;             /* slot + 1 that it counts as a thread of */
    __u32 runnable;          /* slot + 1 that it counts as a runnable thread of */
    __u32 next_slot, next_busy, generation;
};
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

/* Slot and disk (in the upper half) of the requests under way. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
    __type(key, __u64);
    __type(value, __u32);
} requests SEC(".maps");

/* Index of each disk by its queue: paths of one disk may have no device number. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, LEDGER_DISKS);
    __type(key, __u64);
    __type(value, __u32);
} disks SEC(".maps");
__u32 known_disks;

struct ledger_settings settings;
struct ledger_runnable runnable[LEDGER_SLOTS];

static __always_inline struct ledger_cpu *cpu_of(__u32 cpu)
{
    return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct ledger_cpu *this_cpu(void)
{
    return cpu_of(bpf_get_smp_processor_id());
}

/* ---- changes ---- */

/* With interrupts off nothing comes between on this CPU: plain additions. */
static __always_inline void begin(struct ledger_cpu *c)
{
    c->begun++;
    barrier();
}

static __always_inline void end(struct ledger_cpu *c)
{
    barrier();
    c->ended++;
}

/* Interrupts may come between, and programs with them: atomic ones. */
static __always_inline void begin_atomic(struct ledger_cpu *c)
{
    __sync_fetch_and_add(&c->begun, 1);
}

static __always_inline void end_atomic(struct ledger_cpu *c)
{
    __sync_fetch_and_add(&c->ended, 1);
}

static __always_inline void enter(struct ledger_cpu *c, __u32 slot, __u32 state, __u64 now)
{
    slot &= LEDGER_SLOTS - 1;
    state &= LEDGER_STATES - 1;
    __sync_fetch_and_add(&c->n[slot][state], 1);
    __sync_fetch_and_add(&c->base[slot][state], -now);
}

static __always_inline void leave(struct ledger_cpu *c, __u32 slot, __u32 state, __u64 now)
{
    slot &= LEDGER_SLOTS - 1;
    state &= LEDGER_STATES - 1;
    __sync_fetch_and_add(&c->n[slot][state], -1);
    __sync_fetch_and_add(&c->base[slot][state], now);
}

/* A wait begins on this run queue: of another CPU, perhaps. */
static __always_inline void queue(struct ledger_cpu *q, __u32 busy, __u64 now)
{
    busy &= LEDGER_BUSY - 1;
    __sync_fetch_and_add(&q->nwait[busy], 1);
    __sync_fetch_and_or(&q->waiting, 1ull << busy);
    __sync_fetch_and_add(&q->waited[busy][q->busy & (LEDGER_BUSY - 1)], -(now - q->last));
}

/* It ends, or goes on elsewhere. */
static __always_inline void unqueue(struct ledger_cpu *q, __u32 busy, __u64 now)
{
    busy &= LEDGER_BUSY - 1;
    __sync_fetch_and_add(&q->nwait[busy], -1);
    __sync_fetch_and_add(&q->waited[busy][q->busy & (LEDGER_BUSY - 1)], now - q->last);
}

static __always_inline void leave_state(struct ledger_cpu *c, struct thread *t, __u32 to,
                                        __u64 now)
{
    /* exchanged: the program that walks over all threads may change it at the same time */
    __u32 from = __sync_lock_test_and_set(&t->state, to);

    if (from >= LEDGER_STATES)
        return;
    leave(c, t->slot, from, now);
    if (from == L_WAIT) {
        struct ledger_cpu *q = cpu_of(t->cpu);
        if (q)
            unqueue(q, t->busy, now);
    }
}

static __always_inline void live_in(struct ledger_cpu *c, struct thread *t, __u32 alive, __u64 now)
{
    if (t->alive == alive)
        return;
    __u32 old = __sync_lock_test_and_set(&t->alive, alive);
    if (old)
        leave(c, old - 1, L_ALIVE, now);
    if (alive)
        enter(c, alive - 1, L_ALIVE, now);
}

/* The surplus of a slot follows from the number of its runnable threads, and of its CPUs, at each
 * change and at each switch: an error of a race between two CPUs ends with the next one.  Not
 * static, so that the verifier looks at it once. */
__noinline int count_surplus(struct ledger_cpu *c, __u32 slot, __s32 threads, __u64 now)
{
    if (!c)
        return 0;
    slot &= LEDGER_SLOTS - 1;
    struct ledger_runnable *r = &runnable[slot];
    __s32 cpus = r->cpus, surplus = cpus && threads > cpus ? threads - cpus : 0;

    if (surplus == r->surplus)
        return 0;
    __s32 step = surplus - __sync_lock_test_and_set(&r->surplus, surplus);
    __sync_fetch_and_add(&c->n[slot][L_SURPLUS], step);
    __sync_fetch_and_add(&c->base[slot][L_SURPLUS], -((__s64)now * step));
    return 0;
}

static __always_inline void count_runnable(struct ledger_cpu *c, __u32 slot, __s32 change,
                                           __u64 now)
{
    struct ledger_runnable *r = &runnable[slot & (LEDGER_SLOTS - 1)];

    count_surplus(c, slot, __sync_fetch_and_add(&r->threads, change) + change, now);
}

static __always_inline void runnable_in(struct ledger_cpu *c, struct thread *t, __u32 to, __u64 now)
{
    if (t->runnable == to) {
        if (to) /* the number of its CPUs may be another one */
            count_surplus(c, to - 1, runnable[(to - 1) & (LEDGER_SLOTS - 1)].threads, now);
        return;
    }
    __u32 old = __sync_lock_test_and_set(&t->runnable, to);
    if (old)
        count_runnable(c, old - 1, -1, now);
    if (to)
        count_runnable(c, to - 1, 1, now);
}

/* A thread of its next slot becomes runnable: note how many CPUs it may use. */
static __always_inline void note_cpus(struct task_struct *p, const struct thread *t)
{
    struct ledger_runnable *r = &runnable[t->next_slot & (LEDGER_SLOTS - 1)];
    __u32 cpus = p->nr_cpus_allowed;

    if (cpus > settings.online)
        cpus = settings.online; /* a mask may have CPUs that are not there */
    if (r->seen >= cpus)
        return;
    r->seen = cpus;
    if (r->cpus < cpus)
        r->cpus = cpus;
}

/* The thread goes from its state to another one, in which it counts for `next_slot`. */
static __always_inline void move(struct ledger_cpu *c, struct thread *t, __u32 to, __u32 cpu,
                                 __u64 now)
{
    leave_state(c, t, to, now);
    t->slot = t->next_slot;
    t->busy = t->next_busy;
    t->cpu = cpu;
    t->since = now;
    if (to < LEDGER_STATES) {
        enter(c, t->slot, to, now);
        if (to == L_WAIT) {
            struct ledger_cpu *q = cpu_of(cpu);
            if (q)
                queue(q, t->busy, now);
        }
    }
    live_in(c, t, t->slot + 1, now);
    /* without a state it runs */
    runnable_in(c, t, to == L_WAIT || to == L_NONE ? t->slot + 1 : 0, now);
}

static __always_inline void end_life(struct ledger_cpu *c, struct thread *t, __u64 now)
{
    live_in(c, t, 0, now);
    runnable_in(c, t, 0, now);
}

/* ---- who a thread belongs to ---- */

static __always_inline struct cgroup *cgroup_of(struct task_struct *p)
{
    struct css_set *set = p->cgroups;

    /* indices of controllers depend on the configuration of the kernel */
    if (settings.hierarchy == LEDGER_CPUACCT &&
        bpf_core_enum_value_exists(enum cgroup_subsys_id, cpuacct_cgrp_id))
        return set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, cpuacct_cgrp_id)]->cgroup;
    if (settings.hierarchy == LEDGER_CPU &&
        bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id))
        return set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id)]->cgroup;
    return set->dfl_cgrp;
}

static __always_inline __u64 pid_key(struct task_struct *p, __u64 kind, int type)
{
    return kind | (__u32)p->signal->pids[type]->numbers[0].nr;
}


/* The subject of the innermost cgroup that is one, from this cgroup up to the root. */
static __always_inline __u32 *of_cgroup(struct cgroup *group)
{
#pragma clang loop unroll(disable)
    for (int level = 0; level < ANCESTORS; level++) {
        __u64 key = BPF_CORE_READ(group, kn, id);
        __u32 *found = bpf_map_lookup_elem(&subjects, &key);
        if (found)
            return found;
        group = BPF_CORE_READ(group, self.parent, cgroup);
        if (!group)
            break;
    }
    return 0;
}

/* Set `next_slot` and `next_busy` for a key that the thread did not have, or not in this
 * generation. */
static __noinline int search(struct task_struct *p, struct thread *t, __u64 key)
{
    __u32 *found;

    t->key = key;
    t->generation = settings.generation;
    if (key < KEY_GROUP) {
        found = of_cgroup(cgroup_of(p));
    } else {
        found = bpf_map_lookup_elem(&subjects, &key);
        if (!found) {
            key = pid_key(p, KEY_SESSION, PIDTYPE_SID);
            found = bpf_map_lookup_elem(&subjects, &key);
        }
    }
    __u32 value = found ? *found : SLOT_OTHER;
    t->next_slot = value & (LEDGER_SLOTS - 1);
    t->next_busy = value >> 16 & (LEDGER_BUSY - 1);
    return 0;
}

static __always_inline void look_up(struct task_struct *p, struct thread *t)
{
    __u64 key = cgroup_of(p)->kn->id;

    if (key == settings.root)
        key = pid_key(p, KEY_GROUP, PIDTYPE_PGID);
    if (t->key != key || t->generation != settings.generation)
        search(p, t, key);
}

static __always_inline struct thread *thread_of(struct task_struct *p)
{
    struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
    if (t)
        return t;
    struct thread fresh = {.state = L_NONE, .executed = p->se.sum_exec_runtime};
    return bpf_task_storage_get(&threads, p, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void add_unnamed(__u64 key, __u64 ns)
{
    __u64 *known = bpf_map_lookup_elem(&unnamed, &key);
    if (known)
        __sync_fetch_and_add(known, ns);
    else
        bpf_map_update_elem(&unnamed, &key, &ns, BPF_NOEXIST);
}

/* ---- what a thread does ---- */

static __always_inline int is_throttled(struct task_struct *p)
{
    if (bpf_core_field_exists(p->throttled))
        return p->throttled;
    /* before Linux 6.18 groups are throttled and not threads */
    if (bpf_core_field_exists(p->se.cfs_rq->throttle_count))
        return p->se.cfs_rq->throttle_count > 0;
    return 0;
}

static __always_inline int in_memory_stall(struct task_struct *task)
{
    return bpf_core_field_exists(task->in_memstall) && BPF_CORE_READ_BITFIELD(task, in_memstall);
}

static __always_inline __u32 blocked_state(struct task_struct *task, __u32 state)
{
    if (state & (TASK_STOPPED_OR_TRACED | TASK_FROZEN))
        return L_STOPPED;
    /* by the freezer of cgroup version 2; a parent of vfork has this mark as well */
    if ((state & TASK_INTERRUPTIBLE) && bpf_core_field_exists(task->frozen) &&
        BPF_CORE_READ_BITFIELD(task, frozen))
        return L_STOPPED;
    if (in_memory_stall(task))
        return L_MEMORY;
    if (BPF_CORE_READ_BITFIELD(task, in_iowait))
        return L_IO;
    if (state & TASK_RTLOCK_WAIT)
        return L_LOCKED;
    if ((state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD))
        return state & TASK_WAKEKILL ? L_KILLABLE : L_LOCKED; /* killable: vfork's parent, NFS */
    return L_SLEEP;
}

/* The lowest bit of a mask, for which BPF has no instruction.  Not static: the verifier then looks
 * at it once, and not in each round of the loop that calls it. */
__noinline __u32 lowest(__u64 mask)
{
    __u32 bit = 0;

    if (!(mask & 0xffffffff)) { mask >>= 32; bit += 32; }
    if (!(mask & 0xffff)) { mask >>= 16; bit += 16; }
    if (!(mask & 0xff)) { mask >>= 8; bit += 8; }
    if (!(mask & 0xf)) { mask >>= 4; bit += 4; }
    if (!(mask & 3)) { mask >>= 2; bit += 2; }
    return bit + !(mask & 1);
}

/* Nobody with this index waits here any more, unless one has just begun to. */
static __noinline int drop(struct ledger_cpu *c, __u32 busy)
{
    busy &= LEDGER_BUSY - 1;
    if (!c)
        return 0;
    __sync_fetch_and_and(&c->waiting, ~(1ull << busy));
    if (*(volatile ledger_s32 *)&c->nwait[busy])
        __sync_fetch_and_or(&c->waiting, 1ull << busy);
    return 0;
}

/* Add the time since the last switch to the pairs of who waited and who ran. */
static __always_inline void split_waits(struct ledger_cpu *c, __u64 ran)
{
    __u64 mask = c->waiting;
    __u32 culprit = c->busy & (LEDGER_BUSY - 1);

    for (int i = 0; i < LEDGER_BUSY && mask; i++, mask &= mask - 1) {
        __u32 victim = lowest(mask);
        barrier_var(victim); /* clang removes the next line, which the verifier needs */
        victim &= LEDGER_BUSY - 1;
        __s64 waiting = c->nwait[victim];
        if (waiting)
            __sync_fetch_and_add(&c->waited[victim][culprit], ran * waiting);
        else
            drop(c, victim);
    }
}

static __always_inline void note_wait(struct ledger_cpu *c, struct thread *t, __u64 now)
{
    __u32 slot = t->slot & (LEDGER_SLOTS - 1);
    __u64 waited = now - t->since;

    c->waits[slot][0]++;
    if (waited >= MS) {
        c->waits[slot][1]++;
        if (waited >= 10 * MS)
            c->waits[slot][2]++;
        if (waited >= 100 * MS)
            c->waits[slot][3]++;
    }
}

/* Some kernels do not report each switch, above all not that a CPU leaves idle.  A thread that runs
 * here then counts as waiting or sleeping still.  Let it run for as long as the kernel says that it
 * has: its account of a thread is exact at a switch, and in an interrupt as of the last tick. */
static __always_inline void catch_up(struct ledger_cpu *c, struct task_struct *p, __u64 now,
                                     int switches)
{
    if (c->pid == p->pid)
        return;
    c->missed++;
    if (p->flags & PF_KTHREAD)
        return;
    struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
    if (!t)
        return;
    __u64 since = now - (p->se.sum_exec_runtime - t->executed);
    if (!switches && c->slot == SLOT_IDLE && t->state == L_WAIT)
        since = t->since; /* nobody else was running */
    if (since < c->last || since > now)
        since = c->last;
    split_waits(c, since - c->last);
    if (c->pid)
        c->base[c->slot & (LEDGER_SLOTS - 1)][c->stalled ? L_RECLAIM : L_RUN] += since - c->last;
    c->stalled = 0;
    c->last = since;
    c->pid = p->pid;
    if (t->state == L_WAIT)
        note_wait(c, t, since);
    c->slot = t->next_slot;
    c->busy = t->next_busy;
    move(c, t, L_NONE, t->cpu, since);
}

/* The cost of as many runs as a sampled one stands for, in ns. */
static __always_inline __u64 sampled_cost(__u64 began)
{
    __u64 taken = bpf_ktime_get_ns() - began;

    return ((taken < LONGEST_NS ? taken : LONGEST_NS) + OVERHEAD_NS) * SAMPLED;
}

static __always_inline void switch_out(struct ledger_cpu *c, struct task_struct *p, int preempted,
                                       __u32 state, __u32 cpu, __u64 ran, __u64 now)
{
    struct thread *t = thread_of(p);
    __u32 to;

    if (!t)
        return;
    t->executed = p->se.sum_exec_runtime;
    look_up(p, t); /* it ran when the programs were attached, or was moved while it ran */
    if (c->slot == SLOT_OTHER) {
        add_unnamed(t->key, ran);
        if (t->key >= KEY_GROUP)
            add_unnamed(pid_key(p, KEY_SESSION, PIDTYPE_SID), ran);
    }
    if (preempted || !state)
        to = is_throttled(p) ? L_THROTTLED : L_WAIT;
    else if (state & TASK_DEAD)
        to = L_NONE;
    else
        to = blocked_state(p, state);
    move(c, t, to, cpu, now);
    if (to == L_NONE)
        end_life(c, t, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempted, struct task_struct *prev, struct task_struct *next,
             unsigned int prev_state)
{
    __u64 now = bpf_ktime_get_ns();
    __u32 cpu = bpf_get_smp_processor_id(), slot = SLOT_IDLE, busy = SLOT_IDLE;
    struct ledger_cpu *c = cpu_of(cpu);

    if (!c)
        return 0;
    begin(c);
    c->switches++;
    catch_up(c, prev, now, 1);
    __u64 ran = c->last ? now - c->last : 0;
    split_waits(c, ran);
    c->last = now;
    c->pid = next->pid;
    if (prev->pid) {
        __s64 *spent = c->base[c->slot & (LEDGER_SLOTS - 1)];
        spent[c->stalled ? L_RECLAIM : L_RUN] += ran;
        if (!(prev->flags & PF_KTHREAD))
            switch_out(c, prev, preempted, prev_state, cpu, ran, now);
    }
    c->stalled = 0;
    if (next->flags & PF_KTHREAD) {
        if (next->pid)
            slot = busy = SLOT_KERNEL;
    } else {
        struct thread *t = thread_of(next);
        c->stalled = in_memory_stall(next);
        slot = busy = SLOT_OTHER;
        if (t) {
            if (t->state == L_WAIT)
                note_wait(c, t, now);
            look_up(next, t);
            slot = t->next_slot;
            busy = t->next_busy;
            note_cpus(next, t);
            t->executed = next->se.sum_exec_runtime;
            move(c, t, L_NONE, cpu, now);
        }
    }
    c->slot = slot;
    c->busy = busy;
    if (!(c->switches & (SAMPLED - 1)))
        c->cost += sampled_cost(now);
    end(c);
    return 0;
}

static __always_inline int woken(struct task_struct *p)
{
    if (p->flags & PF_KTHREAD || p == (void *)bpf_get_current_task_btf())
        return 0;
    __u64 now = bpf_ktime_get_ns();
    struct ledger_cpu *c = this_cpu();
    struct thread *t = thread_of(p);

    if (!c || !t || t->state == L_WAIT)
        return 0;
    if (t->state == L_NONE && p->on_cpu)
        return 0; /* woken before it had gone to sleep: it runs */
    begin(c);
    c->wakeups++;
    look_up(p, t);
    note_cpus(p, t);
    move(c, t, is_throttled(p) ? L_THROTTLED : L_WAIT, p->thread_info.cpu, now);
    if (!(c->wakeups & (SAMPLED - 1)))
        c->cost += sampled_cost(now);
    end(c);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
    return woken(p);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *p)
{
    return woken(p);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int to)
{
    struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);

    if (!t || t->state != L_WAIT)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    struct ledger_cpu *a = cpu_of(t->cpu), *b = cpu_of(to);
    if (!a || !b)
        return 0;
    unqueue(a, t->busy, now);
    queue(b, t->busy, now);
    t->cpu = to;
    return 0;
}

/* What a missing event of its last moments left behind ends with the thread. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *p)
{
    struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
    struct ledger_cpu *c = this_cpu();

    if (!t || !c || (t->state == L_NONE && !t->alive && !t->runnable))
        return 0;
    __u64 now = bpf_ktime_get_ns();
    begin_atomic(c);
    leave_state(c, t, L_NONE, now);
    end_life(c, t, now);
    end_atomic(c);
    return 0;
}

/* ---- time on the CPU that is not work ---- */

static __always_inline int reclaims(__u32 stalled)
{
    struct ledger_cpu *c = this_cpu();

    if (!c || c->stalled == stalled || c->slot <= SLOT_IDLE)
        return 0;
    __u64 since = bpf_ktime_get_ns() - c->last; /* until now it was the other kind */
    __s64 *spent = c->base[c->slot & (LEDGER_SLOTS - 1)];
    __sync_fetch_and_add(&spent[L_RUN], stalled ? since : -since);
    __sync_fetch_and_add(&spent[L_RECLAIM], stalled ? -since : since);
    c->stalled = stalled;
    return 0;
}

#define STALL(name)                                                                                \
    SEC("tp_btf/mm_" #name "_begin") int BPF_PROG(name##_begin) { return reclaims(1); }            \
    SEC("tp_btf/mm_" #name "_end") int BPF_PROG(name##_end) { return reclaims(0); }
STALL(vmscan_direct_reclaim)
STALL(vmscan_memcg_reclaim)
STALL(compaction)

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_irq, unsigned int vector)
{
    struct ledger_cpu *c = this_cpu();
    struct task_struct *p = (void *)bpf_get_current_task_btf();

    if (!c)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    if (c->pid != p->pid && !(p->flags & PF_KTHREAD)) {
        begin_atomic(c);
        catch_up(c, p, now, 0);
        end_atomic(c);
    }
    c->irq_since = now;
    return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_irq_exit, unsigned int vector)
{
    struct ledger_cpu *c = this_cpu();

    if (!c || c->slot == SLOT_KERNEL || c->slot == SLOT_IDLE)
        return 0;
    __u64 taken = bpf_ktime_get_ns() - c->irq_since;
    __s64 *spent = c->base[c->slot & (LEDGER_SLOTS - 1)];
    __sync_fetch_and_add(&spent[L_RUN], -taken);
    __sync_fetch_and_add(&spent[L_IRQ], taken);
    return 0;
}

/* ---- disks ---- */

/* The slot that a request counts for: of its cgroup, else of who issues it. */
static __always_inline __u32 slot_of_request(struct request *rq)
{
    __u64 kind = settings.hierarchy == LEDGER_UNIFIED ? KEY_CGROUP : KEY_BLKIO;
    struct cgroup *group = BPF_CORE_READ(rq, bio, bi_blkg, blkcg, css.cgroup);

#pragma clang loop unroll(disable)
    for (int level = 0; group && level < ANCESTORS; level++) {
        __u64 key = kind | BPF_CORE_READ(group, kn, id);
        __u32 *found = bpf_map_lookup_elem(&subjects, &key);
        if (found)
            return *found & (LEDGER_SLOTS - 1);
        group = BPF_CORE_READ(group, self.parent, cgroup);
    }
    struct task_struct *p = (void *)bpf_get_current_task_btf();
    if (p->flags & PF_KTHREAD)
        return SLOT_KERNEL;
    struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
    return t ? t->next_slot & (LEDGER_SLOTS - 1) : SLOT_OTHER;
}

static __always_inline __u32 disk_of(struct request *rq)
{
    __u64 queue = (__u64)rq->q;
    __u32 *found = bpf_map_lookup_elem(&disks, &queue);

    if (found)
        return *found;
    if (known_disks >= LEDGER_DISKS - 1)
        return LEDGER_DISKS - 1;
    /* two CPUs may do this at a time: then an index stays unused */
    __u32 index = __sync_fetch_and_add(&known_disks, 1);
    if (index >= LEDGER_DISKS - 1)
        return LEDGER_DISKS - 1;
    bpf_map_update_elem(&disks, &queue, &index, BPF_NOEXIST);
    found = bpf_map_lookup_elem(&disks, &queue);
    return found ? *found : LEDGER_DISKS - 1;
}

/* A request of a slot begins (+1) or ends (-1) on a disk; its bytes count when it ends. */
static __always_inline void count_request(struct ledger_cpu *c, __u32 owner, __s32 change,
                                          __u32 bytes)
{
    __u32 slot = owner & (LEDGER_SLOTS - 1), disk = owner >> 16 & (LEDGER_DISKS - 1);
    __u64 now = bpf_ktime_get_ns();

    begin_atomic(c);
    if (change > 0)
        enter(c, slot, L_DISK, now);
    else
        leave(c, slot, L_DISK, now);
    __sync_fetch_and_add(&c->requests[slot][disk], change);
    __sync_fetch_and_add(&c->requests_base[slot][disk], change > 0 ? -now : now);
    if (change < 0) {
        __sync_fetch_and_add(&c->completed[slot][disk], 1);
        __sync_fetch_and_add(&c->sectors[slot][disk], bytes >> 9);
    }
    end_atomic(c);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
    struct ledger_cpu *c = this_cpu();
    __u64 key = (__u64)rq;
    __u32 owner = slot_of_request(rq) | disk_of(rq) << 16;

    if (c && !bpf_map_update_elem(&requests, &key, &owner, BPF_NOEXIST))
        count_request(c, owner, 1, 0);
    return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, __u8 error, unsigned int bytes)
{
    struct ledger_cpu *c = this_cpu();
    __u64 key = (__u64)rq;
    __u32 *found = bpf_map_lookup_elem(&requests, &key);

    if (!found || !c || bytes < rq->__data_len)
        return 0;
    __u32 owner = *found;
    if (!bpf_map_delete_elem(&requests, &key))
        count_request(c, owner, -1, bytes);
    return 0;
}

/* ---- threads whose subject changes, or that have no state yet ---- */

/* Let a thread that sleeps go from one state to another for the subject it belongs to now.  It may
 * wake up at any time, on another CPU: whoever exchanges the state counts. */
static __always_inline void account_anew(struct ledger_cpu *c, struct task_struct *p,
                                         struct thread *t, __u32 from, __u32 to)
{
    __u64 now = bpf_ktime_get_ns();

    if (__sync_val_compare_and_swap(&t->state, from, L_NONE) != from)
        return;
    if (from != L_NONE)
        leave(c, t->slot, from, now);
    look_up(p, t);
    t->slot = t->next_slot;
    t->busy = t->next_busy;
    t->since = now;
    enter(c, t->slot, to, now);
    if (__sync_val_compare_and_swap(&t->state, L_NONE, to) == L_NONE) {
        live_in(c, t, t->slot + 1, now);
        runnable_in(c, t, 0, now);
    } else
        leave(c, t->slot, to, now);
}

/* Let the thread that runs go on for the subject it belongs to now. */
static __always_inline void change_subject(struct ledger_cpu *c, struct task_struct *p,
                                           struct thread *t)
{
    __u64 now = bpf_ktime_get_ns();
    __s64 *spent = c->base[c->slot & (LEDGER_SLOTS - 1)];

    split_waits(c, now - c->last);
    spent[c->stalled ? L_RECLAIM : L_RUN] += now - c->last;
    c->last = now;
    look_up(p, t);
    c->slot = t->next_slot;
    c->busy = t->next_busy;
    live_in(c, t, c->slot + 1, now);
    runnable_in(c, t, c->slot + 1, now);
}

/* A thread enters a cgroup.  One that runs may do so for seconds without a switch: what it spent
 * until now is of its subject before.  One that waits, or runs on another CPU, is looked up at its
 * next switch.  Interrupts are off. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_attach, struct cgroup *to, const char *path, struct task_struct *p, _Bool group)
{
    struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
    struct ledger_cpu *c = this_cpu();

    if (!t || !c)
        return 0;
    if (p != (void *)bpf_get_current_task_btf()) {
        begin(c);
        if (t->state < LEDGER_STATES && t->state != L_WAIT)
            account_anew(c, p, t, t->state, t->state);
        end(c);
        return 0;
    }
    begin(c);
    catch_up(c, p, bpf_ktime_get_ns(), 0);
    if (c->pid == p->pid && c->slot != SLOT_IDLE)
        change_subject(c, p, t);
    end(c);
    return 0;
}

SEC("iter/task")
int walk_threads(struct bpf_iter__task *ctx)
{
    struct task_struct *p = ctx->task;

    if (!p || p->flags & PF_KTHREAD || p->exit_state)
        return 0;
    struct thread *t = thread_of(p);
    struct ledger_cpu *c = this_cpu();
    __u32 state = p->__state, from = t ? t->state : L_NONE;
    if (!t || !c || from == L_WAIT)
        return 0; /* its next switch does it */
    /* without a state: it runs, or was there before, or its switch was not reported */
    if (from == L_NONE ? !state || p->on_cpu : t->generation == settings.generation)
        return 0;
    begin_atomic(c);
    account_anew(c, p, t, from, from == L_NONE ? blocked_state(p, state) : from);
    end_atomic(c);
    return 0;
}
