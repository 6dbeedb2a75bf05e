//! From TOML text to a checked catalogue.

use toml::de::DeTable;

use super::counters::{fit, fit_with};
use super::document::{Section, error_at};
use super::encoding::Field;
use super::expression::{is_name, parse};
use super::formula::Context;
use super::{
    Catalogue, CatalogueError, Categories, Counters, CpuRule, Encoding, Event, EventOracle,
    Formula, Group, Oracles, Pmu, PmuType, Smt, Sum, Unit, Units,
};

/// More than any PMU can count at once.
const MAX_GROUP: usize = 32;

pub(super) fn catalogue(file: &str, text: &str) -> Result<Catalogue, CatalogueError> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        error_at(file, text, at, "document", format!("no TOML: {}", error.message()))
    })?;
    let root = Section::root(file, text, table.get_ref());
    root.only(&[
        "name",
        "title",
        "source",
        "caveats",
        "slots",
        "smt",
        "units",
        "detect",
        "pmu",
        "oracle",
        "event",
        "group",
        "formula",
        "sum",
        "categories",
    ])?;
    let (pmu, format) = pmu(&root.section("pmu")?)?;
    let events = events(&root, &pmu, &format)?;
    let groups = groups(&root, &pmu, &events)?;
    let formulas = formulas(&root, &events, &groups)?;
    let slots = root.number_if_any("slots")?.map(u32::try_from).transpose();
    Ok(Catalogue {
        text: text.to_owned(),
        name: root.text("name")?,
        title: root.text("title")?,
        source: root.text("source")?,
        caveats: root.text("caveats")?,
        smt: smt(&root.section("smt")?)?,
        slots: slots.map_err(|_| root.error_in("slots", "does not fit 32 bits"))?,
        units: root.section_if_any("units")?.map(|section| units(&section)).transpose()?,
        rules: root.sections("detect")?.iter().map(CpuRule::read).collect::<Result<_, _>>()?,
        oracles: oracles(&root)?,
        sums: sums(&root, &formulas)?,
        categories: categories(&root, &formulas)?,
        pmu,
        events,
        groups,
        formulas,
    })
}

fn smt(section: &Section<'_>) -> Result<Smt, CatalogueError> {
    section.only(&["threads", "correction"])?;
    let threads = u32::try_from(section.number("threads")?)
        .map_err(|_| section.error_in("threads", "does not fit 32 bits"))?;
    Ok(Smt { threads, correction: section.text("correction")? })
}

fn units(section: &Section<'_>) -> Result<Units, CatalogueError> {
    section.only(&["floating_point", "source"])?;
    let number = u32::try_from(section.number("floating_point")?).ok().filter(|number| *number > 0);
    let floating_point = number.ok_or_else(|| {
        section.error_in("floating_point", "expected a number from 1 to 2^32 - 1")
    })?;
    Ok(Units { floating_point, source: section.text("source")? })
}

fn pmu(section: &Section<'_>) -> Result<(Pmu, Vec<Field>), CatalogueError> {
    section.only(&["type", "counters", "watchdog", "note", "format"])?;
    let kind = match section.text("type")?.as_str() {
        "raw" => PmuType::Raw,
        "hardware" => PmuType::Hardware,
        "software" => PmuType::Software,
        device => PmuType::Device(device.to_owned()),
    };
    let counters = section.numbers("counters")?.unwrap_or_default();
    let format = section.section("format")?;
    let fields = format.keys().into_iter().map(|name| Field::read(&format, name));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    if let Some(field) = fields.iter().find(|field| EVENT_KEYS.contains(&field.name.as_str())) {
        return Err(format.error_in(&field.name, "a field cannot have the name of an event's key"));
    }
    let (watchdog, note) = (section.text_if_any("watchdog")?, section.text_if_any("note")?);
    Ok((Pmu { kind, counters, watchdog, note }, fields))
}

fn oracles(root: &Section<'_>) -> Result<Oracles, CatalogueError> {
    let Some(section) = root.section_if_any("oracle")? else { return Ok(Oracles::default()) };
    section.only(&["perf", "perf_unit", "also", "libpfm"])?;
    Ok(Oracles {
        perf: section.text_if_any("perf")?,
        perf_unit: section.text_if_any("perf_unit")?,
        also: if section.has("also") { section.texts("also")? } else { Vec::new() },
        libpfm: section.text_if_any("libpfm")?,
    })
}

/// Keys of an event that are no fields of its encoding.
const EVENT_KEYS: [&str; 7] =
    ["name", "what", "counters", "fixed", "in_kernel", "source", "oracle"];

