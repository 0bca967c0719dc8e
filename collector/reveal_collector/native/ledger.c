/* The lost-time ledger: loads its BPF programs with bpf(2) alone, and reads what they count. */
#include <stdio.h>
#include <time.h>

#include "bpf/ledger.h"
#include "bpf/ledger.lskel.h"

/* The sums over all CPUs at one moment. */
struct ledger_totals {
    int64_t now; /* CLOCK_MONOTONIC */
    int64_t switches, wakeups, missed, cost;
    int64_t spent[LEDGER_SLOTS][LEDGER_STATES]; /* ns */
    int64_t threads[LEDGER_SLOTS];
    int64_t waited[LEDGER_BUSY][LEDGER_BUSY]; /* ns, [victim][culprit] */
    int64_t waits[LEDGER_SLOTS][LEDGER_WAITS];
    int64_t cpus[LEDGER_SLOTS]; /* that each subject may use; 0 if none of its threads ran */
    int64_t disks[LEDGER_SLOTS][LEDGER_DISKS]; /* ns, requests under way */
    int64_t completed[LEDGER_SLOTS][LEDGER_DISKS]; /* requests, modulo 2^32 */
    int64_t sectors[LEDGER_SLOTS][LEDGER_DISKS];   /* of 512 bytes, modulo 2^32 */
};

struct reveal_ledger {
    struct ledger_bpf *skeleton;
    struct ledger_cpu *cpus;
    size_t mapped;
    int32_t count, reads;
};

/* What is in use: the slots, and the indices of the matrix. */
struct ledger_extent {
    int32_t slots, busy;
};

enum { TRIES = 1000, PASSES = 3, LONGEST_PASS_NS = 1000000, CPUS_READS = 10 };

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void copy_used(struct ledger_cpu *to, const struct ledger_cpu *from,
                      const struct ledger_extent *used)
{
    size_t slots = (size_t)used->slots;

    memcpy(to, from, offsetof(struct ledger_cpu, waited));
    memcpy(to->waited, from->waited, (size_t)used->busy * sizeof *to->waited);
    memcpy(to->n, from->n, slots * sizeof *to->n);
    memcpy(to->base, from->base, slots * sizeof *to->base);
    memcpy(to->waits, from->waits, slots * sizeof *to->waits);
    memcpy(to->requests, from->requests, slots * sizeof *to->requests);
    memcpy(to->requests_base, from->requests_base, slots * sizeof *to->requests_base);
    memcpy(to->completed, from->completed, slots * sizeof *to->completed);
    memcpy(to->sectors, from->sectors, slots * sizeof *to->sectors);
}

/* Copy a CPU's part while no change of it is under way; 0 if that never was. */
static int copy(struct ledger_cpu *to, const struct ledger_cpu *from,
                const struct ledger_extent *used)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t ended = __atomic_load_n(&from->ended, __ATOMIC_ACQUIRE);
        copy_used(to, from, used);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        /* read after the copy: a change that began meanwhile shows */
        if (__atomic_load_n(&from->begun, __ATOMIC_RELAXED) == ended)
            return 1;
    }
    return 0;
}

/* The time of a pair of `n` and `base` until now, modulo 2^64: only the sum of all CPUs has a
 * meaning. */
static int64_t plus(int64_t sum, int64_t base, int32_t n, int64_t now)
{
    return (int64_t)((uint64_t)sum + (uint64_t)base + (uint64_t)n * (uint64_t)now);
}

