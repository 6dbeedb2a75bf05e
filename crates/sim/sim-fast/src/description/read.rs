//! From TOML text to a checked description.

use std::cell::RefCell;
use std::collections::BTreeMap;

use symbiont_profile::{OpClass, Prediction};
use symbiont_topology::{CoreKind, NodeId, Topology};
use toml::de::DeTable;

use super::MOST_THREADS;
use super::core::{
    Cache, CoreType, Forwarding, Latencies, Port, Scope, SmtRule, Structure, Tlb, TlbEntries,
};
use super::document::{Section, Text};
use super::{CATALOGUES, Costs, Description, DescriptionError, Memory};

type Read<T> = Result<T, DescriptionError>;

const KINDS: [(&str, CoreKind); 2] =
    [("performance", CoreKind::Performance), ("efficiency", CoreKind::Efficiency)];

/// Kinds of micro-ops that need a port, as the files name them.
const PORT_CLASSES: [(&str, OpClass); 11] = [
    ("integer", OpClass::Integer),
    ("multiply", OpClass::Multiply),
    ("divide", OpClass::Divide),
    ("fp_add", OpClass::FpAdd),
    ("fp_multiply", OpClass::FpMultiply),
    ("fp_fma", OpClass::FpFma),
    ("fp_divide", OpClass::FpDivide),
    ("vector", OpClass::Vector),
    ("load", OpClass::Load),
    ("store", OpClass::Store),
    ("branch", OpClass::Branch),
];

pub(super) fn description(file: &str, written: &str) -> Read<Description> {
    let mut text = Text { file, text: written, works: BTreeMap::new(), values: RefCell::default() };
    let table = DeTable::parse(written).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        text.error(at, "document", format!("no TOML: {}", error.message()))
    })?;
    text.works = works(&Section::root(&text, table.get_ref()))?;
    let root = Section::root(&text, table.get_ref());
    root.only(&[
        "name",
        "title",
        "note",
        "checked",
        "held",
        "sources",
        "structure",
        "core",
        "memory",
        "costs",
    ])?;
    let topology = topology(&root.section("structure")?)?;
    let core_types = core_types(&root.section("core")?, &topology)?;
    let memory = memory(&root.section("memory")?, &topology)?;
    let costs = costs(&root.section("costs")?)?;
    let (name, title, note) = (root.words("name")?, root.words("title")?, root.words("note")?);
    let checked = root.has("checked").then(|| root.words("checked")).transpose()?;
    let held = root.has("held").then(|| root.words("held")).transpose()?;
    let values = text.values.take();
    Ok(Description {
        name,
        title,
        note,
        checked,
        held,
        topology,
        core_types,
        memory,
        costs,
        values,
    })
}

fn works(root: &Section<'_>) -> Read<BTreeMap<String, String>> {
    if !root.has("sources") {
        return Ok(BTreeMap::new());
    }
    let section = root.section("sources")?;
    section.keys().map(|name| Ok((name.to_owned(), section.words(name)?))).collect()
}

fn topology(section: &Section<'_>) -> Read<Topology> {
    section.only(&["source", "topology"])?;
    section.text("topology", |line| {
        let topology = Topology::synthetic(line).map_err(|error| error.to_string())?;
        match topology.smt_width() {
            width if width > MOST_THREADS => {
                Err(format!("cores of {width} threads; at most {MOST_THREADS} are simulated"))
            }
            _ => Ok(topology),
        }
    })
}

fn core_types(section: &Section<'_>, topology: &Topology) -> Read<Vec<CoreType>> {
    section.only(&KINDS.map(|(name, _)| name))?;
    let used = |kind: CoreKind| topology.cores().iter().any(|core| core.kind == kind);
    let mut types = Vec::new();
    for (name, kind) in KINDS {
        match (section.has(name), used(kind)) {
            (true, false) => {
                return Err(section.error(name, "the topology has no core of this kind"));
            }
            (false, false) => {}
            (_, true) => types.push(core_type(&section.section(name)?, kind)?),
        }
    }
    Ok(types)
}

