//! Metrics of the daemon, for Prometheus.
//!
//! # Problem
//! A machine's operator wants to see over weeks what Symbiont does and costs, next to everything else
//! that is monitored, and be warned. Monitoring that fails must not touch the programs.
//!
//! # Approach
//! [`Metrics::observe`] takes over, after each step of the loop, what the loop counted; once a second
//! the text format (version 0.0.4) is made of it and given to a [`Publisher`], a thread that writes
//! the file and answers the ports. So neither a hung file system nor a slow client holds up the loop.
//!
//! # Terms and units
//! Names begin with `symbiont_`; times are seconds, sizes bytes, slowdowns time together / time alone.
//! Counters count since the start of the daemon. Nothing is labelled by thread, process or program:
//! the number of series does not grow with what runs. Where it is asked for, pods have series ([`pods`]), which are
//! bounded.
//!
//! # Properties
//! - Moves are counted under the policy that made them (`moves_are_counted_by_policy_and_outcome`).
//! - A slowdown that is not known adds nothing (`slowdowns_that_are_not_known_are_absent`).
//! - A reader sees a whole file at any time (`a_reader_never_sees_a_part_of_the_file`), and none when
//!   the daemon has ended (`the_file_goes_with_the_publisher`).
//! - A slow client delays no step (`a_slow_client_is_cut_off`); trouble is reported and ends with its
//!   cause (`trouble_with_the_file_ends_with_its_cause`, `a_busy_port_is_tried_again`).

mod http;
mod pods;
mod publisher;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use symbiont_wire::KernelScheduler;
use symbiont_wire::jobs::NodeJobs;

use crate::config::MetricsConfig;
use pods::PodMetrics;
pub use pods::{OfPod, PodFigures, Pods};
pub use publisher::{Published, Publisher};

/// How often the figures are published at most.
const PAUSE: Duration = Duration::from_secs(1);
/// Bounds of the buckets of slowdowns.
const SLOWDOWNS: [f64; 12] = [1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 3.0, 5.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPolicy {
    policy: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfMove {
    policy: String,
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    policy: String,
    outcome: String,
    reason: String,
}

/// What the loop counted since the start, and what there is now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Moves by outcome.
    pub moves: BTreeMap<String, u64>,
    /// Why moves were refused or withheld, by outcome.
    pub reasons: BTreeMap<String, BTreeMap<String, u64>>,
    /// Programs of class latency that wait for their CPUs.
    pub waiting: usize,
    /// Programs that their quota of CPU time stops.
    pub throttled: usize,
    /// Quanta.
    pub quanta: u64,
    /// Quanta that began after the end of the next one.
    pub quanta_late: u64,
    /// Threads seen.
    pub threads_seen: u64,
    /// Times that the kernel said that the connector's buffer was full.
    pub overruns: u64,
    /// Reports of the connector that are missing.
    pub missing: u64,
    /// Complete scans of /proc that made losses good.
    pub rescans: u64,
    /// Reads of single threads that failed although the thread was there.
    pub unreadable: u64,
    /// What the scheduler in the kernel did; nothing where there is none.
    pub scheduler: KernelScheduler,
    /// Living programs, threads, and threads that are kept on chosen hardware threads.
    pub programs: usize,
    pub threads: usize,
    pub placed: usize,
    /// Of these: with a mask of ours that stays.
    pub held: usize,
    /// Threads that the kernel moves away from where they are nudged.
    pub strayed: usize,
    /// Hardware threads that are online.
    pub hardware_threads: usize,
    /// Period of the loop.
    pub quantum: Duration,
    /// Clients that are connected.
    pub connections: usize,
}

/// What the daemon's process costs; read only when it is published.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Own {
    /// CPU time since its start.
    pub cpu: Duration,
    /// Resident memory now, bytes.
    pub resident_bytes: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
}

/// Slowdowns of the threads that were placed in a quantum, where they are known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slowdowns {
    /// As the policy predicts them for the next quantum.
    pub predicted: Vec<f64>,
    /// Slowdowns as they were estimated for the last quantum.
    pub achieved: Vec<f64>,
}

type Slowdown = Family<OfPolicy, Histogram, fn() -> Histogram>;

