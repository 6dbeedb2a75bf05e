//! Which scheduler runs: the kernel's own, or a loaded `sched_ext` scheduler.
//!
//! Such a scheduler is a set of BPF programs that decides in the kernel's place when and where threads run
//! (Documentation/scheduler/sched-ext.rst). The kernel holds it to affinity masks, but what it makes of nice
//! values and `SCHED_IDLE` is up to it. So threads are placed under such a scheduler, but their priorities are
//! left alone: nothing could be said of their effect.

use std::fs;
use std::path::Path;

use symbiont_machine::Ability;

/// The name of the `sched_ext` scheduler that decides on this machine now; none if none is loaded.
#[must_use]
pub fn loaded_scheduler() -> Option<String> {
    loaded(Path::new("/sys/kernel/sched_ext"))
}

fn loaded(folder: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let state = read("state")?;
    // One that does not decide on usual threads leaves them as they are.
    if state.trim() == "disabled" || read("switch_all").is_some_and(|all| all.trim() == "0") {
        return None;
    }
    // It has no name while it comes and goes.
    let name = read("root/ops").map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "without a name".to_owned());
    // Our own heeds priorities.
    (name != symbiont_ext::NAME).then_some(name)
}

/// What becomes of placing under a scheduler.
pub(super) fn placing_under(name: &str, affinity: Ability) -> Ability {
    match affinity {
        Ability::Full => Ability::Partial(format!(
            "the sched_ext scheduler {name} is loaded: it keeps threads where they are placed, \
             and decides by rules of its own which of them runs when"
        )),
        less => less,
    }
}

/// Why no priority is changed under a scheduler.
pub(super) fn no_priority_under(name: &str) -> String {
    format!("the sched_ext scheduler {name} is loaded, which need not heed priorities")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of a folder with these files.
    fn read(files: &[(&str, &str)]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        loaded(folder.path())
    }

    #[test]
    fn a_scheduler_is_known_by_its_name_while_it_is_loaded() {
        assert_eq!(read(&[]), None, "a kernel without sched_ext");
        assert_eq!(read(&[("state", "disabled\n"), ("root/ops", "late\n")]), None);
        let rusty = [("state", "enabled\n"), ("root/ops", "rusty_1.0\n")];
        assert_eq!(read(&rusty).as_deref(), Some("rusty_1.0"));
        assert_eq!(read(&[("state", "enabling\n")]).as_deref(), Some("without a name"));
        let partial = [("state", "enabled\n"), ("switch_all", "0\n"), ("root/ops", "other\n")];
        assert_eq!(read(&partial), None, "it decides on threads of SCHED_EXT only");
        assert_eq!(read(&[("state", "enabled\n"), ("root/ops", symbiont_ext::NAME)]), None);
    }

    #[test]
    fn a_scheduler_does_not_hide_that_threads_cannot_be_placed() {
        let absent = Ability::Absent("one CPU".to_owned());
        assert_eq!(placing_under("rusty", absent.clone()), absent);
        assert!(placing_under("rusty", Ability::Full).why().unwrap().contains("rusty"));
    }
}
