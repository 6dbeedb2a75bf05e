//! The canonical form.

use std::fmt;

use super::{CoreGroup, LlcGroup, NodeGroup, Numbering, PackageGroup, Synthetic};
use crate::CoreKind;

impl fmt::Display for Synthetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<Vec<String>> = self.packages.iter().flat_map(package).collect();
        if let Some(first) = parts.first_mut() {
            // The first part starts all levels anyway.
            first.retain(|item| !["package:1", "node:1", "llc:1"].contains(&item.as_str()));
            if self.numbering == Numbering::Spread {
                first.push("numbering:spread".to_owned());
            }
            if !self.offline.is_empty() {
                first.push(format!("offline:{}", self.offline));
            }
        }
        let parts: Vec<String> = parts.iter().map(|items| items.join(" ")).collect();
        f.write_str(&parts.join(" | "))
    }
}

fn package(group: &PackageGroup) -> Vec<Vec<String>> {
    start(format!("package:{}", group.count), group.nodes.iter().flat_map(node).collect())
}

fn node(group: &NodeGroup) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = group.llcs.iter().flat_map(llc).collect();
    if parts.is_empty() {
        parts.push(vec!["core:0".to_owned()]);
    }
    if let (Some(first), Some(bytes)) = (parts.first_mut(), group.memory_bytes) {
        first.push(format!("memory:{}", size(bytes)));
    }
    start(format!("node:{}", group.count), parts)
}

fn llc(group: &LlcGroup) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = group.cores.iter().map(core).collect();
    if let (Some(first), Some(bytes)) = (parts.first_mut(), group.bytes) {
        first.push(format!("cache:{}", size(bytes)));
    }
    start(format!("llc:{}", group.count), parts)
}

fn core(group: &CoreGroup) -> Vec<String> {
    let mut items = vec![format!("core:{}", group.count)];
    if group.smt != 1 {
        items.push(format!("smt:{}", group.smt));
    }
    if group.kind == CoreKind::Efficiency {
        items.push("kind:efficiency".to_owned());
    }
    if group.capacity != 1024 {
        items.push(format!("capacity:{}", group.capacity));
    }
    items.extend(group.mhz.map(|mhz| format!("mhz:{mhz}")));
    items
}

/// Names a level in the first of its parts, and drops the level below there
/// if it counts 1.
fn start(level: String, mut parts: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if let Some(first) = parts.first_mut() {
        if first.first().is_some_and(|below| below == "node:1" || below == "llc:1") {
            first.remove(0);
        }
        first.insert(0, level);
    }
    parts
}

/// A size in the largest unit that divides it.
fn size(bytes: u64) -> String {
    if bytes == 0 {
        return "0".to_owned();
    }
    let units = [(40, 'T'), (30, 'G'), (20, 'M')];
    let (shift, unit) =
        units.into_iter().find(|(shift, _)| bytes % (1u64 << shift) == 0).unwrap_or((10, 'K'));
    format!("{}{unit}", bytes >> shift)
}