/// All metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    moves: Family<OfMove, Counter>,
    moves_before: BTreeMap<String, u64>,
    reasons: Family<OfReason, Counter>,
    reasons_before: BTreeMap<(String, String), u64>,
    predicted: Slowdown,
    achieved: Slowdown,
    counters: Counters,
    gauges: Gauges,
    pods: PodMetrics,
    /// Do pods have series of their own?
    shows_pods: bool,
    config: MetricsConfig,
    publisher: Option<Publisher>,
    /// The publisher could not be started.
    trouble: Option<String>,
    /// What hinders publishing, as far as the log says it.
    logged: BTreeSet<String>,
    published: Option<Instant>,
}

#[derive(Debug, Default)]
struct Counters {
    cpu: Counter<f64, AtomicU64>,
    quanta: Counter,
    quanta_late: Counter,
    threads_seen: Counter,
    overruns: Counter,
    missing: Counter,
    rescans: Counter,
    unreadable: Counter,
    dispatches: Counter,
    preemptions: Counter,
    starved: Counter,
    own: Counter<f64, AtomicU64>,
    lent: Counter<f64, AtomicU64>,
}

#[derive(Debug, Default)]
struct Gauges {
    programs: Gauge,
    threads: Gauge,
    placed: Gauge,
    held: Gauge,
    waiting: Gauge,
    throttled: Gauge,
    strayed: Gauge,
    hardware_threads: Gauge,
    quantum: Gauge<f64, AtomicU64>,
    connections: Gauge,
    resident: Gauge,
    descriptors: Gauge,
}

impl Metrics {
    /// Nothing is counted yet, and nothing published.
    #[must_use]
    pub fn new() -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(SLOWDOWNS);
        let mut metrics = Self {
            registry: Registry::with_prefix("symbiont"),
            moves: Family::default(),
            moves_before: BTreeMap::new(),
            reasons: Family::default(),
            reasons_before: BTreeMap::new(),
            predicted: Family::new_with_constructor(buckets),
            achieved: Family::new_with_constructor(buckets),
            counters: Counters::default(),
            gauges: Gauges::default(),
            pods: PodMetrics::default(),
            shows_pods: false,
            config: MetricsConfig::default(),
            publisher: None,
            trouble: None,
            logged: BTreeSet::new(),
            published: None,
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let (registry, counters, gauges) = (&mut self.registry, &self.counters, &self.gauges);
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of symbiontd", version);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = Gauge::<f64, AtomicU64>::default();
        start.set(since.as_secs_f64());
        let seconds = || Unit::Seconds;
        registry.register_with_unit(
            "start_time",
            "Start of the daemon, Unix time",
            seconds(),
            start,
        );

        registry.register(
            "moves",
            "Moves by policy and outcome; withheld: wanted in a quantum, but not asked for",
            self.moves.clone(),
        );
        registry.register(
            "moves_not_made",
            "Moves that were refused, or withheld in a quantum, by policy, outcome and reason",
            self.reasons.clone(),
        );
        let predicted = "Predicted time together over time alone, each placed thread and quantum";
        registry.register_with_unit(
            "predicted_slowdown",
            predicted,
            Unit::Other("ratio".to_owned()),
            self.predicted.clone(),
        );
        let achieved = "Time together over time alone as measured, each placed thread and quantum";
        registry.register_with_unit(
            "achieved_slowdown",
            achieved,
            Unit::Other("ratio".to_owned()),
            self.achieved.clone(),
        );

        let cpu = "CPU time of the daemon";
        registry.register_with_unit("cpu", cpu, seconds(), counters.cpu.clone());
        for (name, help, counter) in [
            ("quanta", "Rounds of the loop", &counters.quanta),
            (
                "quanta_late",
                "Rounds that began a whole quantum late or later",
                &counters.quanta_late,
            ),
            ("threads_seen", "Threads seen, living or ended", &counters.threads_seen),
            (
                "connector_overruns",
                "Overruns of the process connector's buffer",
                &counters.overruns,
            ),
            (
                "connector_missing_reports",
                "Lost reports of the process connector",
                &counters.missing,
            ),
            ("connector_rescans", "Scans of /proc that made losses good", &counters.rescans),
            ("unreadable_threads", "Failed reads of living threads", &counters.unreadable),
            (
                "scheduler_dispatches",
                "Placed threads put on a CPU by the scheduler in the kernel",
                &counters.dispatches,
            ),
            (
                "scheduler_preemptions",
                "CPUs taken from a thread for another one by the scheduler in the kernel",
                &counters.preemptions,
            ),
            (
                "scheduler_starved",
                "Threads run by the scheduler in the kernel since they had waited too long",
                &counters.starved,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, counter) in [
            (
                "scheduler_own",
                "Time of placed threads where they belong, by the scheduler in the kernel",
                &counters.own,
            ),
            (
                "scheduler_lent",
                "Time of placed threads elsewhere, by the scheduler in the kernel",
                &counters.lent,
            ),
        ] {
            registry.register_with_unit(name, help, seconds(), counter.clone());
        }
        for (name, help, gauge) in [
            ("programs", "Managed programs", &gauges.programs),
            ("threads", "Living threads of managed programs", &gauges.threads),
            ("threads_placed", "Threads kept on chosen hardware threads", &gauges.placed),
            ("threads_held", "Threads kept there by a narrowed mask", &gauges.held),
            (
                "programs_waiting",
                "Programs of class latency that wait for their CPUs, as other threads use them",
                &gauges.waiting,
            ),
            (
                "programs_throttled",
                "Programs that wait as the quota of CPU time of their cgroup is used up",
                &gauges.throttled,
            ),
            (
                "threads_strayed",
                "Threads kept in another way than decided, since the kernel moves them away",
                &gauges.strayed,
            ),
            ("hardware_threads", "Hardware threads that are online", &gauges.hardware_threads),
            ("connections", "Connected clients", &gauges.connections),
            ("open_descriptors", "Open descriptors of the daemon", &gauges.descriptors),
        ] {
            registry.register(name, help, gauge.clone());
        }
        self.pods.register(registry);
        let quantum = "Period of the loop";
        registry.register_with_unit("quantum", quantum, seconds(), gauges.quantum.clone());
        let resident = "Resident memory of the daemon";
        registry.register_with_unit(
            "resident_memory",
            resident,
            Unit::Bytes,
            gauges.resident.clone(),
        );
    }

    /// Publishes where the configuration says from now on; what was counted so far stays.
    pub fn publish_to(&mut self, config: &MetricsConfig) {
        if self.config == *config && self.trouble.is_none() {
            return;
        }
        self.config.clone_from(config);
        // The old one leaves file and port before the new one takes them.
        self.publisher = None;
        self.trouble = None;
        self.logged.clear();
        self.published = None;
        if config.is_empty() {
            return;
        }
        match Publisher::start(config) {
            Ok(publisher) => self.publisher = Some(publisher),
            Err(error) => self.trouble = Some(format!("no metrics are published: {error}")),
        }
    }

    /// Do pods have series of their own from now on?
    pub fn show_pods(&mut self, shows: bool) {
        self.shows_pods = shows;
    }

    /// What hinders publishing; shown by `status`.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let published = self.publisher.as_ref().map(Publisher::trouble).unwrap_or_default();
        self.trouble.iter().cloned().chain(published).collect()
    }

