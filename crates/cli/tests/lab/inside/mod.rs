//! In the guest: init, and the scenarios it plays.
//!
//! A scenario is written once and played on each guest that it fits. It fails by
//! a panic; what it printed is reported with it. It may leave its processes behind.

mod auto;
mod belonging;
mod bpf;
mod cgroup;
mod classes;
mod clocked;
mod counted;
mod counters;
mod cpus;
mod cpuset;
mod crash;
mod daemon;
mod elf;
mod enrolment;
mod fair;
mod init;
mod keepers;
mod kept;
mod memory;
mod nudging;
mod pods;
mod resized;
pub mod rivals;
mod runtimes;
mod scheduler;
mod serving;
mod siblings;
mod spinners;
mod top;
mod topology;
mod traced;
mod trouble;
mod workers;

use crate::given::{self, Given, Scope};

/// What the kernel executes first.
pub const INIT: &str = "/init";
/// An event catalogue whose events every kernel has: path in the guest, and text.
pub const STAND_IN: (&str, &str) =
    ("/lab/stand-in.toml", include_str!("../../../../host/linux/tests/counting/stand-in.toml"));
/// Another one, for policies that are not to see how unevenly an emulated CPU runs.
pub const EVEN: (&str, &str) = ("/lab/even.toml", include_str!("even.toml"));
/// Exit status of a scenario that cannot be played here; its last words say why.
const SKIPPED: i32 = 77;

/// Something to be tested in a guest.
pub struct Scenario {
    pub name: &'static str,
    /// Can a guest like this play it?
    pub fits: fn(&Given) -> bool,
    play: fn(&Given),
}

const fn scenario(name: &'static str, fits: fn(&Given) -> bool, play: fn(&Given)) -> Scenario {
    Scenario { name, fits, play }
}

fn watched(given: &Given) -> bool {
    given.scope == Scope::Watched
}

fn timed(given: &Given) -> bool {
    given.scope == Scope::Timed
}

fn with_runtimes(given: &Given) -> bool {
    given.scope == Scope::Runtimes
}

fn with_pods(given: &Given) -> bool {
    whole(given) || given.scope == Scope::Pods
}

fn with_kills(given: &Given) -> bool {
    given.scope == Scope::Kills
}

/// Whatever its caches and cores are like, and also where all CPUs run at the same time.
fn scheduled(given: &Given) -> bool {
    any(given) || timed(given)
}

fn any(given: &Given) -> bool {
    given.scope >= Scope::Machine
}

fn kernel(given: &Given) -> bool {
    given.scope >= Scope::Kernel
}

fn whole(given: &Given) -> bool {
    given.scope == Scope::Whole
}

fn smt(given: &Given) -> bool {
    any(given) && given.smt() > 1
}

fn smt4(given: &Given) -> bool {
    any(given) && given.smt() == 4
}

fn several_domains(given: &Given) -> bool {
    any(given) && given.domains().len() > 1
}

/// Threads can be grouped: no domain is a single core.
fn groups(given: &Given) -> bool {
    smt(given) && given.domains().iter().all(|domain| given.cores_in(domain).len() > 1)
}

fn counters(given: &Given) -> bool {
    given.counters.is_some()
}

fn far_memory(given: &Given) -> bool {
    given.memory_mib.contains(&0)
}

fn kernel_and_counters(given: &Given) -> bool {
    kernel(given) && counters(given)
}

