//! From the XML tree to ours.

use std::collections::{BTreeMap, HashMap};

use roxmltree::{Document, Node, ParsingOptions};

use super::{HwlocError, value};
use crate::speed::{CpuSpeed, ListedKind, speeds};
use crate::{CpuSet, HardwareThread, NodeId, NumaNode, Origin, PackageId, PuId, Topology, counted};

/// The outermost of these around a PU is its last-level cache.
const CACHES: [&str; 4] = ["L2Cache", "L3Cache", "L4Cache", "L5Cache"];

pub(super) fn read(text: &str, from: &str, origin: Origin) -> Result<Topology, HwlocError> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|source| HwlocError::Xml { from: from.to_owned(), source })?;
    let export = Export { from, document: &document };
    export.check_version()?;
    let nodes = export.nodes()?;
    let threads = export.threads(&nodes)?;
    Topology::new(origin, threads, nodes)
        .map_err(|source| HwlocError::Contradiction { from: from.to_owned(), source })
}

struct Export<'a, 'input> {
    from: &'a str,
    document: &'a Document<'input>,
}

impl<'a, 'input> Export<'a, 'input> {
    fn malformed(&self, at: Node<'_, '_>, reason: impl Into<String>) -> HwlocError {
        let line = self.document.text_pos_at(at.range().start).row;
        HwlocError::Malformed { from: self.from.to_owned(), line, reason: reason.into() }
    }

