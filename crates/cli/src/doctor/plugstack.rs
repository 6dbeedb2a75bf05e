//! Which plugin of Symbiont's Slurm's plugstack.conf loads, in the files that it includes as well.
//!
//! A line is read as Slurm reads it (spank(7)): a word, which is case-sensitive, then a file. An `include` is
//! a pattern as of glob(7), relative to the folder of the file where it stands. A plugin that is named
//! without a path is looked for in the folders of `PluginDir`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, glob_with};

/// How the file of Symbiont's plugin is called.
pub const NAME: &str = "symbiont_spank.so";
/// No more includes within each other are followed.
const MOST_LEVELS: usize = 16;
/// No more files are read.
const MOST_FILES: usize = 1000;
/// No more obstacles are described.
const MOST_OBSTACLES: usize = 4;
/// As of glob(7).
const GLOB: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The plugin, as a line has it.
#[derive(Debug, PartialEq, Eq)]
pub struct Plugin {
    /// A path, or a name without one.
    pub name: PathBuf,
    /// Does Slurm start without it?
    pub is_optional: bool,
}

impl Plugin {
    /// The files that it may be, where Slurm searches these folders: it takes the first that it can load.
    pub fn files(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        if self.name.is_absolute() {
            return vec![self.name.clone()];
        }
        let files = folders.iter().map(|folder| folder.join(&self.name));
        files.filter(|file| file.is_file()).collect()
    }
}

/// What plugstack.conf and the files that it includes say.
#[derive(Debug, Default)]
pub struct Stack {
    /// The first line that loads Symbiont's plugin.
    pub plugin: Option<Plugin>,
    /// What could not be read, and why; a line each.
    pub obstacles: Vec<String>,
}

/// Reads plugstack.conf, which need not exist.
pub fn read(plugstack: &Path) -> Stack {
    let mut reading = Reading::default();
    if !std::fs::symlink_metadata(plugstack).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    {
        reading.file(plugstack, "Slurm reads");
    }
    let Reading { mut stack, unnamed, .. } = reading;
    if unnamed > 0 {
        stack.obstacles.push(format!("{unnamed} more includes of plugstack.conf were not read"));
    }
    stack
}

#[derive(Debug, Default)]
struct Reading {
    stack: Stack,
    /// Obstacles beyond those that are described.
    unnamed: usize,
    /// Files that were read; whatever they load is known.
    known: BTreeSet<PathBuf>,
    /// The files that are being read: each includes the next one.
    open: Vec<PathBuf>,
}

