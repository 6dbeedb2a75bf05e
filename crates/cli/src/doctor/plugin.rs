//! Whether the Slurm that is installed loads Symbiont's plugin, and the command that builds it anew if not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use glob::glob;
use symbiont_slurm::Commands;

use super::plugstack::{NAME, Plugin};

/// How long each of Slurm's commands may take to answer.
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// How the plugin says which Slurm it was built for.
const BUILT_FOR: &str = "symbiont-spank built for Slurm ";
/// Where the plugin's Makefile looks for headers unless it is given another folder.
const DEFAULT_HEADERS: &str = "/usr";
/// Where else a Slurm is commonly installed.
const COMMON: [&str; 2] = ["/usr/local", "/opt/slurm"];
/// Where the Makefile installs the plugin.
const INSTALLED: &str = "/usr/lib/symbiont/symbiont_spank.so";
/// Where packages of Slurm have the folder of its plugins, as patterns.
const PLUGIN_FOLDERS: [&str; 4] =
    ["/usr/lib/*/slurm-wlm", "/usr/lib/*/slurm", "/usr/lib*/slurm", "/usr/local/lib/slurm"];

/// The folders in which Slurm searches for plugins: `PluginDir` of its configuration, or those of
/// packages that exist here.
pub fn folders(plugin_dir: Option<&str>) -> Vec<PathBuf> {
    match plugin_dir {
        Some(folders) => {
            folders.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from).collect()
        }
        None => {
            let found = PLUGIN_FOLDERS.iter().filter_map(|pattern| glob(pattern).ok());
            found.flatten().filter_map(Result::ok).collect()
        }
    }
}

/// The Slurm that is installed.
pub struct Slurm {
    /// E.g. `22.05`; `None` if its commands do not say so.
    version: Option<String>,
    /// The folder in whose `include/slurm` its headers are, if they were found.
    headers: Option<PathBuf>,
}

impl Slurm {
    /// Asks its commands, and looks for its headers where its files are.
    pub fn look(configuration: &Path, plugin_folders: &[PathBuf]) -> Self {
        let version = version();
        // PREFIX/etc/slurm.conf, PREFIX/lib/slurm, PREFIX/bin/sinfo.
        let sinfo = on_path("sinfo");
        let real = sinfo.as_ref().and_then(|sinfo| sinfo.canonicalize().ok());
        let files = [sinfo, real, Some(configuration.to_path_buf())];
        let files = files.iter().flatten().chain(plugin_folders);
        let prefixes = files.filter_map(|file| file.ancestors().nth(2));
        let common = COMMON.iter().map(Path::new);
        let prefixes = [Path::new(DEFAULT_HEADERS)].into_iter().chain(prefixes).chain(common);
        let headers = version.as_deref().and_then(|version| headers_of(version, prefixes));
        Self { version, headers }
    }

    /// The command that builds and installs a plugin, and whatever has to be added to it.
    fn rebuild(&self, version: &str, file: &Path) -> String {
        let make = "make -C /usr/share/symbiont/slurm";
        let copy = match file == Path::new(INSTALLED) {
            true => String::new(),
            false => format!(" && cp {INSTALLED} {}", file.display()),
        };
        match &self.headers {
            Some(folder) if folder == Path::new(DEFAULT_HEADERS) => {
                format!("`{make} DESTDIR= install{copy}` builds it anew")
            }
            Some(folder) => {
                format!("`{make} SLURM={} DESTDIR= install{copy}` builds it anew", folder.display())
            }
            None => format!(
                "`{make} SLURM=FOLDER DESTDIR= install{copy}` builds it anew, where FOLDER/include/slurm has the \
                 headers of {version}, which were not found (Debian: libslurm-dev, and no SLURM=)"
            ),
        }
    }
}

/// The first folder whose `include/slurm` has the headers of a version.
fn headers_of<'a>(version: &str, mut folders: impl Iterator<Item = &'a Path>) -> Option<PathBuf> {
    let has_them = |folder: &&Path| {
        let file = folder.join("include/slurm/slurm_version.h");
        let text = symbiont_safe_open::read_to_string(&file).unwrap_or_default();
        header_version(&text).is_some_and(|found| found == version)
    };
    folders.find(has_them).map(Path::to_path_buf)
}

