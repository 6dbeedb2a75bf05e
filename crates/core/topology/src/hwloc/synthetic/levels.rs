//! Which kinds levels have: what hwloc requires of them, and how it names those without one.

use super::{Attributes, Fault, Kind, Layer, Parsed};

/// Checks the levels, gives kinds to those that have none, and adds a node where there is none.
pub(super) fn typed(levels: &mut Vec<Layer<'_>>, end: usize) -> Parsed<()> {
    let attached = levels.iter().any(|level| !level.attached.is_empty());
    let pu = "a string of hwloc ends with its PUs: pu:N";
    let below = levels.get_mut(1..).unwrap_or_default();
    let Some((last, inner)) = below.split_last_mut() else { return Err(Fault::new(end, pu)) };
    match last.kind {
        Some(Kind::Pu) | None => last.kind = Some(Kind::Pu),
        Some(_) => return Err(Fault::new(end, pu)),
    }
    let untyped = inner.iter().find(|level| level.kind.is_none()).map(|level| level.byte);
    if let Some(byte) = untyped {
        if inner.iter().any(|level| level.kind.is_some()) {
            return Err(Fault::new(byte, "either all levels have a type, or none has"));
        }
        let kinds = by_hwloc(inner.len(), attached);
        for (level, kind) in inner.iter_mut().zip(kinds) {
            level.kind = Some(kind);
        }
    }
    for (kind, name) in [
        (Kind::Package, "packages"),
        (Kind::Die, "dies"),
        (Kind::Node, "NUMA nodes"),
        (Kind::Core, "cores"),
        (Kind::Pu, "PUs"),
    ] {
        let mut such = levels.iter().filter(|level| level.kind == Some(kind));
        if let (Some(_), Some(second)) = (such.next(), such.next()) {
            return Err(Fault::new(second.byte, format!("there are two levels of {name}")));
        }
    }
    let node = levels.iter().find(|level| level.kind == Some(Kind::Node));
    match (node, attached) {
        (Some(node), true) => {
            Err(Fault::new(node.byte, "NUMA nodes are either a level or attached"))
        }
        (None, false) => {
            levels.insert(
                1,
                Layer {
                    kind: Some(Kind::Node),
                    count: 1,
                    byte: 0,
                    attributes: Attributes::default(),
                    attached: Vec::new(),
                },
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The kinds that hwloc gives so many levels above the PU, the outermost first: those that there is room for in
/// the order node, package, core, caches, groups.
fn by_hwloc(count: usize, attached: bool) -> Vec<Kind> {
    let cache = |level, holds_data| Kind::Cache { level, holds_data };
    let node = usize::from(count >= 1 && !attached);
    let package = usize::from(count > node);
    let core = usize::from(count > node + package);
    let caches = (count - node - package - core).min(4);
    let groups = count - node - package - core - caches;
    let caches: &[Kind] = match caches {
        0 => &[],
        1 => &[cache(2, true)],
        2 => &[cache(2, true), cache(1, true)],
        3 => &[cache(3, true), cache(2, true), cache(1, true)],
        _ => &[cache(3, true), cache(2, true), cache(1, true), cache(1, false)],
    };
    let times = |kind, times| std::iter::repeat_n(kind, times);
    times(Kind::Group, groups)
        .chain(times(Kind::Package, package))
        .chain(times(Kind::Node, node))
        .chain(caches.iter().copied())
        .chain(times(Kind::Core, core))
        .collect()
}
