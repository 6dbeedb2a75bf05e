/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler uses of the kernel: parts of its types, which are found by name in the running kernel
 * (CO-RE, Documentation/bpf/libbpf/libbpf_overview.rst), and its functions for schedulers
 * (Documentation/scheduler/sched-ext.rst).
 */
#ifndef SYMBIONT_KERNEL_H
#define SYMBIONT_KERNEL_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_ext_entity {
	__u32 flags;
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
};

struct task_struct {
	int pid;
	unsigned int flags;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};

enum scx_exit_kind { SCX_EXIT_NONE };

struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

struct scx_cpu_release_args;

/* Those members that are used; libbpf finds each by its name. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*update_idle)(__s32 cpu, bool idle);
	void (*cpu_release)(__s32 cpu, struct scx_cpu_release_args *args);
	void (*enable)(struct task_struct *p);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

struct bpf_iter_scx_dsq {
	__u64 opaque[6];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	CLOCK_MONOTONIC = 1,
	PF_KTHREAD = 0x00200000,
};

#define SCX_OPS_KEEP_BUILTIN_IDLE 1ULL
#define SCX_OPS_ENQ_LAST 2ULL
#define SCX_OPS_SWITCH_PARTIAL 8ULL
#define SCX_OPS_ENQ_MIGRATION_DISABLED 16ULL
#define SCX_DSQ_ITER_REV (1ULL << 16)
#define SCX_TASK_QUEUED 1U
#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_ENQ_PREEMPT (1ULL << 32)
#define SCX_KICK_IDLE 1ULL
#define SCX_KICK_PREEMPT 2ULL

extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __attribute__((section(".ksyms")));
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags)
	__attribute__((section(".ksyms")));
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 vtime,
				     __u64 enq_flags) __attribute__((section(".ksyms")));
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __attribute__((section(".ksyms")));
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
			     __u64 enq_flags) __attribute__((section(".ksyms")));
extern void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, __u64 vtime)
	__attribute__((section(".ksyms")));
extern bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
				   __u64 enq_flags) __attribute__((section(".ksyms")));
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __attribute__((section(".ksyms")));
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __attribute__((section(".ksyms")));
extern bool scx_bpf_test_and_clear_cpu_idle(__s32 cpu) __attribute__((section(".ksyms")));
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags)
	__attribute__((section(".ksyms")));
extern __s32 scx_bpf_pick_any_cpu(const struct cpumask *allowed, __u64 flags)
	__attribute__((section(".ksyms")));
extern const struct cpumask *scx_bpf_get_idle_cpumask(void) __attribute__((section(".ksyms")));
extern void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __attribute__((section(".ksyms")));
extern __u32 scx_bpf_reenqueue_local(void) __attribute__((section(".ksyms")));
extern __s32 scx_bpf_task_cpu(const struct task_struct *p) __attribute__((section(".ksyms")));
extern __u64 scx_bpf_now(void) __attribute__((section(".ksyms")));
extern bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *mask)
	__attribute__((section(".ksyms")));
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq_id, __u64 flags)
	__attribute__((section(".ksyms")));
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
	__attribute__((section(".ksyms")));
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __attribute__((section(".ksyms")));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int begin, int end)
	__attribute__((section(".ksyms")));
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __attribute__((section(".ksyms")));
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __attribute__((section(".ksyms")));
extern void bpf_rcu_read_lock(void) __attribute__((section(".ksyms")));
extern void bpf_rcu_read_unlock(void) __attribute__((section(".ksyms")));

#endif
