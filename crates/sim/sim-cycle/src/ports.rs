//! Issue ports and dividers.
//!
//! # Approach
//! A port is a bit. What every thread has for itself is as many bits as there are
//! threads. Ports with few duties have low bits and are taken first. A division also
//! needs its port's divider, which it keeps; the port is free for others meanwhile.

use symbiont_profile::OpClass;
use symbiont_sim_fast::description::{CoreType, Port};

/// The ports of a core in one cycle, and its dividers.
#[derive(Debug, Clone)]
pub struct Ports {
    /// By thread and class: the ports that can start it.
    able: Vec<[u64; OpClass::COUNT]>,
    /// All ports.
    all: u64,
    /// Those not taken in this cycle.
    free: u64,
    /// Those whose divider is free in this cycle.
    dividers: u64,
    /// When each port's divider is free again.
    divider_until: [u64; 64],
    /// Cycles for which a class keeps its divider; 0: it needs none.
    busy: [u32; OpClass::COUNT],
}

impl Ports {
    /// The ports of a core for so many threads, which are divided in turn among its halves: of
    /// equal ports each half has every other; one that is left over serves all. No more
    /// than 64 ports count.
    #[must_use]
    pub fn new(core: &CoreType, threads: usize, halves: usize) -> Self {
        let of_half = |index: usize, port: &Port| {
            let alike = core.ports.iter().filter(|other| *other == port).count();
            let number = core.ports[..index].iter().filter(|other| *other == port).count();
            (halves > 1 && number / halves * halves + halves <= alike).then_some(number % halves)
        };
        let mut order: Vec<_> = core.ports.iter().enumerate().collect();
        order.sort_by_key(|(_, port)| port.does.len());
        let mut able = vec![[0_u64; OpClass::COUNT]; threads];
        let mut bit = 0;
        for (index, port) in order {
            let half = of_half(index, port);
            let copies = if port.private { threads } else { 1 };
            for copy in 0..copies {
                if bit >= u64::BITS {
                    break;
                }
                let has = |thread: usize| {
                    (!port.private || thread == copy)
                        && half.is_none_or(|half| thread % halves == half)
                };
                for thread in (0..threads).filter(|thread| has(*thread)) {
                    port.does.iter().for_each(|class| able[thread][class.index()] |= 1 << bit);
                }
                bit += 1;
            }
        }
        let all = if bit >= u64::BITS { u64::MAX } else { (1 << bit) - 1 };
        let busy = OpClass::ALL.map(|class| match class {
            OpClass::Divide | OpClass::FpDivide => core.latency.busy(class),
            _ => 0,
        });
        Self { able, all, free: all, dividers: all, divider_until: [0; 64], busy }
    }

    /// A new cycle.
    #[inline]
    pub fn open(&mut self, cycle: u64) {
        self.free = self.all;
        let mut taken = self.all & !self.dividers;
        while taken != 0 {
            let bit = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            if self.divider_until[bit] <= cycle {
                self.dividers |= 1 << bit;
            }
        }
    }

    /// Is every port taken?
    #[inline]
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.free == 0
    }

    /// The port that would start an operation now. A class that no port knows is
    /// started by none (`Some(0)`).
    #[inline]
    #[must_use]
    pub fn find(&self, thread: usize, class: OpClass) -> Option<u64> {
        let able = self.able[thread][class.index()];
        if able == 0 {
            return Some(0);
        }
        let free = able & self.free;
        let free = if self.busy[class.index()] > 0 { free & self.dividers } else { free };
        (free != 0).then(|| free & free.wrapping_neg())
    }

    /// Takes a port that was found.
    #[inline]
    pub fn take(&mut self, port: u64, class: OpClass, cycle: u64) {
        self.free &= !port;
        let busy = self.busy[class.index()];
        if busy > 0 && port != 0 {
            self.divider_until[port.trailing_zeros() as usize] = cycle + u64::from(busy);
            self.dividers &= !port;
        }
    }

    /// Cycles for which a class keeps a divider.
    #[inline]
    #[must_use]
    pub fn busy(&self, class: OpClass) -> u32 {
        self.busy[class.index()]
    }
}
