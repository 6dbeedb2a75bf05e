//! Finds the rules that match a process, at a cost that hardly grows with their number.

use std::collections::{BTreeMap, HashMap};

use globset::{GlobSet, GlobSetBuilder};
use symbiont_containers::Identity;

use super::Facts;
use super::pattern::Pattern;
use super::rule::Rule;
use crate::surroundings::is_of_cluster;

/// The patterns of all rules, compiled together for each of the things that they are about.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    /// How many things each rule names.
    named: Vec<usize>,
    cgroups: Patterns,
    units: Patterns,
    pods: Patterns,
    containers: Patterns,
    images: Patterns,
    /// By the keys of labels.
    labels: BTreeMap<String, Patterns>,
    commands: Patterns,
    comms: Patterns,
    /// With a slash: of the whole path.
    paths: Patterns,
    /// Without one: of the file's name.
    names: Patterns,
    users: HashMap<String, Vec<usize>>,
}

/// Patterns with the rule of each.
#[derive(Debug, Default)]
struct Patterns {
    set: GlobSet,
    rules: Vec<usize>,
}

impl Patterns {
    fn new<'a>(of: impl Iterator<Item = (usize, &'a Pattern)>) -> Self {
        let (mut builder, mut rules) = (GlobSetBuilder::new(), Vec::new());
        for (rule, pattern) in of {
            builder.add(pattern.glob().clone());
            rules.push(rule);
        }
        // Each was compiled by itself; a set that is too large matches nothing.
        Self { set: builder.build().unwrap_or_default(), rules }
    }

    fn matching(&self, text: &str) -> impl Iterator<Item = usize> {
        self.set.matches(text).into_iter().filter_map(|at| self.rules.get(at).copied())
    }
}

impl Matcher {
    pub fn new<'a>(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let rules: Vec<(usize, &Rule)> = rules.enumerate().collect();
        let of = |part: fn(&Rule) -> Option<&Pattern>| {
            Patterns::new(rules.iter().filter_map(move |(at, rule)| Some((*at, part(rule)?))))
        };
        let is_path = |pattern: &&Pattern| pattern.glob().glob().contains('/');
        let mut users = HashMap::<String, Vec<usize>>::new();
        for (at, rule) in &rules {
            if let Some(user) = &rule.user {
                users.entry(user.clone()).or_default().push(*at);
            }
        }
        let executables = |with_slash: bool| {
            let named =
                rules.iter().filter_map(|(at, rule)| Some((*at, rule.executable.as_ref()?)));
            Patterns::new(named.filter(move |(_, pattern)| is_path(pattern) == with_slash))
        };
        let mut by_key = BTreeMap::<String, Vec<(usize, &Pattern)>>::new();
        for (at, rule) in &rules {
            for (key, pattern) in &rule.label {
                by_key.entry(key.clone()).or_default().push((*at, pattern));
            }
        }
        let labels =
            by_key.into_iter().map(|(key, of)| (key, Patterns::new(of.into_iter()))).collect();
        Self {
            named: rules.iter().map(|(_, rule)| rule.count()).collect(),
            cgroups: of(|rule| rule.cgroup.as_ref()),
            units: of(|rule| rule.unit.as_ref()),
            pods: of(|rule| rule.pod.as_ref()),
            containers: of(|rule| rule.container.as_ref()),
            images: of(|rule| rule.image.as_ref()),
            labels,
            commands: of(|rule| rule.command.as_ref()),
            comms: of(|rule| rule.comm.as_ref()),
            paths: executables(true),
            names: executables(false),
            users,
        }
    }

    /// The rules all of whose names match, in their order.
    pub fn matching(&self, facts: &Facts) -> Vec<usize> {
        let mut matched = BTreeMap::<usize, usize>::new();
        let mut note = |rules: &mut dyn Iterator<Item = usize>| {
            rules.for_each(|rule| *matched.entry(rule).or_default() += 1);
        };
        note(&mut self.cgroups.matching(&facts.cgroup));
        if let Some(unit) = &facts.unit {
            note(&mut self.units.matching(unit));
        }
        if let Some(executable) = &facts.executable {
            note(&mut self.paths.matching(executable));
            let name = executable.rsplit('/').next().unwrap_or(executable);
            note(&mut self.names.matching(name));
        }
        let of_container = facts.container.as_deref();
        let mut texts = vec![
            (&self.commands, facts.command.as_deref()),
            (&self.comms, facts.comm.as_deref()),
            (&self.containers, of_container.and_then(|of| of.container.as_deref())),
            (&self.images, of_container.and_then(|of| of.image.as_deref())),
        ];
        let pod = of_container.filter(|of| is_of_cluster(of)).and_then(Identity::pod_path);
        texts.push((&self.pods, pod.as_deref()));
        let value = |key: &str| of_container.and_then(|of| of.label(key));
        texts.extend(self.labels.iter().map(|(key, patterns)| (patterns, value(key))));
        for (patterns, text) in texts {
            if let Some(text) = text {
                note(&mut patterns.matching(text));
            }
        }
        for user in [Some(facts.uid.to_string()), facts.user.clone()].into_iter().flatten() {
            note(&mut self.users.get(&user).into_iter().flatten().copied());
        }
        let is_whole = |(rule, count): &(usize, usize)| self.named.get(*rule) == Some(count);
        matched.into_iter().filter(is_whole).map(|(rule, _)| rule).collect()
    }
}