fn core_type(section: &Section<'_>, kind: CoreKind) -> Read<CoreType> {
    section.only(&[
        "source",
        "catalogue",
        "ghz",
        "fetch",
        "taken_per_fetch",
        "group_branches",
        "halves_from",
        "dispatch",
        "retire",
        "refill",
        "rob",
        "iq",
        "fp_iq",
        "lq",
        "sq",
        "mshrs",
        "ports",
        "private_ports",
        "latency",
        "forwarding",
        "predictor",
        "mispredicts",
        "tage",
        "l1i",
        "l1d",
        "l2",
        "l3",
        "tlb",
        "prefetch_streams",
        "prefetch_lines",
    ])?;
    let optional = |key| section.has(key).then_some(key);
    let catalogue = section.words("catalogue")?;
    if !CATALOGUES.contains(&catalogue.as_str()) {
        let known = CATALOGUES.join(", ");
        let why = format!("no catalogue that a simulated machine can count by; known: {known}");
        return Err(section.error("catalogue", why));
    }
    let (prediction, predictor, mispredicts) = predictor(section)?;
    let core = CoreType {
        kind,
        catalogue,
        ghz: section.real("ghz", 0.01..=20.0)?,
        fetch: section.count("fetch", 1..=64)?,
        taken_per_fetch: section.count("taken_per_fetch", 1..=64)?,
        group_branches: optional("group_branches")
            .map(|key| section.count(key, 1..=64))
            .transpose()?,
        halves_from: optional("halves_from").map(|key| section.count(key, 2..=64)).transpose()?,
        dispatch: section.count("dispatch", 1..=64)?,
        retire: section.count("retire", 1..=64)?,
        refill: section.count("refill", 0..=200)?,
        rob: structure(section, "rob")?,
        iq: structure(section, "iq")?,
        fp_iq: optional("fp_iq").map(|key| structure(section, key)).transpose()?,
        lq: structure(section, "lq")?,
        sq: structure(section, "sq")?,
        mshrs: structure(section, "mshrs")?,
        ports: ports(section)?,
        latency: latencies(&section.section("latency")?)?,
        forwarding: forwarding(&section.section("forwarding")?)?,
        prediction,
        predictor,
        mispredicts,
        l1i: cache(section, "l1i")?,
        l1d: cache(section, "l1d")?,
        l2: cache(section, "l2")?,
        l3: optional("l3").map(|key| cache(section, key)).transpose()?,
        tlb: tlb(&section.section("tlb")?)?,
        prefetch_streams: section.count("prefetch_streams", 0..=256)?,
        prefetch_lines: section.count("prefetch_lines", 0..=256)?,
    };
    let caches = [Some(&core.l1i), Some(&core.l2), core.l3.as_ref()];
    if caches.into_iter().flatten().any(|cache| cache.line != core.l1d.line) {
        return Err(section.error("l1d", "lines of all caches of a core are equally long here"));
    }
    Ok(core)
}

fn structure(section: &Section<'_>, key: &str) -> Read<Structure> {
    let section = section.section(key)?;
    section.only(&["source", "entries", "smt"])?;
    let entries = section.count("entries", 1..=1 << 16)?;
    let smt = section.text("smt", |rule| {
        let capped = rule.strip_prefix("capped:").and_then(|share| share.parse::<f64>().ok());
        match (rule, capped) {
            ("private", _) => Ok(SmtRule::Private),
            ("partitioned", _) => Ok(SmtRule::Partitioned),
            ("shared", _) => Ok(SmtRule::Shared),
            ("halved", _) => Ok(SmtRule::Halved),
            (_, Some(share)) if share > 0.0 && share <= 1.0 => Ok(SmtRule::Capped(share)),
            _ => Err(format!(
                "expected private, partitioned, shared, halved or capped:F with F above 0 and at \
                 most 1, found \"{rule}\""
            )),
        }
    })?;
    Ok(Structure { entries, smt })
}

