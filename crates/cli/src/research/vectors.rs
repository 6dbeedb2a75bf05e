//! Activity vectors of the programs that run: files that are of their executables, and of this machine's caches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use symbiont_linux::launch::Job;
use symbiont_policy::KnownActivity;
use symbiont_profile::capture::executable_digest;
use symbiont_profile::vectors::{Hierarchy, Vectors};
use symbiont_reproduce::activity::intervals;

/// A program that runs, by its name, and the SHA-256 of its executable.
pub type Executable = (String, String);

/// The executables of jobs.
pub fn executables(jobs: &[Job]) -> anyhow::Result<Vec<Executable>> {
    jobs.iter().map(|job| Ok((job.name(), executable(job)?))).collect()
}

fn executable(job: &Job) -> anyhow::Result<String> {
    let mut program = PathBuf::from(job.command.program());
    if let Some(folder) = job.directory.as_ref().filter(|_| program.components().count() > 1) {
        program = folder.join(program);
    }
    let own = std::env::var_os("PATH");
    let set = job.env.iter().find(|(name, _)| *name == "PATH");
    let path = set.map(|(_, path)| path.into()).or(own);
    Ok(executable_digest(program.as_os_str(), path.as_deref())?)
}

/// What files say of the programs that run; none: no files.
pub fn known(
    files: &[PathBuf],
    hierarchy: impl FnOnce() -> anyhow::Result<Hierarchy>,
    programs: &[Executable],
) -> anyhow::Result<Option<Arc<KnownActivity>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let hierarchy = hierarchy()?;
    let mut found: BTreeMap<&str, (&Path, Vectors)> = BTreeMap::new();
    for file in files {
        let vectors = Vectors::read(file)?;
        let named = programs.iter().find(|(name, _)| *name == vectors.program);
        // Several jobs of one name are one program.
        let same = programs.iter().filter(|(_, digest)| *digest == vectors.digest);
        let mut same: BTreeSet<&str> = same.map(|(name, _)| name.as_str()).collect();
        // Of an interpreter there may be files of several scripts: each goes to the job of its name.
        if same.contains(vectors.program.as_str()) {
            same.retain(|name| *name == vectors.program);
        }
        let digest = match named {
            Some((_, digest)) if same.is_empty() => digest,
            _ => &vectors.digest,
        };
        let checked = vectors.check(digest, &hierarchy);
        checked.with_context(|| format!("activity vectors {}", file.display()))?;
        for name in same {
            let other = |(called, digest): &Executable| called == name && *digest != vectors.digest;
            ensure!(
                !programs.iter().any(other),
                "activity vectors {}: jobs of different executables are called '{name}'; give each a name",
                file.display()
            );
            if let Some((other, _)) = found.get(name) {
                let (file, other) = (file.display(), other.display());
                bail!("activity vectors {file}: program '{name}' has those of {other} already");
            }
            found.insert(name, (file, vectors.clone()));
        }
    }
    let names = || programs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    ensure!(
        !found.is_empty(),
        "no activity vectors are of an executable that runs here ({}); a program that a shell starts is \
         not known by its vectors",
        names()
    );
    let programs =
        found.into_iter().map(|(name, (_, vectors))| (name.to_owned(), intervals(&vectors)));
    Ok(Some(Arc::new(KnownActivity::new(programs.collect())?)))
}

#[cfg(test)]
mod tests {
    use symbiont_linux::launch::Command;
    use symbiont_profile::vectors::{Counts, Geometry, Interval, VERSION};

    use super::*;

    fn hierarchy() -> Hierarchy {
        let of = |sets| Geometry { sets, ways: 4, line: 64 };
        Hierarchy { l1d: of(16), l1i: of(16), l2: of(64) }
    }

