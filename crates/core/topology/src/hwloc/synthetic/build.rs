//! From levels to hardware threads and nodes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::parse::{Parts, kind};
use super::{Fault, Kind, Layer, Parsed, indexes};
use crate::synthetic::{MAX_NODES, MAX_PUS};
use crate::{CoreKind, CpuSet, HardwareThread, NodeId, NumaNode, PackageId, PuId};

/// Levels with how many objects each has in all.
struct Machine<'a> {
    levels: Vec<(Layer<'a>, u32)>,
    pus: u32,
}

pub(super) fn machine(parts: Parts<'_>) -> Parsed<(Vec<HardwareThread>, Vec<NumaNode>)> {
    let machine = Machine::new(parts.levels)?;
    let numbers = machine.numbers(machine.level(Kind::Pu))?;
    let nodes = machine.nodes(&numbers, parts.attached_indexes)?;
    Ok((machine.threads(&numbers, &nodes)?, nodes))
}

impl<'a> Machine<'a> {
    fn new(levels: Vec<Layer<'a>>) -> Parsed<Self> {
        let (mut width, mut nodes) = (1u64, 0u64);
        let mut all = Vec::new();
        for level in levels {
            width = width.saturating_mul(u64::from(level.count));
            let own = if level.kind == Some(Kind::Node) { 1 } else { 0 };
            let of_each = own + level.attached.len() as u64;
            nodes = nodes.saturating_add(width.saturating_mul(of_each));
            let most = format!("{MAX_PUS} hardware threads and {MAX_NODES} NUMA nodes");
            let fault =
                || Fault::new(level.byte, format!("the machine is too large; at most {most}"));
            let objects = u32::try_from(width).ok().filter(|_| width <= MAX_PUS);
            let objects = objects.filter(|_| nodes <= MAX_NODES).ok_or_else(fault)?;
            all.push((level, objects));
        }
        let pus = all.last().map_or(0, |(_, width)| *width);
        Ok(Self { levels: all, pus })
    }

    fn level(&self, kind: Kind) -> Option<&(Layer<'a>, u32)> {
        self.levels.iter().find(|(level, _)| level.kind == Some(kind))
    }

    /// The depth and width of the level with this name, above the PU as in hwloc.
    fn width(&self, name: &str) -> Option<indexes::Width> {
        let kind = kind(name).filter(|kind| *kind != Kind::Pu)?;
        let at = self.levels.iter().position(|(level, _)| level.kind == Some(kind))?;
        self.levels.get(at).map(|(_, width)| (at, *width))
    }

    /// The kernel's numbers of a level's objects.
    fn numbers(&self, level: Option<&(Layer<'a>, u32)>) -> Parsed<Vec<u32>> {
        match level {
            None => Ok(Vec::new()),
            Some((level, width)) => match level.attributes.indexes {
                None => Ok((0..*width).collect()),
                Some(given) => indexes::numbers(given, *width, |name| self.width(name)),
            },
        }
    }

    /// Of a level's objects the one that has a PU.
    fn around(&self, width: u32, pu: u32) -> u32 {
        pu / (self.pus / width.max(1)).max(1)
    }

    /// The PUs of one of a level's objects.
    fn below(&self, width: u32, object: u32) -> std::ops::Range<u32> {
        let each = self.pus / width.max(1);
        object.saturating_mul(each)..object.saturating_add(1).saturating_mul(each)
    }

    /// Nodes in the order of their numbers.
    fn nodes(&self, pus: &[u32], attached: Option<(usize, &str)>) -> Parsed<Vec<NumaNode>> {
        // hwloc numbers attached nodes as it ends the objects that have them.
        let mut places = Vec::new();
        for (depth, (level, width)) in self.levels.iter().enumerate() {
            for object in 0..*width {
                let range = self.below(*width, object);
                for (at, bytes) in level.attached.iter().enumerate() {
                    places.push(((range.end, Reverse(depth), at), range.clone(), *bytes));
                }
            }
        }
        places.sort_by_key(|(order, ..)| *order);
        let mut ranges: Vec<_> =
            places.into_iter().map(|(_, range, bytes)| (range, bytes)).collect();
        let level = self.level(Kind::Node);
        if let Some((level, width)) = level {
            let range = |object| (self.below(*width, object), level.attributes.bytes);
            ranges.extend((0..*width).map(range));
        }
        let total = u32::try_from(ranges.len()).unwrap_or(u32::MAX);
        let numbers = match (level, attached) {
            (Some(_), _) => self.numbers(level)?,
            (None, Some(given)) => indexes::numbers(given, total, |name| self.width(name))?,
            (None, None) => (0..total).collect(),
        };
        let nodes = ranges.into_iter().zip(numbers).map(|((range, memory_bytes), number)| {
            let mut cpus = CpuSet::new();
            let below = pus.get(range.start as usize..range.end as usize).unwrap_or_default();
            cpus.extend(below.iter().map(|&pu| PuId(pu)));
            let id = NodeId(number);
            (id, NumaNode { id, cpus, memory_bytes, distances: BTreeMap::new() })
        });
        Ok(nodes.collect::<BTreeMap<_, _>>().into_values().collect())
    }

    fn threads(&self, numbers: &[u32], nodes: &[NumaNode]) -> Parsed<Vec<HardwareThread>> {
        let cache = self.llc();
        let package = self.level(Kind::Package);
        let packages = self.numbers(package)?;
        let domain = cache.or_else(|| self.level(Kind::Die)).or(package);
        let core = self.level(Kind::Core).map_or(self.pus, |(_, width)| *width);
        let mut node_of = BTreeMap::new();
        for node in nodes {
            for pu in node.cpus.iter() {
                node_of.entry(pu).or_insert(node.id);
            }
        }
        let fallback = nodes.first().map_or(NodeId(0), |node| node.id);
        let thread = |(&number, pu): (&u32, u32)| {
            let place = package.map_or(0, |(_, width)| self.around(*width, pu));
            HardwareThread {
                pu: PuId(number),
                core: self.around(core, pu),
                llc: domain.map_or(0, |(_, width)| self.around(*width, pu)),
                llc_bytes: cache.and_then(|(level, _)| level.attributes.bytes).filter(|&b| b > 0),
                node: node_of.get(&PuId(number)).copied().unwrap_or(fallback),
                package: PackageId(packages.get(place as usize).copied().unwrap_or(0)),
                kind: CoreKind::Performance,
                capacity: 1024,
                max_khz: None,
            }
        };
        Ok(numbers.iter().zip(0..).map(thread).collect())
    }

    /// The outermost cache that holds data, of level 2 or higher.
    fn llc(&self) -> Option<&(Layer<'a>, u32)> {
        let caches = self.levels.iter().filter_map(|level| match level.0.kind {
            Some(Kind::Cache { level: at, holds_data: true }) if at >= 2 => Some((at, level)),
            _ => None,
        });
        caches.min_by_key(|(at, (_, width))| (*width, Reverse(*at))).map(|(_, level)| level)
    }
}
