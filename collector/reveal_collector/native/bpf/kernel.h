/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
 * The few types of the kernel that the ledger reads.  The loader relocates each access to the
 * layout of the running kernel (CO-RE), so only names matter here, and no field that is not read
 * is declared. */
#ifndef REVEAL_KERNEL_H
#define REVEAL_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
    int nr;
};
struct pid {
    struct upid numbers[1];
};
struct signal_struct {
    struct pid *pids[4]; /* enum pid_type */
};

struct kernfs_node {
    __u64 id;
};
struct cgroup;
struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
};
struct cgroup {
    struct cgroup_subsys_state self;
    struct kernfs_node *kn;
};
struct css_set {
    struct cgroup_subsys_state *subsys[4];
    struct cgroup *dfl_cgrp;
};
enum cgroup_subsys_id { cpu_cgrp_id = 1, cpuacct_cgrp_id = 2 };

struct cfs_rq {
    int throttle_count;
};
struct sched_entity {
    __u64 sum_exec_runtime;
    struct cfs_rq *cfs_rq;
};
struct thread_info {
    __u32 cpu;
};
struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    unsigned int flags;
    int on_cpu;
    int nr_cpus_allowed;
    int exit_state;
    int pid;
    struct sched_entity se;
    struct css_set *cgroups;
    struct signal_struct *signal;
    unsigned in_iowait : 1;
    unsigned in_memstall : 1;
    unsigned frozen : 1;
    _Bool throttled; /* since Linux 6.18 */
};

struct blkcg {
    struct cgroup_subsys_state css;
};
struct blkcg_gq {
    struct blkcg *blkcg;
};
struct bio {
    struct blkcg_gq *bi_blkg;
};
struct request_queue;
struct request {
    struct request_queue *q;
    unsigned int __data_len;
    struct bio *bio;
};

struct bpf_iter_meta {
    __u64 session_id;
};
struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED_OR_TRACED 0xc
#define TASK_DEAD 0x80
#define TASK_WAKEKILL 0x100
#define TASK_NOLOAD 0x400
#define TASK_RTLOCK_WAIT 0x1000
#define TASK_FROZEN 0x8000
#define PIDTYPE_PGID 2
#define PIDTYPE_SID 3

#endif