static void add(struct ledger_totals *sum, const struct ledger_cpu *cpu, int64_t now,
                const struct ledger_extent *used)
{
    for (int slot = 0; slot < used->slots; slot++) {
        int64_t *spent = sum->spent[slot];
        for (int state = 0; state < LEDGER_STATES; state++)
            spent[state] = plus(spent[state], cpu->base[slot][state], cpu->n[slot][state], now);
        int64_t *disks = sum->disks[slot];
        for (int disk = 0; disk < LEDGER_DISKS; disk++) {
            disks[disk] = plus(disks[disk], cpu->requests_base[slot][disk],
                               cpu->requests[slot][disk], now);
            /* modulo 2^32, so that it does not matter when a CPU's own number wraps */
            sum->completed[slot][disk] =
                (uint32_t)(sum->completed[slot][disk] + cpu->completed[slot][disk]);
            sum->sectors[slot][disk] =
                (uint32_t)(sum->sectors[slot][disk] + cpu->sectors[slot][disk]);
        }
        sum->threads[slot] += cpu->n[slot][L_ALIVE];
        for (int i = 0; i < LEDGER_WAITS; i++)
            sum->waits[slot][i] += cpu->waits[slot][i];
    }
    /* since its last switch, somebody runs and others wait */
    int64_t open = cpu->last && now > (int64_t)cpu->last ? now - (int64_t)cpu->last : 0;
    uint32_t runs = cpu->busy % LEDGER_BUSY;
    sum->spent[cpu->slot % LEDGER_SLOTS][cpu->stalled ? L_RECLAIM : L_RUN] += open;
    for (int victim = 0; victim < used->busy; victim++) {
        for (int culprit = 0; culprit < used->busy; culprit++)
            sum->waited[victim][culprit] += cpu->waited[victim][culprit];
        sum->waited[victim][runs] += open * cpu->nwait[victim];
    }
    sum->switches += (int64_t)cpu->switches;
    sum->wakeups += (int64_t)cpu->wakeups;
    sum->missed += (int64_t)cpu->missed;
    sum->cost += (int64_t)cpu->cost;
}

/* Sum up the CPUs' parts at a time; `copies` has room for as many.  0, or the negative errno. */
int32_t reveal_ledger_sum(const struct ledger_cpu *cpus, int32_t count, struct ledger_cpu *copies,
                          const struct ledger_extent *used, int64_t now,
                          struct ledger_totals *totals)
{
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t began = monotonic_ns();
        for (int32_t i = 0; i < count; i++)
            if (!copy(&copies[i], &cpus[i], used))
                return -EAGAIN;
        if (monotonic_ns() - began <= LONGEST_PASS_NS * (1 + count / 64))
            break; /* not interrupted: the copies are of one moment */
    }
    memset(totals, 0, sizeof *totals);
    totals->now = now ? now : monotonic_ns();
    for (int32_t i = 0; i < count; i++)
        add(totals, &copies[i], totals->now, used);
    return 0;
}

int64_t reveal_ledger_cpu_bytes(void)
{
    return sizeof(struct ledger_cpu);
}

int64_t reveal_ledger_totals_bytes(void)
{
    return sizeof(struct ledger_totals);
}

void reveal_ledger_close(struct reveal_ledger *ledger)
{
    if (!ledger)
        return;
    if (ledger->cpus)
        munmap(ledger->cpus, ledger->mapped);
    ledger_bpf__destroy(ledger->skeleton);
    free(ledger);
}

static int map_cpus(struct reveal_ledger *ledger)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)ledger->count * sizeof(struct ledger_cpu);

    ledger->mapped = (bytes + page - 1) / page * page;
    void *memory = mmap(NULL, ledger->mapped, PROT_READ, MAP_SHARED,
                        ledger->skeleton->maps.cpus.map_fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    ledger->cpus = memory;
    return 0;
}

/* Load the programs for this number of possible CPUs, without attaching them.  0 or the negative
 * errno; the kernel's log of a refused program in `log`, if there is room for one. */
int32_t reveal_ledger_open(struct reveal_ledger **into, int32_t count, uint32_t hierarchy,
                           uint64_t root, char *log, uint32_t log_size)
{
    struct reveal_ledger *ledger = calloc(1, sizeof *ledger);
    struct ledger_bpf *skeleton = ledger ? ledger_bpf__open() : NULL;

    if (!skeleton) {
        free(ledger);
        return -ENOMEM;
    }
    ledger->skeleton = skeleton;
    ledger->count = count;
    skeleton->maps.cpus.max_entries = (__u32)count;
    skeleton->ctx.log_level = log_size ? 1 : 0;
    skeleton->ctx.log_size = log_size;
    skeleton->ctx.log_buf = log_size ? (__u64)(long)log : 0;
    int result = ledger_bpf__load(skeleton);
    if (result >= 0) {
        skeleton->bss->settings.online = (__u32)sysconf(_SC_NPROCESSORS_ONLN);
        skeleton->bss->settings.hierarchy = hierarchy;
        skeleton->bss->settings.root = root;
        skeleton->bss->settings.generation = 1;
        result = map_cpus(ledger);
    }
    if (result < 0) {
        reveal_ledger_close(ledger);
        return result;
    }
    *into = ledger;
    return 0;
}