fn ports(section: &Section<'_>) -> Read<Vec<Port>> {
    let port = |private| {
        move |text: &str| {
            let does: Result<Vec<_>, _> = text.split_whitespace().map(op_class).collect();
            match does? {
                none if none.is_empty() => Err("a port must do something".to_owned()),
                does => Ok(Port { does, private }),
            }
        }
    };
    let mut ports = section.list("ports", port(false))?;
    if section.has("private_ports") {
        ports.extend(section.list("private_ports", port(true))?);
    }
    let idle = |class| !ports.iter().any(|port| port.does.contains(&class));
    match PORT_CLASSES.iter().find(|(_, class)| idle(*class)) {
        Some((name, _)) => Err(section.error("ports", format!("no port does '{name}'"))),
        None => Ok(ports),
    }
}

fn op_class(name: &str) -> Result<OpClass, String> {
    PORT_CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class).ok_or_else(
        || {
            let known = PORT_CLASSES.map(|(name, _)| name).join(", ");
            format!("'{name}' is no kind of micro-op; known: {known}")
        },
    )
}

fn latencies(section: &Section<'_>) -> Read<Latencies> {
    section.only(&[
        "source",
        "integer",
        "multiply",
        "divide",
        "fp_add",
        "fp_multiply",
        "fp_fma",
        "fp_divide",
        "fp_divide_busy",
        "vector",
    ])?;
    let cycles = |key| section.count(key, 1..=500);
    Ok(Latencies {
        integer: cycles("integer")?,
        multiply: cycles("multiply")?,
        divide: cycles("divide")?,
        fp_add: cycles("fp_add")?,
        fp_multiply: cycles("fp_multiply")?,
        fp_fma: cycles("fp_fma")?,
        fp_divide: cycles("fp_divide")?,
        fp_divide_busy: cycles("fp_divide_busy")?,
        vector: cycles("vector")?,
    })
}

/// Kind, size, and the share of its mispredictions that remains.
fn predictor(section: &Section<'_>) -> Read<(Prediction, u32, f64)> {
    if !section.has("tage") {
        let entries = section.count("predictor", 1..=1 << 24)?;
        return Ok((Prediction::Gshare, entries, section.real("mispredicts", 0.01..=1.0)?));
    }
    if let Some(key) = ["predictor", "mispredicts"].into_iter().find(|key| section.has(key)) {
        let why = "of a core with `tage`; it is of one that is compared with a gshare".to_owned();
        return Err(section.error(key, why));
    }
    Ok((Prediction::Tage, section.count("tage", 1..=1 << 24)?, 1.0))
}

fn forwarding(section: &Section<'_>) -> Read<Forwarding> {
    section.only(&["source", "latency", "partial", "same_registers"])?;
    let renames = section.text("same_registers", |text| match text {
        "renamed" => Ok(true),
        "forwarded" => Ok(false),
        _ => Err(format!("expected renamed or forwarded, found \"{text}\"")),
    });
    let (latency, partial) =
        (section.count("latency", 1..=200)?, section.count("partial", 1..=200)?);
    Ok(Forwarding { latency, partial, renames: renames? })
}

fn cache(section: &Section<'_>, key: &str) -> Read<Cache> {
    let section = section.section(key)?;
    section.only(&["source", "bytes", "ways", "line", "latency", "shared_by"])?;
    let cache = Cache {
        bytes: section.bytes("bytes")?,
        ways: section.count("ways", 1..=1 << 16)?,
        line: section.count("line", 16..=1024)?,
        latency: section.count("latency", 1..=1000)?,
        scope: scope(&section)?,
    };
    if ![64, 128].contains(&cache.line) {
        return Err(section.error("line", "profiles have lines of 64 and of 128 bytes only"));
    }
    let row = u64::from(cache.ways) * u64::from(cache.line);
    if cache.bytes % row != 0 {
        let reason = format!("the size is no multiple of ways × line = {row} bytes");
        return Err(section.error("bytes", reason));
    }
    Ok(cache)
}

