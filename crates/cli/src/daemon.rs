//! `symbiont daemon`: configuration, log and service manager around [`symbiont_daemon::serve`].

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::process::geteuid;
use sd_notify::NotifyState;
use symbiont_daemon::{ChosenPolicy, Config, Daemon, SOCKET, serve};
use symbiont_linux::actuate::default_state_dir;
use symbiont_linux::machine::CountOptions;
use symbiont_linux::observe::raise_descriptor_limit;
use symbiont_policy::{Settings, find};
use symbiont_topology::HostTopology;

use crate::args::{Daemon as Args, Knowledge, refuse_held_and_kept};
use crate::doctor::catalogue::read_or_find;
use crate::knowledge::{self, Fitting};
use crate::state_files::learned_file;

const USUAL_CONFIG: &str = "/etc/symbiont/symbiontd.toml";

/// Runs until it is asked to end.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let reread = || read(args).map_err(|error| crate::words(&error));
    let config = read(args)?;
    let state_dir = args.state.dir()?;
    let socket = state_dir.join(SOCKET);
    let counting = CountOptions {
        catalogue: catalogue(&config)?.map(std::sync::Arc::new),
        ..CountOptions::default()
    };
    // Where the limit cannot be raised it manages with what there is.
    let _ = raise_descriptor_limit();
    let policy = find(&config.policy)?;
    let (_, _, trouble) = knowledge::learned(policy, Settings::default(), learned_file());
    trouble.iter().for_each(|line| log(line));
    let announced = format!("listening at {}", socket.display());
    let report = serve(Daemon {
        config,
        reread: &reread,
        choose: &|config| choose(config).map_err(|error| crate::words(&error)),
        counting,
        rules: rules(args),
        state_dir,
        // Also of a policy that another configuration chooses later.
        learned: learned_file(),
        published: vec![default_state_dir()],
        socket,
        for_all_users: geteuid().is_root(),
        log: &mut log,
        ready: &mut || {
            log(&announced);
            notify_service(NotifyState::Ready);
        },
        alive: &mut || notify_service(NotifyState::Watchdog),
    })?;
    notify_service(NotifyState::Stopping);
    for failed in &report.failed {
        log(&format!("not restored: {failed}"));
    }
    anyhow::ensure!(report.failed.is_empty(), "not everything could be restored");
    log(&format!("ended; threads restored: {}", report.restored));
    Ok(())
}

/// Where rules are: the distribution's, then the administrator's; a user's own daemon has the user's.
fn rules(args: &Args) -> Vec<PathBuf> {
    if !args.rules.is_empty() {
        return args.rules.clone();
    }
    if geteuid().is_root() {
        return ["/usr/lib/symbiont/rules.d", "/etc/symbiont/rules.d"].map(PathBuf::from).into();
    }
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
    let config = config.filter(|path| path.is_absolute()).or_else(home);
    config.into_iter().map(|path| path.join("symbiont/rules.d")).collect()
}

/// The configuration: of this file, or the usual one where there is one.
pub fn configured(path: Option<&Path>) -> anyhow::Result<Config> {
    let usual = Path::new(USUAL_CONFIG);
    let path = path.or_else(|| Some(usual).filter(|usual| usual.exists()));
    Ok(path.map(Config::read).transpose()?.unwrap_or_default())
}

/// The configuration, with what the command line says instead.
fn read(args: &Args) -> anyhow::Result<Config> {
    let config = configured(args.config.as_deref())?;
    let mut config = match &args.policy {
        // Its parameters are other ones.
        Some(policy) if *policy != config.policy => {
            Config { policy: policy.clone(), set: BTreeMap::new(), ..config }
        }
        _ => config,
    };
    // Two values for one key on the command line are refused, as they are elsewhere.
    args.parameters.values(find(&config.policy)?)?;
    config.set.extend(args.parameters.set.iter().cloned());
    config.narrow = args.narrow.map_or(config.narrow, Into::into);
    config.actuator = args.actuator.map_or(config.actuator, Into::into);
    refuse_held_and_kept(config.narrow, config.actuator)?;
    Ok(config)
}

