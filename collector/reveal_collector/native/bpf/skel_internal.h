/* What the generated light skeleton (ledger.lskel.h) calls: loading with bpf(2) alone.
 *
 * The skeleton includes <bpf/skel_internal.h> of libbpf.  This file stands in for it, so that
 * neither libbpf nor recent kernel headers are needed where Reveal is built: the requests of
 * bpf(2) that it makes are declared here (include/uapi/linux/bpf.h). */
#ifndef REVEAL_SKEL_INTERNAL_H
#define REVEAL_SKEL_INTERNAL_H

#include <errno.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CMD_MAP_CREATE = 0, CMD_MAP_UPDATE = 2, CMD_MAP_DELETE = 3, CMD_PROG_LOAD = 5,
    CMD_PROG_RUN = 10, CMD_RAW_TRACEPOINT_OPEN = 17, CMD_MAP_TAKE_BATCH = 25, CMD_LINK_CREATE = 28,
    CMD_ITER_CREATE = 33
};
enum { MAP_TYPE_ARRAY = 2, PROG_TYPE_SYSCALL = 31, PROG_SLEEPABLE = 1 << 4, BPF_TRACE_ITER = 28 };

struct attr_map_create {
    __u32 map_type, key_size, value_size, max_entries, map_flags, inner_map_fd, numa_node;
    char map_name[16];
};
struct attr_map_element {
    __u32 map_fd, unused;
    __u64 key, value, flags;
};
struct attr_prog_load {
    __u32 prog_type, insn_cnt;
    __u64 insns, license;
    __u32 log_level, log_size;
    __u64 log_buf;
    __u32 kern_version, prog_flags;
    char prog_name[16];
    __u32 prog_ifindex, expected_attach_type, prog_btf_fd, func_info_rec_size;
    __u64 func_info;
    __u32 func_info_cnt, line_info_rec_size;
    __u64 line_info;
    __u32 line_info_cnt, attach_btf_id, attach_prog_fd, core_relo_cnt;
    __u64 fd_array;
};
struct attr_prog_run {
    __u32 prog_fd, retval, data_size_in, data_size_out;
    __u64 data_in, data_out;
    __u32 repeat, duration, ctx_size_in, ctx_size_out;
    __u64 ctx_in, ctx_out;
    __u32 flags, cpu, batch_size, unused;
};
struct attr_raw_tracepoint {
    __u64 name;
    __u32 prog_fd, unused;
};
struct attr_link_create {
    __u32 prog_fd, target_fd, attach_type, flags;
};
struct attr_iter_create {
    __u32 link_fd, flags;
};
struct attr_map_batch {
    __u64 in_batch, out_batch, keys, values;
    __u32 count, map_fd;
    __u64 elem_flags, flags;
};

/* As the loader program, which libbpf generated, expects and fills them. */
struct bpf_map_desc {
    int map_fd;
    __u32 max_entries;
    __aligned_u64 initial_value;
};
struct bpf_prog_desc {
    int prog_fd;
};
struct bpf_loader_ctx {
    __u32 sz, flags, log_level, log_size;
    __u64 log_buf;
};
struct bpf_load_and_run_opts {
    struct bpf_loader_ctx *ctx;
    const void *data, *insns;
    __u32 data_sz, insns_sz;
    const char *errstr;
};

/* The result of bpf(2), or the negative errno. */
static inline int call_bpf(int command, void *attributes, size_t size)
{
    long result = syscall(__NR_bpf, command, attributes, (unsigned)size);
    return result < 0 ? -errno : (int)result;
}

static inline void *skel_alloc(size_t size)
{
    return calloc(1, size);
}

static inline void skel_free(void *memory)
{
    free(memory);
}

static inline int skel_closenz(int fd)
{
    return fd > 0 ? close(fd) : -EINVAL;
}

static inline void *skel_prep_map_data(const void *value, size_t mapped, size_t size)
{
    void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memcpy(memory, value, size);
}

static inline void *skel_finalize_map_data(__u64 *initial, size_t mapped, int protection, int fd)
{
    void *memory = mmap((void *)(long)*initial, mapped, protection, MAP_SHARED | MAP_FIXED, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static inline void skel_free_map_data(void *memory, __u64 initial, size_t mapped)
{
    (void)initial;
    if (memory)
        munmap(memory, mapped);
}

static inline int skel_raw_tracepoint_open(const char *name, int prog_fd)
{
    struct attr_raw_tracepoint attr = {.name = (__u64)(long)name, .prog_fd = (__u32)prog_fd};

    return call_bpf(CMD_RAW_TRACEPOINT_OPEN, &attr, sizeof attr);
}

static inline int skel_link_create(int prog_fd, int target_fd, int attach_type)
{
    struct attr_link_create attr = {(__u32)prog_fd, (__u32)target_fd, (__u32)attach_type, 0};

    return call_bpf(CMD_LINK_CREATE, &attr, sizeof attr);
}

static inline int skel_map_update(int fd, const void *key, const void *value)
{
    struct attr_map_element attr = {
        .map_fd = (__u32)fd, .key = (__u64)(long)key, .value = (__u64)(long)value};

    return call_bpf(CMD_MAP_UPDATE, &attr, sizeof attr);
}

static inline int load_loader(const struct bpf_load_and_run_opts *opts, int map_fd)
{
    struct attr_prog_load load = {
        .prog_type = PROG_TYPE_SYSCALL, .insn_cnt = opts->insns_sz / 8,
        .insns = (__u64)(long)opts->insns, .license = (__u64)(long)"Dual BSD/GPL",
        .prog_flags = PROG_SLEEPABLE, .prog_name = "reveal_loader",
        .fd_array = (__u64)(long)&map_fd};

    return call_bpf(CMD_PROG_LOAD, &load, sizeof load);
}

/* Load the loader program and run it: it makes the maps and loads the programs. */
static inline int bpf_load_and_run(struct bpf_load_and_run_opts *opts)
{
    struct attr_map_create create = {
        .map_type = MAP_TYPE_ARRAY, .key_size = 4, .value_size = opts->data_sz, .max_entries = 1,
        .map_name = "reveal_loader"};
    int key = 0, map_fd = call_bpf(CMD_MAP_CREATE, &create, sizeof create);
    if (map_fd < 0)
        return map_fd;
    int result = skel_map_update(map_fd, &key, opts->data);
    if (result >= 0) {
        int prog_fd = result = load_loader(opts, map_fd);
        if (prog_fd >= 0) {
            struct attr_prog_run run = {.prog_fd = (__u32)prog_fd, .ctx_size_in = opts->ctx->sz,
                                        .ctx_in = (__u64)(long)opts->ctx};
            result = call_bpf(CMD_PROG_RUN, &run, sizeof run);
            if (result >= 0 && (int)run.retval < 0)
                result = (int)run.retval;
            close(prog_fd);
        }
    }
    close(map_fd);
    return result < 0 ? result : 0;
}

#endif