    /// An attribute that may be missing.
    fn attribute<T>(
        &self,
        of: Node<'_, '_>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, HwlocError> {
        let parsed = of.attribute(name).map(parse).transpose();
        parsed.map_err(|reason| self.malformed(of, format!("attribute {name}: {reason}")))
    }

    /// An attribute that must be there.
    fn required<T>(
        &self,
        of: Node<'_, '_>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, HwlocError> {
        let missing = || self.malformed(of, format!("attribute {name} is missing"));
        self.attribute(of, name, parse)?.ok_or_else(missing)
    }

    fn check_version(&self) -> Result<(), HwlocError> {
        let root = self.document.root_element();
        if root.tag_name().name() != "topology" {
            return Err(self.malformed(root, "not an export of hwloc"));
        }
        match root.attribute("version").and_then(|v| v.split('.').next()) {
            Some("2" | "3") => Ok(()),
            _ => Err(self.malformed(root, "not written by hwloc 2 or 3; export it again")),
        }
    }

    fn elements(&self, tag: &'a str) -> impl Iterator<Item = Node<'a, 'input>> {
        self.document.root_element().descendants().filter(move |n| n.has_tag_name(tag))
    }

    fn objects(&self, kind: &'a str) -> impl Iterator<Item = Node<'a, 'input>> {
        self.elements("object").filter(move |object| is(*object, kind))
    }

    /// NUMA nodes with the CPUs that hwloc gives them, ordered by number.
    fn nodes(&self) -> Result<Vec<NumaNode>, HwlocError> {
        let mut nodes = BTreeMap::new();
        for object in self.objects("NUMANode") {
            let id = NodeId(self.required(object, "os_index", value::number)?);
            let memory: Option<u64> = self.attribute(object, "local_memory", value::number)?;
            let node = NumaNode {
                id,
                cpus: self.required(object, "cpuset", value::bit_map)?,
                memory_bytes: memory.filter(|&bytes| bytes > 0),
                distances: BTreeMap::new(),
            };
            nodes.insert(id, node);
        }
        for (from, to, distance) in self.distances()? {
            if let Some(node) = nodes.get_mut(&from) {
                node.distances.insert(to, distance);
            }
        }
        Ok(nodes.into_values().collect())
    }

    fn distances(&self) -> Result<Vec<(NodeId, NodeId, u32)>, HwlocError> {
        let latency = |n: &Node<'_, '_>| {
            n.attribute("name") == Some("NUMALatency") && n.attribute("indexing") == Some("os")
        };
        let Some(matrix) = self.elements("distances2").find(latency) else { return Ok(Vec::new()) };
        let numbers = |tag: &str| {
            let lists = matrix.children().filter(|n| n.has_tag_name(tag));
            let text: Vec<&str> = lists.filter_map(|n| n.text()).collect();
            value::numbers(&text.join(" ")).map_err(|reason| self.malformed(matrix, reason))
        };
        let nodes: Vec<NodeId> = numbers("indexes")?.into_iter().map(NodeId).collect();
        let distances = numbers("u64values")?;
        if nodes.len().checked_mul(nodes.len()) != Some(distances.len()) {
            let (n, d) = (nodes.len(), distances.len());
            return Err(self.malformed(
                matrix,
                format!("{} between {}", counted(d, "distance"), counted(n, "node")),
            ));
        }
        let pairs = nodes.iter().flat_map(|&from| nodes.iter().map(move |&to| (from, to)));
        Ok(pairs.zip(distances).map(|((from, to), distance)| (from, to, distance)).collect())
    }

    fn threads(&self, nodes: &[NumaNode]) -> Result<Vec<HardwareThread>, HwlocError> {
        let fallback = nodes.first().map_or(NodeId(0), |node| node.id);
        let kinds = self.kinds()?;
        let objects: Vec<Node<'_, '_>> = self.objects("PU").collect();
        let pus = objects
            .iter()
            .map(|&object| self.required(object, "os_index", value::pu))
            .collect::<Result<Vec<_>, _>>()?;
        let cores: Vec<u32> =
            objects.iter().map(|&object| key(around(object, "Core").unwrap_or(object))).collect();
        let reported = reported(&kinds, &pus, &cores);

        let mut threads = Vec::new();
        let speeds = speeds(&reported);
        for (((&object, pu), reported), (kind, capacity)) in
            objects.iter().zip(pus).zip(reported).zip(speeds)
        {
            let (llc, llc_bytes) = self.llc(object)?;
            let node = nodes.iter().find(|node| node.cpus.contains(pu));
            threads.push(HardwareThread {
                pu,
                core: key(around(object, "Core").unwrap_or(object)),
                llc,
                llc_bytes,
                node: node.map_or(fallback, |node| node.id),
                package: self.package(object)?,
                kind,
                capacity,
                max_khz: reported.max_khz,
            });
        }
        Ok(threads)
    }

    fn llc(&self, pu: Node<'_, '_>) -> Result<(u32, Option<u64>), HwlocError> {
        let is_cache = |n: &Node<'_, '_>| CACHES.iter().any(|kind| is(*n, kind));
        if let Some(cache) = pu.ancestors().filter(is_cache).last() {
            let bytes: Option<u64> = self.attribute(cache, "cache_size", value::number)?;
            return Ok((key(cache), bytes.filter(|&bytes| bytes > 0)));
        }
        let domain = around(pu, "Die").or_else(|| around(pu, "Package"));
        Ok((domain.map_or(0, key), None))
    }

    fn package(&self, pu: Node<'_, '_>) -> Result<PackageId, HwlocError> {
        let Some(package) = around(pu, "Package") else { return Ok(PackageId(0)) };
        Ok(PackageId(self.attribute(package, "os_index", value::number)?.unwrap_or(0)))
    }

    /// The attributes of each set of CPUs.
    fn kinds(&self) -> Result<Vec<(CpuSet, CpuSpeed)>, HwlocError> {
        let mut kinds = Vec::new();
        for kind in self.elements("cpukind") {
            let cpus = self.required(kind, "cpuset", value::bit_map)?;
            let mut speed = CpuSpeed::default();
            for info in kind.children().filter(|n| n.has_tag_name("info")) {
                let number = || self.required(info, "value", value::number::<u64>);
                match info.attribute("name") {
                    Some("LinuxCapacity") => speed.capacity = Some(number()?).filter(|&c| c > 0),
                    Some("FrequencyMaxMHz") => speed.max_khz = number()?.checked_mul(1000),
                    Some("CoreType") => {
                        speed.kind = match info.attribute("value") {
                            Some("IntelAtom") => Some(ListedKind::Efficiency),
                            Some("IntelCore") => Some(ListedKind::Performance),
                            _ => None,
                        }
                    }
                    _ => {}
                }
            }
            kinds.push((cpus, speed));
        }
        Ok(kinds)
    }
}

/// Is it an object of this kind?
fn is(object: Node<'_, '_>, kind: &str) -> bool {
    object.attribute("type") == Some(kind)
}

/// The innermost object of this kind around another.
fn around<'a, 'input>(inner: Node<'a, 'input>, kind: &str) -> Option<Node<'a, 'input>> {
    inner.ancestors().find(|object| is(*object, kind))
}

/// A number that no other element of the document has; 0 is the document.
fn key(object: Node<'_, '_>) -> u32 {
    object.id().get()
}

/// What is reported of each CPU: nothing of any, where a CPU is of no kind or a core of several. hwloc 2.12 mistakes
/// the CPUs of the kinds where some are offline.
fn reported(kinds: &[(CpuSet, CpuSpeed)], pus: &[PuId], cores: &[u32]) -> Vec<CpuSpeed> {
    let kind_of = |pu: PuId| kinds.iter().position(|(cpus, _)| cpus.contains(pu));
    let mut kind_of_core = HashMap::new();
    let believable = pus.iter().zip(cores).all(|(&pu, &core)| {
        kind_of(pu).is_some_and(|kind| *kind_of_core.entry(core).or_insert(kind) == kind)
    });
    let speed = |&pu: &PuId| if believable { speed_of(kinds, pu) } else { CpuSpeed::default() };
    pus.iter().map(speed).collect()
}

fn speed_of(kinds: &[(CpuSet, CpuSpeed)], pu: PuId) -> CpuSpeed {
    kinds
        .iter()
        .find(|(cpus, _)| cpus.contains(pu))
        .map_or_else(CpuSpeed::default, |(_, speed)| *speed)
}
