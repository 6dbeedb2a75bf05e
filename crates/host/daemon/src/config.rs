//! The daemon's configuration file.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use symbiont_containers::Folders;
use symbiont_control::Holding;
use symbiont_linux::machine::Keeping;
use symbiont_planner::Bounds;

use crate::toml_file;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The file says something that it must not.
    #[error("in the configuration {path}: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, key and reason.
        why: String,
    },
}

/// What an administrator can set. `packaging/symbiontd.toml` explains each key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The policy that places all programs.
    pub policy: String,
    /// Period of the loop; none: the policy's own.
    #[serde(deserialize_with = "quantum")]
    pub quantum: Option<Duration>,
    /// Seed of policies that draw at random.
    pub seed: u64,
    /// Parameters of the policy.
    #[serde(deserialize_with = "texts")]
    pub set: BTreeMap<String, String>,
    /// Quanta for which a thread stays where it was moved.
    pub hold: u32,
    /// Most moves in one quantum; none: no bound.
    pub budget: Option<usize>,
    /// Which masks stay narrow.
    pub narrow: Holding,
    /// How other threads are kept on their targets; what it was at the start counts.
    pub actuator: Keeping,
    /// The interference model, for policies that need one.
    pub model: Option<PathBuf>,
    /// Measured slowdowns of pairs, for policies that need them.
    pub slowdowns: Option<PathBuf>,
    /// Event catalogue by name or file; none: the one for this processor.
    pub catalogue: Option<String>,
    /// Where metrics are published.
    pub metrics: MetricsConfig,
    /// How containers are found, and whether they may ask for something.
    pub containers: ContainersConfig,
}

/// How containers are found, and whether they may ask for something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table, which begins with [containers]")]
pub struct ContainersConfig {
    /// Do their annotations count as a rule before all others?
    pub annotations: bool,
    /// Do pods have metrics of their own?
    pub metrics: bool,
    /// Where their runtimes keep their state.
    pub folders: Folders,
}

/// Where metrics are published; nowhere unless it is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table, which begins with [metrics]")]
pub struct MetricsConfig {
    /// A file that is replaced once a second.
    #[serde(deserialize_with = "absolute")]
    pub file: Option<PathBuf>,
    /// A port of this machine alone, for HTTP.
    #[serde(deserialize_with = "loopback")]
    pub listen: Option<SocketAddr>,
    /// A port for HTTP, also of other machines, where the jobs of this node are reported.
    #[serde(deserialize_with = "port")]
    pub jobs: Option<SocketAddr>,
}

impl MetricsConfig {
    /// Are metrics published nowhere?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: symbiont_policy::DEFAULT.to_owned(),
            quantum: None,
            seed: 1,
            set: BTreeMap::new(),
            hold: 0,
            budget: None,
            narrow: Holding::default(),
            actuator: Keeping::default(),
            model: None,
            slowdowns: None,
            catalogue: None,
            metrics: MetricsConfig::default(),
            containers: ContainersConfig::default(),
        }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or anything in it is wrong: it is taken as a whole or not at all.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let bytes = symbiont_safe_open::read(path)
            .map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        let wrong = |why: String| ConfigError::Content { path: path.to_owned(), why };
        let text = toml_file::text(bytes).map_err(wrong)?;
        let config: Self = toml_file::parse(&text).map_err(|mistake| wrong(mistake.show(&text)))?;
        if let Some(path) = config.containers.folders.relative() {
            return Err(wrong(format!(
                "[containers.folders]: {} is no absolute path",
                path.display()
            )));
        }
        // Another policy may be chosen on the command line: its name is looked at then.
        if let Ok(policy) = symbiont_policy::find(&config.policy) {
            policy.values(&config.set).map_err(|error| wrong(format!("[set]: {error}")))?;
        }
        Ok(config)
    }

    /// How threads are kept stays as it is while a daemon runs; gives a note where another way is asked for.
    ///
    /// # Errors
    /// When what is asked for contradicts it.
    pub fn keep_actuator(&mut self, runs: &Self) -> Result<Option<String>, String> {
        let asked = std::mem::replace(&mut self.actuator, runs.actuator);
        if self.narrow == Holding::Always && runs.actuator != Keeping::Nudges {
            return Err(
                "'narrow' = \"always\" leaves nothing to the scheduler in the kernel, with which \
                        this daemon was started"
                    .to_owned(),
            );
        }
        Ok((asked != runs.actuator)
            .then(|| "another 'actuator' counts from the next start of the daemon on".to_owned()))
    }

    /// How much may be moved in a quantum.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds { hold: self.hold, budget: self.budget }
    }
}

