//! The processes of containers that a user names, as rules do.

use std::collections::BTreeMap;

use symbiont_containers::{Folders, Identity};

use super::pattern::{Pattern, PatternError};
use crate::surroundings::{Surroundings, is_of_cluster};

/// Names of containers: all that are given must match.
#[derive(Debug)]
pub struct ContainerPatterns {
    pod: Option<globset::GlobMatcher>,
    container: Option<globset::GlobMatcher>,
}

/// A container of which something runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContainer {
    /// `NAMESPACE/POD/CONTAINER`, as far as there are names.
    pub name: String,
    /// All its processes.
    pub processes: Vec<u32>,
}

impl ContainerPatterns {
    /// `pod` is written as NAMESPACE/NAME.
    ///
    /// # Errors
    /// When one is no pattern.
    pub fn new(pod: Option<&str>, container: Option<&str>) -> Result<Self, PatternError> {
        let matcher = |text: Option<&str>| -> Result<_, PatternError> {
            let pattern = text.map(str::parse::<Pattern>).transpose()?;
            Ok(pattern.map(|pattern| pattern.glob().compile_matcher()))
        };
        Ok(Self { pod: matcher(pod)?, container: matcher(container)? })
    }

    fn matches(&self, of: &Identity) -> bool {
        let is = |pattern: &Option<globset::GlobMatcher>, name: Option<&str>| {
            pattern.as_ref().is_none_or(|pattern| name.is_some_and(|name| pattern.is_match(name)))
        };
        let pod = of.pod_path().filter(|_| is_of_cluster(of));
        is(&self.pod, pod.as_deref()) && is(&self.container, of.container.as_deref())
    }
}

/// The containers that these patterns name, by the state in these folders, as far as this user may read it.
#[must_use]
pub fn find_containers(folders: Folders, patterns: &ContainerPatterns) -> Vec<FoundContainer> {
    let mut around = Surroundings::find();
    around.set_folders(folders);
    let mut found: BTreeMap<String, FoundContainer> = BTreeMap::new();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        let Ok(number) = u32::try_from(process.pid) else { continue };
        let Some(of) = around.container_of(number) else { continue };
        if patterns.matches(&of) {
            let new = || FoundContainer { name: of.display(), processes: Vec::new() };
            found.entry(of.cgroup.clone()).or_insert_with(new).processes.push(number);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use symbiont_containers::{Containers, Owner};

    use super::*;

    #[test]
    fn a_pod_that_a_users_runtime_names_is_not_found() {
        let lines = format!("0::/docker/{}\n", "a".repeat(64));
        let folders = Folders { root: "/nonexistent".into(), ..Folders::default() };
        let of = Containers::new(folders).identify(&lines, &Owner::default(), Instant::now());
        let names = ["shop", "web-0", "nginx"].map(|name| Some(name.to_owned()));
        let [namespace, pod, container] = names;
        let stated = |stated_by: Option<u32>| Identity {
            namespace: namespace.clone(),
            pod: pod.clone(),
            container: container.clone(),
            stated_by,
            ..of.as_deref().unwrap().clone()
        };
        let by_pod = ContainerPatterns::new(Some("shop/*"), None).unwrap();
        let by_name = ContainerPatterns::new(None, Some("nginx")).unwrap();
        for (stated_by, is_pod) in [(Some(0), true), (Some(4242), false), (None, false)] {
            let of = stated(stated_by);
            assert_eq!(
                (by_pod.matches(&of), by_name.matches(&of)),
                (is_pod, true),
                "{stated_by:?}"
            );
        }
    }
}