/// All scenarios, in the order in which they are played.
pub const SCENARIOS: &[Scenario] = &[
    scenario("the_kernel_places_spinners", watched, spinners::recorded),
    scenario("nudged_threads_stay_where_the_kernel_agrees", timed, nudging::table),
    scenario("threads_are_where_they_belong_by_a_scheduler", timed, belonging::table),
    scenario("a_core_is_kept_only_while_its_program_runs", timed, keepers::latency),
    scenario("threads_of_one_cpu_share_it", timed, fair::shared),
    scenario("rivals_keep_threads_side_by_side", timed, rivals::placing),
    scenario("rivals_wake_a_program_side_by_side", timed, rivals::waking),
    scenario("programs_count_the_cpus_that_they_count_unmanaged", with_runtimes, runtimes::table),
    scenario("topology_is_read_as_it_was_given", any, topology::as_given),
    scenario("instructions_and_cycles_are_those_executed", counters, counters::exact),
    scenario("groups_beyond_the_counters_are_scaled", kernel_and_counters, counters::multiplexed),
    scenario("groups_take_turns_by_quanta", kernel_and_counters, counters::rotated),
    scenario("stat_reports_what_was_executed", kernel_and_counters, counters::shown),
    scenario("fpu_hungry_threads_are_spread_over_cores", smt, siblings::fpu_hungry),
    scenario("co_runners_are_balanced_over_the_siblings_of_each_core", smt, siblings::balanced),
    scenario("a_serial_program_gets_a_whole_core", any, siblings::serial),
    scenario("auto_chooses_by_the_machine", any, auto::choice),
    scenario("auto_gives_a_serial_program_a_whole_core", any, auto::serial),
    scenario("auto_parts_parallel_programs_among_domains", several_domains, auto::parted),
    scenario("auto_groups_threads_by_what_is_counted", groups, auto::grouped),
    scenario("a_program_that_answers_requests_has_a_core", smt, classes::latency),
    scenario("a_measured_program_has_empty_siblings", smt, classes::alone),
    scenario("top_fits_on_a_narrow_terminal", smt4, top::once),
    scenario("the_program_that_asks_most_of_memory_runs_near_it", far_memory, memory::near),
    scenario("a_loaded_scheduler_is_respected", whole, scheduler::loaded),
    scenario("a_scheduler_keeps_threads_without_masks", scheduled, kept::end),
    scenario("nothing_is_left_of_a_scheduler_that_was_killed", scheduled, kept::killed),
    scenario("nothing_is_left_after_two_hundred_kills", with_kills, kept::killed_often),
    scenario("a_scheduler_takes_no_thread_under_a_quota", whole, kept::under_a_quota),
    scenario("a_scheduler_stands_storms_of_births", whole, kept::storm),
    scenario("a_scheduler_is_loaded_again_after_a_cpu_went", whole, kept::hotplug),
    scenario("masks_come_back_at_the_end", kernel, crash::end),
    scenario("masks_come_back_by_restore_after_a_crash", kernel, crash::restored),
    scenario("a_second_manager_learns_of_the_first_and_is_left_alone", whole, serving::second),
    scenario("programs_are_managed_on_without_their_starter", whole, serving::orphaned),
    scenario("births_are_reported_by_the_proc_connector", kernel, enrolment::connector),
    scenario("births_are_found_in_proc", whole, enrolment::scan),
    scenario("a_cpu_goes_offline_and_comes_back", kernel, cpus::hotplug),
    scenario("a_daemon_places_what_clients_hand_over_and_attach", kernel, daemon::clients),
    scenario("a_daemon_that_was_killed_manages_again_what_lives", kernel, daemon::killed),
    scenario("a_daemon_follows_cpus_that_go_offline_and_come_back", kernel, daemon::hotplug),
    scenario("a_cpuset_shrinks_and_grows", whole, cpuset::shrinks),
    scenario("a_cpuset_outside_of_the_namespace_shrinks_and_grows", whole, cpuset::shrinks_outside),
    scenario("an_isolated_partition_takes_a_core_and_gives_it_back", whole, cpuset::isolated),
    scenario("each_kind_of_rule_matches_pods", whole, pods::matched),
    scenario("a_latency_pod_shares_no_core_with_batch_pods", whole, pods::latency),
    scenario("a_pod_follows_its_cpuset_each_time_and_is_released", with_pods, resized::many_times),
    scenario("a_program_is_frozen_and_thawed", whole, trouble::frozen),
    scenario("one_of_several_runs_out_of_memory", whole, trouble::out_of_memory),
    scenario("the_clock_jumps", whole, trouble::clock_jumps),
    scenario("an_ordinary_user_manages_his_programs", whole, trouble::no_privilege),
];

/// As init, one scenario, or a worker of one.
pub fn main(arguments: &[String]) {
    match arguments {
        [role, name] if role == "scenario" => {
            let scenario = SCENARIOS.iter().find(|s| s.name == name).expect("a scenario");
            let given = std::fs::read(given::FILE).expect("what was given");
            (scenario.play)(&serde_json::from_slice(&given).expect("JSON"));
        }
        [role, rest @ ..] if role == workers::WORKER => workers::main(rest),
        _ => init::main(),
    }
}

/// Ends a scenario that this kernel has no means for.
fn skip(why: &str) -> ! {
    println!("{why}");
    std::process::exit(SKIPPED)
}
