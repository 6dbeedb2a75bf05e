//! Metrics for the textfile collector of Prometheus' node exporter.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use symbiont_safe_open::output;

/// What is known from the daemons of nodes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct NodeMetrics {
    /// Nodes that answered when they were asked last.
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
    /// How long the last look took, seconds.
    pub took_s: f64,
    /// Where nodes are asked.
    pub nodes: Option<NodeMetrics>,
}

impl Metrics {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "# HELP symbiont_slurm_{name} {help}\n# TYPE symbiont_slurm_{name} {kind}"
            );
            for (labels, value) in values {
                let _ = writeln!(text, "symbiont_slurm_{name}{labels} {value}");
            }
        };
        let one = |value: f64| vec![(String::new(), value)];
        let released =
            |(reason, count): (&&str, &u64)| (format!("{{reason=\"{reason}\"}}"), *count as f64);
        let released: Vec<_> = self.released.iter().map(released).collect();
        add("waiting_jobs", "gauge", "Jobs that wait for Symbiont.", &one(self.waiting as f64));
        add("longest_wait_seconds", "gauge", "Longest wait of these.", &one(self.longest_wait_s));
        add("released_jobs_total", "counter", "Jobs that were released.", &released);
        add(
            "given_back_jobs_total",
            "counter",
            "Jobs that were given back to Slurm.",
            &one(self.given_back as f64),
        );
        add(
            "learnt_runs_total",
            "counter",
            "Runs that were learnt from.",
            &one(self.learnt as f64),
        );
        add("errors_total", "counter", "Calls of Slurm that failed.", &one(self.errors as f64));
        add(
            "look_seconds",
            "gauge",
            "How long the last look at the queue took.",
            &one(self.took_s),
        );
        if let Some(NodeMetrics { answering, programs, pairs }) = self.nodes {
            let help = "Nodes whose daemon answered when it was asked last.";
            add("answering_nodes", "gauge", help, &one(answering as f64));
            let help = "Programs whose CPI stacks are known.";
            add("stacks_known_programs", "gauge", help, &one(programs as f64));
            let help = "Pairs of programs of which it is known how they share a core.";
            add("cores_known_pairs", "gauge", help, &one(pairs as f64));
        }
        text
    }

    /// Replaces the file as a whole.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        output::replace_by(path, 0o644, self.text().as_bytes())
            .with_context(|| format!("cannot write metrics to {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_its_type_and_value() {
        let released = [("first", 3), ("partner", 2)].into();
        let metrics = Metrics { waiting: 4, released, ..Metrics::default() };
        assert!(!metrics.text().contains("nodes"));
        let nodes = Some(NodeMetrics { answering: 3, programs: 5, pairs: 7 });
        let text = Metrics { nodes, ..metrics }.text();
        assert!(text.contains("symbiont_slurm_answering_nodes 3\n"), "{text}");
        assert!(text.contains("symbiont_slurm_stacks_known_programs 5\n"), "{text}");
        assert!(text.contains("symbiont_slurm_cores_known_pairs 7\n"), "{text}");
        assert!(
            text.contains(
                "# TYPE symbiont_slurm_waiting_jobs gauge\nsymbiont_slurm_waiting_jobs 4\n"
            )
        );
        assert!(text.contains("symbiont_slurm_released_jobs_total{reason=\"partner\"} 2\n"));
    }
}
