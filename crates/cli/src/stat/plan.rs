//! What is to be counted, from the command line and what this host can count.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use symbiont_counters::catalogue::Catalogue;
use symbiont_linux::perf::{Choice, Spec, Support, event, processors, select};

use super::tally::Watched;
use super::wanted::{Section, sections};
use crate::args::Stat;
use crate::doctor::catalogue::read_or_find;

/// What is counted and shown.
#[derive(Debug)]
pub struct Plan {
    pub catalogue: Catalogue,
    /// Why it is not the processor's own, or what it does not count.
    pub why: Option<String>,
    pub sections: Vec<Section>,
    /// The groups, and what to ask the kernel for each of them.
    pub groups: Vec<Watched>,
    pub specs: Vec<Vec<Spec>>,
    /// Events that are not asked for, and why.
    pub missing: BTreeMap<Arc<str>, String>,
}

impl Plan {
    /// Makes a plan.
    ///
    /// # Errors
    /// When a catalogue, a formula or an event is unknown or malformed.
    pub fn make(args: &Stat, support: &Support) -> anyhow::Result<Self> {
        let (catalogue, why) = match &args.catalogue {
            Some(name) => (read_or_find(name)?, None),
            None => {
                let processors = processors(Path::new("/"), &support.pmus);
                let chosen = select(support, &processors)?;
                (chosen.catalogue, chosen.why)
            }
        };
        let sections = sections(&catalogue, &args.formulas)?;
        let formulas = sections.iter().flat_map(|section| &section.formulas);
        let wanted = catalogue.groups_for(formulas.map(String::as_str))?;
        let choice = Choice::of(&catalogue, wanted.iter().copied(), &support.pmus);
        let mut groups = Vec::new();
        let mut specs = Vec::new();
        for (group, asked) in wanted.iter().zip(choice.groups) {
            if !asked.is_empty() {
                let events = asked.iter().map(|spec| spec.name.clone()).collect();
                groups.push(Watched { name: Some(group.name.clone()), events });
                specs.push(asked);
            }
        }
        // Each in a group of its own, so that none keeps another from counting,
        // and under the name that the user gave.
        for name in &args.events {
            let known = event(name, &catalogue, &support.pmus)?;
            let spec = Spec { name: name.as_str().into(), ..known };
            groups.push(Watched { name: None, events: vec![spec.name.clone()] });
            specs.push(vec![spec]);
        }
        let why =
            why.or(choice.cpus.map(|cpus| format!("counted on hardware threads {cpus} only")));
        let missing = choice.missing.into_iter().map(|(event, why)| (event, why.to_string()));
        let missing = missing.collect();
        Ok(Self { catalogue, why, sections, groups, specs, missing })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn plan(words: &[&str]) -> anyhow::Result<Plan> {
        let words = ["symbiont", "stat"].iter().chain(words).chain(&["--pid", "1"]);
        let Command::Stat(args) = Cli::parse_from(words).command else { panic!("not stat") };
        Plan::make(&args, &symbiont_linux::perf::support())
    }

    #[test]
    fn groups_are_those_that_the_shown_formulas_need() {
        let one = plan(&["--catalogue", "power8", "--formula", "fpu_usage"]).unwrap();
        assert_eq!(one.groups.len(), 1);
        assert_eq!(one.groups[0].name.as_deref(), Some("fpu"));
        assert_eq!(one.specs[0].len(), one.groups[0].events.len());
        let more = plan(&["--catalogue", "power8", "--formula", "fpu_usage", "-e", "page-faults"])
            .unwrap();
        assert_eq!(more.groups[1], Watched { name: None, events: vec!["page-faults".into()] });
    }

    #[test]
    fn this_host_has_a_catalogue() {
        let here = plan(&[]).unwrap();
        assert!(!here.sections.is_empty() && here.groups.len() == here.specs.len());
    }

    #[test]
    fn files_are_catalogues_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let path = path.to_str().unwrap();
        let said = |words: &[&str]| plan(words).unwrap_err().to_string();
        assert!(said(&["--catalogue", path]).contains("cannot read the event catalogue"));
        let (_, text) = Catalogue::builtin().iter().find(|(name, _)| *name == "software").unwrap();
        std::fs::write(path, text).unwrap();
        assert_eq!(plan(&["--catalogue", path]).unwrap().catalogue.name(), "software");
        std::fs::write(path, "name = 1\n").unwrap();
        assert!(said(&["--catalogue", path]).contains("mine.toml:1: "));
        assert!(said(&["--catalogue", "power9x"]).contains("did you mean 'power9'"));
        assert!(said(&["--event", "no-such-event"]).contains("no event 'no-such-event' here"));
    }
}