fn events(root: &Section<'_>, pmu: &Pmu, format: &[Field]) -> Result<Vec<Event>, CatalogueError> {
    let source = root.text("source")?;
    let mut events: Vec<Event> = Vec::new();
    for section in root.sections("event")? {
        let name = section.text("name")?;
        if !is_name(&name) {
            return Err(section.error_in("name", format!("'{name}' is no name for formulas")));
        }
        if events.iter().any(|event| event.name == name) {
            return Err(section.error_in("name", format!("there is an event '{name}' already")));
        }
        let section = section.named(format!("event.{name}"));
        let mut known = EVENT_KEYS.to_vec();
        known.extend(format.iter().map(|field| field.name.as_str()));
        section.only(&known)?;
        let (fields, encoding) = encoding(&section, format)?;
        events.push(Event {
            what: section.text("what")?,
            counters: counters(&section, pmu)?,
            in_kernel: section.switch("in_kernel")?,
            source: section.text_if_any("source")?.unwrap_or_else(|| source.clone()),
            oracle: event_oracle(&section)?,
            name,
            fields,
            encoding,
        });
    }
    if events.is_empty() {
        return Err(root.error_in("event", "a catalogue needs at least one event"));
    }
    Ok(events)
}

type Fields = Vec<(String, u64)>;

fn encoding(section: &Section<'_>, format: &[Field]) -> Result<(Fields, Encoding), CatalogueError> {
    let mut encoding = Encoding::default();
    let mut fields = Vec::new();
    for field in format {
        let Some(value) = section.number_if_any(&field.name)? else { continue };
        field
            .place(value, &mut encoding)
            .ok_or_else(|| section.error_in(&field.name, format!("{value:#x} is too wide")))?;
        fields.push((field.name.clone(), value));
    }
    if fields.is_empty() {
        let names: Vec<_> = format.iter().map(|field| field.name.as_str()).collect();
        return Err(section.error(format!("has no encoding; give any of: {}", names.join(", "))));
    }
    Ok((fields, encoding))
}

fn counters(section: &Section<'_>, pmu: &Pmu) -> Result<Counters, CatalogueError> {
    let only = section.numbers("counters")?;
    let fixed = section.number_if_any("fixed")?;
    match (only, fixed) {
        (Some(_), Some(_)) => Err(section.error_in("fixed", "cannot go together with counters")),
        (None, Some(index)) => u32::try_from(index)
            .map(Counters::Fixed)
            .map_err(|_| section.error_in("fixed", "does not fit 32 bits")),
        (Some(list), None) => match list.iter().find(|number| !pmu.counters.contains(number)) {
            Some(number) => {
                Err(section.error_in("counters", format!("this PMU has no counter {number}")))
            }
            None => Ok(Counters::Only(list)),
        },
        (None, None) if pmu.kind == PmuType::Software => Ok(Counters::Kernel),
        (None, None) => Ok(Counters::Any),
    }
}

fn event_oracle(section: &Section<'_>) -> Result<EventOracle, CatalogueError> {
    let Some(section) = section.section_if_any("oracle")? else {
        return Ok(EventOracle::default());
    };
    section.only(&["perf", "libpfm", "perf_differs", "libpfm_differs"])?;
    Ok(EventOracle {
        perf: section.text_if_any("perf")?,
        libpfm: section.text_if_any("libpfm")?,
        perf_differs: section.text_if_any("perf_differs")?,
        libpfm_differs: section.text_if_any("libpfm_differs")?,
    })
}

fn groups(root: &Section<'_>, pmu: &Pmu, events: &[Event]) -> Result<Vec<Group>, CatalogueError> {
    let watchdog = watchdog(root, pmu, events)?;
    let mut groups: Vec<Group> = Vec::new();
    for section in root.sections("group")? {
        let name = section.text("name")?;
        if groups.iter().any(|group| group.name == name) {
            return Err(section.error_in("name", format!("there is a group '{name}' already")));
        }
        let section = section.named(format!("group.{name}"));
        section.only(&["name", "events"])?;
        let names = section.texts("events")?;
        if names.is_empty() || names.len() > MAX_GROUP {
            return Err(section.error_in("events", format!("expected 1 to {MAX_GROUP} events")));
        }
        let mut members = Vec::new();
        for name in &names {
            let Some(place) = events.iter().position(|event| event.name == *name) else {
                return Err(section.error_in("events", format!("unknown event '{name}'")));
            };
            if members.contains(&place) {
                return Err(section.error_in("events", format!("names '{name}' twice")));
            }
            members.push(place);
        }
        let wants: Vec<_> =
            members.iter().filter_map(|&place| events.get(place)).map(|e| &e.counters).collect();
        if !fit(&wants, &pmu.counters) {
            return Err(section.error_in("events", "do not fit the counters at the same time"));
        }
        if watchdog.is_some_and(|taken| !fit_with(taken, &wants, &pmu.counters)) {
            let why = "do not fit the counters with the kernel's watchdog; make the group smaller";
            return Err(section.error_in("events", why));
        }
        groups.push(Group { name, events: names, members });
    }
    let lost = events
        .iter()
        .enumerate()
        .find(|(place, _)| !groups.iter().any(|group| group.members.contains(place)));
    match lost {
        Some((_, event)) => {
            Err(root.error_in("group", format!("event '{}' is in no group", event.name)))
        }
        None => Ok(groups),
    }
}

