//! Memory and the links between nodes: bandwidth and queueing.
//!
//! # Approach
//! The memory of a node is a server of lines with three limits: reads, writes, and both together; so is
//! the link between two nodes. A thread's request waits for those of the others, at the busiest limit, as
//! in an M/D/1 queue: S·ρ/(2(1 − ρ)), with S the time of one line and ρ the share of time for which others
//! keep the server busy; a thread's own requests queue in the window model. Bandwidth is shared max-min
//! fairly ([`max_min_fair`]): a thread that wants more than its offer gets its requests granted at that
//! rate. What a thread takes is its demand only while that is less than its offer; one that takes nearly
//! all of it is assumed to want much more ([`wanted`]). Otherwise all threads would reach for
//! what none of them takes yet, and oscillate.
//!
//! # Terms and units
//! Traffic: 10⁹ bytes per second. Times: ns.

use std::ops::Range;

use super::domains::{BUSIEST, Physics};
use super::max_min_fair;
use super::pipeline::Environment;
use super::tasks::Task;

/// Mean wait of a request of so many bytes, others keeping the server busy.
fn wait(bytes: f64, bandwidth: f64, busy: f64) -> f64 {
    bytes / bandwidth * busy / (2.0 * (1.0 - busy))
}

/// The demand of a thread that takes `taken`, which is the share `used` of what it was
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

/// Memory as a thread sees it alone: latency, and time between two lines, ns.
pub fn alone(physics: &Physics, task: &Task<'_>) -> (f64, f64) {
    let place = &physics.memory;
    let (line, written) = (f64::from(task.pipeline.line), task.facts.written);
    let (mut latency, mut interval) = (0.0, 0.0_f64);
    for node in 0..physics.nodes.len() {
        let part = share(task, node);
        if part <= 0.0 {
            continue;
        }
        let near = node == task.node;
        let far = if near { 0.0 } else { place.link_interval(line, written) };
        latency += part * place.latency * if near { 1.0 } else { place.remote };
        interval = interval.max(part * place.interval(line, written).max(far));
    }
    (latency, interval)
}

/// A thread at a server.
#[derive(Debug, Clone, Copy, PartialEq)]
struct User {
    task: usize,
    /// The share of its requests that goes there.
    part: f64,
    /// Bytes of a line.
    line: f64,
    /// Of each line that is fetched, so much is written back.
    written: f64,
}

impl User {
    /// Of each byte that it fetches in all, so many go this way there.
    fn bytes(&self, way: usize) -> f64 {
        let bytes = match way {
            0 => 1.0,
            1 => self.written,
            _ => 1.0 + self.written,
        };
        self.part * bytes
    }
}

/// A node's memory, or a link.
#[derive(Debug, Clone, PartialEq)]
struct Server {
    /// Limits of reads, writes, and both together.
    ways: [f64; 3],
    users: Range<usize>,
}

/// Memory and links as the threads use them; its buffers are reused from call to call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// Those that are in use.
    servers: Vec<Server>,
    users: Vec<User>,
    /// What each thread sees alone: latency and interval, ns.
    alone: Vec<(f64, f64)>,
    /// What each sees.
    met: Vec<(f64, f64)>,
    wants: Vec<f64>,
    demands: Vec<f64>,
    offers: Vec<f64>,
    /// The share of time for which others keep a server busy.
    busy: Vec<f64>,
}

impl Memory {
    /// Which threads use what. With `private` each thread is alone.
    pub fn lay_out(&mut self, physics: &Physics, tasks: &[Task<'_>], private: bool) {
        self.servers.clear();
        self.users.clear();
        self.alone.clear();
        self.alone.extend(tasks.iter().map(|task| alone(physics, task)));
        if private {
            return;
        }
        let (nodes, place) = (physics.nodes.len(), &physics.memory);
        for node in 0..nodes {
            self.add([place.read, place.write, place.total], tasks, |task| share(task, node));
        }
        for a in 0..nodes {
            for b in a + 1..nodes {
                let crosses = |task: &Task<'_>| match task.node {
                    home if home == a => share(task, b),
                    home if home == b => share(task, a),
                    _ => 0.0,
                };
                let both = place.link + place.link_write;
                self.add([place.link, place.link_write, both], tasks, crosses);
            }
        }
    }

    /// A thread is in another phase than when all was laid out: it may write back more or less.
    pub fn change(&mut self, physics: &Physics, index: usize, task: &Task<'_>) {
        self.alone[index] = alone(physics, task);
        for user in self.users.iter_mut().filter(|user| user.task == index) {
            user.written = task.facts.written;
        }
    }

    /// Adds a server, where `part` of each thread's requests goes.
    fn add(&mut self, ways: [f64; 3], tasks: &[Task<'_>], part: impl Fn(&Task<'_>) -> f64) {
        let start = self.users.len();
        for (index, task) in tasks.iter().enumerate() {
            let part = part(task);
            if part > 0.0 {
                let (line, written) = (f64::from(task.pipeline.line), task.facts.written);
                self.users.push(User { task: index, part, line, written });
            }
        }
        if self.users.len() > start {
            self.servers.push(Server { ways, users: start..self.users.len() });
        }
    }

    /// Sets latency and interval of memory, from what each thread fetches (`traffic`) and the share
    /// that it takes of what it is offered (`used`).
    pub fn set(
        &mut self,
        tasks: &[Task<'_>],
        traffic: &[f64],
        used: &[f64],
        environments: &mut [Environment],
    ) {
        let Self { servers, users, alone, met, wants, demands, offers, busy } = self;
        wants.clear();
        wants.extend(traffic.iter().zip(used).map(|(taken, used)| wanted(*taken, *used)));
        met.clone_from(alone);
        for server in servers {
            let users = &users[server.users.clone()];
            offers.resize(users.len(), 0.0);
            busy.clear();
            busy.resize(users.len(), 0.0);
            for (way, bandwidth) in server.ways.into_iter().enumerate() {
                demands.clear();
                demands.extend(users.iter().map(|user| wants[user.task] * user.bytes(way)));
                let takes = |user: &User| traffic[user.task] * user.bytes(way);
                let total: f64 = users.iter().map(takes).sum();
                max_min_fair::offers(bandwidth, demands, offers);
                for ((user, busy), offer) in users.iter().zip(&mut *busy).zip(&*offers) {
                    let others = (total - takes(user)) / bandwidth;
                    *busy = busy.max(others.clamp(0.0, BUSIEST));
                    let bytes = user.line * user.bytes(way);
                    if bytes > 0.0 {
                        let interval = &mut met[user.task].1;
                        *interval = interval.max(bytes / offer);
                    }
                }
            }
            for (user, busy) in users.iter().zip(&*busy) {
                met[user.task].0 += user.part * wait(user.line, server.ways[0], *busy);
            }
        }
        let meet = tasks.iter().zip(environments).zip(&*met);
        for ((task, environment), (latency, interval)) in meet {
            environment.memory_latency = *latency * task.ghz;
            environment.memory_interval = *interval * task.ghz;
        }
    }
}
