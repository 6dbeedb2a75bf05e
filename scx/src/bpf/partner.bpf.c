/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A sched_ext scheduler that keeps threads beside the partners that a policy chose.
 *
 * Problem: a mask keeps a thread where a policy wants it, but its program counts the CPUs of its mask; and a core
 * that is reserved for a program that answers requests is lost to all others also while that program sleeps.
 *
 * Approach: user space says of each thread on which CPUs it belongs, with whom, and of which class it is. Each CPU
 * has a queue for each class.
 *
 *   wake-up or end of a slice:  an idle CPU of the thread's own, else the one with the shortest queues; a CPU is
 *                               taken from a lower class, and from a guest, at once
 *   a CPU looks for work:       its own queues by class; then threads that belong here and wait elsewhere; then
 *                               any that has waited for LEND and may run here: a guest
 *   a keeper runs on a sibling: only threads of its group run here; others leave at once, and come back when it
 *                               sleeps. Who has waited for STARVED runs all the same, for a slice.
 *
 * Terms: its own CPUs: those that user space named, within the thread's mask. Guest: runs elsewhere, since there was
 * no room. Keeper: a thread that shares a core with its own group only
 * (LATENCY), or with none (ALONE). Group: a number; threads with
 * the same one are partners. Times in nanoseconds.
 *
 * Whom user space names nothing for runs anywhere, as class NORMAL.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

/* Functions that are __weak, not static, are verified once, not at each call. */

/* One of the scheduler's functions, which the kernel calls with these arguments. */
#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

#define MAX_CPUS 1024
#define MAX_SIBLINGS 8
/* No thread is of this group. */
#define NOBODY ~0U
/* So much longer than it is does the queue of a CPU count on which only a keeper's group may run. */
#define BARRED 100000
/* Threads of a queue that are looked at for a CPU that is not theirs. */
#define LOOK 8
#define MS 1000000ULL
/* A waiting thread may be taken by an idle CPU that is not its own after this time. */
#define LEND (4 * MS)
/* A waiting thread runs for a slice whatever its class, and whoever runs beside it, after this time. */
#define STARVED (1000 * MS)
/* A CPU runs one of these at most once in this time. */
#define STARVED_EACH (100 * MS)
/* Threads of a queue that are looked at for those. */
#define LOOK_FAR 64
/* How often waiting threads are looked at: while there are any, and otherwise. */
#define SOON (2 * MS)
#define LATER (20 * MS)

enum class { LATENCY, ALONE, NORMAL, BATCH, CLASSES };

/* What user space wants of a thread. */
struct placed {
	__u64 cpus[MAX_CPUS / 64];
	/* The first of them, and one more than the last. */
	__u32 first;
	__u32 end;
	__u32 group;
	__u32 class;
};

/* What is known of a thread. */
struct known {
	/* When it began to wait, and to run; 0: it does not. */
	__u64 waits_since;
	__u64 runs_since;
};

/* What a CPU does, and did. User space reads it; only the CPU itself writes, but for `idle_ns`. */
struct cpu {
	/* Class and group of the thread that runs; not if `busy` is 0: idle, or with another scheduler's thread. */
	__u32 busy;
	__u32 class;
	__u32 group;
	__u32 guest;
	/* The last one was a keeper, and siblings may have been left idle for it. */
	__u32 kept;
	__u32 idle;
	__u64 idle_since;
	__u64 idle_ns;
	/* Idle time of all siblings when the keeper began to run. */
	__u64 idle_before;
	/* Running time of placed threads, on their own CPUs and as guests. */
	__u64 own_ns;
	__u64 guest_ns;
	/* Running time of keepers, and of that the time of idle siblings, times the number of siblings. */
	__u64 keeper_ns[CLASSES];
	__u64 beside_idle_ns[CLASSES];
	/* Placed threads that were put on the CPU, and those that had to leave it for others. */
	__u64 dispatches;
	__u64 preemptions;
	/* Threads that ran since they had waited for STARVED, and when the last one did. */
	__u64 starved;
	__u64 starved_at;
	/* The virtual time of each of its queues: the highest of a thread that was taken out. */
	__u64 vtime[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct placed);
} placed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct known);
} known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct clock {
	struct bpf_timer timer;
	__u32 looked;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock);
} clocks SEC(".maps");

