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

/// A server of lines: one way of the memory of a node or of a link, or both ways together.
#[derive(Debug, Default)]
struct Server {
    bandwidth: f64,
    /// Traffic of each thread.
    traffic: Vec<f64>,
    offers: Vec<f64>,
    total: f64,
}

impl Server {
    fn new(bandwidth: f64, traffic: Vec<f64>, wants: &[f64]) -> Self {
        let mut shares = vec![0.0; wants.len()];
        offers(bandwidth, wants, 1.0, &mut shares);
        let total = traffic.iter().sum();
        Self { bandwidth, traffic, offers: shares, total }
    }

    /// The share of time for which others keep it busy.
    fn busy(&self, thread: usize) -> f64 {
        ((self.total - self.traffic[thread]) / self.bandwidth).clamp(0.0, BUSIEST)
    }
}

/// Mean wait of a request of so many bytes, others keeping the server busy.
fn wait(bytes: f64, bandwidth: f64, busy: f64) -> f64 {
    bytes / bandwidth * busy / (2.0 * (1.0 - busy))
}

/// The memory of a node, or a link: what is read, what is written, and both.
#[derive(Debug)]
struct Ways {
    ways: [Server; 3],
}

impl Ways {
    /// Ns between two lines that it grants a thread, which writes back `written` of them.
    fn interval(&self, thread: usize, line: f64, written: f64) -> f64 {
        let bytes = [line, line * written, line * (1.0 + written)];
        let each = self.ways.iter().zip(bytes).map(|(way, bytes)| match bytes {
            0.0 => 0.0,
            bytes => bytes / way.offers[thread],
        });
        each.fold(0.0, f64::max)
    }

    fn busy(&self, thread: usize) -> f64 {
        self.ways.iter().map(|way| way.busy(thread)).fold(0.0, f64::max)
    }
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
    let nodes = physics.nodes.len();
    let place = &physics.memory;
    let wants: Vec<f64> = (0..tasks.len()).map(|i| wanted(traffic[i], used[i])).collect();
    let server = |bandwidth: f64, part: &dyn Fn(&Task<'_>) -> f64| {
        let parts: Vec<f64> = tasks.iter().map(part).collect();
        let by_part =
            |all: &[f64]| all.iter().zip(&parts).map(|(all, part)| all * part).collect::<Vec<_>>();
        Server::new(bandwidth, by_part(traffic), &by_part(&wants))
    };
    let (mut memories, mut links): (Vec<Option<Ways>>, _) = (Vec::new(), Vec::new());
    if !private {
        let ways = |[read, write, total]: [f64; 3], part: &dyn Fn(&Task<'_>) -> f64| Ways {
            ways: [
                server(read, part),
                server(write, &|task| part(task) * task.facts.written),
                server(total, &|task| part(task) * (1.0 + task.facts.written)),
            ],
        };
        let all = [place.read, place.write, place.total];
        // Memory and links that nobody uses are not looked at.
        let met = |part: &dyn Fn(&Task<'_>) -> f64| tasks.iter().any(|task| part(task) > 0.0);
        memories = (0..nodes)
            .map(|node| {
                let part = |task: &Task<'_>| share(task, node);
                met(&part).then(|| ways(all, &part))
            })
            .collect();
        for a in 0..nodes {
            for b in a + 1..nodes {
                let crosses = |task: &Task<'_>| match task.node {
                    home if home == a => share(task, b),
                    home if home == b => share(task, a),
                    _ => 0.0,
                };
                if met(&crosses) {
                    let all = [place.link, place.link_write, place.link + place.link_write];
                    links.push(((a, b), ways(all, &crosses)));
                }
            }
        }
    }
    for (index, (task, environment)) in tasks.iter().zip(environments).enumerate() {
        let line = f64::from(task.pipeline.line);
        let written = task.facts.written;
        let (mut latency, mut interval) = (0.0, 0.0_f64);
        for node in 0..nodes {
            let part = share(task, node);
            if part <= 0.0 {
                continue;
            }
            let remote = node != task.node;
            let mut one = place.latency * if remote { place.remote } else { 1.0 };
            let mut between = place.interval(line, written);
            if let Some(Some(memory)) = memories.get(node) {
                one += wait(line, place.read, memory.busy(index));
                between = memory.interval(index, line, written);
            }
            if remote {
                between = between.max(place.link_interval(line, written));
                let pair = (node.min(task.node), node.max(task.node));
                if let Some((_, link)) = links.iter().find(|(ends, _)| *ends == pair) {
                    one += wait(line, place.link, link.busy(index));
                    between = between.max(link.interval(index, line, written));
                }
            }
            latency += part * one;
            interval = interval.max(part * between);
        }
        environment.memory_latency = latency * task.ghz;
        environment.memory_interval = interval * task.ghz;
    }
}
