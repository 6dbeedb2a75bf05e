//! The containers of managed programs.
//!
//! # Problem
//! However a program came to be managed, people know it by its pod and container; the files that name these may be
//! written after its first process started, and a runtime moves a process to its cgroup after that started, too.
//!
//! # Approach
//! Looked up when a program is taken in, and again after [`AGAIN`], after twice that, and so on up to [`SELDOM`]: names
//! hardly ever change. What a process that has ended was in stays known. A program counts as in the container of its
//! first process; the steps of Slurm's jobs, which are grouped as containers are, are none.
//!
//! # Properties
//! - Looks become seldom (`looks_become_seldom`).
//! - A program that was named after its cgroup is called by its container, and no other is
//!   (`only_names_of_cgroups_are_replaced`).
//! - What is sent is short and acts on no terminal (`what_is_sent_is_short_and_clean`); labels, too, which fit into a
//!   message (`labels_that_are_sent_are_few_and_short`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use symbiont_containers::{Identity, Qos};
use symbiont_machine::ProgramId;
use symbiont_wire::Container;

use crate::programs::Programs;
use crate::surroundings::Surroundings;

/// Between two rounds.
const PERIOD: Duration = Duration::from_secs(1);
/// After the first look.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two looks in the end.
const SELDOM: Duration = Duration::from_secs(64);
/// Characters of a name that is sent.
const MOST_NAME: usize = 256;
/// Labels that are sent.
const MOST_LABELS: usize = 32;
/// Characters of a key, and of a value, that are sent.
const MOST_LABEL: usize = 128;
/// From this length on a word is an id rather than a name.
const ID: usize = 32;

/// The containers of programs.
#[derive(Debug, Default)]
pub struct Contained {
    programs: BTreeMap<ProgramId, Entry>,
    looked: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    identity: Option<Arc<Identity>>,
    due: Instant,
    pause: Duration,
}

impl Contained {
    /// A program was taken in.
    pub fn insert(&mut self, id: ProgramId, identity: Option<Arc<Identity>>, now: Instant) {
        self.programs.insert(id, Entry { identity, due: now + AGAIN, pause: AGAIN });
    }

    /// The container of a program.
    pub fn of(&self, id: ProgramId) -> Option<&Identity> {
        self.programs.get(&id)?.identity.as_deref()
    }

    /// Looks again at what is due, once a second at most; gives lines for the log.
    pub fn refresh(
        &mut self,
        programs: &mut Programs,
        around: &mut Surroundings,
        now: Instant,
    ) -> Vec<String> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < PERIOD) {
            return Vec::new();
        }
        self.looked = Some(now);
        self.programs.retain(|id, _| programs.get(*id).is_some());
        for (id, entry) in self.programs.iter_mut().filter(|(_, entry)| entry.due <= now) {
            entry.put_off(now);
            let first = programs.get(*id).and_then(|program| program.roots.first());
            let Some(first) = first.filter(|first| !first.has_ended()) else { continue };
            let identity = around.container_of(first.pid());
            // Its number was its own if it still lives.
            if !first.has_ended() {
                if let (Some(old), Some(new)) = (&entry.identity, &identity) {
                    programs.rename(*id, &old.display(), &new.display());
                }
                entry.identity = identity;
            }
        }
        around.end_round()
    }
}

impl Entry {
    fn put_off(&mut self, now: Instant) {
        self.pause = (2 * self.pause).min(SELDOM);
        self.due = now + self.pause;
    }
}

/// What to call a program. One that was named after the cgroup of its container is called by the container.
pub fn name_in<'a>(given: &'a str, container: Option<&Identity>) -> Cow<'a, str> {
    let last = |path: &'a str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_of_cgroup = |of: &&Identity| {
        let is_path = given.contains('/');
        let is_unit = given.ends_with(".scope") || given.ends_with(".service");
        (is_path || is_unit || given.len() >= ID)
            && of.cgroup.rsplit('/').next() == Some(last(given))
    };
    container.filter(is_of_cgroup).map_or(Cow::Borrowed(given), |of| Cow::Owned(of.display()))
}

/// As it is sent to clients.
pub fn to_wire(of: &Identity) -> Container {
    let shown = |name: &Option<String>| name.as_deref().map(cleaned);
    Container {
        namespace: shown(&of.namespace),
        pod: shown(&of.pod),
        container: shown(&of.container),
        image: shown(&of.image),
        id: cleaned(&of.id),
        runtime: of.runtime.name().to_owned(),
        qos: of.qos.map(Qos::name).map(str::to_owned),
        labels: BTreeMap::new(),
    }
}