fn quantum<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    let time: Duration =
        text.parse::<humantime::Duration>().map_err(serde::de::Error::custom)?.into();
    match (Duration::from_millis(1)..=Duration::from_secs(10)).contains(&time) {
        true => Ok(Some(time)),
        false => Err(serde::de::Error::custom("a quantum lies between 1ms and 10s")),
    }
}

/// Values as they are written on a command line, whatever they are in TOML.
fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a parameter is set to a number or a text")]
    enum Scalar {
        Whole(i64),
        Number(f64),
        Text(String),
    }
    let table = BTreeMap::<String, Scalar>::deserialize(from)?;
    let text = |scalar| match scalar {
        Scalar::Whole(number) => number.to_string(),
        Scalar::Number(number) => number.to_string(),
        Scalar::Text(text) => text,
    };
    Ok(table.into_iter().map(|(key, scalar)| (key, text(scalar))).collect())
}

fn absolute<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    match path.is_absolute() && path.file_name().is_some() {
        true => Ok(Some(path)),
        false => Err(serde::de::Error::custom("the file of metrics is given by its absolute path")),
    }
}

fn loopback<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let address = address(from)?;
    match address.ip().is_loopback() {
        true => with_port(address),
        false => Err(serde::de::Error::custom(format!(
            "{} can be reached from other machines; metrics are served on loopback addresses only \
             (127.0.0.1, [::1])",
            address.ip()
        ))),
    }
}

fn port<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    with_port(address(from)?)
}

fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    String::deserialize(from)?.parse().map_err(|_| {
        serde::de::Error::custom("an address is written as 127.0.0.1:9920 or [::1]:9920")
    })
}

