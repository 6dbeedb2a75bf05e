//! What policies are given beforehand: interference models, slowdowns of pairs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use symbiont_counters::catalogue::Catalogue;
use symbiont_daemon::LearnedFile;
use symbiont_linux::perf::{processor_name, processors, select, support};
use symbiont_model::{Here, Model};
use symbiont_policy::{Entry, LearnedPairs, Models, PairSlowdowns, Settings};
use symbiont_topology::{CoreKind, Topology};

use crate::args::Knowledge;

/// The machine that models have to fit.
pub struct Fitting {
    pub name: String,
    pub core_types: Vec<CoreKind>,
    pub catalogue: Catalogue,
}

impl Fitting {
    /// This machine, counted by a catalogue; none: its own.
    pub fn here(topology: &Topology, catalogue: Option<Catalogue>) -> anyhow::Result<Self> {
        let name = processor().unwrap_or_else(|| UNKNOWN.to_owned());
        let catalogue = match catalogue {
            Some(catalogue) => catalogue,
            None => {
                let support = support();
                select(&support, &processors(Path::new("/"), &support.pmus))?.catalogue
            }
        };
        Ok(Self { name, core_types: core_types(topology), catalogue })
    }

    /// The machine of a recording, whose events were counted by a catalogue.
    pub fn recorded(topology: &Topology, processor: Option<String>, catalogue: Catalogue) -> Self {
        let name = processor.unwrap_or_else(|| UNKNOWN.to_owned());
        Self { name, core_types: core_types(topology), catalogue }
    }
}

/// What models and slowdowns of an unknown processor are of.
pub const UNKNOWN: &str = "an unknown processor";

