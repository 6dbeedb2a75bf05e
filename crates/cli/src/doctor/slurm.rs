//! What a Slurm that is set up on this machine leaves to be chosen, by what `scontrol show config` says.
//!
//! Slurm itself reads its files, with what they include, and knows what holds by now; so it is asked. Where it does not
//! answer, one line says so, and only the plugin is looked at.

use std::path::{Path, PathBuf};

use serde::Serialize;
use symbiont_jobs::slurm::config_value;
use symbiont_slurm::Commands;

use super::{plugin, plugstack};

/// Where distributions keep Slurm's configuration.
const PLACES: [&str; 3] =
    ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf"];

/// What was found.
#[derive(Debug, Serialize)]
pub struct SlurmFinding {
    /// The configuration.
    configuration: PathBuf,
    /// May the daemon choose CPUs for the tasks of jobs? None: Slurm does not answer.
    leaves_a_choice: Option<bool>,
    /// What it means for Symbiont, and which setting changes it.
    notes: Vec<String>,
}

/// Asks Slurm for its configuration; none: Slurm is not set up here.
pub fn look() -> Option<SlurmFinding> {
    let given = std::env::var_os("SLURM_CONF").map(PathBuf::from);
    let places = given.into_iter().chain(PLACES.map(PathBuf::from));
    let file = places.into_iter().find(|path| path.is_file());
    if file.is_none() && plugin::on_path("scontrol").is_none() {
        return None;
    }
    let (config, mut notes) = match Commands::each_within(plugin::TIMEOUT).config() {
        Ok(config) => (Some(config), Vec::new()),
        Err(why) => (None, vec![format!("what Slurm leaves to be chosen is not known: {why}")]),
    };
    let value = |name: &str| config_value(config.as_deref()?, name);
    let configuration = file.or_else(|| value("SLURM_CONF").map(PathBuf::from));
    let configuration = configuration.unwrap_or_else(|| PathBuf::from(PLACES[0]));
    let leaves_a_choice = config.as_deref().map(|config| {
        let (leaves_a_choice, advice) = advice(config);
        notes.extend(advice);
        leaves_a_choice
    });
    notes.extend(plugin_notes(&configuration, value("PlugStackConfig"), value("PluginDir")));
    Some(SlurmFinding { configuration, leaves_a_choice, notes })
}

/// What there is to say of Symbiont's plugin.
fn plugin_notes(
    configuration: &Path,
    plugstack: Option<&str>,
    plugin_dir: Option<&str>,
) -> Vec<String> {
    let usual = || configuration.with_file_name("plugstack.conf");
    let stack = plugstack::read(&plugstack.map_or_else(usual, PathBuf::from));
    let folders = plugin::folders(plugin_dir);
    let installed = plugin::Slurm::look(configuration, &folders);
    let mut notes = vec![plugin::note(stack.plugin.as_ref(), &folders, &installed)];
    notes.extend(stack.obstacles);
    notes
}

impl SlurmFinding {
    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("Slurm ({})", self.configuration.display())];
        lines.extend(self.notes.iter().map(|note| super::text::wrapped(note, 2)));
        lines.push(String::new());
        lines
    }
}

/// Does a configuration leave a choice, and what is to be known of it?
fn advice(config: &str) -> (bool, Vec<String>) {
    let words = |key: &str| -> Vec<String> {
        let value = config_value(config, key).unwrap_or_default().to_ascii_lowercase();
        value.split(',').map(|word| word.trim().trim_start_matches("task/").to_owned()).collect()
    };
    let has = |key: &str, wanted: &str| words(key).iter().any(|word| word == wanted);
    let mut notes = Vec::new();
    let is_bound = has("TaskPlugin", "affinity") && !has("TaskPluginParam", "none");
    if is_bound {
        notes.push(
            "TaskPlugin=task/affinity binds each task to its CPUs: a task of one CPU has one place, and \
             there is nothing to choose. TaskPluginParam=None leaves the choice, or srun --cpu-bind=none \
             for one job."
                .to_owned(),
        );
    }
    // Of the section on cgroup.conf.
    let is_confined = has("TaskPlugin", "cgroup") && has("ConstrainCores", "yes");
    if is_confined {
        notes.push(
            "TaskPlugin=task/cgroup with ConstrainCores=yes confines each job to the cores it was given; \
             they are never widened, so threads are placed within a job only. ConstrainCores=no in \
             cgroup.conf leaves the choice among all jobs of a node."
                .to_owned(),
        );
    }
    if !is_bound && !is_confined {
        notes.push("tasks may run on all CPUs of the node: the daemon chooses".to_owned());
    }
    let unit = words("SelectTypeParameters");
    let whole = |prefix: &str| unit.iter().any(|word| word.starts_with(prefix));
    if whole("cr_core") || whole("cr_socket") {
        notes.push(
            "SelectTypeParameters gives jobs whole cores, so no two jobs share one: what partners of \
             `symbiont slurm` share are caches and memory. CR_CPU, with CPUs= hardware threads and no \
             ThreadsPerCore= of the nodes, has jobs share cores."
                .to_owned(),
        );
    }
    if !has("JobSubmitPlugins", "lua") {
        notes.push(
            "JobSubmitPlugins has no lua: `symbiont slurm` finds no job whose start is left to it"
                .to_owned(),
        );
    }
    (!is_bound && !is_confined, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_bound_leaves_no_choice_and_the_setting_is_named() {
        let (choice, notes) =
            advice("TaskPlugin = task/affinity,task/cgroup\nConstrainCores = yes\n");
        assert!(!choice);
        assert!(notes[0].contains("TaskPluginParam=None"), "{notes:?}");
        assert!(notes[1].contains("ConstrainCores=no"), "{notes:?}");
        let unbound = "TaskPlugin = task/affinity\nTaskPluginParam = none\nConstrainCores = yes\n";
        assert!(advice(unbound).0);
        assert!(!advice("TaskPlugin = task/affinity\nTaskPluginParam = (null type)\n").0);
        assert!(advice("TaskPlugin = (null)\n").0);
        assert!(advice("TaskPlugin = task/cgroup\nConstrainCores = no\n").0);
        assert!(!advice("TaskPlugin = task/cgroup\nConstrainCores = yes\n").0);
    }

    #[test]
    fn whole_cores_and_a_missing_filter_are_noted() {
        let (_, notes) = advice("SelectTypeParameters = CR_CORE_MEMORY\n");
        assert!(notes.iter().any(|note| note.contains("CR_CPU")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("no lua")), "{notes:?}");
        let (_, notes) = advice("SelectTypeParameters = CR_CPU\nJobSubmitPlugins = lua\n");
        assert_eq!(notes.len(), 1);
    }
}
