//! What pods have managed, a series each.
//!
//! # Problem
//! Which pods wait or are stopped by their quota is what the operator of a node asks; but each pod is a series of each
//! metric, pods come and go, and their names are chosen by others.
//!
//! # Approach
//! Made anew each time: a pod that is gone has no series any more. [`MOST_PODS`] pods, by name, have their own; the
//! others are counted as one, which is called [`OTHERS`]. Of names only characters stay that a pod can have.
//!
//! # Properties
//! - A pod that is gone is gone from the metrics (`a_pod_that_is_gone_has_no_series`).
//! - However many pods there are, series are bounded and nothing is lost (`series_are_bounded_and_nothing_is_lost`).
//! - A name cannot be more than a name (`names_are_cleaned`).

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Pods with series of their own.
pub const MOST_PODS: usize = 200;
/// The pods beyond; no pod can be called that.
pub const OTHERS: &str = "(others)";
/// Characters of a name.
const MOST_NAME: usize = 253;

/// A pod, by its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct OfPod {
    namespace: String,
    pod: String,
}

/// What a pod has managed now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodFigures {
    /// Programs: its containers, as a rule.
    pub programs: usize,
    /// Living threads.
    pub threads: usize,
    /// Of these: kept on chosen hardware threads.
    pub placed: usize,
    /// Programs of class latency that wait for their CPUs.
    pub waiting: usize,
    /// Programs that their quota of CPU time stops.
    pub throttled: usize,
}

/// The figures of all pods.
pub type Pods = BTreeMap<OfPod, PodFigures>;

impl OfPod {
    /// By the names that state files have.
    #[must_use]
    pub fn new(namespace: &str, pod: &str) -> Self {
        Self { namespace: cleaned(namespace), pod: cleaned(pod) }
    }

    fn others() -> Self {
        Self { namespace: String::new(), pod: OTHERS.to_owned() }
    }
}

impl PodFigures {
    /// Adds those of another program.
    pub fn add(&mut self, other: &Self) {
        self.programs += other.programs;
        self.threads += other.threads;
        self.placed += other.placed;
        self.waiting += other.waiting;
        self.throttled += other.throttled;
    }
}

fn cleaned(name: &str) -> String {
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    name.chars().take(MOST_NAME).map(|c| if is_of_names(c) { c } else { '_' }).collect()
}

type Family1 = Family<OfPod, Gauge>;

/// The series of pods.
#[derive(Debug, Default)]
pub struct PodMetrics {
    programs: Family1,
    threads: Family1,
    placed: Family1,
    waiting: Family1,
    throttled: Family1,
}

impl PodMetrics {
    /// Names them.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, family) in [
            ("pod_programs", "Managed programs of a pod", &self.programs),
            ("pod_threads", "Living threads of managed programs of a pod", &self.threads),
            (
                "pod_threads_placed",
                "Threads of a pod that are kept on chosen hardware threads",
                &self.placed,
            ),
            (
                "pod_programs_waiting",
                "Programs of a pod of class latency that wait for their CPUs, as other threads use them",
                &self.waiting,
            ),
            (
                "pod_programs_throttled",
                "Programs of a pod that wait as the quota of CPU time of their cgroup is used up",
                &self.throttled,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
    }

    /// The figures now, in place of those before.
    pub fn set(&self, pods: &Pods) {
        let families =
            [&self.programs, &self.threads, &self.placed, &self.waiting, &self.throttled];
        families.iter().for_each(|family| family.clear());
        for (of, figures) in &bounded(pods) {
            let PodFigures { programs, threads, placed, waiting, throttled } = *figures;
            let values = [programs, threads, placed, waiting, throttled];
            for (family, value) in families.iter().zip(values) {
                family.get_or_create(of).set(i64::try_from(value).unwrap_or(i64::MAX));
            }
        }
    }
}

fn bounded(pods: &Pods) -> Pods {
    let mut bounded = Pods::new();
    for (at, (of, figures)) in pods.iter().enumerate() {
        let of = if at < MOST_PODS { of.clone() } else { OfPod::others() };
        bounded.entry(of).or_default().add(figures);
    }
    bounded
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;

    use super::*;

    fn text(pods: &[&Pods]) -> String {
        let (metrics, mut registry) = (PodMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        pods.iter().for_each(|pods| metrics.set(pods));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry).unwrap();
        text
    }

    fn of(count: usize) -> Pods {
        let figures = PodFigures { programs: 1, threads: 3, placed: 2, waiting: 0, throttled: 1 };
        (0..count).map(|pod| (OfPod::new("shop", &format!("web-{pod:04}")), figures)).collect()
    }

    #[test]
    fn a_pod_that_is_gone_has_no_series() {
        let before = of(2);
        let after: Pods = before.clone().into_iter().skip(1).collect();
        let both = text(&[&before]);
        assert!(
            both.contains("pod_threads_placed{namespace=\"shop\",pod=\"web-0000\"} 2\n"),
            "{both}"
        );
        let one = text(&[&before, &after]);
        assert!(!one.contains("web-0000"), "{one}");
        assert!(one.contains("pod_programs_throttled{namespace=\"shop\",pod=\"web-0001\"} 1\n"));
    }

    #[test]
    fn series_are_bounded_and_nothing_is_lost() {
        let many = text(&[&of(1000)]);
        let threads = many.lines().filter(|line| line.starts_with("pod_threads{"));
        let values: Vec<usize> =
            threads.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
        assert_eq!((values.len(), values.iter().sum::<usize>()), (MOST_PODS + 1, 3000));
        assert!(many.contains("pod_threads{namespace=\"\",pod=\"(others)\"} 2400\n"));
        assert!(!text(&[&of(MOST_PODS)]).contains(OTHERS));
    }

    #[test]
    fn names_are_cleaned() {
        let hostile = OfPod::new("a\"} 1\nevil{x=\"", &"\u{1b}(others)".repeat(1000));
        let text = text(&[&Pods::from([(hostile, PodFigures::default())])]);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), 5, "{text}");
        assert!(
            samples
                .iter()
                .all(|line| line.contains("{namespace=\"a___1_evil_x__\",pod=\"__others_")),
            "{text}"
        );
        assert!(samples.iter().all(|line| line.len() < 400) && !text.contains('\u{1b}'));
    }
}
