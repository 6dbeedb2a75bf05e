//! The cgroups of a process, as `/proc/PID/cgroup` lists them.
//!
//! # Problem
//! Under cgroup v2 there is one path. Under v1 there is one for each hierarchy of controllers, and they can differ: a
//! runtime that was given none takes its caller's of each. On hybrid systems there are both, and a
//! process may be in the root of the unified hierarchy though it is in a cgroup of the others.
//!
//! # Approach
//! The paths in an order of preference: the unified hierarchy's, systemd's, then those that schedule (`cpu`, `cpuset`),
//! then the others. The root names nothing, so it comes last: the first path is the one that
//! rules match and that a program is known by ([`main_path`]).
//!
//! # Properties
//! - The order does not depend on that of the lines (`the_path_is_the_same_however_the_lines_are_ordered`).

/// The first path of [`paths`]: the one that people and rules call the cgroup of a process.
#[must_use]
pub fn main_path(lines: &str) -> &str {
    paths(lines).first().copied().unwrap_or("/")
}

/// The distinct paths but for the root's, the most meaningful first.
#[must_use]
pub fn paths(lines: &str) -> Vec<&str> {
    let mut ranked: Vec<(u8, &str, &str)> = lines
        .lines()
        .filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let is_named = path.starts_with('/') && path.len() > 1;
            is_named.then_some((rank(number, controllers), controllers, path))
        })
        .collect();
    ranked.sort_unstable();
    let mut paths = Vec::new();
    for (_, _, path) in ranked {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn rank(number: &str, controllers: &str) -> u8 {
    let has = |name: &str| controllers.split(',').any(|controller| controller == name);
    match () {
        () if number == "0" && controllers.is_empty() => 0,
        () if has("name=systemd") => 1,
        () if has("cpu") => 2,
        () if has("cpuset") => 3,
        () => 4,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use proptest::prelude::*;

    use super::*;

    const HYBRID: &str =
        "9:name=systemd:/trial\n4:memory:/caller/trial\n3:cpuset:/\n1:cpu:/trial\n0::/\n";

    #[test]
    fn the_first_path_is_the_most_meaningful_one() {
        assert_eq!(main_path("0::/system.slice/cron.service\n"), "/system.slice/cron.service");
        assert_eq!(paths(HYBRID), ["/trial", "/caller/trial"]);
        assert_eq!(main_path("2:cpu,cpuacct:/a:b\n1:name=systemd:/s\n0::/u\n"), "/u");
        assert_eq!(main_path("2:cpu,cpuacct:/a:b\n"), "/a:b", "a path may have colons");
        for none in ["", "0::/\n", "nonsense", "0::", "::", "0::relative"] {
            assert_eq!(main_path(none), "/", "{none}");
        }
    }

    proptest! {
        #[test]
        fn the_path_is_the_same_however_the_lines_are_ordered(seed in any::<u64>()) {
            let mut lines: Vec<&str> = HYBRID.lines().collect();
            let count = lines.len();
            for at in 0..count {
                lines.swap(at, usize::try_from(seed.rotate_left(at as u32 * 8) % 5).unwrap());
            }
            let text = lines.join("\n");
            prop_assert_eq!(paths(&text), paths(HYBRID));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,200}") {
            prop_assert!(main_path(&text).starts_with('/'));
        }
    }
}