/// The version that `slurm_version.h` defines.
fn header_version(text: &str) -> Option<String> {
    let number = text.lines().find_map(|line| {
        let (_, rest) = line.split_once("define SLURM_VERSION_NUMBER")?;
        u32::from_str_radix(rest.split_whitespace().next()?.strip_prefix("0x")?, 16).ok()
    })?;
    Some(format!("{}.{:02}", (number >> 16) & 255, (number >> 8) & 255))
}

/// The first file of this name in the folders of `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.into_iter().find(|file| file.is_file())
}

/// The version that Slurm's commands have.
fn version() -> Option<String> {
    let text = Commands::each_within(TIMEOUT).version().ok()?;
    let number = text.split_whitespace().last()?;
    Some(number.split('.').take(2).collect::<Vec<_>>().join("."))
}

/// The Slurm that a plugin was built for.
fn built_for(plugin: &Path) -> Option<String> {
    let bytes = symbiont_safe_open::read(plugin).ok()?;
    let at = bytes.windows(BUILT_FOR.len()).position(|window| window == BUILT_FOR.as_bytes())?;
    let rest = bytes.get(at + BUILT_FOR.len()..)?;
    let version: Vec<u8> = rest.iter().copied().take_while(|byte| *byte != 0).take(16).collect();
    String::from_utf8(version).ok()
}

