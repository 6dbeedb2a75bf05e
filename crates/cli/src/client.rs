//! How commands reach the daemon.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use symbiont_daemon::{Client, ClientError, ManagerReport, SOCKET};
use symbiont_linux::actuate::visible_state_dirs;
use symbiont_linux::launch::{Manager, Wake};
use symbiont_machine::Class;
use symbiont_wire::{Enrolled, Failure, Quiet, Request, Status};

use crate::args::State;

/// Where a daemon may listen that manages this user's programs: in the given state directory, or
/// the user's own; then root's, which serves all users.
pub fn sockets(state: &State) -> anyhow::Result<Vec<PathBuf>> {
    let mut dirs = vec![state.dir()?];
    dirs.extend(visible_state_dirs().into_iter().next_back());
    dirs.dedup();
    Ok(dirs.into_iter().map(|dir| dir.join(SOCKET)).collect())
}

/// The socket of the daemon that runs, if one does.
pub fn running(state: &State) -> anyhow::Result<Option<PathBuf>> {
    let listens = |socket: &PathBuf| reach(socket).is_ok();
    Ok(sockets(state)?.into_iter().find(listens))
}

/// `RestartSec=` of the service, and a start on a busy machine.
const RESTART: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// How long a daemon may take for its first answer, before programs run without it.
const SILENT: Duration = Duration::from_secs(1);
/// The same, before a command that needs it fails.
const FIRST_ANSWER: Duration = Duration::from_secs(3);