fn scope(section: &Section<'_>) -> Read<Scope> {
    section.text("shared_by", |text| {
        let cores = text.strip_prefix("cores:").and_then(|count| count.parse::<u32>().ok());
        match (text, cores) {
            ("thread", _) => Ok(Scope::Thread),
            ("core", _) => Ok(Scope::Core),
            ("llc", _) => Ok(Scope::Llc),
            (_, Some(count)) if count > 0 => Ok(Scope::Cores(count)),
            _ => Err(format!("expected thread, core, cores:N or llc, found \"{text}\"")),
        }
    })
}

fn tlb(section: &Section<'_>) -> Read<Tlb> {
    section.only(&["source", "page", "data", "instruction", "second", "second_latency", "walk"])?;
    let entries = |key: &str| {
        let section = section.section(key)?;
        section.only(&["source", "entries", "shared_by"])?;
        Ok(TlbEntries { entries: section.count("entries", 1..=1 << 20)?, scope: scope(&section)? })
    };
    let second = section.has("second").then(|| entries("second")).transpose()?;
    let second_latency =
        if second.is_some() { section.count("second_latency", 1..=100)? } else { 0 };
    let page = section.bytes("page")?;
    if !page.is_power_of_two() || page < 4096 {
        return Err(section.error("page", "a page is a power of two from 4K"));
    }
    Ok(Tlb {
        page,
        data: entries("data")?,
        instruction: entries("instruction")?,
        second,
        second_latency,
        walk: section.count("walk", 1..=1000)?,
    })
}

fn memory(section: &Section<'_>, topology: &Topology) -> Read<Memory> {
    section.only(&[
        "source",
        "latency_ns",
        "read_gbps",
        "write_gbps",
        "total_gbps",
        "remote_latency",
        "link_gbps",
        "link_write_gbps",
    ])?;
    let gbps = |key| section.real(key, 0.1..=10_000.0);
    let nodes: Vec<NodeId> = topology
        .nodes()
        .iter()
        .filter(|node| node.memory_bytes.is_some_and(|bytes| bytes > 0))
        .map(|node| node.id)
        .collect();
    if nodes.is_empty() {
        return Err(
            section.error("latency_ns", "no node of the topology has memory; write memory:SIZE")
        );
    }
    let several = topology.nodes().len() > 1;
    let total_gbps = gbps("total_gbps")?;
    let one_node = "the topology has one node; remote_latency, link_gbps and link_write_gbps belong to several";
    for key in ["remote_latency", "link_gbps", "link_write_gbps"] {
        if !several && section.has(key) {
            return Err(section.error(key, one_node));
        }
    }
    let link_gbps = if several { gbps("link_gbps")? } else { total_gbps };
    let link_write = section.has("link_write_gbps").then(|| gbps("link_write_gbps")).transpose()?;
    Ok(Memory {
        latency_ns: section.real("latency_ns", 1.0..=10_000.0)?,
        read_gbps: gbps("read_gbps")?,
        write_gbps: gbps("write_gbps")?,
        total_gbps,
        remote_latency: if several { section.real("remote_latency", 1.0..=20.0)? } else { 1.0 },
        link_gbps,
        link_write_gbps: link_write.unwrap_or(link_gbps),
        nodes,
    })
}

fn costs(section: &Section<'_>) -> Read<Costs> {
    section.only(&["source", "mode_switch_us", "context_switch_us", "migration_us"])?;
    let micros = |key| section.real(key, 0.0..=10_000.0);
    Ok(Costs {
        mode_switch_us: micros("mode_switch_us")?,
        context_switch_us: micros("context_switch_us")?,
        migration_us: micros("migration_us")?,
    })
}
