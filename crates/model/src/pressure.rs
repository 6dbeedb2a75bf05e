//! Where threads on one core meet: which of a victim's components suffer from which of a
//! co-runner's.
//!
//! # Problem
//! Any component of one thread may have to do with any of another: 121 products for the fine stack
//! of POWER8. Some twenty programs tell few of them apart, and a ridge must hold all back alike,
//! those that a shared resource stands behind and those that nothing does.
//!
//! # Approach
//! The catalogue names the resources that threads of a core share, the components that grow in who
//! waits for one, and those that tell who uses it. Only products of the two are taken: what the
//! victim waits for, times what the aggressor takes of the same. For the fine stack of POWER8 these
//! are 18, and the form has 41 coefficients (1, 11 own, 11 given, 18 products) where the form of
//! roots has 144.
//!
//! They are products of square roots. Of a cache each thread keeps a part in proportion to the
//! lines that it brings in (Chandra, Guo, Kim, and Solihin, *Predicting inter-thread cache
//! contention on a chip multi-processor architecture*, HPCA 2005), so a victim that moves f lines
//! loses f · g / (f + g) of them to an aggressor that moves g. That is no product; √(f g) / 2 has the
//! same value and the same slopes where f = g, and doubles with both as it does. Queues for
//! units and bandwidth saturate likewise, since who is held up asks for less.
//!
//! Where a catalogue names none, each component meets itself, as in equations 1 to 3.

use symbiont_counters::catalogue::Catalogue;

use crate::Components;

/// Pairs of components, the victim's first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pressure(Vec<(usize, usize)>);

impl Pressure {
    /// Each of so many components meets itself.
    #[must_use]
    pub fn alike(components: usize) -> Self {
        Self((0..components).map(|at| (at, at)).collect())
    }

    /// What the catalogue says of the sum that the components are parts of.
    #[must_use]
    pub fn of(catalogue: &Catalogue, components: &Components) -> Self {
        let sum = catalogue.sums().iter().find(|sum| sum.name == components.sum());
        let place = |part: &String| components.names().position(|name| name == part);
        let mut pairs = Vec::new();
        for pressure in sum.iter().flat_map(|sum| &sum.pressures) {
            for waits in pressure.waits.iter().filter_map(place) {
                pairs.extend(pressure.uses.iter().filter_map(place).map(|uses| (waits, uses)));
            }
        }
        if pairs.is_empty() { Self::alike(components.len()) } else { Self::between(pairs) }
    }

    /// Pairs, each once.
    pub(crate) fn between(mut pairs: Vec<(usize, usize)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        Self(pairs)
    }

    /// All pairs of so many components.
    pub(crate) fn all(components: usize) -> Self {
        let with = |waits| (0..components).map(move |uses| (waits, uses));
        Self((0..components).flat_map(with).collect())
    }

    /// The pairs.
    #[must_use]
    pub fn pairs(&self) -> &[(usize, usize)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Depth;

    #[test]
    fn the_fine_stack_of_power8_tells_where_threads_meet() {
        let power8 = Catalogue::named("power8").unwrap().unwrap();
        let fine = Components::of(&power8, Depth::Fine.sum()).unwrap();
        let pressure = Pressure::of(&power8, &fine);
        let names: Vec<&str> = fine.names().collect();
        let named: Vec<(&str, &str)> =
            pressure.pairs().iter().map(|&(waits, uses)| (names[waits], names[uses])).collect();
        assert_eq!(named.len(), 18);
        for pair in [
            ("cpi_base_rest", "cpi_base_rest"),
            ("cpi_stall_vsu", "cpi_stall_vsu"),
            ("cpi_stall_l2l3", "cpi_lines_l2"),
            ("cpi_stall_memory", "cpi_lines_memory"),
        ] {
            assert!(named.contains(&pair), "{pair:?}");
        }
        // Who has no lines in caches takes none from others.
        assert!(!named.iter().any(|(_, uses)| *uses == "cpi_rest"));
    }

    #[test]
    fn where_nothing_is_named_each_component_meets_itself() {
        let power8 = Catalogue::named("power8").unwrap().unwrap();
        let coarse = Components::of(&power8, Depth::Coarse.sum()).unwrap();
        assert_eq!(Pressure::of(&power8, &coarse), Pressure::alike(6));
        let given = Components::named(["a", "b"]).unwrap();
        assert_eq!(Pressure::of(&power8, &given).pairs(), [(0, 0), (1, 1)]);
    }
}