fn choose(config: &Config) -> anyhow::Result<ChosenPolicy> {
    let entry = find(&config.policy)?;
    let values = entry.values(&config.set)?;
    let settings = Settings { seed: config.seed, values, ..Settings::default() };
    // What is wrong with the file is said at the start, and where it is to be written.
    let (settings, _, _) = knowledge::learned(entry, settings, learned_file());
    let files = Knowledge {
        model: config.model.iter().cloned().collect::<Vec<PathBuf>>(),
        slowdowns: config.slowdowns.clone(),
    };
    let here = || {
        let host = HostTopology::read().context("cannot read this machine's topology")?;
        Fitting::here(&host, catalogue(config)?)
    };
    let settings = knowledge::add(&files, here, entry, settings)?;
    Ok(ChosenPolicy { policy: (entry.make)(&settings), quantum: entry.quantum })
}

fn catalogue(config: &Config) -> anyhow::Result<Option<symbiont_counters::catalogue::Catalogue>> {
    config.catalogue.as_deref().map(read_or_find).transpose()
}

fn log(line: &str) {
    // Where standard error is closed there is no log.
    let _ = writeln!(std::io::stderr(), "symbiontd: {}", in_a_line(line));
}

/// A message of several lines as one of the log, without the marks below what it quotes.
fn in_a_line(message: &str) -> String {
    let says = |line: &&str| !line.chars().all(|c| matches!(c, ' ' | '|' | '^'));
    let lines: Vec<&str> = message.lines().map(str::trim).filter(says).collect();
    crate::top::clean::clean(&lines.join("; "))
}

/// Notifies the service manager, where there is one.
fn notify_service(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    /// The policy and its parameters, by a configuration and the command line.
    fn chosen(config: &str, options: &[&str]) -> anyhow::Result<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("symbiontd.toml");
        std::fs::write(&file, config).unwrap();
        let words = ["symbiont", "daemon", "--config", file.to_str().unwrap()];
        let Command::Daemon(args) = Cli::parse_from(words.iter().chain(options)).command else {
            panic!("another command");
        };
        let config = read(&args)?;
        let set: Vec<String> =
            config.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Ok((config.policy, set.join(" ")))
    }

    #[test]
    fn a_message_of_several_lines_is_one_of_the_log() {
        let message = "rules in a.toml are not applied: line 3, column 1: unknown key `clas`\n  |\n\
                       3 | clas = \"\u{7}batch\"\n  | ^^^^";
        let line = "rules in a.toml are not applied: line 3, column 1: unknown key `clas`; \
                    3 | clas = \"?batch\"";
        assert_eq!(in_a_line(message), line);
        assert_eq!(in_a_line("ended"), "ended");
    }

    #[test]
    fn the_command_line_overrides_the_policy_and_its_parameters() {
        let config = "policy = \"phases\"\n[set]\nthreshold = 2\n";
        let of = |policy: &str, set: &str| (policy.to_owned(), set.to_owned());
        let chosen = |options: &[&str]| chosen(config, options);
        assert_eq!(chosen(&[]).unwrap(), of("phases", "threshold=2"));
        assert_eq!(chosen(&["--policy", "random"]).unwrap(), of("random", ""));
        assert_eq!(chosen(&["--policy", "phases"]).unwrap(), of("phases", "threshold=2"));
        let set = chosen(&["--set", "threshold=3", "--set", "seniority=2s"]).unwrap();
        assert_eq!(set, of("phases", "seniority=2s threshold=3"));
        let set = chosen(&["--policy", "hysched", "--set", "variant=TopL"]).unwrap();
        assert_eq!(set, of("hysched", "variant=TopL"));
        for wrong in [&["--set", "threshold=0"][..], &["--set", "variant=TopL"]] {
            assert!(chosen(wrong).is_err(), "{wrong:?}");
        }
    }
}
