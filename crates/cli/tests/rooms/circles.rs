//! Modules of one folder use each other in layers: no circle.
//!
//! # Approach
//! A module is a file. What it uses is every path in it that begins with `crate`, `self` or `super`, imports as well
//! as others; names that a module re-exports (`pub use`) stand for the module that has them. Comments, tests
//! and worlds for tests are passed over. A path from one module to another is an arrow between the two
//! folders' entries where their ways part:
//!
//! ```text
//! arrows := from each module to the modules of its paths, as entries of the folder that they have in common
//! in each folder: leave out, again and again, the entries without an arrow to, or from, another that is left
//! what is left is a circle
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{rooms, root};

/// A way from the root of a crate to a module or to what is in it.
type Way = Vec<String>;

/// Circles that are not open yet: the room, the folder below its root, and what goes in a circle there.
const KNOWN: &[(&str, &str, &[&str])] = &[
    // Arguments know the commands' own types, and commands their arguments; several use what cleans texts for `top`.
    (
        "cli",
        "",
        &[
            "args",
            "batch",
            "bench",
            "client",
            "doctor",
            "knowledge",
            "quiet",
            "research",
            "state_files",
            "status",
            "top",
        ],
    ),
    // The list knows all policies, they know what they are made with, and that knows what some of them are given.
    (
        "core/policy",
        "",
        &[
            "activity",
            "auto",
            "fixed",
            "fpu",
            "hysched",
            "l1_bandwidth",
            "learned",
            "never_twice",
            "oracle",
            "phases",
            "random",
            "registry",
            "requirements",
            "runnable",
            "settings",
            "stay",
            "symbiotic_numa",
            "symbiotic_online",
        ],
    ),
    // Sets of hardware threads hold their numbers, and a tree of them holds such sets.
    ("core/topology", "", &["cpuset", "tree"]),
    // A table writes itself as CSV, and the page fails with the error of the report.
    ("research/report", "", &["csv", "html", "plot", "table", "write"]),
];

/// The words and signs of code, without comments, strings' insides kept, and without its tests.
fn tokens(text: &str) -> Vec<String> {
    let (text, _) = text.split_once("#[cfg(test)]\nmod tests").unwrap_or((text, ""));
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut tokens: Vec<String> = Vec::new();
    for line in code {
        let mut is_inside = false;
        for c in line.chars() {
            let is_word = c.is_alphanumeric() || c == '_';
            match tokens.last_mut() {
                Some(word) if is_word && is_inside => word.push(c),
                Some(colon) if c == ':' && colon == ":" => colon.push(c),
                _ if c.is_whitespace() => {}
                _ => tokens.push(c.to_string()),
            }
            is_inside = is_word;
        }
    }
    tokens
}

/// The ways that a path leads to, each with the name under which it is known from then on: several where it
/// ends in a list. `at` is the first word of the path, and the first token behind it in the end.
fn ways(tokens: &[String], at: &mut usize, before: &[String]) -> Vec<(Way, String)> {
    let mut way = before.to_vec();
    loop {
        let token = tokens.get(*at).map_or("", String::as_str);
        *at += 1;
        if token == "{" {
            let mut all = Vec::new();
            while tokens.get(*at).is_some_and(|token| token != "}") {
                all.extend(ways(tokens, at, &way));
                if tokens.get(*at).is_some_and(|token| token == ",") {
                    *at += 1;
                } else if tokens.get(*at).is_some_and(|token| token != "}") {
                    break;
                }
            }
            *at += 1;
            return all;
        }
        way.push(token.to_owned());
        if tokens.get(*at).is_some_and(|token| token == "::") {
            *at += 1;
            continue;
        }
        let mut name = token.to_owned();
        if tokens.get(*at).is_some_and(|token| token == "as") {
            name = tokens.get(*at + 1).cloned().unwrap_or_default();
            *at += 2;
        }
        return vec![(way, name)];
    }
}

/// A way from the root of the crate; none for that of another crate.
fn absolute(way: &[String], module: &[String], children: &BTreeSet<&String>) -> Option<Way> {
    let mut base = module.to_vec();
    let mut rest = way;
    match rest.first()?.as_str() {
        "crate" => base.clear(),
        "self" | "super" => {}
        _ => {
            return children.contains(rest.first()?).then(|| [module, way].concat());
        }
    }
    while let Some(first) =
        rest.first().filter(|word| ["crate", "self", "super"].contains(&word.as_str()))
    {
        if first == "super" {
            base.pop()?;
        }
        rest = &rest[1..];
    }
    Some([base, rest.to_vec()].concat())
}