/// The counters of the event that the kernel's watchdog counts.
fn watchdog<'a>(
    root: &Section<'_>,
    pmu: &Pmu,
    events: &'a [Event],
) -> Result<Option<&'a Counters>, CatalogueError> {
    let Some(name) = &pmu.watchdog else { return Ok(None) };
    match events.iter().find(|event| event.name == *name) {
        Some(event) => Ok(Some(&event.counters)),
        None => {
            let section = root.section("pmu")?;
            Err(section.error_in("watchdog", format!("unknown event '{name}'")))
        }
    }
}

fn formulas(
    root: &Section<'_>,
    events: &[Event],
    groups: &[Group],
) -> Result<Vec<Formula>, CatalogueError> {
    let Some(table) = root.section_if_any("formula")? else { return Ok(Vec::new()) };
    let mut formulas: Vec<Formula> = Vec::new();
    for name in table.keys() {
        let section = table.section(name)?;
        section.only(&["expr", "unit", "source", "note"])?;
        if !is_name(name) {
            return Err(section.error("is no name for formulas"));
        }
        if events.iter().any(|event| event.name == name) {
            return Err(section.error("has the name of an event"));
        }
        let unit = section.text("unit")?.parse::<Unit>();
        let unit = unit.map_err(|unknown| section.error_in("unit", unknown.to_string()))?;
        let text = section.text("expr")?;
        let context = Context { events, groups, formulas: &formulas };
        let expression = parse(&text, &|name| context.resolve(name)).map_err(|refusal| {
            section.error_in("expr", format!("at character {}: {}", refusal.at + 1, refusal.reason))
        })?;
        let (source, note) = (section.text("source")?, section.text_if_any("note")?);
        let formula = context
            .formula(name.to_owned(), unit, text, source, note, expression)
            .map_err(|reason| section.error_in("expr", reason))?;
        formulas.push(formula);
    }
    Ok(formulas)
}

/// Formulas by name, all of one unit.
fn members(
    section: &Section<'_>,
    key: &str,
    formulas: &[Formula],
    unit: Unit,
) -> Result<Vec<String>, CatalogueError> {
    let names = section.texts(key)?;
    for name in &names {
        let formula = formulas.iter().find(|formula| formula.name == *name);
        let reason = match formula {
            None => format!("unknown formula '{name}'"),
            Some(formula) if formula.unit != unit => {
                format!("'{name}' is in {}, not in {unit}", formula.unit)
            }
            Some(_) => continue,
        };
        return Err(section.error_in(key, reason));
    }
    Ok(names)
}

fn sums(root: &Section<'_>, formulas: &[Formula]) -> Result<Vec<Sum>, CatalogueError> {
    let mut sums = Vec::new();
    for section in root.sections("sum")? {
        let name = section.text("name")?;
        let section = section.named(format!("sum.{name}"));
        section.only(&["name", "parts", "total"])?;
        let total = section.text_if_any("total")?;
        let unit = match &total {
            None => Unit::Fraction,
            Some(total) => formulas
                .iter()
                .find(|formula| formula.name == *total)
                .map(|formula| formula.unit)
                .ok_or_else(|| section.error_in("total", format!("unknown formula '{total}'")))?,
        };
        let parts = members(&section, "parts", formulas, unit)?;
        sums.push(Sum { name, parts, total });
    }
    Ok(sums)
}

fn categories(root: &Section<'_>, formulas: &[Formula]) -> Result<Vec<Categories>, CatalogueError> {
    let mut lists = Vec::new();
    for section in root.sections("categories")? {
        let name = section.text("name")?;
        let section = section.named(format!("categories.{name}"));
        section.only(&["name", "members", "note"])?;
        let members = members(&section, "members", formulas, Unit::Fraction)?;
        lists.push(Categories { name, members, note: section.text_if_any("note")? });
    }
    Ok(lists)
}
