//! What the service counts, as a file for the textfile collector of Prometheus' node exporter.
//!
//! Counts are plain fields; the text is made of them by the library that the daemon uses, too. Names begin with
//! `symbiont_slurm_`; times are seconds; counters count since the service began. Only releases are labelled, by their
//! reason: the number of series does not grow with the cluster.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use symbiont_safe_open::output;

use crate::FileError;

/// What is known from the daemons of the nodes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct NodeMetrics {
    /// Nodes that answered when they were last asked.
    pub answering: usize,
    /// Programs whose CPI stacks are known.
    pub programs: usize,
    /// Pairs of programs of which it is known how they share a core.
    pub pairs: usize,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Jobs that wait for Symbiont.
    pub waiting: usize,
    /// The longest wait of these, seconds.
    pub longest_wait_s: f64,
    /// Released jobs, by reason.
    pub released: BTreeMap<&'static str, u64>,
    /// Jobs that were given back to Slurm.
    pub given_back: u64,
    /// Runs that were learnt from.
    pub learnt: u64,
    /// Calls of Slurm that failed.
    pub errors: u64,
    /// How long the last look at the queue took, seconds.
    pub took_s: f64,
    /// What the nodes say, where they are asked.
    pub nodes: Option<NodeMetrics>,
}

impl Metrics {
    /// Replaces the file as a whole.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        output::replace_by(path, 0o644, self.text().as_bytes())
            .map_err(FileError::io("write metrics to", path))
    }

    /// All metrics in the text format (version 0.0.4).
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, &self.registry());
        text
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("symbiont_slurm");
        let all = &mut registry;
        gauge(all, "waiting_jobs", "Jobs that wait for Symbiont", self.waiting);
        seconds(all, "longest_wait", "Longest wait of these", self.longest_wait_s);
        let released = Family::<[(&'static str, &'static str); 1], Counter>::default();
        for (reason, count) in &self.released {
            released.get_or_create(&[("reason", *reason)]).inc_by(*count);
        }
        all.register("released_jobs", "Jobs that were released", released);
        counter(all, "given_back_jobs", "Jobs that were given back to Slurm", self.given_back);
        counter(all, "learnt_runs", "Runs that were learnt from", self.learnt);
        counter(all, "errors", "Calls of Slurm that failed", self.errors);
        seconds(all, "look", "How long the last look at the queue took", self.took_s);
        if let Some(NodeMetrics { answering, programs, pairs }) = self.nodes {
            let help = "Nodes whose daemon answered when it was asked last";
            gauge(all, "answering_nodes", help, answering);
            let help = "Programs whose CPI stacks are known";
            gauge(all, "stacks_known_programs", help, programs);
            let help = "Pairs of programs of which it is known how they share a core";
            gauge(all, "cores_known_pairs", help, pairs);
        }
        registry
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: usize) {
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}

fn seconds(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(value);
    registry.register_with_unit(name, help, Unit::Seconds, gauge);
}

fn counter(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_its_type_and_value() {
        let released = [("first", 3), ("partner", 2)].into();
        let metrics = Metrics { waiting: 4, released, took_s: 0.25, ..Metrics::default() };
        assert!(!metrics.text().contains("nodes"));
        let nodes = Some(NodeMetrics { answering: 3, programs: 5, pairs: 7 });
        let text = Metrics { nodes, ..metrics }.text();
        for line in [
            "symbiont_slurm_answering_nodes 3\n",
            "symbiont_slurm_stacks_known_programs 5\n",
            "symbiont_slurm_cores_known_pairs 7\n",
            "# HELP symbiont_slurm_waiting_jobs Jobs that wait for Symbiont.\n\
             # TYPE symbiont_slurm_waiting_jobs gauge\nsymbiont_slurm_waiting_jobs 4\n",
            "symbiont_slurm_released_jobs_total{reason=\"partner\"} 2\n",
            "# TYPE symbiont_slurm_given_back_jobs_total counter\nsymbiont_slurm_given_back_jobs_total 0\n",
            "symbiont_slurm_learnt_runs_total 0\n",
            "symbiont_slurm_errors_total 0\n",
            "symbiont_slurm_longest_wait_seconds 0.0\n",
            "symbiont_slurm_look_seconds 0.25\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
