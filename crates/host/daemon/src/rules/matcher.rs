//! Finds the rules that match a process, at a cost that hardly grows with their number.

use std::collections::{BTreeMap, HashMap};

use globset::{GlobSet, GlobSetBuilder};

use super::Facts;
use super::file::{Pattern, Rule};

/// The patterns of all rules, compiled together for each of the things that they are about.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    /// How many things each rule names.
    named: Vec<u8>,
    cgroups: Patterns,
    units: Patterns,
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
        let count = |rule: &Rule| {
            [&rule.cgroup, &rule.unit, &rule.executable].into_iter().flatten().count()
                + usize::from(rule.user.is_some())
        };
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
        Self {
            named: rules
                .iter()
                .map(|(_, rule)| u8::try_from(count(rule)).unwrap_or(u8::MAX))
                .collect(),
            cgroups: of(|rule| rule.cgroup.as_ref()),
            units: of(|rule| rule.unit.as_ref()),
            paths: executables(true),
            names: executables(false),
            users,
        }
    }

    /// The rules all of whose names match, in their order.
    pub fn matching(&self, facts: &Facts) -> Vec<usize> {
        let mut matched = BTreeMap::<usize, u8>::new();
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
        for user in [Some(facts.uid.to_string()), facts.user.clone()].into_iter().flatten() {
            note(&mut self.users.get(&user).into_iter().flatten().copied());
        }
        let is_whole = |(rule, count): &(usize, u8)| self.named.get(*rule) == Some(count);
        matched.into_iter().filter(is_whole).map(|(rule, _)| rule).collect()
    }
}