/// What the plugin of plugstack.conf means for jobs, where Slurm searches for plugins in these folders.
pub fn note(plugin: Option<&Plugin>, folders: &[PathBuf], slurm: &Slurm) -> String {
    let Some(plugin) = plugin else {
        return format!(
            "plugstack.conf loads no {NAME}: the daemon is not given the tasks of jobs"
        );
    };
    let files: Vec<_> =
        plugin.files(folders).into_iter().map(|file| (built_for(&file), file)).collect();
    let fits = |(built, _): &&(Option<String>, PathBuf)| {
        built.is_some() && (slurm.version.is_none() || *built == slurm.version)
    };
    let is_built = |(built, _): &&(Option<String>, PathBuf)| built.is_some();
    let found = files.iter().find(fits).or_else(|| files.iter().find(is_built)).or(files.first());
    let meanwhile = if plugin.is_optional {
        "until then jobs run without it, and srun and sbatch refuse --symbiont="
    } else {
        "until then no job runs, as plugstack.conf has it as `required`, not `optional`"
    };
    let Some((built, file)) = found else {
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return format!(
            "plugstack.conf names {} without a path, and it is in no folder of PluginDir ({}); with its path, \
             which is {INSTALLED} after `make install`, it is found; {meanwhile}",
            plugin.name.display(),
            if folders.is_empty() { "not set".to_owned() } else { folders.join(", ") }
        );
    };
    let shown = file.display();
    match (built, &slurm.version) {
        (None, _) if !file.exists() => {
            format!("plugstack.conf loads {shown}, which does not exist; {meanwhile}")
        }
        (None, _) => format!("{shown} is no plugin of Symbiont"),
        (Some(built), Some(version)) if built != version => format!(
            "{shown} was built for Slurm {built}, and {version} is installed, which does not load it: {}; \
             {meanwhile}",
            slurm.rebuild(version, file)
        ),
        (Some(built), _) => {
            format!("{shown} (for Slurm {built}) gives the daemon the tasks of jobs")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn slurm(version: &str, headers: Option<&str>) -> Slurm {
        Slurm { version: Some(version.to_owned()), headers: headers.map(PathBuf::from) }
    }

    /// A plugin of a folder, built for a version.
    fn build(folder: &Path, version: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let file = folder.join(NAME);
        fs::write(&file, format!("\x7fELF\0{BUILT_FOR}{version}\0more")).unwrap();
        file
    }

    #[test]
    fn a_plugin_for_another_slurm_is_named_with_both_versions_and_what_it_means() {
        let folder = tempfile::tempdir().unwrap();
        let file = build(folder.path(), "22.05");
        let of = |is_optional| Plugin { name: file.clone(), is_optional };
        let debian = slurm("24.11", Some("/usr"));
        let text = note(Some(&of(true)), &[], &debian);
        let make = format!(
            "`make -C /usr/share/symbiont/slurm DESTDIR= install && cp {INSTALLED} {}`",
            file.display()
        );
        assert!(text.contains("22.05, and 24.11 is installed") && text.contains(&make), "{text}");
        assert!(text.contains("jobs run without it"), "{text}");
        let text = note(Some(&of(false)), &[], &debian);
        assert!(text.contains(&make) && text.contains("no job runs"), "{text}");
        let text = note(Some(&of(false)), &[], &slurm("22.05", None));
        assert!(text.contains("(for Slurm 22.05) gives the daemon"), "{text}");
        let unknown = Slurm { version: None, headers: None };
        assert!(note(Some(&of(false)), &[], &unknown).contains("gives the daemon"));
        assert!(note(None, &[], &debian).contains("loads no symbiont_spank.so"));
        fs::write(&file, "\x7fELF").unwrap();
        assert!(note(Some(&of(true)), &[], &debian).contains("is no plugin of Symbiont"));
        fs::remove_file(&file).unwrap();
        assert!(note(Some(&of(true)), &[], &debian).contains("does not exist"));
    }

    #[test]
    fn the_command_names_the_folder_of_headers_that_are_not_those_of_the_default() {
        let file = Path::new(INSTALLED);
        let text = slurm("24.11", Some("/usr")).rebuild("24.11", file);
        assert_eq!(text, "`make -C /usr/share/symbiont/slurm DESTDIR= install` builds it anew");
        let text = slurm("24.11", Some("/opt/slurm")).rebuild("24.11", file);
        assert!(
            text.starts_with(
                "`make -C /usr/share/symbiont/slurm SLURM=/opt/slurm DESTDIR= install`"
            )
        );
        let text = slurm("24.11", None).rebuild("24.11", file);
        assert!(text.contains("SLURM=FOLDER") && text.contains("headers of 24.11"), "{text}");
    }

    #[test]
    fn headers_are_those_of_the_version_that_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let prefixes = ["none", "old", "new"].map(|name| folder.path().join(name));
        for (prefix, number) in prefixes[1..].iter().zip(["0x160508", "0x180b01"]) {
            fs::create_dir_all(prefix.join("include/slurm")).unwrap();
            let text = format!(
                "#ifndef _SLURM_VERSION_H_\n#define SLURM_VERSION_NUMBER {number}\n\
                 #define SLURM_VERSION_NUM(a,b,c) 1\n"
            );
            fs::write(prefix.join("include/slurm/slurm_version.h"), text).unwrap();
        }
        let of = |version| headers_of(version, prefixes.iter().map(PathBuf::as_path));
        assert_eq!(of("22.05").as_ref(), Some(&prefixes[1]));
        assert_eq!(of("24.11").as_ref(), Some(&prefixes[2]));
        assert_eq!(of("23.02"), None);
        let outside =
            ["", "define SLURM_VERSION_NUMBER", "#define SLURM_VERSION_NUMBER 0xfffffffff"];
        assert!(outside.iter().all(|text| header_version(text).is_none()));
    }

    #[test]
    fn slurm_takes_the_first_plugin_of_its_folders_that_it_can_load() {
        let folder = tempfile::tempdir().unwrap();
        let [none, junk, old, new] =
            ["none", "junk", "old", "new"].map(|name| folder.path().join(name));
        build(&old, "22.05");
        build(&new, "24.11");
        fs::create_dir(&junk).unwrap();
        fs::write(junk.join(NAME), "junk").unwrap();
        let bare = Plugin { name: NAME.into(), is_optional: true };
        let list = [&none, &junk, &old, &new].map(|folder| folder.display().to_string()).join(":");
        let of =
            |list: &str| note(Some(&bare), &folders(Some(list)), &slurm("24.11", Some("/usr")));
        let text = of(&list);
        assert!(text.starts_with(&format!("{}/{NAME} (for Slurm 24.11)", new.display())), "{text}");
        let text = of(&list[..list.rfind(':').unwrap()]);
        assert!(text.starts_with(&format!("{}/{NAME} was built for Slurm 22.05", old.display())));
        let text = of(&format!(":{}", none.display()));
        assert!(text.contains("without a path") && text.contains(&none.display().to_string()));
    }
}
