//! Main memory: nodes with bandwidth, and the links between them.
//!
//! # Approach
//! A server grants requests in time slots, one line each: a request gets the first free slot from its arrival
//! on, even if one that is later in program order, or from another core, was granted a later slot before. (A
//! pointer to the next free time would make it wait for those.)
//!
//! # Terms and units
//! Times are nanoseconds.
//!
//! # Properties
//! `grants_keep_to_the_bandwidth`, `an_earlier_request_gets_an_earlier_free_slot`.

use symbiont_sim_fast::description::Memory as Described;

/// Slots ahead that can be reserved.
const SLOTS: u64 = 1 << 13;

/// Grants one request per slot.
#[derive(Debug, Clone)]
struct Server {
    interval: f64,
    /// Number of the slot, plus 1, that was granted last at each place of the ring.
    granted: Vec<u64>,
}

impl Server {
    fn new(bytes: u32, gbps: f64) -> Self {
        Self { interval: f64::from(bytes) / gbps.max(1e-9), granted: vec![0; SLOTS as usize] }
    }

    /// When a request that arrives at `ns` is granted.
    fn grant(&mut self, ns: f64) -> f64 {
        let first = (ns / self.interval + 1e-9) as u64;
        let mut slot = first;
        while slot < first + SLOTS - 1 && self.granted[(slot % SLOTS) as usize] > slot {
            slot += 1;
        }
        self.granted[(slot % SLOTS) as usize] = slot + 1;
        ns.max(slot as f64 * self.interval)
    }
}

/// A node's memory and its link to the others.
#[derive(Debug, Clone)]
struct Node {
    reads: Server,
    writes: Server,
    both: Server,
    link: Server,
    link_writes: Server,
}

/// All nodes.
#[derive(Debug, Clone)]
pub struct Dram {
    nodes: Vec<Node>,
    latency: f64,
    remote: f64,
}

impl Dram {
    /// Memory of so many nodes that moves lines of so many bytes.
    #[must_use]
    pub fn new(memory: &Described, nodes: usize, line: u32) -> Self {
        let server = |gbps| Server::new(line, gbps);
        let node = || Node {
            reads: server(memory.read_gbps),
            writes: server(memory.write_gbps),
            both: server(memory.total_gbps),
            link: server(memory.link_gbps),
            link_writes: server(memory.link_write_gbps),
        };
        Self {
            nodes: std::iter::repeat_with(node).take(nodes.max(1)).collect(),
            latency: memory.latency_ns,
            remote: memory.latency_ns * memory.remote_latency,
        }
    }

    /// Reads a line of node `of` for a core on node `to`, asked for at `ns`: when it
    /// is there.
    pub fn read(&mut self, of: usize, to: usize, ns: f64) -> f64 {
        let Some(node) = self.nodes.get_mut(of) else { return ns + self.latency };
        let granted = node.both.grant(node.reads.grant(ns));
        if of == to { granted + self.latency } else { node.link.grant(granted) + self.remote }
    }

    /// Writes a line back. No thread waits for it.
    pub fn write(&mut self, of: usize, to: usize, ns: f64) {
        let Some(node) = self.nodes.get_mut(of) else { return };
        let at = if of == to { ns } else { node.link_writes.grant(ns) };
        let at = node.writes.grant(at);
        node.both.grant(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_keep_to_the_bandwidth() {
        let mut server = Server::new(64, 6.4);
        let grants: Vec<f64> = (0..5).map(|_| server.grant(0.0)).collect();
        assert_eq!(grants, [0.0, 10.0, 20.0, 30.0, 40.0]);
    }

    #[test]
    fn an_earlier_request_gets_an_earlier_free_slot() {
        let mut server = Server::new(64, 6.4);
        assert_eq!(server.grant(500.0), 500.0);
        assert_eq!(server.grant(20.0), 20.0);
        assert_eq!(server.grant(505.0), 510.0);
    }
}