/* The machine, as user space knows it before the scheduler is loaded. */
struct machine {
	__u32 nr_cpus;
	__u32 nr_siblings[MAX_CPUS];
	__u32 siblings[MAX_CPUS][MAX_SIBLINGS];
};
const volatile struct machine machine SEC(".rodata.machine") = { .nr_cpus = 1 };

/* What user space reads. */
struct said {
	/* How long the thread that waits longest had waited at the last look. */
	__u64 longest_wait;
	/* Why it ended. */
	__s64 code;
	__u32 kind;
	char reason[128];
	char message[256];
};
struct said said SEC(".data.said") = { .kind = 0 };

static __u64 slice_of(__u32 class)
{
	switch (class) {
	case LATENCY:
	case ALONE:
		return 10 * MS;
	case BATCH:
		return 20 * MS;
	default:
		return 4 * MS;
	}
}

static bool keeps(__u32 class)
{
	return class == LATENCY || class == ALONE;
}

/* A lower rank goes first. */
static __u32 rank(__u32 class)
{
	return class == BATCH ? 2 : class == NORMAL ? 1 : 0;
}

static __u64 queue_of(__u32 cpu, __u32 nth)
{
	return (__u64)cpu * 3 + nth + 1;
}

static struct cpu *about(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* The same number, below a power of two also in the verifier's eyes. */
static __u32 below(__u32 limit, __u32 number)
{
	barrier_var(number);
	return number & (limit - 1);
}

static bool is_own(const struct placed *placed, __u32 cpu)
{
	return cpu < MAX_CPUS && (placed->cpus[below(MAX_CPUS / 64, cpu / 64)] >> (cpu % 64)) & 1;
}

static __u32 siblings_of(__u32 cpu)
{
	return cpu < MAX_CPUS ? machine.nr_siblings[below(MAX_CPUS, cpu)] : 0;
}

static __u32 sibling(__u32 cpu, __u32 nth)
{
	return machine.siblings[below(MAX_CPUS, cpu)][below(MAX_SIBLINGS, nth)];
}

/* A program of the kernel's virtual machine is itself kept from migrating, and with it the thread that runs it. */
static bool is_bound(struct task_struct *p)
{
	return p->migration_disabled > (bpf_get_current_task_btf() == p);
}

static bool may_run_on(struct task_struct *p, __u32 cpu)
{
	if (is_bound(p) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return scx_bpf_task_cpu(p) == cpu;
	return true;
}

static __u32 class_of(const struct placed *placed)
{
	return placed && placed->class < CLASSES ? placed->class : NORMAL;
}

/* Does a keeper run beside this CPU that would share its core with no thread of this group? */
__weak bool is_barred(__u32 cpu, __u32 group)
{
	__u32 i;

	bpf_for(i, 0, MAX_SIBLINGS) {
		struct cpu *beside;

		if (i >= siblings_of(cpu))
			break;
		beside = about(sibling(cpu, i));
		if (beside && beside->busy && keeps(beside->class) &&
		    (beside->class == ALONE || beside->group != group))
			return true;
	}
	return false;
}

__weak int kick_siblings(__u32 cpu, __u32 group, __u64 how)
{
	__u32 i;

	bpf_for(i, 0, MAX_SIBLINGS) {
		struct cpu *beside;

		if (i >= siblings_of(cpu))
			break;
		if (how == SCX_KICK_PREEMPT) {
			beside = about(sibling(cpu, i));
			if (!beside || !beside->busy || beside->group == group)
				continue;
			__sync_fetch_and_add(&beside->preemptions, 1);
		}
		scx_bpf_kick_cpu(sibling(cpu, i), how);
	}
	return 0;
}

__weak __u64 idle_time_beside(__u32 cpu, __u64 now)
{
	__u64 sum = 0;
	__u32 i;

	bpf_for(i, 0, MAX_SIBLINGS) {
		struct cpu *beside;

		if (i >= siblings_of(cpu))
			break;
		beside = about(sibling(cpu, i));
		if (!beside)
			continue;
		sum += beside->idle_ns;
		if (beside->idle && now > beside->idle_since)
			sum += now - beside->idle_since;
	}
	return sum;
}

/* How many threads wait for it. */
__weak __u32 waiting_on(__u32 cpu)
{
	__u32 sum = 0, i;

	bpf_for(i, 0, 3) {
		__s32 more = scx_bpf_dsq_nr_queued(queue_of(cpu, i));

		if (more > 0)
			sum += more;
	}
	return sum;
}

/* May a thread of this class take the CPU from the one that runs there now? */
static bool takes(__u32 class, bool own, struct cpu *cpu)
{
	return cpu->busy && (rank(class) < rank(cpu->class) || (own && cpu->guest));
}

/* Where a thread shall wait, or run at once if that CPU is idle: then `idle` is set, and the CPU is claimed. */
__weak __s32 home_of(struct task_struct *p __arg_trusted, __s32 before, bool *idle __arg_nonnull)
{
	struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);
	__u32 class = class_of(wanted), group = wanted ? wanted->group : 0;
	__s32 best = -1;
	__u32 shortest = ~0U, cpu;

	*idle = false;
	if (p->nr_cpus_allowed == 1 || is_bound(p))
		wanted = 0;
	if (wanted) {
		if (before >= 0 && is_own(wanted, before) && may_run_on(p, before) &&
		    !is_barred(before, group) && scx_bpf_test_and_clear_cpu_idle(before)) {
			*idle = true;
			return before;
		}
		bpf_for(cpu, wanted->first, wanted->end) {
			struct cpu *there;
			__u32 length;

			if (!is_own(wanted, cpu) || !may_run_on(p, cpu))
				continue;
			there = about(cpu);
			if (!there)
				continue;
			/* Two for each that waits, one for one that runs and would not leave. */
			length = 2 * waiting_on(cpu) + !takes(class, true, there);
			if (is_barred(cpu, group)) {
				/* As a last resort. */
				length += BARRED;
			} else if (scx_bpf_test_and_clear_cpu_idle(cpu)) {
				*idle = true;
				return cpu;
			}
			if (length < shortest || (length == shortest && cpu == before)) {
				shortest = length;
				best = cpu;
			}
		}
		if (best >= 0)
			return best;
	}
	if (before >= 0 && may_run_on(p, before)) {
		if (!is_barred(before, group) && scx_bpf_test_and_clear_cpu_idle(before)) {
			*idle = true;
			return before;
		}
		if (p->nr_cpus_allowed == 1 || is_bound(p))
			return before;
	}
	best = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (best >= 0 && !is_barred(best, group)) {
		*idle = true;
		return best;
	}
	if (before >= 0 && may_run_on(p, before) && !is_barred(before, group))
		return before;
	return scx_bpf_pick_any_cpu(p->cpus_ptr, 0);
}

__s32 BPF_STRUCT_OPS(partner_select_cpu, struct task_struct *p, __s32 before, __u64 wake_flags)
{
	struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);
	bool idle;
	__s32 cpu = home_of(p, before, &idle);

	if (idle && !is_barred(cpu, wanted ? wanted->group : 0))
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(class_of(wanted)), 0);
	return cpu;
}

