//! What the scheduler and this program share, as bytes: see `partner.bpf.c`.

use symbiont_ext::Placed;
use symbiont_machine::Class;
use symbiont_topology::{CpuSet, Topology};

/// CPUs that it knows.
pub const MAX_CPUS: usize = 1024;
const MAX_SIBLINGS: usize = 8;
/// Its classes, in its order.
const CLASSES: [Class; 4] = [Class::Latency, Class::Alone, Class::Normal, Class::Batch];

/// `struct machine`.
pub fn machine(topology: &Topology) -> Vec<u8> {
    let cpus = topology.cpus();
    let count = cpus.iter().map(|cpu| cpu.0 + 1).max().unwrap_or(1);
    let mut counts = vec![0_u32; MAX_CPUS];
    let mut siblings = vec![0_u32; MAX_CPUS * MAX_SIBLINGS];
    for cpu in cpus.iter().filter(|cpu| (cpu.0 as usize) < MAX_CPUS) {
        let core = topology.core_of(cpu).map(|core| &core.cpus);
        let others = core.into_iter().flat_map(CpuSet::iter).filter(|other| *other != cpu);
        for other in others.take(MAX_SIBLINGS) {
            let nth = &mut counts[cpu.0 as usize];
            siblings[cpu.0 as usize * MAX_SIBLINGS + *nth as usize] = other.0;
            *nth += 1;
        }
    }
    [count].iter().chain(&counts).chain(&siblings).flat_map(|word| word.to_ne_bytes()).collect()
}

/// `struct placed`.
pub fn placed(placed: &Placed) -> Vec<u8> {
    let mut words = [0_u64; MAX_CPUS / 64];
    for cpu in placed.cpus.iter().filter(|cpu| (cpu.0 as usize) < MAX_CPUS) {
        words[cpu.0 as usize / 64] |= 1 << (cpu.0 % 64);
    }
    let class = CLASSES.iter().position(|class| *class == placed.class).unwrap_or(2);
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (first, last) = (placed.cpus.iter().next(), placed.cpus.iter().last());
    let span = [first.map_or(0, |cpu| cpu.0), last.map_or(0, |cpu| cpu.0 + 1)];
    // Nothing beyond what it knows is looked at.
    bytes.extend(span.into_iter().flat_map(|cpu| cpu.min(MAX_CPUS as u32).to_ne_bytes()));
    bytes.extend(placed.group.to_ne_bytes());
    bytes.extend(u32::try_from(class).unwrap_or(2).to_ne_bytes());
    bytes
}

/// Fields of a value, one after the other.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) =
            self.0.split_first_chunk().map_or(([0; N], &[][..]), |(head, rest)| (*head, rest));
        self.0 = rest;
        head
    }

    pub fn word(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    pub fn long(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    pub fn text<const N: usize>(&mut self) -> String {
        let bytes: [u8; N] = self.take();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// What a CPU counted (`struct cpu`).
#[derive(Debug, Default)]
pub struct Counted {
    pub own_ns: u64,
    pub guest_ns: u64,
    pub keeper_ns: [u64; 4],
    pub beside_idle_ns: [u64; 4],
    pub dispatches: u64,
    pub preemptions: u64,
    pub starved: u64,
}

impl Counted {
    pub fn read(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        for _ in 0..6 {
            fields.word();
        }
        for _ in 0..3 {
            fields.long();
        }
        Self {
            own_ns: fields.long(),
            guest_ns: fields.long(),
            keeper_ns: std::array::from_fn(|_| fields.long()),
            beside_idle_ns: std::array::from_fn(|_| fields.long()),
            dispatches: fields.long(),
            preemptions: fields.long(),
            starved: fields.long(),
        }
    }

    /// The classes that keep a core, by their place in the arrays.
    pub fn keepers() -> impl Iterator<Item = (usize, Class)> {
        CLASSES.into_iter().enumerate().filter(|(_, class)| class.keeps_cores())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn siblings_are_those_of_the_machine() {
        let machine = words(&machine(&Topology::synthetic("core:2 smt:2").unwrap()));
        assert_eq!(machine.len(), 1 + MAX_CPUS + MAX_CPUS * MAX_SIBLINGS);
        assert_eq!(machine[..6], [4, 1, 1, 1, 1, 0]);
        let siblings = |cpu: usize| machine[1 + MAX_CPUS + cpu * MAX_SIBLINGS];
        let cores = [0, 1, 2, 3].map(siblings);
        assert!(cores == [1, 0, 3, 2] || cores == [2, 3, 0, 1], "{cores:?}");
    }

    #[test]
    fn a_place_is_a_bit_for_each_cpu_their_span_group_and_class() {
        let cpus = "1,64-65".parse().unwrap();
        let bytes = placed(&Placed { thread: 7, cpus, group: 9, class: Class::Batch });
        let words = words(&bytes);
        assert_eq!(words.len(), MAX_CPUS / 32 + 4);
        assert_eq!(words[..4], [2, 0, 3, 0]);
        assert_eq!(words[MAX_CPUS / 32..], [1, 66, 9, 3]);
        // What it does not know is left out.
        let far = placed(&Placed {
            thread: 7,
            cpus: "5000".parse().unwrap(),
            group: 0,
            class: Class::Normal,
        });
        assert!(far[..MAX_CPUS / 8].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn counts_are_read_as_they_are_laid_out() {
        let mut bytes = vec![0_u8; 24 + 24];
        for value in 1..=13_u64 {
            bytes.extend(value.to_ne_bytes());
        }
        let counted = Counted::read(&bytes);
        assert_eq!((counted.own_ns, counted.guest_ns), (1, 2));
        assert_eq!((counted.keeper_ns, counted.beside_idle_ns), ([3, 4, 5, 6], [7, 8, 9, 10]));
        assert_eq!((counted.dispatches, counted.preemptions, counted.starved), (11, 12, 13));
        // What is cut off counts as nothing.
        assert_eq!(Counted::read(&bytes[..60]).dispatches, 0);
        let mut text = Fields(b"why\0more");
        assert_eq!(text.text::<8>(), "why");
    }
}