/// This machine's processor, as its firmware names it.
pub fn processor() -> Option<String> {
    processor_name(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// The core types, each once.
pub fn core_types(topology: &Topology) -> Vec<CoreKind> {
    let core_types: BTreeSet<CoreKind> = topology.cores().iter().map(|core| core.kind).collect();
    core_types.into_iter().collect()
}

/// Reads model files, each of another core type and all of the same stack. None: no files.
fn models(paths: &[PathBuf], here: &Here<'_>) -> anyhow::Result<Option<Models>> {
    let mut models: Vec<Model> = Vec::new();
    for path in paths {
        let model = Model::load(path, here)?;
        let shown = path.display();
        let twice = models.iter().any(|known| known.core == model.core);
        anyhow::ensure!(!twice, "model {shown}: there is another one for {:?} cores", model.core);
        if let Some(first) = models.first() {
            let (stack, other) = (&model.components, &first.components);
            anyhow::ensure!(stack == other, "model {shown}: of {stack}, the first is of {other}");
        }
        models.push(model);
    }
    let mut models = models.into_iter();
    Ok(models.next().map(|first| Models { first, others: models.collect() }))
}

/// Adds what the files say to the settings. Refuses files that do not fit, and
/// a policy without a required model.
pub fn add(
    args: &Knowledge,
    fitting: impl FnOnce() -> anyhow::Result<Fitting>,
    policy: &Entry,
    mut settings: Settings,
) -> anyhow::Result<Settings> {
    if args.model.is_empty() && args.slowdowns.is_none() {
        return able(policy, settings);
    }
    let Fitting { name, core_types, catalogue } = &fitting()?;
    if !args.model.is_empty() {
        let read = models(&args.model, &Here { machine: name, sorts: core_types, catalogue })?;
        settings.models = read.map(Arc::new);
    }
    if let Some(path) = &args.slowdowns {
        let shown = path.display();
        let text = symbiont_safe_open::read_to_string(path)
            .with_context(|| format!("slowdowns of pairs {shown}"))?;
        let read: Result<PairSlowdowns, _> = serde_json::from_str(&text);
        let read = read.with_context(|| format!("slowdowns of pairs {shown}"))?;
        let of = read.machine();
        anyhow::ensure!(
            of == name,
            "slowdowns of pairs {shown}: measured on '{of}', this is '{name}'"
        );
        settings.slowdowns = Some(Arc::new(read));
    }
    able(policy, settings)
}

/// Policies that learn of pairs.
const LEARN: [&str; 2] = ["auto", "learned"];

/// The settings with what was learned of pairs of programs before, and the file for what is learned now: none where
/// that cannot be read, and why.
pub fn learned(
    policy: &Entry,
    settings: Settings,
    file: Option<LearnedFile>,
) -> (Settings, Option<LearnedFile>, Option<String>) {
    let file = file.filter(|_| LEARN.contains(&policy.name));
    match file.as_ref().map_or(Ok(LearnedPairs::default()), LearnedFile::read) {
        Ok(learned) => {
            let learned = Some(Arc::new(learned)).filter(|learned| !learned.is_empty());
            (Settings { learned, ..settings }, file, None)
        }
        Err(why) => (settings, None, Some(why)),
    }
}

/// The settings, if the policy can run with them.
fn able(policy: &Entry, settings: Settings) -> anyhow::Result<Settings> {
    match policy.check(&settings, None) {
        Ok(()) => Ok(settings),
        Err(why) => anyhow::bail!("policy '{}' cannot run: {why}", policy.name),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use symbiont_model::{Coefficients, Components, Depth, SmtMode, TrainedMode, Training};
    use symbiont_policy::find;
    use symbiont_training::fit;
    use symbiont_training::synthetic::World;

    use super::*;

    #[test]
    fn what_was_learned_before_is_given_unless_the_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learned.json");
        let file = Some(LearnedFile::new(&path, "A"));
        let (settings, kept, trouble) =
            learned(find("learned").unwrap(), Settings::default(), file.clone());
        assert!(settings.learned.is_none() && kept.is_some() && trouble.is_none());
        let program = r#"{"program":"a","core":"performance","next_to":[{"program":"b","ln":-0.2,"variance":0.1}]}"#;
        let text = format!(r#"{{"version":1,"processors":{{"A":{{"programs":[{program}]}}}}}}"#);
        std::fs::write(&path, text).unwrap();
        let (settings, kept, _) =
            learned(find("learned").unwrap(), Settings::default(), file.clone());
        assert_eq!(settings.learned.unwrap().programs[0].program, "a");
        assert!(kept.is_some());
        std::fs::write(&path, "{").unwrap();
        let other = file.clone();
        let (settings, kept, trouble) =
            learned(find("learned").unwrap(), Settings::default(), file);
        assert!(settings.learned.is_none() && kept.is_none() && trouble.is_some());
        assert!(learned(find("learned").unwrap(), Settings::default(), None).1.is_none());
        let (_, kept, trouble) = learned(find("stay").unwrap(), Settings::default(), other);
        assert!(kept.is_none() && trouble.is_none(), "it learns nothing");
    }

    fn saved(folder: &Path, catalogue: &Catalogue, core: CoreKind, stack: Depth) -> PathBuf {
        let components = Components::of(catalogue, stack.sum()).unwrap();
        let law = Coefficients::new(World::law(components.len(), 0.5)).unwrap();
        let world = World::new(12, 2, law, 1);
        let fit = fit(SmtMode::Smt2, &world.observe(&world.all_pairs(), 4, 2)).unwrap();
        let trained = TrainedMode { fit, throttling: None, scores: Vec::new() };
        let training = Training {
            date: "2026-01-02T03:04:05Z".into(),
            programs: Vec::new(),
            quantum_ms: 20,
            note: "synthetic".into(),
        };
        let model = Model {
            machine: "here".into(),
            core,
            catalogue: catalogue.name().to_owned(),
            components,
            training,
            modes: [(SmtMode::Smt2, trained)].into(),
        };
        let file = folder.join(format!("{core:?}-{stack}.toml"));
        model.save(&file).unwrap();
        file
    }

    #[test]
    fn models_are_each_of_another_sort_and_all_of_one_stack() {
        use CoreKind::{Efficiency, Performance};
        let folder = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::named("power8").unwrap().unwrap();
        let saved = |core, stack| saved(folder.path(), &catalogue, core, stack);
        let (fast, slow) = (saved(Performance, Depth::Fine), saved(Efficiency, Depth::Fine));
        let odd = saved(Efficiency, Depth::Coarse);
        let core_types = [Performance, Efficiency];
        let here = Here { machine: "here", sorts: &core_types, catalogue: &catalogue };
        let read = |paths: &[&PathBuf]| {
            models(&paths.iter().map(|path| (*path).clone()).collect::<Vec<_>>(), &here)
        };
        assert_eq!(read(&[]).unwrap(), None);
        let Models { first, others } = read(&[&slow, &fast]).unwrap().unwrap();
        assert_eq!((first.core, others[0].core, others.len()), (Efficiency, Performance, 1));
        let twice = read(&[&fast, &slow, &fast]).unwrap_err().to_string();
        assert!(twice.contains("there is another one for Performance cores"), "{twice}");
        let mixed = read(&[&fast, &odd]).unwrap_err().to_string();
        assert!(mixed.contains("Efficiency-coarse.toml: of "), "{mixed}");
    }
}