/* Where in the order of a CPU's queue a thread begins to wait. */
static __u64 vtime_for(const struct task_struct *p, const struct cpu *there, __u32 class)
{
	__u64 vtime = p->scx.dsq_vtime, slice = slice_of(class), clock;

	if (!there)
		return vtime;
	clock = there->vtime[rank(class)];
	/* Nobody saves time up while it sleeps, and nobody brings a debt of more than a second along. */
	if (vtime + slice < clock)
		return clock - slice;
	return vtime > clock + STARVED ? clock + STARVED : vtime;
}

/* Has a CPU look at its queues, where a thread of this class waits now. */
static void call(__u32 cpu, __u32 class, bool own, bool idle)
{
	struct cpu *there = about(cpu);

	if (!idle && there && takes(class, own, there)) {
		__sync_fetch_and_add(&there->preemptions, 1);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	} else {
		/* It may be about to be idle, with its queues looked at. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
}

void BPF_STRUCT_OPS(partner_enqueue, struct task_struct *p, __u64 enq_flags)
{
	struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);
	struct known *about_it = bpf_task_storage_get(&known, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 class = class_of(wanted);
	struct cpu *there;
	bool idle;
	__s32 cpu;

	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_of(NORMAL), enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	cpu = home_of(p, scx_bpf_task_cpu(p), &idle);
	if (cpu < 0 || cpu >= MAX_CPUS)
		cpu = scx_bpf_task_cpu(p);
	if (about_it && !about_it->waits_since)
		about_it->waits_since = scx_bpf_now();
	there = about(cpu);
	scx_bpf_dsq_insert_vtime(p, queue_of(cpu, rank(class)), slice_of(class),
				 vtime_for(p, there, class), enq_flags);
	call(cpu, class, wanted && is_own(wanted, cpu), idle);
}

/* To a queue of its own CPUs goes a thread that waits here since before it was placed there. */
static bool go_home(struct bpf_iter_scx_dsq *it, struct task_struct *p, struct placed *wanted)
{
	__u32 class = class_of(wanted);
	bool idle, own, moved = false;
	__s32 home = home_of(p, -1, &idle);

	if (home < 0 || home >= MAX_CPUS)
		return false;
	own = is_own(wanted, home);
	if (own) {
		scx_bpf_dsq_move_set_vtime(it, vtime_for(p, about(home), class));
		moved = scx_bpf_dsq_move_vtime(it, p, queue_of(home, rank(class)), 0);
	}
	/* One that was claimed has to be called, also for nothing. */
	if (moved || idle)
		call(home, class, own, idle);
	return moved;
}

/* Takes one thread out of a queue for this CPU. `own`: only threads to which it belongs, or that may be lent. */
__weak bool take(__u32 cpu, __u64 queue, bool own, __u64 now)
{
	struct task_struct *p;
	__u32 looked = 0;
	bool taken = false;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);
		struct known *about_it = bpf_task_storage_get(&known, p, 0, 0);
		__u64 waited = 0;

		if (++looked > LOOK)
			break;
		if (about_it && about_it->waits_since && now > about_it->waits_since)
			waited = now - about_it->waits_since;
		if (own && wanted && !is_own(wanted, cpu) && go_home(&___it, p, wanted))
			continue;
		if (!may_run_on(p, cpu))
			continue;
		if (!own && !(wanted && is_own(wanted, cpu)) && waited < LEND)
			continue;
		if (is_barred(cpu, wanted ? wanted->group : 0) && waited < STARVED)
			continue;
		if (scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL, 0)) {
			taken = true;
			break;
		}
	}
	return taken;
}

