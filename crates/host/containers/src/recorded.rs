//! Is a container's recorded cgroup the one of a process?
//!
//! # Problem
//! Whatever has a cgroup of its own delegated (a user, a container) can make one below it and call it as another
//! container's is called. The name of the cgroup alone proves nothing.
//!
//! # Approach
//! What the runtime recorded of the container's cgroup must be the cgroup itself, from the root of the hierarchy on.
//! For state in
//! a user's folder its end must be: the user chooses that state anyhow, and the paths there are relative to
//! those of the user's manager. The end must do, too, where this process is in a cgroup namespace and sees the
//! others' paths from its own (`/../…`).
//!
//! # Properties
//! - A borrowed name is noticed (`a_cgroup_with_a_borrowed_name_is_not_the_recorded_one`).

use crate::files::Recorded;

impl Recorded {
    /// As a text, for people.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Asked(text) | Self::Folder(text) | Self::Path(text) => text,
        }
    }

    /// Is it this cgroup? `by_end`: as seen from another root.
    #[must_use]
    pub fn is(&self, cgroup: &str, by_end: bool) -> bool {
        let (seen, is_elsewhere) = match cgroup.strip_prefix("/..") {
            Some(_) => (cgroup.trim_start_matches("/.."), true),
            None => (cgroup, false),
        };
        let by_end = by_end || is_elsewhere;
        let same = |path: &str| match path.strip_prefix('/') {
            Some(_) if path == seen => true,
            Some(bare) => {
                by_end
                    && (ends_with(seen, bare)
                        || is_elsewhere && ends_with(path, seen.trim_start_matches('/')))
            }
            None => by_end && ends_with(seen, path),
        };
        match self {
            Self::Asked(asked) => expand(asked).is_some_and(|path| same(&path)),
            Self::Path(path) => same(path) || !path.starts_with('/') && same(&format!("/{path}")),
            Self::Folder(folder) => {
                let Some(path) = folder.strip_prefix("/sys/fs/cgroup/") else { return false };
                // The unified hierarchy alone is mounted at the top; others are a folder below.
                same(&format!("/{path}"))
                    || path.split_once('/').is_some_and(|(_, path)| same(&format!("/{path}")))
            }
        }
    }
}

fn ends_with(path: &str, end: &str) -> bool {
    !end.is_empty() && path.strip_suffix(end).is_some_and(|before| before.ends_with('/'))
}

/// The path that a runtime makes of `SLICE:PREFIX:NAME`, or the path that it is.
fn expand(asked: &str) -> Option<String> {
    let fields: Vec<&str> = asked.split(':').collect();
    let [slice, prefix, name] = fields[..] else { return Some(asked.to_owned()) };
    let slice = if slice.is_empty() { "system.slice" } else { slice };
    let unit = match (prefix, name.ends_with(".slice")) {
        (_, true) => name.to_owned(),
        ("", false) => format!("{name}.scope"),
        (prefix, false) => format!("{prefix}-{name}.scope"),
    };
    let names = slice.strip_suffix(".slice")?;
    if names == "-" {
        return Some(format!("/{unit}"));
    }
    let mut path = String::new();
    for (at, _) in names.match_indices('-').chain([(names.len(), "")]) {
        path.push_str(&format!("/{}.slice", names.get(..at)?));
    }
    Some(format!("{path}/{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_is_the_cgroup_that_it_makes() {
        let asked = |text: &str| Recorded::Asked(text.to_owned());
        let scope = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podx.slice/cri-containerd-1.scope";
        assert!(asked("kubepods-burstable-podx.slice:cri-containerd:1").is(scope, false));
        assert!(asked(":docker:1").is("/system.slice/docker-1.scope", false));
        assert!(asked("-.slice::1").is("/1.scope", false));
        assert!(asked("/docker/1").is("/docker/1", false));
        assert!(Recorded::Folder("/sys/fs/cgroup/cpu/trial".to_owned()).is("/trial", false));
        assert!(Recorded::Folder("/sys/fs/cgroup/trial".to_owned()).is("/trial", false));
        assert!(Recorded::Path("trial".to_owned()).is("/trial", false));
        assert!(Recorded::Path("/a/trial".to_owned()).is("/a/trial", false));
        let rootless = "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-1.scope";
        assert!(asked("user.slice:libpod:1").is(rootless, true));
        assert!(asked("kubepods.slice:crio:1").is("/../../kubepods.slice/crio-1.scope", false));
        assert!(
            asked("a-b.slice:crio:1").is("/../a-b.slice/crio-1.scope", false),
            "from next to it"
        );
    }

    #[test]
    fn a_cgroup_with_a_borrowed_name_is_not_the_recorded_one() {
        for (recorded, borrowed) in [
            (Recorded::Asked("/docker/1".to_owned()), "/docker/2/docker/1"),
            (
                Recorded::Asked("machine.slice:libpod:1".to_owned()),
                "/user.slice/u/machine.slice/libpod-1.scope",
            ),
            (Recorded::Asked("1".to_owned()), "/user.slice/1"),
            (Recorded::Asked(String::new()), "/user.slice/1"),
            (Recorded::Folder("/sys/fs/cgroup/cpu/trial".to_owned()), "/user.slice/cpu/trial"),
            (Recorded::Folder("/elsewhere/cpu/trial".to_owned()), "/trial"),
            (Recorded::Path("/trial".to_owned()), "/user.slice/trial"),
        ] {
            assert!(!recorded.is(borrowed, false), "{recorded:?} is not {borrowed}");
        }
        assert!(
            !Recorded::Asked("/docker/1".to_owned()).is("/docker/21", true),
            "whole parts only"
        );
        assert!(!Recorded::Asked(String::new()).is("/user.slice/1", true));
    }
}
