//! One rule.

use std::collections::BTreeMap;

use symbiont_machine::Class;

use super::Group;
use super::pattern::Pattern;

/// What a rule matches, and what is to be done then.
#[derive(Debug, Clone, Default)]
pub(super) struct Rule {
    pub cgroup: Option<Pattern>,
    pub unit: Option<Pattern>,
    pub pod: Option<Pattern>,
    pub container: Option<Pattern>,
    pub image: Option<Pattern>,
    pub label: BTreeMap<String, Pattern>,
    pub executable: Option<Pattern>,
    pub command: Option<Pattern>,
    pub comm: Option<Pattern>,
    pub user: Option<String>,
    pub(super) ignore: bool,
    pub(super) class: Option<Class>,
}

impl Rule {
    /// What a program that it matches is run for, if it says so.
    pub fn class(&self) -> Option<Class> {
        self.class
    }

    /// Are programs that it matches managed?
    pub fn manages(&self) -> bool {
        !self.ignore
    }

    /// The patterns of one thing each.
    fn patterns(&self) -> [&Option<Pattern>; 8] {
        let Self { cgroup, unit, pod, container, image, executable, command, comm, .. } = self;
        [cgroup, unit, pod, container, image, executable, command, comm]
    }

    /// How many things it names.
    pub fn count(&self) -> usize {
        self.patterns().into_iter().flatten().count()
            + self.label.len()
            + usize::from(self.user.is_some())
    }

    /// Does it ask for the container?
    pub fn names_a_container(&self) -> bool {
        self.pod.is_some()
            || self.container.is_some()
            || self.image.is_some()
            || !self.label.is_empty()
    }

    /// Which processes are one program.
    pub fn group(&self) -> Group {
        match () {
            () if self.names_a_container() => Group::Container,
            () if self.unit.is_some() || self.cgroup.is_some() => Group::Cgroup,
            () => Group::None,
        }
    }
}