/*
 * Takes one that has waited so long that its class does not count. It is one of the last in the order of virtual time,
 * so that the queue is looked through from its end.
 */
__weak bool take_starved(__u32 cpu, __u64 queue, __u64 now)
{
	struct task_struct *p;
	__u32 looked = 0;
	bool taken = false;

	bpf_for_each(scx_dsq, p, queue, SCX_DSQ_ITER_REV) {
		struct known *about_it = bpf_task_storage_get(&known, p, 0, 0);

		if (++looked > LOOK_FAR)
			break;
		if (!about_it || !about_it->waits_since || now <= about_it->waits_since + STARVED)
			continue;
		if (may_run_on(p, cpu) && scx_bpf_dsq_move(&___it, p, SCX_DSQ_LOCAL, 0)) {
			taken = true;
			break;
		}
	}
	return taken;
}

/* Is one of a guest's own CPUs free for it? */
static bool may_go_home(struct task_struct *p, const struct placed *placed, __u32 class)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool may = false;
	__u32 cpu;

	bpf_for(cpu, placed->first, placed->end) {
		struct cpu *there;

		if (!is_own(placed, cpu) || !may_run_on(p, cpu) || is_barred(cpu, placed->group))
			continue;
		there = about(cpu);
		if (bpf_cpumask_test_cpu(cpu, idle) || (there && takes(class, true, there))) {
			may = true;
			break;
		}
	}
	scx_bpf_put_idle_cpumask(idle);
	return may;
}

/* Has user space said something else of the thread that runs here since it was put here? */
static bool is_outdated(const struct cpu *here, const struct placed *wanted, __u32 cpu)
{
	return here->class != class_of(wanted) || here->group != (wanted ? wanted->group : 0) ||
	       here->guest != (wanted && !is_own(wanted, cpu));
}

/* Shall the thread that ran until now go on, if nobody waits here? */
static bool goes_on(struct task_struct *p, const struct cpu *here, __u32 cpu)
{
	struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);

	/* It is put here anew, or elsewhere. */
	if (is_outdated(here, wanted, cpu))
		return false;
	if (!may_run_on(p, cpu) || is_barred(cpu, wanted ? wanted->group : 0))
		return false;
	return !wanted || is_own(wanted, cpu) || !may_go_home(p, wanted, class_of(wanted));
}

