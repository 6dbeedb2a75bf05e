//! From text to levels.

use super::levels::typed;
use super::{Attributes, Fault, Kind, Layer, Parsed};

/// Most levels; hwloc's own bound.
const MOST_LEVELS: usize = 128;
/// Keys of a line that hwloc knows as levels, too.
const OF_BOTH: [&str; 3] = ["package", "node", "core"];

/// Levels from the machine down to the PU, and the indexes of attached nodes.
pub(super) struct Parts<'a> {
    pub(super) levels: Vec<Layer<'a>>,
    pub(super) attached_indexes: Option<(usize, &'a str)>,
}

/// Is this a string of hwloc, and no line of [`crate::synthetic`]? Any word will do that only hwloc knows.
#[must_use]
pub fn is_hwloc_form(text: &str) -> bool {
    let only_of_hwloc = |word: &str| {
        let key = word.split_once(':').map_or(word, |(key, _)| key);
        let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        number || (kind(key).is_some() && !OF_BOTH.contains(&key))
    };
    !text.contains('|')
        && (text.contains(['(', '[']) || text.split_ascii_whitespace().any(only_of_hwloc))
}

/// The kind by its name or the beginning of that.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    let is = |whole: &str| name.len() >= 2 && whole.starts_with(&name);
    let is_group =
        |whole: &str| whole.starts_with(name.trim_end_matches(|c: char| c.is_ascii_digit()));
    if is("numanode") || is("node") {
        return Some(Kind::Node);
    }
    if is("package") || is("socket") {
        return Some(Kind::Package);
    }
    match name.strip_prefix('l').and_then(|rest| rest.split_at_checked(1)) {
        Some((level, rest)) if level.bytes().all(|byte| byte.is_ascii_digit()) => {
            let level: u32 = level.parse().ok()?;
            let (holds_data, suffix) = match rest.strip_prefix('i') {
                Some(suffix) => (false, suffix),
                None => (true, rest.strip_prefix(['d', 'u']).unwrap_or(rest)),
            };
            let most = if holds_data { 5 } else { 3 };
            return ("cache".starts_with(suffix) && (1..=most).contains(&level))
                .then_some(Kind::Cache { level, holds_data });
        }
        _ => {}
    }
    match () {
        () if is("die") => Some(Kind::Die),
        () if is("core") => Some(Kind::Core),
        () if is("pu") => Some(Kind::Pu),
        () if name.len() >= 2 && ["group", "tile", "module"].into_iter().any(is_group) => {
            Some(Kind::Group)
        }
        () => None,
    }
}

pub(super) fn parse(text: &str) -> Parsed<Parts<'_>> {
    let mut at = Cursor { text, byte: 0 };
    let mut machine = Layer {
        kind: Some(Kind::Machine),
        count: 1,
        byte: 0,
        attributes: Attributes::default(),
        attached: Vec::new(),
    };
    at.blanks();
    machine.attributes = at.attributes(Kind::Machine)?;
    let mut levels = vec![machine];
    let mut attached_indexes = None;
    loop {
        at.blanks();
        let start = at.byte;
        if at.rest().is_empty() {
            break;
        }
        if at.eat("[") {
            let name = at.name();
            if kind(name) != Some(Kind::Node) {
                return Err(Fault::new(start, "only [numa] is attached"));
            }
            let attributes = at.attributes(Kind::Node)?;
            at.expect("]")?;
            attached_indexes = attributes.indexes.or(attached_indexes);
            if let Some(level) = levels.last_mut() {
                level.attached.push(attributes.bytes);
            }
            continue;
        }
        if levels.len() >= MOST_LEVELS {
            return Err(Fault::new(start, format!("more than {MOST_LEVELS} levels")));
        }
        let kind = match at.rest().starts_with(|c: char| c.is_ascii_digit()) {
            true => None,
            false => Some(at.level()?),
        };
        let count = at.count()?;
        let attributes = at.attributes(kind.unwrap_or(Kind::Group))?;
        levels.push(Layer { kind, count, byte: start, attributes, attached: Vec::new() });
    }
    typed(&mut levels, text.len())?;
    Ok(Parts { levels, attached_indexes })
}

/// What is read, and how far.
struct Cursor<'a> {
    text: &'a str,
    byte: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.byte..).unwrap_or_default()
    }

    /// What comes as long as the characters are such.
    fn take(&mut self, such: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !such(c)).unwrap_or(rest.len());
        self.byte += end;
        rest.get(..end).unwrap_or_default()
    }

    fn blanks(&mut self) {
        self.take(|c| c.is_ascii_whitespace());
    }

    fn name(&mut self) -> &'a str {
        self.take(|c| c.is_ascii_alphanumeric())
    }

    fn eat(&mut self, what: &str) -> bool {
        let there = self.rest().starts_with(what);
        self.byte += if there { what.len() } else { 0 };
        there
    }

    fn expect(&mut self, what: &str) -> Parsed<()> {
        let found = self.rest().chars().next();
        let found = found.map_or("the end".to_owned(), |found| format!("'{found}'"));
        let fault = Fault::new(self.byte, format!("expected '{what}', found {found}"));
        if self.eat(what) { Ok(()) } else { Err(fault) }
    }

    /// A kind of level and the colon behind it.
    fn level(&mut self) -> Parsed<Kind> {
        let start = self.byte;
        let name = self.take(|c| !c.is_ascii_whitespace() && !":()[]".contains(c));
        let levels = "package, die, numa, l1 to l5, core, pu, group";
        let kind = kind(name).ok_or_else(|| {
            Fault::new(start, format!("'{name}' is no level; levels are {levels}"))
        })?;
        self.expect(":")?;
        Ok(kind)
    }

    /// How many there are.
    fn count(&mut self) -> Parsed<u32> {
        let start = self.byte;
        let digits = self.take(|c| c.is_ascii_alphanumeric() || c == '-');
        match digits.parse() {
            Ok(count) if count > 0 => Ok(count),
            _ => {
                Err(Fault::new(start, format!("'{digits}' is not a number from 1 to {}", u32::MAX)))
            }
        }
    }

    /// What stands in parentheses, if anything does.
    fn attributes(&mut self, of: Kind) -> Parsed<Attributes<'a>> {
        let mut attributes = Attributes::default();
        if !self.eat("(") {
            return Ok(attributes);
        }
        loop {
            self.blanks();
            let start = self.byte;
            let word = self.take(|c| !c.is_ascii_whitespace() && c != ')');
            if word.is_empty() {
                self.expect(")")?;
                return Ok(attributes);
            }
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let at = start + word.len() - value.len();
            let bytes = || {
                let reason = format!("'{value}' is not a size like 33554432, 32MiB or 16GB");
                size(value).ok_or_else(|| Fault::new(at, reason))
            };
            match (key, of) {
                ("size", Kind::Cache { .. }) | ("memory", Kind::Node) => {
                    attributes.bytes = Some(bytes()?);
                }
                // Of other levels hwloc reads it and makes nothing of it.
                ("memory", _) | ("memorysidecachesize", _) => {
                    bytes()?;
                }
                ("indexes", _) => attributes.indexes = Some((at, value)),
                _ => {
                    let known = match of {
                        Kind::Cache { .. } => "size and indexes",
                        _ => "memory, memorysidecachesize and indexes",
                    };
                    let reason = format!("'{key}' is no attribute here; there are {known}");
                    return Err(Fault::new(start, reason));
                }
            }
        }
    }
}

/// A size in bytes, with hwloc's units.
fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    let unit: u64 = match unit.to_ascii_lowercase().as_str() {
        "" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