impl Reading {
    /// Reads a file; `by` says what names it, as "x, line 2, includes".
    fn file(&mut self, path: &Path, by: &str) {
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(why) => return self.unreadable(path, by, &why),
        };
        if self.open.contains(&real) {
            return self.obstacle(format!(
                "{by} {} in a cycle: Slurm follows it until srun and sbatch crash",
                path.display()
            ));
        }
        if self.known.contains(&real) || real.is_dir() {
            return;
        }
        if self.open.len() == MOST_LEVELS || self.known.len() == MOST_FILES {
            return self.obstacle(format!(
                "{by} {}, which was not read: there are more than {MOST_LEVELS} includes within each \
                 other, or more than {MOST_FILES} files",
                path.display()
            ));
        }
        self.known.insert(real.clone());
        let bytes = match symbiont_safe_open::read(&real) {
            Ok(bytes) => bytes,
            Err(why) => return self.unreadable(path, by, &why),
        };
        self.open.push(real);
        for (number, line) in (1..).zip(String::from_utf8_lossy(&bytes).split('\n')) {
            self.line(path, number, line);
        }
        self.open.pop();
    }

    fn line(&mut self, file: &Path, number: usize, line: &str) {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
        let (Some(what), Some(name)) = (words.next(), words.next()) else { return };
        match what {
            "include" => self.include(file, number, name),
            "optional" | "required" => {
                let name = PathBuf::from(name);
                if self.stack.plugin.is_none() && name.file_name() == Some(OsStr::new(NAME)) {
                    self.stack.plugin = Some(Plugin { name, is_optional: what == "optional" });
                }
            }
            _ => {}
        }
    }

    fn include(&mut self, file: &Path, number: usize, pattern: &str) {
        let by = format!("{}, line {number}, includes", file.display());
        // An absolute one replaces the folder.
        let whole = file.parent().unwrap_or(Path::new("")).join(pattern);
        let mut whole = whole.to_string_lossy().into_owned();
        // To glob(7) as one; here it would stand for folders.
        while whole.contains("**") {
            whole = whole.replace("**", "*");
        }
        // What is no pattern, as `a[`, is a name.
        let paths = glob_with(&whole, GLOB).or_else(|_| glob_with(&Pattern::escape(&whole), GLOB));
        let mut is_empty = true;
        for found in paths.into_iter().flatten() {
            is_empty = false;
            match found {
                Ok(path) => self.file(&path, &by),
                Err(error) => self.unreadable(error.path(), &by, error.error()),
            }
        }
        if is_empty && !whole.contains(['*', '?', '[']) {
            self.obstacle(format!("{by} {whole}, which does not exist"));
        }
    }

    fn unreadable(&mut self, path: &Path, by: &str, why: &std::io::Error) {
        let path = path.display();
        self.obstacle(format!(
            "{by} {path}, which cannot be read: {why}. What it loads is not known; where Slurm \
             cannot read it either, srun and sbatch do not start"
        ));
    }

    fn obstacle(&mut self, what: String) {
        if self.stack.obstacles.len() < MOST_OBSTACLES {
            self.stack.obstacles.push(what);
        } else {
            self.unnamed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    const PLUGIN: &str = "optional /usr/lib/symbiont_spank.so socket=/x\n";

    /// A folder with files, the first of which is read.
    fn stack(files: &[(&str, &str)]) -> (TempDir, Stack) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let read = read(&folder.path().join(files[0].0));
        (folder, read)
    }

    fn is_found(files: &[(&str, &str)]) -> bool {
        let (_folder, stack) = stack(files);
        assert_eq!(stack.obstacles, [""; 0]);
        stack.plugin.is_some()
    }

    #[test]
    fn the_first_line_that_loads_it_counts() {
        let text =
            format!("# a comment\noptional /usr/lib/x.so\n{PLUGIN}required symbiont_spank.so");
        let (_folder, stack) = stack(&[("plugstack.conf", &text)]);
        let name = PathBuf::from("/usr/lib/symbiont_spank.so");
        assert_eq!(stack.plugin, Some(Plugin { name, is_optional: true }));
        assert!(!is_found(&[("plugstack.conf", "#optional /usr/lib/symbiont_spank.so\n")]));
        assert!(is_found(&[("plugstack.conf", "\trequired  /symbiont_spank.so# all")]));
        for no_plugin in
            ["", "optional", "OPTIONAL /symbiont_spank.so", "optional /symbiont_spank.so\r\n"]
        {
            assert!(!is_found(&[("plugstack.conf", no_plugin)]), "{no_plugin}");
        }
        let none = read(Path::new("/nowhere/plugstack.conf"));
        assert!(none.plugin.is_none() && none.obstacles.is_empty());
    }

    #[test]
    fn includes_are_followed_from_the_folder_of_their_file() {
        let root = |include: &'static str| ("plugstack.conf", include);
        let files =
            [("d/a.conf", "include ../e/b.conf"), ("e/b.conf", "include c"), ("e/c", PLUGIN)];
        assert!(is_found(&[&[root("include d/*.conf\n")], &files[..]].concat()));
        assert!(is_found(&[root("include d**/[ab].conf\n"), ("d/a.conf", PLUGIN)]));
        assert!(is_found(&[root("include d/a[\n"), ("d/a[", PLUGIN)]));
        // As Slurm has it.
        assert!(!is_found(&[root("include d/*\n"), ("d/.a", PLUGIN), ("d/e/a", PLUGIN)]));
        assert!(!is_found(&[root("include d\ninclude none/*\n"), ("d/a", PLUGIN)]));
        assert!(!is_found(&[root("Include d/a\n"), ("d/a", PLUGIN)]));
        let (folder, _) = stack(&[("d/a", PLUGIN)]);
        let absolute = format!("include {}/d/?\n", folder.path().display());
        assert!(is_found(&[("plugstack.conf", &absolute)]));
    }

    #[test]
    fn a_cycle_ends_in_one_line_and_what_is_outside_of_it_counts() {
        let root = "include d/a.conf\ninclude last.conf\n";
        let cycle = "include b.conf\n";
        let files = [
            ("plugstack.conf", root),
            ("d/a.conf", cycle),
            ("d/b.conf", "include a.conf\n"),
            ("last.conf", PLUGIN),
        ];
        let (folder, found) = stack(&files);
        assert!(found.plugin.is_some());
        let [line] = &found.obstacles[..] else { panic!("{:?}", found.obstacles) };
        let begin = format!("{}/d/b.conf, line 1, includes ", folder.path().display());
        assert!(line.starts_with(&begin) && line.contains("a.conf in a cycle"), "{line}");
        // Each of many that includes all of them: more cycles than could be walked.
        let many: Vec<String> = (0..40).map(|number| format!("d/{number}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), "include *\n")).collect();
        let (_folder, found) = stack(&[&[("plugstack.conf", "include d/*\n")], &many[..]].concat());
        assert_eq!(found.obstacles.len(), MOST_OBSTACLES + 1);
        assert!(found.obstacles[MOST_OBSTACLES].contains(" more includes"), "{found:?}");
    }

    #[test]
    fn depth_and_number_of_files_are_bounded() {
        let chain: Vec<(String, String)> =
            (0..20).map(|n| (format!("{n}"), format!("include {}", n + 1))).collect();
        let chain: Vec<_> =
            chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (_folder, found) = stack(&chain);
        assert_eq!(found.obstacles.len(), 1, "{found:?}");
        assert!(found.obstacles[0].contains("/15, line 1, includes"), "{found:?}");
        let many: Vec<String> = (0..=MOST_FILES).map(|number| format!("d/{number}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), "")).collect();
        let (_folder, found) = stack(&[&[("plugstack.conf", "include d/*\n")], &many[..]].concat());
        assert_eq!(found.obstacles.len(), 2, "{found:?}");
    }

    #[test]
    fn what_cannot_be_read_is_named_once_with_the_reason() {
        let files =
            [("plugstack.conf", "include gone\ninclude dangling\ninclude socket\n\0include \u{1}")];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugstack.conf");
        fs::write(&path, files[0].1).unwrap();
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        let _listening = std::os::unix::net::UnixListener::bind(folder.path().join("socket"));
        let found = read(&path);
        assert_eq!(found.obstacles.len(), 3, "{found:?}");
        assert!(found.obstacles[0].contains("gone, which does not exist"), "{found:?}");
        assert!(found.obstacles[1].contains("dangling, which"), "{found:?}");
        assert!(
            found.obstacles[2].contains("socket, which cannot be read: it is a socket"),
            "{found:?}"
        );
        // No text, and no file.
        fs::write(
            &path,
            [b"include \xff\xfe[\xff\ninclude\noptional \xff/\n", PLUGIN.as_bytes()].concat(),
        )
        .unwrap();
        assert!(read(&path).plugin.is_some());
        let found = read(folder.path());
        assert!(found.plugin.is_none() && found.obstacles.is_empty());
    }

    #[test]
    fn a_name_without_a_path_is_looked_for_in_folders_in_their_order() {
        let (folder, _) = stack(&[("b/symbiont_spank.so", ""), ("c/symbiont_spank.so", "")]);
        let folders = ["a", "b", "c"].map(|name| folder.path().join(name));
        let bare = Plugin { name: NAME.into(), is_optional: true };
        let found = ["b", "c"].map(|name| folder.path().join(name).join(NAME));
        assert_eq!(bare.files(&folders), found);
        assert!(bare.files(&folders[..1]).is_empty());
        let absolute = Plugin { name: "/x/symbiont_spank.so".into(), is_optional: true };
        assert_eq!(absolute.files(&folders), [PathBuf::from("/x/symbiont_spank.so")]);
    }
}