void BPF_STRUCT_OPS(partner_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u64 now = scx_bpf_now();
	struct cpu *here = about(cpu);
	__u32 nth, i;
	struct placed *wanted;

	if (!here)
		return;
	/* The one that ran until now may be about to sleep. */
	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = 0;
	/* Who waits too long, first. */
	if (now > here->starved_at + STARVED_EACH) {
		bpf_for(nth, 0, 3) {
			__u64 queue = queue_of(cpu, nth);

			if (scx_bpf_dsq_nr_queued(queue) > 0 && take_starved(cpu, queue, now)) {
				here->starved++;
				here->starved_at = now;
				return;
			}
		}
	}
	bpf_for(nth, 0, 3) {
		__u64 queue = queue_of(cpu, nth);

		if (prev) {
			wanted = bpf_task_storage_get(&placed, prev, 0, 0);
			if (rank(class_of(wanted)) < nth && goes_on(prev, here, cpu)) {
				prev->scx.slice = slice_of(class_of(wanted));
				return;
			}
		}
		if (scx_bpf_dsq_nr_queued(queue) > 0 && take(cpu, queue, true, now))
			return;
	}
	if (prev && goes_on(prev, here, cpu)) {
		wanted = bpf_task_storage_get(&placed, prev, 0, 0);
		prev->scx.slice = slice_of(class_of(wanted));
		return;
	}
	if (prev)
		return;
	/* The CPU would be idle. */
	bpf_for(i, 1, MAX_CPUS) {
		__u32 other;

		if (i >= machine.nr_cpus)
			break;
		other = cpu + i;
		if (other >= machine.nr_cpus)
			other -= machine.nr_cpus;
		bpf_for(nth, 0, 3) {
			__u64 queue = queue_of(other, nth);

			if (scx_bpf_dsq_nr_queued(queue) > 0 && take(cpu, queue, false, now))
				return;
		}
	}
}

void BPF_STRUCT_OPS(partner_running, struct task_struct *p)
{
	struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);
	struct known *about_it = bpf_task_storage_get(&known, p, 0, 0);
	__u32 cpu = scx_bpf_task_cpu(p);
	struct cpu *here = about(cpu);
	__u64 now = scx_bpf_now();
	__u32 class = class_of(wanted);
	bool starved = about_it && about_it->waits_since && now > about_it->waits_since + STARVED;

	if (about_it) {
		about_it->waits_since = 0;
		about_it->runs_since = now;
	}
	if (!here)
		return;
	if (here->vtime[rank(class)] < p->scx.dsq_vtime)
		here->vtime[rank(class)] = p->scx.dsq_vtime;
	here->class = class;
	here->group = wanted ? wanted->group : 0;
	here->guest = wanted && !is_own(wanted, cpu);
	/* A barrier: of two that begin on siblings at the same time, one sees the other. */
	__sync_lock_test_and_set(&here->busy, 1);
	if (wanted)
		here->dispatches++;
	if (keeps(class)) {
		kick_siblings(cpu, class == ALONE ? NOBODY : here->group, SCX_KICK_PREEMPT);
		here->kept = 1;
		here->idle_before = idle_time_beside(cpu, now);
	} else if (here->kept) {
		here->kept = 0;
		kick_siblings(cpu, 0, SCX_KICK_IDLE);
	}
	if (!keeps(class) && !starved && is_barred(cpu, here->group))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(partner_stopping, struct task_struct *p, bool runnable)
{
	struct placed *wanted = bpf_task_storage_get(&placed, p, 0, 0);
	struct known *about_it = bpf_task_storage_get(&known, p, 0, 0);
	__u32 cpu = scx_bpf_task_cpu(p);
	struct cpu *here = about(cpu);
	__u64 now = scx_bpf_now(), ran = 0;

	if (about_it && about_it->runs_since && now > about_it->runs_since)
		ran = now - about_it->runs_since;
	if (p->scx.weight)
		p->scx.dsq_vtime += ran * 100 / p->scx.weight;
	if (about_it)
		about_it->runs_since = 0;
	if (!here)
		return;
	if (wanted) {
		if (is_own(wanted, cpu))
			here->own_ns += ran;
		else
			here->guest_ns += ran;
	}
	if (here->busy && keeps(here->class)) {
		__u32 class = here->class & 3, many = siblings_of(cpu);

		here->keeper_ns[class] += ran * many;
		here->beside_idle_ns[class] += idle_time_beside(cpu, now) - here->idle_before;
	}
	here->busy = 0;
	if (here->kept && !runnable) {
		here->kept = 0;
		kick_siblings(cpu, 0, SCX_KICK_IDLE);
	}
}