/// Connects; where a daemon was killed a moment ago and is about to be started again, or has no time yet to
/// accept, it asks for a while.
fn reach(socket: &Path) -> Result<Client, ClientError> {
    let begin = Instant::now();
    loop {
        match Client::connect(socket) {
            Err(error)
                if error.may_come_back()
                    && begin.elapsed() < RESTART
                    && since_last_life(socket).is_some_and(|since| since < RESTART) =>
            {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

/// How long ago the daemon of a socket last showed that it lives; none: there is no socket.
fn since_last_life(socket: &Path) -> Option<Duration> {
    let shown = std::fs::symlink_metadata(socket).ok()?.modified().ok()?;
    // A clock that was set back says nothing.
    Some(shown.elapsed().unwrap_or_default())
}

/// Why programs run without a daemon that listens: it does not answer, as one that was stopped.
pub fn silent(socket: &Path, wait: Option<Duration>) -> Option<String> {
    let wait = wait.unwrap_or(SILENT);
    let answer = Client::connect(socket).and_then(|mut client| client.expect_answer_within(wait));
    answer.err().and_then(|error| why_silent(&error, wait))
}

/// What is wrong with a daemon that lives, but did not answer within this time; none: it does not run.
fn why_silent(error: &ClientError, within: Duration) -> Option<String> {
    // Where there is no room for another client that waits, it lives, too, and has not answered for long.
    let has_no_room = matches!(error, ClientError::NotRunning { source, .. } if source.kind() == ErrorKind::WouldBlock);
    if error.is_gone() && !has_no_room {
        return None;
    }
    let within = humantime::format_duration(within);
    Some(match error {
        ClientError::Silent { .. } | ClientError::NotRunning { .. } => {
            format!("symbiontd does not answer within {within}, it may be stopped")
        }
        error => format!("symbiontd cannot be asked: {error}"),
    })
}

/// What is said of a program that a process manages already, perhaps the daemon that listens here.
pub fn managed_already(manager: u32, daemon: Option<&Path>) -> String {
    let status = daemon.and_then(|socket| {
        Client::connect_within(socket, SILENT).ok()?.call::<Status>(Request::Status {}, &[]).ok()
    });
    let what = match status.is_some_and(|status| status.pid == manager) {
        true => "the daemon",
        false => "another symbiont",
    };
    format!("already managed by process {manager} ({what})")
}

/// A connection to the daemon.
///
/// # Errors
/// When none runs, or it does not answer.
pub fn connect(state: &State) -> anyhow::Result<Client> {
    first_that_answers(state)?.map_err(|refused| anyhow::anyhow!(no_daemon(&refused)))
}

/// The same, to ask about programs: a run without a daemon says that at its end.
///
/// # Errors
/// As [`connect`].
pub fn connect_to_ask(state: &State) -> anyhow::Result<Client> {
    first_that_answers(state)?.map_err(|refused| {
        let why = no_daemon(&refused);
        anyhow::anyhow!("{why}; `symbiont run --report text` says at its end what a single run did")
    })
}

/// A connection to the first daemon that answers, or why none does at each place.
fn first_that_answers(state: &State) -> anyhow::Result<Result<Client, Vec<ClientError>>> {
    let mut refused = Vec::new();
    for socket in sockets(state)? {
        let reached = reach(&socket).and_then(|mut client| {
            client.expect_answer_within(FIRST_ANSWER)?;
            Ok(client)
        });
        match reached {
            Ok(client) => return Ok(Ok(client)),
            Err(error) => {
                if let Some(why) = why_silent(&error, FIRST_ANSWER) {
                    anyhow::bail!(why);
                }
                refused.push(error);
            }
        }
    }
    Ok(Err(refused))
}

/// Why no daemon answers, and what to do. A socket without a listener is what a daemon leaves that was killed.
fn no_daemon(refused: &[ClientError]) -> String {
    let places = refused.iter().map(|error| match error {
        ClientError::NotRunning { path, source } if source.kind() == ErrorKind::NotFound => {
            path.display().to_string()
        }
        ClientError::NotRunning { path, source } => format!("{} ({source})", path.display()),
        ClientError::Io { path, source } => format!("{} ({source})", path.display()),
        error => error.to_string(),
    });
    let places: Vec<String> = places.collect();
    let was_killed = refused.iter().any(ClientError::may_come_back);
    let restore = match was_killed {
        true => {
            "it was killed: `symbiont restore` (of root's: `sudo symbiont restore`) restores what it left changed; "
        }
        false => "",
    };
    format!(
        "no symbiontd answers at {}; {restore}start it with `sudo systemctl start symbiontd`, or in \
         the foreground with `symbiont daemon`",
        places.join(" or ")
    )
}

/// Does the daemon place programs by the policy that a user asks for?
///
/// # Errors
/// When it decides by another one; the program shall not run then.
pub fn agree(socket: &Path, policy: Option<&str>) -> anyhow::Result<()> {
    let Some(asked) = policy else { return Ok(()) };
    let status: Status = Client::connect(socket)?.call(Request::Status {}, &[])?;
    let running = status.policy;
    match running == asked {
        true => Ok(()),
        false => Err(Failure::PolicyConflict { running, asked: asked.to_owned() }.into()),
    }
}

/// What a run asks of the daemon for its programs.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The policy; none: the daemon's.
    pub policy: Option<String>,
    /// What they are run for; none: the daemon's rules say it, or nothing.
    pub class: Option<Class>,
    /// Are daemons that they leave behind managed to their end?
    pub linger: bool,
    /// What they are called; none: as their commands.
    pub name: Option<String>,
    /// What they are known by from one run to the next; none: their names.
    pub identity: Option<String>,
}

/// Hands the programs of a run to the daemon, in place of a manager of their own: `run` holds them
/// back until this says that they are enrolled.
pub fn enrol_with_daemon(mut manager: Manager, socket: &Path, asked: &Asked) {
    let class = asked.class.unwrap_or_default();
    let enrolled = across_a_restart(ClientError::is_gone, || enrol(&manager, socket, asked));
    let (programs, notes) = match enrolled {
        Ok(enrolled) => enrolled,
        Err(error) => return manager.fail(&error.to_string()),
    };
    if manager.ready(&notes.join("; ")).is_err() || !manager.wants_report() {
        return;
    }
    let status = || Client::connect(socket)?.call_more::<Status>(Request::Status {});
    // What the daemon knows of a program is gone soon after its end.
    let pause = if class == Class::Alone { Duration::from_millis(500) } else { Duration::MAX };
    let mut quiet = None;
    // Until the supervisor asks for the report, however long that takes.
    while !matches!(
        manager.wait(pause),
        Ok(Wake::Finish | Wake::SupervisorGone | Wake::Terminate) | Err(_)
    ) {
        if class == Class::Alone {
            quiet = status().ok().and_then(|pages| quiet_of(&pages, &programs)).or(quiet);
        }
    }
    let last = status();
    quiet = last.as_ref().ok().and_then(|pages| quiet_of(pages, &programs)).or(quiet);
    let nothing = || ClientError::Malformed("it has no page".to_owned());
    let first = last.and_then(|pages| pages.into_iter().next().ok_or_else(nothing));
    let report = first.map(|status| ManagerReport {
        policy: status.policy,
        quantum_ms: status.quantum_ms,
        hardware_threads: status.hardware_threads as usize,
        enrolment: format!("symbiontd (process {}); see `symbiont status`", status.pid),
        quiet,
        ..ManagerReport::default()
    });
    match report {
        // A supervisor that is gone needs no report.
        Ok(report) => drop(manager.report(serde_json::to_vec(&report).unwrap_or_default())),
        Err(error) => manager.fail(&error.to_string()),
    }
}

/// The other threads that ran on the cores of a program, by its last status.
fn quiet_of(pages: &[Status], programs: &[u32]) -> Option<Quiet> {
    let mut known = pages.iter().flat_map(|page| &page.programs);
    known.find(|program| programs.contains(&program.program))?.quiet.clone()
}

/// Asks again for a while if the daemon is gone: it listened a moment ago, so it is about to be
/// started again.
fn across_a_restart<T>(
    is_gone: impl Fn(&ClientError) -> bool,
    mut ask: impl FnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let begin = Instant::now();
    loop {
        match ask() {
            Err(error) if is_gone(&error) && begin.elapsed() < RESTART => {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

fn enrol(
    manager: &Manager,
    socket: &Path,
    asked: &Asked,
) -> Result<(Vec<u32>, Vec<String>), ClientError> {
    let mut client = Client::connect(socket)?;
    let (mut programs, mut notes) = (Vec::new(), Vec::new());
    for root in manager.roots() {
        let Asked { policy, class, linger, name, identity } = asked.clone();
        let (name, class) =
            (name.unwrap_or_else(|| root.name().to_owned()), class.map(|class| class.to_string()));
        let request =
            Request::Enrol { name, policy, linger, class, job: None, user: None, identity };
        let enrolled: Enrolled = client.call(request, &[root.as_fd()])?;
        programs.push(enrolled.program);
        notes.extend(enrolled.notes);
    }
    Ok((programs, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_starts_again_is_asked_again_and_a_refusal_is_final() {
        let gone = || ClientError::Io {
            path: PathBuf::from("/run/symbiont/symbiontd.sock"),
            source: ErrorKind::UnexpectedEof.into(),
        };
        let mut asked = 0;
        let answer = across_a_restart(ClientError::is_gone, || {
            asked += 1;
            if asked < 3 { Err(gone()) } else { Ok(asked) }
        });
        assert_eq!(answer.unwrap(), 3);

        let mut asked = 0;
        let refusal: Result<(), _> = across_a_restart(ClientError::is_gone, || {
            asked += 1;
            Err(Failure::NotPermitted { reason: "not yours".to_owned() }.into())
        });
        assert!(refusal.is_err());
        assert_eq!(asked, 1);
    }

    #[test]
    fn a_socket_that_a_killed_daemon_left_is_asked_again_and_no_socket_is_final() {
        use std::os::unix::net::UnixListener;

        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(SOCKET);
        assert!(matches!(reach(&socket), Err(error) if !error.may_come_back()));
        // A name without a listener, as SIGKILL leaves it.
        drop(UnixListener::bind(&socket).unwrap());
        let again = std::thread::spawn({
            let socket = socket.clone();
            move || {
                std::thread::sleep(Duration::from_millis(200));
                let new = folder.path().join("new");
                let listener = UnixListener::bind(&new).unwrap();
                std::fs::rename(new, socket).unwrap();
                (listener, folder)
            }
        });
        reach(&socket).unwrap();
        again.join().unwrap();
    }

    #[test]
    fn a_daemon_that_died_long_ago_is_not_waited_for_and_its_socket_goes() {
        use std::os::unix::net::UnixListener;

        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(SOCKET);
        drop(UnixListener::bind(&socket).unwrap());
        let an_hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        let touched = std::process::Command::new("touch")
            .args(["-d", &humantime::format_rfc3339(an_hour_ago).to_string()])
            .arg(&socket)
            .status();
        assert!(touched.unwrap().success());
        assert!(since_last_life(&socket).unwrap() > RESTART);
        assert!(reach(&socket).is_err_and(|error| error.may_come_back()));
        symbiont_daemon::remove_dead_socket(folder.path());
        assert!(!socket.exists());
        // One that lives stays.
        let _living = UnixListener::bind(&socket).unwrap();
        symbiont_daemon::remove_dead_socket(folder.path());
        assert!(socket.exists());
    }

    #[test]
    fn where_no_daemon_answers_the_cause_is_said_first_and_then_what_to_do() {
        let at = |path: &str, kind: ErrorKind| ClientError::NotRunning {
            path: PathBuf::from(path),
            source: kind.into(),
        };
        let none = [at("/a/s", ErrorKind::NotFound), at("/b/s", ErrorKind::NotFound)];
        let text = no_daemon(&none);
        assert!(text.starts_with("no symbiontd answers at /a/s or /b/s; start it with "), "{text}");
        assert!(!text.contains("restore") && !text.contains("--report"), "{text}");
        let killed = [at("/a/s", ErrorKind::NotFound), at("/b/s", ErrorKind::ConnectionRefused)];
        let text = no_daemon(&killed);
        assert!(
            text.contains("/b/s (connection refused); it was killed: `symbiont restore`"),
            "{text}"
        );
    }

    #[test]
    fn reports_are_named_where_a_command_asks_about_programs() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::of(folder.path());
        // A daemon of root's may run here.
        let said = |connected: anyhow::Result<Client>| connected.err().map(|why| why.to_string());
        if let (Some(plain), Some(asked)) = (said(connect(&state)), said(connect_to_ask(&state))) {
            assert!(plain.starts_with("no symbiontd answers at ") && !plain.contains("--report"));
            assert!(asked.starts_with(&plain) && asked.contains("run --report text"), "{asked}");
        }
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_named_after_a_moment() {
        use std::os::unix::net::UnixListener;

        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join(SOCKET);
        assert_eq!(silent(&socket, None), None, "there is none");
        // It accepts nothing, as one that is stopped.
        let _stopped = UnixListener::bind(&socket).unwrap();
        let why = silent(&socket, Some(Duration::from_millis(50))).unwrap();
        assert!(why.contains("does not answer within 50ms"), "{why}");
    }

    #[test]
    fn a_command_that_needs_a_daemon_gives_up_on_a_stopped_one_with_one_line() {
        use std::os::unix::net::UnixListener;

        let folder = tempfile::tempdir().unwrap();
        let _stopped = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let state = State::of(folder.path());
        let why = format!("{:#}", connect(&state).unwrap_err());
        assert_eq!(why, "symbiontd does not answer within 3s, it may be stopped");
    }
}