    /// Lines for the log: what hinders publishing since the last call, and what does no longer.
    pub fn news(&mut self) -> Vec<String> {
        let now: BTreeSet<String> = self.notes().into_iter().collect();
        let before = std::mem::replace(&mut self.logged, now);
        let of =
            |line: &String| line.split_once(": ").map_or(line.clone(), |(what, _)| what.into());
        let hindered: BTreeSet<String> = self.logged.iter().map(of).collect();
        let known: BTreeSet<String> = before.iter().map(of).collect();
        // The reason may change while the trouble is the same.
        let begin = self.logged.iter().filter(|line| !known.contains(&of(line))).cloned();
        let end = known.difference(&hindered);
        begin.chain(end.map(|what| format!("over: {what}"))).collect()
    }

    /// Are jobs reported?
    #[must_use]
    pub fn reports_jobs(&self) -> bool {
        self.config.jobs.is_some()
    }

    /// Adds a step of the loop under a policy; publishes once a second, with what `own` reads, and `jobs` and
    /// `pods` report then.
    pub fn observe(
        &mut self,
        policy: &str,
        figures: &Figures,
        slowdowns: &Slowdowns,
        own: impl FnOnce() -> Own,
        jobs: impl FnOnce() -> NodeJobs,
        pods: impl FnOnce() -> Pods,
    ) {
        self.count(policy, figures, slowdowns);
        let Some(publisher) = &self.publisher else { return };
        if self.published.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.published = Some(Instant::now());
        self.measure_own(own());
        self.pods.set(&if self.shows_pods { pods() } else { Pods::new() });
        // Numbers that are finite can be written.
        let text = || serde_json::to_string(&jobs()).unwrap_or_default();
        let jobs = if self.reports_jobs() { text() } else { String::new() };
        publisher.publish(Published { metrics: self.text(), jobs });
    }