void BPF_STRUCT_OPS(partner_update_idle, __s32 cpu, bool idle)
{
	struct cpu *here = about(cpu);
	__u64 now = scx_bpf_now();

	if (!here)
		return;
	if (here->idle && now > here->idle_since)
		here->idle_ns += now - here->idle_since;
	here->idle_since = now;
	here->idle = idle;
}

/* Another scheduler's thread runs here: what was to run here looks for another place. */
void BPF_STRUCT_OPS(partner_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* It was another scheduler's: what is known of it is old. */
void BPF_STRUCT_OPS(partner_enable, struct task_struct *p)
{
	struct known *about_it = bpf_task_storage_get(&known, p, 0, 0);

	if (about_it) {
		about_it->waits_since = 0;
		about_it->runs_since = 0;
	}
}

/* Wakes idle CPUs for threads that have waited for LEND. */
static int look(void *map, int *key, struct clock *clock)
{
	__u64 now = scx_bpf_now(), longest = 0;
	bool any = false;
	__u32 cpu, nth;

	bpf_for(cpu, 0, MAX_CPUS) {
		if (cpu >= machine.nr_cpus)
			break;
		/* One that is idle since before says so only when it is woken. */
		if (!clock->looked)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		bpf_for(nth, 0, 3) {
			__u64 queue = queue_of(cpu, nth);
			struct task_struct *p;
			__u32 looked = 0;

			if (scx_bpf_dsq_nr_queued(queue) <= 0)
				continue;
			any = true;
			bpf_for_each(scx_dsq, p, queue, SCX_DSQ_ITER_REV) {
				struct known *about_it = bpf_task_storage_get(&known, p, 0, 0);
				__u64 waited = 0;
				__s32 idle;

				if (++looked > LOOK)
					break;
				if (about_it && about_it->waits_since && now > about_it->waits_since)
					waited = now - about_it->waits_since;
				if (waited > longest)
					longest = waited;
				if (waited < LEND)
					continue;
				idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
				if (idle >= 0)
					scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
				if (waited > STARVED)
					scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			}
		}
	}
	clock->looked = 1;
	said.longest_wait = longest;
	bpf_timer_start(&clock->timer, any ? SOON : LATER, 0);
	return 0;
}

__s32 BPF_STRUCT_OPS_SLEEPABLE(partner_init)
{
	struct clock *clock;
	__u32 key = 0, i, nth;
	__s32 error;

	bpf_for(i, 0, MAX_CPUS) {
		if (i >= machine.nr_cpus)
			break;
		bpf_for(nth, 0, 3) {
			error = scx_bpf_create_dsq(queue_of(i, nth), -1);
			if (error)
				return error;
		}
	}
	clock = bpf_map_lookup_elem(&clocks, &key);
	if (!clock)
		return -2; /* ENOENT */
	error = bpf_timer_init(&clock->timer, &clocks, CLOCK_MONOTONIC);
	if (error)
		return error;
	bpf_timer_set_callback(&clock->timer, look);
	return bpf_timer_start(&clock->timer, SOON, 0);
}

void BPF_STRUCT_OPS(partner_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(said.reason, sizeof(said.reason), info->reason);
	bpf_probe_read_kernel_str(said.message, sizeof(said.message), info->msg);
	said.code = info->exit_code;
	said.kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops partner = {
	.select_cpu = (void *)partner_select_cpu,
	.enqueue = (void *)partner_enqueue,
	.dispatch = (void *)partner_dispatch,
	.running = (void *)partner_running,
	.stopping = (void *)partner_stopping,
	.update_idle = (void *)partner_update_idle,
	.cpu_release = (void *)partner_cpu_release,
	.enable = (void *)partner_enable,
	.init = (void *)partner_init,
	.exit = (void *)partner_exit,
	/*
	 * Whoever is preempted by another scheduler's thread counts as bound to its CPU while partner_cpu_release runs
	 * on it: without SCX_OPS_ENQ_MIGRATION_DISABLED the kernel itself would give it a new slice, each time.
	 */
	.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_SWITCH_PARTIAL |
		 SCX_OPS_ENQ_MIGRATION_DISABLED,
	.timeout_ms = 30000,
	.name = "symbiont_partner",
};