/* Walk over all threads: those that sleep get their state and subject.  0 or the negative errno. */
int32_t reveal_ledger_walk_threads(struct reveal_ledger *ledger)
{
    struct attr_iter_create attr = {.link_fd = (__u32)ledger->skeleton->links.walk_threads_fd};
    char nothing[64];
    int fd = call_bpf(CMD_ITER_CREATE, &attr, sizeof attr);

    if (fd < 0)
        return fd;
    ssize_t got;
    do
        got = read(fd, nothing, sizeof nothing);
    while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
    int result = got < 0 ? -errno : 0;
    close(fd);
    return result;
}

int32_t reveal_ledger_attach(struct reveal_ledger *ledger)
{
    int result = ledger_bpf__attach(ledger->skeleton);

    return result < 0 ? result : reveal_ledger_walk_threads(ledger);
}

/* Give a key its slot and index of the matrix, in the upper half; threads see it once the
 * generation is raised. */
int32_t reveal_ledger_name(struct reveal_ledger *ledger, uint64_t key, uint32_t value)
{
    return skel_map_update(ledger->skeleton->maps.subjects.map_fd, &key, &value);
}

int32_t reveal_ledger_forget(struct reveal_ledger *ledger, uint64_t key)
{
    struct attr_map_element attr = {.map_fd = (__u32)ledger->skeleton->maps.subjects.map_fd,
                                    .key = (__u64)(long)&key};

    return call_bpf(CMD_MAP_DELETE, &attr, sizeof attr);
}

void reveal_ledger_raise(struct reveal_ledger *ledger)
{
    __atomic_fetch_add(&ledger->skeleton->bss->settings.generation, 1, __ATOMIC_RELEASE);
}

/* Take the CPU time of keys without a subject; the number of them, or the negative errno. */
int32_t reveal_ledger_take_unnamed(struct reveal_ledger *ledger, uint64_t *keys, uint64_t *ns,
                                   uint32_t room)
{
    uint32_t batch = 0;
    struct attr_map_batch attr = {
        .out_batch = (__u64)(long)&batch, .keys = (__u64)(long)keys, .values = (__u64)(long)ns,
        .count = room, .map_fd = (__u32)ledger->skeleton->maps.unnamed.map_fd};
    int result = call_bpf(CMD_MAP_TAKE_BATCH, &attr, sizeof attr);

    return result < 0 && result != -ENOENT ? result : (int32_t)attr.count; /* ENOENT: the last */
}

/* Read how many CPUs each subject may use.  Affinity can change, so what was seen since the last
 * time counts from every tenth read on. */
static void read_cpus(struct reveal_ledger *ledger, const struct ledger_extent *used,
                      struct ledger_totals *totals)
{
    int renew = ++ledger->reads % CPUS_READS == 0;

    for (int slot = 0; slot < used->slots; slot++) {
        struct ledger_runnable *runnable = &ledger->skeleton->bss->runnable[slot];
        totals->cpus[slot] = runnable->cpus;
        if (renew && runnable->seen) {
            runnable->cpus = runnable->seen;
            runnable->seen = 0;
        }
    }
    if (renew)
        ledger->skeleton->bss->settings.online = (__u32)sysconf(_SC_NPROCESSORS_ONLN);
}

int32_t reveal_ledger_read(struct reveal_ledger *ledger, struct ledger_cpu *copies,
                           const struct ledger_extent *used, struct ledger_totals *totals)
{
    int32_t result =
        reveal_ledger_sum(ledger->cpus, ledger->count, copies, used, 0, totals);

    if (!result)
        read_cpus(ledger, used, totals);
    return result;
}