fn with_port<E: serde::de::Error>(address: SocketAddr) -> Result<Option<SocketAddr>, E> {
    match address.port() {
        0 => Err(E::custom("a port lies between 1 and 65535")),
        _ => Ok(Some(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("symbiontd.toml");
        fs::write(&path, text).unwrap();
        Config::read(&path)
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        assert_eq!(read("").unwrap(), Config::default());
    }

    #[test]
    fn keys_are_read() {
        let config = read(
            "policy = \"random\"\nquantum = \"250ms\"\nhold = 2\nbudget = 8\nnarrow = \"where-needed\"\n",
        );
        let config = config.unwrap();
        assert_eq!(config.narrow, Holding::WhereNeeded);
        assert_eq!((config.policy.as_str(), config.bounds().budget), ("random", Some(8)));
        assert_eq!(config.quantum, Some(Duration::from_millis(250)));
    }

    #[test]
    fn another_actuator_waits_for_the_next_start() {
        let runs = read("").unwrap();
        let mut other = read("actuator = \"sched-ext\"\nhold = 2\n").unwrap();
        let scheduled = other.clone();
        assert!(other.keep_actuator(&runs).unwrap().unwrap().contains("from the next start"));
        assert_eq!((other.actuator, other.hold), (runs.actuator, 2));
        assert_eq!(other.keep_actuator(&runs), Ok(None));
        let mut held = read("narrow = \"always\"\n").unwrap();
        assert_eq!(held.keep_actuator(&runs), Ok(None));
        assert!(held.keep_actuator(&scheduled).is_err());
    }

    #[test]
    fn parameters_of_the_policy_are_set() {
        let text = "policy = \"phases\"\n[set]\nthreshold = 2\nseniority = \"500ms\"\n";
        let set = read(text).unwrap().set;
        let written = [("threshold", "2"), ("seniority", "500ms")];
        assert_eq!(set, written.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        let set = read("policy = \"hysched\"\n[set]\nhysteresis = 0.05\n").unwrap().set;
        assert_eq!(set["hysteresis"], "0.05");
    }

    #[test]
    fn metrics_are_published_nowhere_unless_it_is_set() {
        assert!(read("").unwrap().metrics.is_empty());
        let text = "[metrics]\nfile = \"/run/symbiont/symbiont.prom\"\nlisten = \"[::1]:9920\"\n";
        let jobs = "jobs = \"0.0.0.0:9921\"\n";
        let metrics = read(&format!("{text}{jobs}")).unwrap().metrics;
        assert_eq!(metrics.jobs.map(|address| address.port()), Some(9921));
        assert_eq!(read(text).unwrap().metrics.jobs, None);
        assert_eq!(metrics.file.as_deref(), Some(Path::new("/run/symbiont/symbiont.prom")));
        assert_eq!(metrics.listen.map(|address| address.port()), Some(9920));
    }

    #[test]
    fn containers_ask_for_nothing_unless_it_is_allowed() {
        assert!(!read("").unwrap().containers.annotations);
        let text =
            "[containers]\nannotations = true\n[containers.folders]\nroot = \"/host\"\ncrun = []\n";
        let containers = read(text).unwrap().containers;
        assert!(containers.annotations);
        let others = Folders { root: "/host".into(), crun: Vec::new(), ..Folders::default() };
        assert_eq!(containers.folders, others);
    }

    #[test]
    fn a_bad_configuration_is_refused_as_a_whole() {
        for (text, part) in [
            ("polcy = \"random\"", "polcy"),
            ("policy = 3", "line 1"),
            ("quantum = \"0ms\"", "between 1ms and 10s"),
            ("quantum = \"soon\"", "quantum"),
            ("seed = -1", "seed"),
            ("[policy", "line 1"),
            (
                "policy = \"phases\"\n[set]\nthreshold = -1",
                "[set]: threshold=-1: expected a number",
            ),
            ("policy = \"phases\"\n[set]\nthreshold = [2]", "to a number or a text"),
            ("policy = \"phases\"\n[set]\nvariant = \"TopL\"", "belongs to 'hysched'"),
            ("policy = \"stay\"\n[set]\nzeal = 1", "'stay' has no parameter 'zeal'"),
            ("[metrics]\nport = 1", "port"),
            ("[metrics]\nfile = \"symbiont.prom\"", "absolute path"),
            ("[metrics]\nlisten = \"localhost\"", "127.0.0.1:9920"),
            ("[metrics]\nlisten = \"127.0.0.1:0\"", "between 1 and 65535"),
            ("[metrics]\nlisten = \"0.0.0.0:9920\"", "0.0.0.0 can be reached from other machines"),
            ("[metrics]\nlisten = \"[::]:9920\"", ":: can be reached from other machines"),
            ("[metrics]\nlisten = \"192.0.2.1:9920\"", "192.0.2.1 can be reached"),
            ("[containers]\nlabels = true", "labels"),
            ("[containers.folders]\nrunc = [\"run/runc\"]", "run/runc is no absolute path"),
            (
                "[containers.folders]\ncontainerd = \"/x\"",
                "line 2, column 14: expected a list of folders, as in [\"/run/containerd\"], found \
                 string \"/x\"",
            ),
            ("[containers.folders]\nrunc = [1]", "expected a path in quotes, found integer `1`"),
            (
                "[containers]\nfolders = \"x\"",
                "line 2, column 11: expected a table, which begins with [containers.folders], found",
            ),
            ("containers = \"x\"", "expected a table, which begins with [containers], found"),
            ("metrics = 1", "expected a table, which begins with [metrics], found integer `1`"),
            ("set = 1", "expected a table, found integer `1`"),
            ("narrow = \"never\"", "line 1, column 10: unknown value `never`, expected"),
            ("[metrics]\njobs = true", "line 2"),
            ("[metrics]\njobs = \"node7:9921\"", "127.0.0.1:9920"),
            ("[metrics]\njobs = \"0.0.0.0:0\"", "between 1 and 65535"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("symbiontd.toml") && error.contains(part), "{text}: {error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("symbiontd.toml");
        fs::write(&path, b"seed = 1\npolicy = '\xfc'\n").unwrap();
        let error = Config::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2, column 11: this is no text in UTF-8"), "{error}");
        let error = Config::read(Path::new("/nowhere/x.toml")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.toml"), "{error}");
    }
}
