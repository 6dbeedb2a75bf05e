//! What policies are given beforehand: interference models, slowdowns of pairs.

#[cfg(feature = "research")]
mod training;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use symbiont_counters::catalogue::Catalogue;
use symbiont_linux::perf::{processor_name, processors, select, support};
use symbiont_model::{Here, Model};
use symbiont_policy::{Entry, Settings, Symbiosis};
use symbiont_topology::{CoreKind, Topology};

use crate::args::Knowledge;

/// The machine that models have to fit.
pub struct Fitting {
    name: String,
    core: CoreKind,
    catalogue: Catalogue,
}

impl Fitting {
    /// This machine, counted by a catalogue; none: its own.
    pub fn here(topology: &Topology, catalogue: Option<Catalogue>) -> anyhow::Result<Self> {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = processor_name(&cpuinfo).unwrap_or_else(|| "an unknown processor".to_owned());
        let catalogue = match catalogue {
            Some(catalogue) => catalogue,
            None => {
                let support = support();
                select(&support, &processors(Path::new("/"), &support.pmus))?.catalogue
            }
        };
        Ok(Self { name, core: one_sort(topology)?, catalogue })
    }
}

/// The sort of all cores.
fn one_sort(topology: &Topology) -> anyhow::Result<CoreKind> {
    let mut kinds = topology.cores().iter().map(|core| core.kind);
    let first = kinds.next().unwrap_or_default();
    anyhow::ensure!(
        kinds.all(|kind| kind == first),
        "an interference model holds for one sort of core, and this machine has several"
    );
    Ok(first)
}

/// Adds what the files say to the settings. Refuses files that do not fit, and
/// a policy that lacks what it cannot do without.
pub fn add(
    args: &Knowledge,
    fitting: impl FnOnce() -> anyhow::Result<Fitting>,
    policy: &Entry,
    mut settings: Settings,
) -> anyhow::Result<Settings> {
    if let Some(path) = &args.model {
        let fitting = fitting()?;
        let here =
            Here { machine: &fitting.name, core: fitting.core, catalogue: &fitting.catalogue };
        let standard = Symbiosis::new(Model::load(path, &here)?);
        settings.symbiosis = Some(Arc::new(Symbiosis {
            form: args.form.unwrap_or(standard.form),
            objective: args.objective.unwrap_or(standard.objective),
            inversion: args.inversion.unwrap_or(standard.inversion),
            recalls: args.recall.unwrap_or(standard.recalls),
            ..standard
        }));
    }
    if let Some(path) = &args.slowdowns {
        let shown = path.display();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("slowdowns of pairs {shown}"))?;
        let read = serde_json::from_str(&text);
        settings.slowdowns =
            Some(Arc::new(read.with_context(|| format!("slowdowns of pairs {shown}"))?));
    }
    if let Some(why) = (policy.make)(&settings).lacks() {
        anyhow::bail!("policy '{}' cannot run: {why}", policy.name);
    }
    Ok(settings)
}