    fn written(folder: &Path, program: &str, digest: &str) -> PathBuf {
        let counts = |groups: usize| Counts { uses: vec![3; groups], misses: vec![1; groups] };
        let vectors = Vectors {
            version: VERSION,
            program: program.to_owned(),
            command: vec![program.to_owned()],
            digest: digest.to_owned(),
            hierarchy: hierarchy(),
            intervals: vec![Interval {
                instructions: 7,
                caches: [counts(16), counts(16), counts(64)],
            }],
            gaps: Vec::new(),
        };
        let path = folder.join(format!("{program}-{digest}.vectors"));
        vectors.write(&path).unwrap();
        path
    }

    fn refused(files: &[PathBuf], hierarchy: Hierarchy, programs: &[(&str, &str)]) -> String {
        format!("{:#}", found(files, hierarchy, programs).unwrap_err())
    }

    fn found(
        files: &[PathBuf],
        hierarchy: Hierarchy,
        programs: &[(&str, &str)],
    ) -> anyhow::Result<Option<Arc<KnownActivity>>> {
        let programs: Vec<Executable> =
            programs.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned())).collect();
        known(files, || Ok(hierarchy), &programs)
    }

    #[test]
    fn vectors_are_found_by_the_executable() {
        let folder = tempfile::tempdir().unwrap();
        let [gzip, xz] = ["gzip", "xz"].map(|name| written(folder.path(), name, name));
        let jobs = [("first", "gzip"), ("second", "gzip"), ("other", "cat")];
        let known = found(&[gzip.clone(), xz.clone()], hierarchy(), &jobs).unwrap().unwrap();
        assert_eq!(known.programs().collect::<Vec<_>>(), ["first", "second"]);
        let nothing = refused(&[xz], hierarchy(), &jobs);
        assert!(nothing.contains("(first, second, other)"), "{nothing}");
        assert!(found(&[], hierarchy(), &jobs).unwrap().is_none());
        let twice = refused(&[gzip.clone(), gzip], hierarchy(), &jobs);
        assert!(twice.contains("program 'first' has those of"), "{twice}");
    }

    #[test]
    fn two_jobs_of_one_name_are_one_program() {
        let folder = tempfile::tempdir().unwrap();
        let gzip = written(folder.path(), "gzip", "gzip");
        let jobs = [("gzip", "gzip"), ("gzip", "gzip")];
        let known = found(&[gzip], hierarchy(), &jobs).unwrap().unwrap();
        assert_eq!(known.programs().collect::<Vec<_>>(), ["gzip"]);
        let [old, new] = ["old", "new"].map(|digest| written(folder.path(), "gzip", digest));
        let jobs = [("gzip", "old"), ("gzip", "new")];
        for file in [old, new] {
            let refused = refused(&[file], hierarchy(), &jobs);
            assert!(refused.contains("different executables are called 'gzip'"), "{refused}");
        }
    }

    #[test]
    fn of_an_interpreter_each_script_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| written(folder.path(), name, "python"));
        let known = found(&files, hierarchy(), &[("a", "python"), ("b", "python")]).unwrap();
        assert_eq!(known.unwrap().programs().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn vectors_of_other_caches_or_executables_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let gzip = written(folder.path(), "gzip", "old");
        let other = refused(std::slice::from_ref(&gzip), hierarchy(), &[("gzip", "new")]);
        assert!(other.contains("gzip-old.vectors: vectors of gzip are of another executable"));
        let larger = Hierarchy { l2: Geometry { sets: 128, ..hierarchy().l2 }, ..hierarchy() };
        let other = refused(&[gzip], larger, &[("gzip", "old")]);
        assert!(other.contains("of other caches (L1 data 16 sets"), "{other}");
    }

    #[test]
    fn an_executable_is_found_as_it_will_be_started() {
        let job = |command: &str| Job::from(Command::new([command]).unwrap());
        let digest = executable(&job("sh")).unwrap();
        assert_eq!(digest, executable(&job("/bin/sh")).unwrap());
        let within = Job { directory: Some("/".into()), ..job("bin/sh") };
        assert_eq!(digest, executable(&within).unwrap());
        let missing = executable(&job("no-such-program")).unwrap_err().to_string();
        assert_eq!(missing, "no-such-program: no such program");
    }
}