/// What rules by `label` look at, as it is sent to clients: labels first, then annotations of other keys.
pub fn labels_to_wire(of: &Identity) -> BTreeMap<String, String> {
    let is_other = |(key, _): &(&str, &str)| of.labels.get(key).is_none();
    let all = of.labels.iter().chain(of.annotations.iter().filter(is_other));
    let cut = |text: &str| cleaned(text).chars().take(MOST_LABEL).collect::<String>();
    all.take(MOST_LABELS).map(|(key, value)| (cut(key), cut(value))).collect()
}

fn cleaned(name: &str) -> String {
    name.chars().take(MOST_NAME).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use symbiont_containers::{Containers, Folders, Owner};

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn identity() -> Identity {
        let folders = Folders { root: "/nonexistent".into(), ..Folders::default() };
        let lines = format!(
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podabc.slice/cri-containerd-{ID}.scope\n"
        );
        let of = Containers::new(folders).identify(&lines, &Owner::default(), Instant::now());
        let of = Arc::unwrap_or_clone(of.unwrap());
        let some = |text: &str| Some(text.to_owned());
        Identity { namespace: some("shop"), pod: some("web-0"), container: some("nginx"), ..of }
    }

    #[test]
    fn only_names_of_cgroups_are_replaced() {
        let of = identity();
        let scope = format!("cri-containerd-{ID}.scope");
        for given in
            [scope.clone(), of.cgroup.clone(), of.cgroup[1..].to_owned(), of.cgroup.clone() + "/"]
        {
            assert_eq!(name_in(&given, Some(&of)), "shop/web-0/nginx", "{given}");
            assert_eq!(name_in(&given, None), given);
        }
        for given in ["nginx", "my program", "/kubepods.slice", "nginx.service", ""] {
            assert_eq!(name_in(given, Some(&of)), given);
        }
        let short = Identity { cgroup: "/web".to_owned(), ..of };
        assert_eq!(
            name_in("web", Some(&short)),
            "web",
            "a command may be called as its container is"
        );
        assert_eq!(name_in("/web", Some(&short)), "shop/web-0/nginx");
    }

    #[test]
    fn what_is_sent_is_short_and_clean() {
        let image = Some("\u{1b}[2J".to_owned() + &"ä".repeat(70_000));
        let sent = to_wire(&Identity { image, ..identity() });
        let image = sent.image.unwrap();
        assert!(image.starts_with("?[2Jä") && image.chars().count() == MOST_NAME);
        assert_eq!((sent.id.as_str(), sent.runtime.as_str()), (ID, "containerd"));
        assert_eq!((sent.qos.as_deref(), sent.pod.as_deref()), (Some("burstable"), Some("web-0")));
    }

    #[test]
    fn labels_that_are_sent_are_few_and_short() {
        let many: BTreeMap<String, String> =
            (0..100).map(|at| (format!("{at:03}\u{1b}"), "\u{1f600}".repeat(1000))).collect();
        let labels = |labels: serde_json::Value| serde_json::from_value(labels).unwrap();
        let of = Identity {
            labels: labels(serde_json::json!({ "app": "web" })),
            annotations: labels(serde_json::json!({ "app": "other", "tier": "back" })),
            ..identity()
        };
        let sent = |of: &Identity| labels_to_wire(of).into_iter().collect::<Vec<_>>();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(sent(&of), [pair("app", "web"), pair("tier", "back")], "as rules see them");
        let of = Identity { annotations: labels(serde_json::json!(many)), ..of };
        let all = sent(&of);
        assert_eq!(all.len(), MOST_LABELS);
        assert!(all.contains(&pair("app", "web")), "labels come first: {all:?}");
        assert!(all.contains(&pair("000?", &"\u{1f600}".repeat(MOST_LABEL))), "{all:?}");
        let bytes = serde_json::to_vec(&all).unwrap().len();
        assert!(bytes < symbiont_wire::MOST_BYTES / 2, "{bytes}");
    }

    #[test]
    fn looks_become_seldom() {
        let now = Instant::now();
        let mut entry = Entry { identity: None, due: now + AGAIN, pause: AGAIN };
        let (mut looks, mut at) = (0, now);
        while at < now + Duration::from_secs(3600) {
            if entry.due <= at {
                entry.put_off(at);
                looks += 1;
            }
            at += PERIOD;
        }
        assert!((55..70).contains(&looks), "{looks} in an hour");
    }
}
