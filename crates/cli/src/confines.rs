//! Where this process may run, and what else is set aside, in words.

use symbiont_linux::confines::Confines;

/// Labels and texts, for a list.
pub fn lines(confines: &Confines) -> Vec<(&'static str, String)> {
    let Confines { online, allowed, cpuset, cgroup, .. } = confines;
    let mut lines = Vec::new();
    let is_confined = allowed != online;
    let by = match (cpuset == online, cgroup) {
        (true, _) => "by its mask (taskset, numactl)".to_owned(),
        (false, Some(cgroup)) => format!("by the cpuset of {cgroup}"),
        (false, None) => "by its cpuset".to_owned(),
    };
    lines.push(match is_confined {
        false => ("may use", format!("all CPUs that are online ({online})")),
        true => (
            "may use",
            format!(
                "{} of {online}, {by}. Respected: each thread is placed only where it may run",
                allowed.named()
            ),
        ),
    });
    if is_confined {
        let text = match confines.is_exclusive {
            Some(true) => {
                "with no other cpuset: these CPUs are a partition of their own".to_owned()
            }
            Some(false) | None => {
                "with others, as far as is known: CPUs that they keep busy are avoided by `auto`"
                    .to_owned()
            }
        };
        lines.push(("shared", text));
    }
    if let Some(quota) = confines.quota {
        lines.push((
            "CPU time",
            format!(
                "{quota:.2} CPUs at most, by a cgroup's quota. Not looked at: what runs on more CPUs at once is \
                 throttled on all of them"
            ),
        ));
    }
    if !confines.isolated.is_empty() {
        let cpus = confines.isolated.named();
        lines.push((
            "isolated",
            format!("{cpus}. Respected: only threads whose own mask has them are placed there"),
        ));
    }
    if !confines.tickless.is_empty() {
        let cpus = confines.tickless.named();
        lines.push((
            "nohz_full",
            format!("{cpus}. Not looked at: where two threads take turns, the tick comes back"),
        ));
    }
    if let Some(container) = &confines.container {
        lines.push(("container", format!("{container}: what runs outside it counts as load only")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use symbiont_topology::CpuSet;

    use super::*;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn what_is_set_aside_is_said_with_what_is_respected() {
        let free = Confines {
            online: set("0-7"),
            allowed: set("0-7"),
            cpuset: set("0-7"),
            ..Confines::default()
        };
        assert_eq!(lines(&free), [("may use", "all CPUs that are online (0-7)".to_owned())]);
        let confined = Confines {
            allowed: set("2-3"),
            cpuset: set("2-3"),
            cgroup: Some("/docker/4f".to_owned()),
            is_exclusive: Some(false),
            quota: Some(1.5),
            isolated: set("6"),
            tickless: set("6-7"),
            container: Some("docker".to_owned()),
            ..free.clone()
        };
        let said = lines(&confined);
        let labels: Vec<_> = said.iter().map(|(label, _)| *label).collect();
        assert_eq!(labels, ["may use", "shared", "CPU time", "isolated", "nohz_full", "container"]);
        assert!(
            said[0].1.starts_with("CPUs 2-3 of 0-7, by the cpuset of /docker/4f. Respected"),
            "{said:?}"
        );
        assert!(said[2].1.starts_with("1.50 CPUs at most"), "{said:?}");
        let pinned = Confines { allowed: set("0"), is_exclusive: Some(true), ..free };
        let said = lines(&pinned);
        assert!(said[0].1.contains("by its mask") && said[1].1.contains("partition"), "{said:?}");
    }
}
