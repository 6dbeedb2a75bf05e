//! All levels of caches against a naive model of them, set by set.

use proptest::prelude::*;
use symbiont_sim_cycle::levels::{Kind, Levels, UserPlace};
use symbiont_sim_fast::description::{Cache, Description, Scope};
use symbiont_topology::CoreId;

use crate::support::machine;

const LINE: u64 = 64;

/// A cache: each set a list of lines and whether they were written, the one used last at its end.
struct Naive {
    sets: Vec<Vec<(u64, bool)>>,
    ways: usize,
    /// By user and set.
    misses: Vec<Vec<u32>>,
}

impl Naive {
    fn new(cache: &Cache) -> Self {
        let sets = (cache.bytes / LINE) as usize / cache.ways as usize;
        let misses = vec![vec![0; sets]; USERS.len()];
        Self { sets: vec![Vec::new(); sets], ways: cache.ways as usize, misses }
    }

    fn set(&mut self, line: u64) -> &mut Vec<(u64, bool)> {
        let count = self.sets.len() as u64;
        &mut self.sets[(line % count) as usize]
    }

    /// Uses a line; false and a miss if it is not there.
    fn used(&mut self, user: usize, line: u64, writes: bool) -> bool {
        let set = self.set(line);
        let Some(at) = set.iter().position(|(known, _)| *known == line) else {
            let at = (line % self.sets.len() as u64) as usize;
            self.misses[user][at] += 1;
            return false;
        };
        let (_, written) = set.remove(at);
        set.push((line, written || writes));
        true
    }

    /// Brings a line in; gives a written one that had to go.
    fn bring(&mut self, line: u64, written: bool) -> Option<u64> {
        let ways = self.ways;
        let set = self.set(line);
        set.push((line, written));
        let gone = if set.len() > ways { Some(set.remove(0)) } else { None };
        gone.filter(|(_, written)| *written).map(|(line, _)| line)
    }

    /// A written line comes from above; gives a written one that had to go for it.
    fn write_back(&mut self, line: u64) -> Option<u64> {
        match self.set(line).iter_mut().find(|(known, _)| *known == line) {
            Some((_, written)) => {
                *written = true;
                None
            }
            None => self.bring(line, true),
        }
    }
}

/// The core of each user.
const USERS: [usize; 3] = [0, 0, 1];

/// Small caches: those of a core are shared by its threads, the last one by all.
fn small() -> Description {
    machine(|_, core_type| {
        (core_type.l1d.bytes, core_type.l1d.ways) = (2 << 10, 2);
        (core_type.l2.bytes, core_type.l2.ways) = (8 << 10, 4);
        let l3 = Cache { bytes: 12 << 10, ways: 3, latency: 40, scope: Scope::Llc, ..core_type.l2 };
        core_type.l3 = Some(l3);
    })
}

proptest! {
    #[test]
    fn misses_by_set_equal_a_naive_model(
        accesses in prop::collection::vec((0..USERS.len(), 0_u64..500, any::<bool>()), 1..1500),
    ) {
        let machine = small();
        let core_type = &machine.core_types[0];
        let place = |(user, core): (usize, &usize)| UserPlace {
            thread: user,
            job: user,
            core: machine.topology.core(CoreId(*core as u32)).unwrap(),
            core_type,
            period: 1.0,
            home: 0,
        };
        let places: Vec<UserPlace<'_>> = USERS.iter().enumerate().map(place).collect();
        let mut levels = Levels::new(&machine, &places, false, false);
        let mut l1 = [Naive::new(&core_type.l1d), Naive::new(&core_type.l1d)];
        let mut l2 = [Naive::new(&core_type.l2), Naive::new(&core_type.l2)];
        let mut l3 = Naive::new(core_type.l3.as_ref().unwrap());
        for (number, &(user, line, writes)) in accesses.iter().enumerate() {
            let (address, ns) = (line * LINE + 8, number as f64 * 1000.0);
            prop_assert!(levels.data(user, ns, address, 0, writes, true).is_some());
            let core = USERS[user];
            if l1[core].used(user, line, writes) {
                continue;
            }
            if !l2[core].used(user, line, false) {
                if !l3.used(user, line, false) {
                    l3.bring(line, false);
                }
                if let Some(gone) = l2[core].bring(line, false) {
                    l3.write_back(gone);
                }
            }
            let gone = l1[core].bring(line, writes);
            if let Some(gone) = gone.and_then(|gone| l2[core].write_back(gone)) {
                l3.write_back(gone);
            }
        }
        for (user, &core) in USERS.iter().enumerate() {
            for (kind, naive) in [(Kind::L1d, &l1[core]), (Kind::L2, &l2[core]), (Kind::L3, &l3)] {
                let sets = levels.sets(user, kind);
                let misses: Vec<u32> = sets.iter().map(|set| set.misses).collect();
                prop_assert_eq!(&misses, &naive.misses[user], "user {}, {:?}", user, kind);
            }
        }
    }
}
