//! A topology as people read it: one line that counts, then a tree in which
//! runs of equal cores are one line.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Core, CoreKind, CpuSet, LlcId, NodeId, Topology};

impl Topology {
    /// One line: how many there are of each level.
    ///
    /// ```
    /// let t = symbiont_topology::Topology::synthetic("core:2 cache:32M")?;
    /// assert_eq!(
    ///     t.summary(),
    ///     "1 package, 1 NUMA node, 1 LLC domain (32 MiB), 2 cores, SMT1, 2 hardware threads"
    /// );
    /// # Ok::<(), symbiont_topology::SyntheticError>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> String {
        let sizes: BTreeSet<u64> = self.llcs().iter().filter_map(|llc| llc.bytes).collect();
        let sizes: Vec<String> = sizes.into_iter().map(size).collect();
        let sizes =
            if sizes.is_empty() { String::new() } else { format!(" ({})", sizes.join(", ")) };
        format!(
            "{}, {}, {}{sizes}, {}, SMT{}, {}",
            count(self.packages().len(), "package"),
            count(self.nodes().len(), "NUMA node"),
            count(self.llcs().len(), "LLC domain"),
            count(self.cores().len(), "core"),
            self.smt_width(),
            count(self.cpus().len(), "hardware thread"),
        )
    }

    /// Cores of one package, node and LLC domain, written as runs of equal ones.
    fn runs(&self, f: &mut fmt::Formatter<'_>, cores: &[&Core]) -> fmt::Result {
        let differ = |value: fn(&Core) -> u32| {
            self.cores().iter().map(value).collect::<BTreeSet<_>>().len() > 1
        };
        let kinds_differ = differ(|c| c.kind as u32);
        let capacities_differ = differ(|c| c.capacity);
        for run in cores.chunk_by(|a, b| equal(a, b)) {
            let [first, ..] = run else { continue };
            let cpus = run.iter().fold(CpuSet::new(), |all, core| all.union(&core.cpus));
            write!(f, "      {}", count(run.len(), "core"))?;
            write!(f, " SMT{}", first.cpus.len())?;
            if kinds_differ {
                let kind = match first.kind {
                    CoreKind::Performance => "performance",
                    CoreKind::Efficiency => "efficiency",
                };
                write!(f, ", {kind}")?;
            }
            if capacities_differ {
                write!(f, ", capacity {}", first.capacity)?;
            }
            if let Some(khz) = first.max_khz {
                write!(f, ", {}.{:02} GHz", khz / 1_000_000, khz / 10_000 % 100)?;
            }
            writeln!(f, ": cpu {cpus}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Topology {
    /// Many lines, the last one ended too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        for package in self.packages() {
            writeln!(f, "{}", package.id)?;
            let here: Vec<&Core> =
                self.cores().iter().filter(|core| core.package == package.id).collect();
            for (node, here) in grouped(&here, |core| core.node) {
                writeln!(f, "  {}{}", node, self.memory(node))?;
                for (llc, here) in grouped(&here, |core| core.llc) {
                    writeln!(f, "    {}{}", llc, self.cache(llc))?;
                    self.runs(f, &here)?;
                }
            }
        }
        for node in self.nodes().iter().filter(|node| node.cpus.is_empty()) {
            writeln!(f, "{} without CPUs{}", node.id, self.memory(node.id))?;
        }
        Ok(())
    }
}

impl Topology {
    pub(crate) fn memory(&self, node: NodeId) -> String {
        match self.node(node).and_then(|node| node.memory_bytes) {
            Some(bytes) => format!(", {} of memory", size(bytes)),
            None => String::new(),
        }
    }

    pub(crate) fn cache(&self, llc: LlcId) -> String {
        match self.llc(llc).and_then(|llc| llc.bytes) {
            Some(bytes) => format!(", {}", size(bytes)),
            None => String::new(),
        }
    }
}

/// The cores by some key, in order of the key.
pub(crate) fn grouped<'a, K: Ord + Copy>(
    cores: &[&'a Core],
    key: impl Fn(&Core) -> K,
) -> Vec<(K, Vec<&'a Core>)> {
    let keys: BTreeSet<K> = cores.iter().map(|core| key(core)).collect();
    let of = |k| cores.iter().copied().filter(|core| key(core) == k).collect();
    keys.into_iter().map(|k| (k, of(k))).collect()
}

fn equal(a: &Core, b: &Core) -> bool {
    let shape = |c: &Core| (c.cpus.len(), c.kind, c.capacity, c.max_khz);
    shape(a) == shape(b)
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A size in the largest binary unit that leaves at least 1, to a tenth.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")];
    let (shift, unit) = units.into_iter().find(|(shift, _)| bytes >> shift > 0).unwrap_or((0, "B"));
    let tenths = (u128::from(bytes) * 10) >> shift;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::synthetic::tests::{HYBRID, POWER8, lines};

    fn shown(line: &str) -> String {
        Topology::synthetic(line).unwrap().to_string()
    }

    #[test]
    fn equal_cores_are_one_line() {
        assert_eq!(
            shown(HYBRID),
            "\
1 package, 1 NUMA node, 1 LLC domain (36 MiB), 24 cores, SMT2, 32 hardware threads
package0
  node0
    llc0, 36 MiB
      8 cores SMT2, performance, capacity 1024: cpu 0-15
      16 cores SMT1, efficiency, capacity 600: cpu 16-31
"
        );
    }

    #[test]
    fn memory_and_ceilings_are_written_where_known() {
        assert_eq!(
            shown("mhz:3690 memory:10368M | node:1 core:0 memory:0"),
            "\
1 package, 2 NUMA nodes, 1 LLC domain, 1 core, SMT1, 1 hardware thread
package0
  node0, 10.1 GiB of memory
    llc0
      1 core SMT1, 3.69 GHz: cpu 0
node1 without CPUs, 0 B of memory
"
        );
    }

    #[test]
    fn power8_fits_on_a_screen() {
        assert!(shown(POWER8).lines().count() <= 24);
    }

    proptest! {
        #[test]
        fn every_core_is_written_once(line in lines()) {
            let t = Topology::synthetic(&line).unwrap();
            let mut written = CpuSet::new();
            for cpus in t.to_string().lines().filter_map(|l| l.split(": cpu ").nth(1)) {
                let cpus: CpuSet = cpus.parse().unwrap();
                prop_assert!(written.is_disjoint(&cpus));
                written = written.union(&cpus);
            }
            prop_assert_eq!(written, t.cpus());
        }
    }
}