    fn count(&mut self, policy: &str, figures: &Figures, slowdowns: &Slowdowns) {
        for (outcome, count) in &figures.moves {
            let before = self.moves_before.insert(outcome.clone(), *count).unwrap_or(0);
            let of = OfMove { policy: policy.to_owned(), outcome: outcome.clone() };
            // Also of none: a series that begins at 0 shows its first increase.
            self.moves.get_or_create(&of).inc_by(count.saturating_sub(before));
        }
        for (outcome, reasons) in &figures.reasons {
            for (reason, count) in reasons {
                let key = (outcome.clone(), reason.clone());
                let before = self.reasons_before.insert(key, *count).unwrap_or(0);
                let of = OfReason {
                    policy: policy.to_owned(),
                    outcome: outcome.clone(),
                    reason: reason.clone(),
                };
                self.reasons.get_or_create(&of).inc_by(count.saturating_sub(before));
            }
        }
        for (family, values) in
            [(&self.predicted, &slowdowns.predicted), (&self.achieved, &slowdowns.achieved)]
        {
            if let Some((first, rest)) = values.split_first() {
                let of_policy = family.get_or_create_owned(&OfPolicy { policy: policy.to_owned() });
                of_policy.observe(*first);
                rest.iter().for_each(|value| of_policy.observe(*value));
            }
        }
        let counters = &self.counters;
        for (counter, total) in [
            (&counters.quanta, figures.quanta),
            (&counters.quanta_late, figures.quanta_late),
            (&counters.threads_seen, figures.threads_seen),
            (&counters.overruns, figures.overruns),
            (&counters.missing, figures.missing),
            (&counters.rescans, figures.rescans),
            (&counters.unreadable, figures.unreadable),
            (&counters.dispatches, figures.scheduler.dispatches),
            (&counters.preemptions, figures.scheduler.preemptions),
            (&counters.starved, figures.scheduler.starved),
        ] {
            counter.inc_by(total.saturating_sub(counter.get()));
        }
        for (counter, total) in
            [(&counters.own, figures.scheduler.own_s), (&counters.lent, figures.scheduler.lent_s)]
        {
            counter.inc_by((total - counter.get()).max(0.0));
        }
        let gauges = &self.gauges;
        for (gauge, value) in [
            (&gauges.programs, figures.programs),
            (&gauges.threads, figures.threads),
            (&gauges.placed, figures.placed),
            (&gauges.held, figures.held),
            (&gauges.waiting, figures.waiting),
            (&gauges.throttled, figures.throttled),
            (&gauges.strayed, figures.strayed),
            (&gauges.hardware_threads, figures.hardware_threads),
            (&gauges.connections, figures.connections),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        gauges.quantum.set(figures.quantum.as_secs_f64());
    }

    fn measure_own(&self, own: Own) {
        let cpu = &self.counters.cpu;
        cpu.inc_by((own.cpu.as_secs_f64() - cpu.get()).max(0.0));
        let set = |gauge: &Gauge, value: Option<u64>| {
            // What cannot be read keeps its last value, which is not far off.
            value.and_then(|value| i64::try_from(value).ok()).map(|value| gauge.set(value))
        };
        set(&self.gauges.resident, own.resident_bytes);
        set(&self.gauges.descriptors, own.descriptors);
    }

    /// All metrics in the text format.
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

impl Own {
    /// Of this process now, whose CPU time is known already.
    #[must_use]
    pub fn read(cpu: Duration) -> Self {
        let statm = procfs::process::Process::myself().and_then(|me| me.statm()).ok();
        let page = rustix::param::page_size() as u64;
        Self {
            cpu,
            resident_bytes: statm.map(|statm| statm.resident * page),
            descriptors: open_descriptors(),
        }
    }
}

/// Open descriptors of this process; Linux 6.2 says how many they are, before they are counted.
fn open_descriptors() -> Option<u64> {
    let folder = "/proc/self/fd";
    match std::fs::metadata(folder).ok()?.len() {
        // The one that reads the folder is not counted.
        0 => Some((std::fs::read_dir(folder).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

#[cfg(test)]
mod tests;
