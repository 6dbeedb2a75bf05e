//! What a Slurm that is set up on this machine leaves to be chosen.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{plugin, plugstack};

/// Where distributions keep it.
const PLACES: [&str; 3] =
    ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf"];

/// No more files are read.
const MOST_FILES: usize = 100;

/// What was found.
#[derive(Debug, Serialize)]
pub struct SlurmFinding {
    /// The configuration.
    configuration: PathBuf,
    /// May the daemon choose CPUs for the tasks of jobs?
    leaves_a_choice: bool,
    /// What it means for Symbiont, and which setting changes it.
    notes: Vec<String>,
}

/// Looks at Slurm's configuration; none: Slurm is not set up here.
pub fn look() -> Option<SlurmFinding> {
    let given = std::env::var_os("SLURM_CONF").map(PathBuf::from);
    let places = given.into_iter().chain(PLACES.map(PathBuf::from));
    let configuration = places.into_iter().find(|path| path.is_file())?;
    let mut reading = Reading::default();
    reading.file(&configuration);
    let Reading { text, left_out, .. } = reading;
    if text.is_empty() {
        return Some(SlurmFinding { configuration, leaves_a_choice: false, notes: left_out });
    }
    let cgroup = configuration.with_file_name("cgroup.conf");
    let cgroup = symbiont_safe_open::read_to_string(&cgroup).unwrap_or_default();
    let (leaves_a_choice, mut notes) = advice(&text, &cgroup);
    notes.extend(left_out);
    let plugstack = value(&text, "PlugStackConfig").map(PathBuf::from);
    let plugstack = plugstack.unwrap_or_else(|| configuration.with_file_name("plugstack.conf"));
    let stack = plugstack::read(&plugstack);
    let folders = plugin::folders(value(&text, "PluginDir"));
    let installed = plugin::Slurm::look(&configuration, &folders);
    notes.push(plugin::note(stack.plugin.as_ref(), &folders, &installed));
    notes.extend(stack.obstacles);
    Some(SlurmFinding { configuration, leaves_a_choice, notes })
}

/// A configuration with what it includes.
#[derive(Debug, Default)]
struct Reading {
    /// The lines of all files, in their order.
    text: String,
    /// Files that were read or could not be.
    files: usize,
    /// Files that are left out, and why; a line each.
    left_out: Vec<String>,
}

impl Reading {
    /// Reads a file as Slurm does (`s_p_parse_file` in its `parse_config.c`).
    fn file(&mut self, path: &Path) {
        self.files += 1;
        if self.files > MOST_FILES {
            if self.files == MOST_FILES + 1 {
                self.left_out.push(format!(
                    "more than {MOST_FILES} files are included; the others are left out"
                ));
            }
            return;
        }
        let lines = match symbiont_safe_open::read_to_string(path) {
            Ok(lines) => lines,
            Err(why) => {
                return self.left_out.push(format!("{} cannot be read: {why}", path.display()));
            }
        };
        for line in lines.lines() {
            let Some(name) = included(line) else {
                self.text.push_str(line);
                self.text.push('\n');
                continue;
            };
            let cluster = value(&self.text, "ClusterName").unwrap_or_default();
            let name = name.replace("%c", &cluster.to_ascii_lowercase());
            // Relative to the folder of the file where it stands.
            self.file(&path.with_file_name(name));
        }
    }
}

/// The file that a line includes, if it does.
fn included(line: &str) -> Option<&str> {
    let (word, name) = line.split('#').next()?.trim().split_once([' ', '\t'])?;
    word.eq_ignore_ascii_case("include").then(|| name.trim())
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

/// Is a choice left, and what is to be known.
fn advice(slurm: &str, cgroup: &str) -> (bool, Vec<String>) {
    let words = |key: &str| -> Vec<String> {
        let value = value(slurm, key).unwrap_or_default().to_ascii_lowercase();
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
    let constrains = value(cgroup, "ConstrainCores")
        .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "yes" | "true" | "1"));
    let is_confined = has("TaskPlugin", "cgroup") && constrains;
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

/// The value of a key, which are not case-sensitive; the last one counts.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let pairs = lines.filter_map(|line| line.split_once('='));
    let of_key = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case(key));
    of_key.map(|(_, value)| value.trim()).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_bound_leaves_no_choice_and_the_setting_is_named() {
        let (choice, notes) =
            advice("TaskPlugin=task/affinity,task/cgroup\n", "ConstrainCores=yes\n");
        assert!(!choice);
        assert!(notes[0].contains("TaskPluginParam=None"), "{notes:?}");
        assert!(notes[1].contains("ConstrainCores=no"), "{notes:?}");
        let (choice, _) =
            advice("taskplugin = affinity # bound\nTaskPluginParam=None\n", "ConstrainCores=yes");
        assert!(choice);
        assert!(advice("TaskPlugin=task/none\n", "").0);
        assert!(advice("TaskPlugin=task/cgroup\n", "#ConstrainCores=yes\n").0);
        assert!(!advice("TaskPlugin=task/cgroup\n", "constraincores=YES\n").0);
    }

    #[test]
    fn what_it_includes_counts_where_it_stands() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
        std::fs::create_dir(path("one")).unwrap();
        let conf = "ClusterName=One\nTaskPlugin=task/none\ninclude  %c/tasks # ours\nInclude gone\n#Include x\n";
        write("slurm.conf", conf);
        write("one/tasks", "TaskPlugin=task/affinity\nINCLUDE b\n");
        write("one/b", "TaskPluginParam=None\n");
        let read = || {
            let mut reading = Reading::default();
            reading.file(&path("slurm.conf"));
            reading
        };
        let Reading { text, left_out, .. } = read();
        let values = ["TaskPlugin", "TaskPluginParam"].map(|key| value(&text, key));
        assert_eq!(values, [Some("task/affinity"), Some("None")]);
        let [gone] = &left_out[..] else { panic!("{left_out:?}") };
        assert!(gone.contains("gone cannot be read: "), "{gone}");
        // In a cycle, and many times.
        write("one/b", "include b\ninclude tasks\n");
        let left_out = read().left_out;
        assert!(left_out[0].starts_with("more than 100 files are included"), "{left_out:?}");
        assert_eq!(left_out.len(), 1);
    }

    #[test]
    fn whole_cores_and_a_missing_filter_are_noted() {
        let (_, notes) = advice("SelectTypeParameters=CR_Core_Memory\n", "");
        assert!(notes.iter().any(|note| note.contains("CR_CPU")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("no lua")), "{notes:?}");
        let (_, notes) = advice("SelectTypeParameters=CR_CPU\nJobSubmitPlugins=lua\n", "");
        assert_eq!(notes.len(), 1);
    }
}
