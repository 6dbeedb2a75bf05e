//! Memory and the links between nodes: bandwidth and queueing.
//!
//! # Approach
//! A node's memory is a server of lines: it reads so much, writes so much, and both together
//! so much, each a limit of its own; so is the link between two nodes. Its
//! queue, that of the busiest limit, as a thread finds it is made by the others only: S·ρ/(2(1 − ρ)), S the
//! time of one line, ρ the share of time that others keep it busy (M/D/1); a
//! thread's own requests queue in the window model. Bandwidth is shared max-min: a
//! thread that wants more than it is offered gets its requests granted at that rate.
//! What a thread takes tells what it wants only while it takes less than it was offered; one that
//! takes nearly all is taken to want much more ([`wanted`]), or all would
//! reach for what none of them takes yet, and swing.
//!
//! # Terms and units
//! Traffic: 10⁹ bytes per second. Times: ns.

use super::domains::{BUSIEST, Physics};
use super::pipeline::Environment;
use super::shares::offers;
use super::tasks::Task;

/// Mean wait of a request of so many bytes, others keeping the server busy.
fn wait(bytes: f64, bandwidth: f64, busy: f64) -> f64 {
    bytes / bandwidth * busy / (2.0 * (1.0 - busy))
}

/// What a thread wants that takes `taken`, and so the share `used` of what it was
/// offered.
#[must_use]
pub fn wanted(taken: f64, used: f64) -> f64 {
    let near = ((used - 0.8) / 0.2).clamp(0.0, 1.0);
    taken / (1.0 - near * near).max(0.05)
}

/// The share of a thread's pages on a node.
pub fn share(task: &Task<'_>, node: usize) -> f64 {
    let sum: f64 = task.pages.iter().sum();
    if sum > 0.0 {
        task.pages.get(node).copied().unwrap_or(0.0) / sum
    } else {
        f64::from(u8::from(node == task.home))
    }
}

/// Memory and links, as the threads meet them one after the other.
struct Servers<'a> {
    tasks: &'a [Task<'a>],
    traffic: &'a [f64],
    wants: Vec<f64>,
    /// Of each thread's requests, the share that goes to the server that is looked at.
    parts: Vec<f64>,
    demands: Vec<f64>,
    offers: Vec<f64>,
    /// The share of time for which others keep it busy.
    busy: Vec<f64>,
    /// Of a request of each thread, ns; and between two of them.
    latency: Vec<f64>,
    interval: Vec<f64>,
}

impl Servers<'_> {
    /// Adds what threads meet at a server. `ways`: what it reads, writes, and does of both at most;
    /// `part` of each thread's requests goes there.
    fn meet(&mut self, ways: [f64; 3], part: impl Fn(&Task<'_>) -> f64) {
        self.parts.clear();
        self.parts.extend(self.tasks.iter().map(part));
        // Memory and links that nobody uses are not looked at.
        if self.parts.iter().all(|part| *part <= 0.0) {
            return;
        }
        self.busy.fill(0.0);
        for (way, bandwidth) in ways.into_iter().enumerate() {
            // Of each byte that is fetched, so many go this way.
            let bytes = |index: usize| match way {
                0 => 1.0,
                1 => self.tasks[index].facts.written,
                _ => 1.0 + self.tasks[index].facts.written,
            };
            let here = |index: usize| self.parts[index] * bytes(index);
            self.demands.clear();
            self.demands.extend((0..self.tasks.len()).map(|i| self.wants[i] * here(i)));
            let total: f64 = (0..self.tasks.len()).map(|i| self.traffic[i] * here(i)).sum();
            offers(bandwidth, &self.demands, &mut self.offers);
            for (index, task) in self.tasks.iter().enumerate() {
                let others = total - self.traffic[index] * here(index);
                let busy = (others / bandwidth).clamp(0.0, BUSIEST);
                self.busy[index] = self.busy[index].max(busy);
                let bytes = f64::from(task.pipeline.line) * here(index);
                if bytes > 0.0 {
                    self.interval[index] = self.interval[index].max(bytes / self.offers[index]);
                }
            }
        }
        for (index, task) in self.tasks.iter().enumerate() {
            let wait = wait(f64::from(task.pipeline.line), ways[0], self.busy[index]);
            self.latency[index] += self.parts[index] * wait;
        }
    }
}

/// Sets latency and interval of memory, from the lines that each thread fetches (`traffic`) and
/// the share that it takes of what it is offered (`used`).
pub fn set(
    physics: &Physics,
    tasks: &[Task<'_>],
    traffic: &[f64],
    used: &[f64],
    private: bool,
    environments: &mut [Environment],
) {
    let (nodes, count) = (physics.nodes.len(), tasks.len());
    let place = &physics.memory;
    let mut servers = Servers {
        tasks,
        traffic,
        wants: traffic.iter().zip(used).map(|(taken, used)| wanted(*taken, *used)).collect(),
        parts: Vec::with_capacity(count),
        demands: Vec::with_capacity(count),
        offers: vec![0.0; count],
        busy: vec![0.0; count],
        latency: vec![0.0; count],
        interval: vec![0.0; count],
    };
    // As if nobody else were there.
    for (index, task) in tasks.iter().enumerate() {
        let (line, written) = (f64::from(task.pipeline.line), task.facts.written);
        for node in 0..nodes {
            let part = share(task, node);
            if part <= 0.0 {
                continue;
            }
            let mut between = place.interval(line, written);
            let mut latency = place.latency;
            if node != task.node {
                between = between.max(place.link_interval(line, written));
                latency *= place.remote;
            }
            servers.latency[index] += part * latency;
            servers.interval[index] = servers.interval[index].max(part * between);
        }
    }
    if !private {
        for node in 0..nodes {
            servers.meet([place.read, place.write, place.total], |task| share(task, node));
        }
        for a in 0..nodes {
            for b in a + 1..nodes {
                let crosses = |task: &Task<'_>| match task.node {
                    home if home == a => share(task, b),
                    home if home == b => share(task, a),
                    _ => 0.0,
                };
                let both = place.link + place.link_write;
                servers.meet([place.link, place.link_write, both], crosses);
            }
        }
    }
    let found = servers.latency.iter().zip(&servers.interval);
    for ((task, environment), (latency, interval)) in tasks.iter().zip(environments).zip(found) {
        environment.memory_latency = latency * task.ghz;
        environment.memory_interval = interval * task.ghz;
    }
}