/// The modules of a crate: their ways and their files' tokens.
fn modules(src: &Path) -> BTreeMap<Way, Vec<String>> {
    let is_test = |name: &str| {
        name.ends_with("tests") || ["worlds", "test_support", "testing"].contains(&name)
    };
    let mut modules = BTreeMap::new();
    let mut folders = vec![(src.to_owned(), Way::new())];
    while let Some((folder, way)) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if is_test(&name) {
                continue;
            }
            let own = [way.clone(), vec![name.clone()]].concat();
            if path.is_dir() {
                folders.push((path, own));
            } else if path.extension().is_some_and(|e| e == "rs") {
                let own = if ["lib", "main"].contains(&name.as_str()) { way.clone() } else { own };
                modules.insert(own, tokens(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    modules
}

/// What each module uses, and what each re-exports by which name.
struct Uses {
    of: BTreeMap<Way, BTreeSet<Way>>,
    re_exports: BTreeMap<Way, Way>,
}

fn uses(modules: &BTreeMap<Way, Vec<String>>) -> Uses {
    let mut uses = Uses { of: BTreeMap::new(), re_exports: BTreeMap::new() };
    for (module, tokens) in modules {
        let is_child = |way: &&Way| way.len() == module.len() + 1 && way.starts_with(module);
        let children: BTreeSet<&String> =
            modules.keys().filter(is_child).filter_map(|w| w.last()).collect();
        let own = uses.of.entry(module.clone()).or_default();
        let mut at = 0;
        while at < tokens.len() {
            let word = tokens[at].as_str();
            let behind = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at].as_str());
            let is_path = ["crate", "self", "super"].contains(&word)
                && !["::", "$"].contains(&behind(1))
                && tokens.get(at + 1).is_some_and(|token| token == "::");
            if word != "use" && !is_path {
                at += 1;
                continue;
            }
            let is_public = word == "use" && ["pub", ")"].contains(&behind(1));
            at += usize::from(word == "use");
            for (way, name) in ways(tokens, &mut at, &[]) {
                let Some(way) = absolute(&way, module, &children) else { continue };
                if is_public {
                    uses.re_exports.insert([module.clone(), vec![name]].concat(), way.clone());
                }
                own.insert(way);
            }
        }
    }
    uses
}

/// The module that a way leads to, if need be over what others re-export.
fn module_of(way: &Way, modules: &BTreeMap<Way, Vec<String>>, uses: &Uses) -> Way {
    let mut way = way.clone();
    // No re-export leads over more than a few others.
    for _ in 0..8 {
        let length = (0..=way.len()).rev().find(|&length| modules.contains_key(&way[..length]));
        let (module, rest) = way.split_at(length.unwrap_or(0));
        let next = rest
            .first()
            .and_then(|name| uses.re_exports.get(&[module, std::slice::from_ref(name)].concat()));
        match next {
            Some(next) => way = [next, &rest[1..]].concat(),
            None => return module.to_vec(),
        }
    }
    way
}

/// The circles of a crate: the folder, and what goes in a circle there.
fn circles(modules: &BTreeMap<Way, Vec<String>>) -> BTreeMap<Way, BTreeSet<String>> {
    let uses = uses(modules);
    let mut folders: BTreeMap<Way, BTreeSet<(String, String)>> = BTreeMap::new();
    for (module, used) in &uses.of {
        for other in used.iter().map(|way| module_of(way, modules, &uses)) {
            let common = module.iter().zip(&other).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(common), other.get(common)) {
                let arrows = folders.entry(module[..common].to_vec()).or_default();
                arrows.insert((from.clone(), to.clone()));
            }
        }
    }
    folders.retain(|_, arrows| {
        loop {
            let before = arrows.len();
            let from: BTreeSet<String> = arrows.iter().map(|(from, _)| from.clone()).collect();
            let to: BTreeSet<String> = arrows.iter().map(|(_, to)| to.clone()).collect();
            arrows.retain(|(a, b)| to.contains(a) && from.contains(b));
            if arrows.len() == before {
                return before > 0;
            }
        }
    });
    let entries =
        |arrows: BTreeSet<(String, String)>| arrows.into_iter().map(|(from, _)| from).collect();
    folders.into_iter().map(|(folder, arrows)| (folder, entries(arrows))).collect()
}

#[test]
fn modules_use_each_other_in_no_new_circle() {
    let crates = root().join("crates");
    let mut found = BTreeMap::new();
    for room in rooms() {
        let name = room.strip_prefix(&crates).unwrap().display().to_string();
        for (folder, circle) in circles(&modules(&room.join("src"))) {
            found.insert((name.clone(), folder.join("/")), circle);
        }
    }
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let known: BTreeMap<_, BTreeSet<String>> = KNOWN
        .iter()
        .map(|&(room, folder, circle)| ((room.to_owned(), folder.to_owned()), set(circle)))
        .collect();
    assert_eq!(found, known, "left: circles that there are; right: those that are known");
}

#[test]
fn paths_of_every_form_make_arrows() {
    let module = |name: &str, text: &str| {
        (
            name.split('/').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Way>(),
            tokens(text),
        )
    };
    let found = |files: &[(&str, &str)]| -> Vec<(String, Vec<String>)> {
        let circles = circles(&files.iter().map(|(name, text)| module(name, text)).collect());
        circles.into_iter().map(|(at, all)| (at.join("/"), all.into_iter().collect())).collect()
    };
    let circle = |at: &str| vec![(at.to_owned(), vec!["a".to_owned(), "b".to_owned()])];
    // By `super`, by `crate`, in a list, without an import, and over what another module re-exports.
    assert_eq!(found(&[("a", "use super::b;"), ("b", "use crate::a::A;")]), circle(""));
    assert_eq!(
        found(&[
            ("a", "use crate::{c, b::{self, B}};"),
            ("b", "fn f(_: crate::a::A) {}"),
            ("c", "")
        ]),
        circle("")
    );
    assert_eq!(
        found(&[("", "pub use b::B as C;"), ("a", "use crate::C;"), ("b", "use crate::a::A;")]),
        circle("")
    );
    // Below a folder, and from below one.
    assert_eq!(
        found(&[("x", ""), ("x/a", "use super::b::B;"), ("x/b", "use crate::x::a;")]),
        circle("x")
    );
    assert_eq!(
        found(&[("a", ""), ("a/c", "use super::super::b;"), ("b", "use crate::a::c::C;")]),
        circle("")
    );
    // One direction, comments and tests are none.
    assert_eq!(
        found(&[
            ("a", "use crate::b;"),
            ("b", "// use crate::a;\n#[cfg(test)]\nmod tests { use crate::a; }")
        ]),
        []
    );
}
