//! Boots a guest and listens until it powers off.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::cache::Cache;
use super::guests::Guest;
use super::initramfs::Initramfs;
use super::serial::Report;
use super::{device_tree, programs, runtimes};
use crate::given::{self, Scope};
use crate::inside::{EVEN, INIT, STAND_IN};

/// Saves time; and a busy machine delays the timer's interrupts beyond what the
/// kernel's check of the timer allows.
const EASED: &str = "mitigations=off apparmor=0 no_timer_check";
/// The initramfs among a boot's files.
const IMAGE: &str = "initramfs";
/// What a scenario prints stands behind it.
const SAYS: &str = "@lab say ";
/// Until init says hello; some ten seconds on an idle machine.
const TO_BOOT: Duration = Duration::from_secs(240);
/// Between two lines of init, beyond the deadline that each scenario has inside.
const BEYOND: Duration = Duration::from_secs(100);
/// A guest whose kernel dies is booted again for the scenarios that had not ended: the
/// emulator sometimes executes a breakpoint that the kernel, patching itself, has
/// taken away already (seen as "Oops: int3" when a static key changes).
const TRIES: u32 = 3;

/// The guest's report, or why there is none.
pub fn boot(guest: &Guest, scenarios: &[&str], cache: &Cache) -> Result<Report, String> {
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let image = folder.path().join(IMAGE);
    let name = &guest.given.name;
    let mut report = Report::default();
    for attempt in 1..=TRIES {
        let left: Vec<&str> =
            scenarios.iter().copied().filter(|scenario| !report.has_ended(scenario)).collect();
        std::fs::write(&image, initramfs(guest, &left, cache)?).map_err(|why| why.to_string())?;
        report.boot();
        let between = guest.given.longest() * slower(guest) + BEYOND;
        let shows = matches!(guest.given.scope, Scope::Runtimes | Scope::Kills | Scope::Timed);
        listen(qemu(guest, cache, folder.path())?, between, shows, &mut report)?;
        let last = report.last.as_secs_f64();
        let end = if report.complete { "done" } else { "broke off" };
        match report.hello {
            Some(hello) => {
                let hello = hello.as_secs_f64();
                eprintln!("lab: {name}: init ran after {hello:.1} s, {end} after {last:.1} s");
            }
            None => eprintln!("lab: {name}: init never ran; {end} after {last:.1} s"),
        }
        if report.hello.is_some() && !report.kernel_died() {
            break;
        }
        let why = if report.kernel_died() { "the guest's kernel died" } else { "no init" };
        eprintln!("lab: {name}: attempt {attempt} of {TRIES}: {why}");
    }
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-{name}.log"));
    std::fs::write(&log, &report.log).map_err(|why| why.to_string())?;
    eprintln!("lab: {name}: the guest's log is in {}", log.display());
    Ok(report)
}

/// So many times as long as by the guest's clock may be waited for it: where that counts instructions, it is slower than
/// others, the more so on a busy machine.
fn slower(guest: &Guest) -> u32 {
    if guest.machine.iter().any(|word| word == "-icount") { 4 } else { 1 }
}

/// QEMU with what is in the folder.
fn qemu(guest: &Guest, cache: &Cache, folder: &Path) -> Result<Command, String> {
    let mut qemu = cache.qemu();
    qemu.args(&guest.machine);
    qemu.args("-nodefaults -no-user-config -display none -no-reboot -serial stdio".split(' '));
    if !guest.device_tree.is_empty() {
        let file = folder.join("device-tree");
        device_tree::write(&guest.machine, &guest.device_tree, cache, &file)?;
        qemu.arg("-dtb").arg(file);
    }
    qemu.arg("-kernel").arg(cache.kernel()).arg("-initrd").arg(folder.join(IMAGE));
    qemu.arg("-append")
        .arg(format!("console={} rdinit={INIT} quiet panic=-1 oops=panic {EASED}", guest.console));
    Ok(qemu)
}

/// QEMU's two threads take turns where it counts instructions, thousands of times a second: on one CPU they are three
/// times as fast as on two. Which one is left to the clock.
fn stay_on_one_cpu(own: &CpuSet) {
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu)).collect();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_micros() as usize;
    if let Some(cpu) = cpus.get(now % cpus.len().max(1)) {
        let mut one = CpuSet::new();
        one.set(*cpu);
        let _ = sched_setaffinity(None, &one);
    }
}

/// Runs QEMU until it ends, or until nothing is heard for too long. Shows what a scenario of an hour says at once.
fn listen(
    mut qemu: Command,
    between: Duration,
    shows: bool,
    report: &mut Report,
) -> Result<(), String> {
    let begin = Instant::now();
    let own = sched_getaffinity(None).map_err(|why| why.to_string())?;
    if qemu.get_args().any(|word| word == "-icount") {
        stay_on_one_cpu(&own);
    }
    let child = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let _ = sched_setaffinity(None, &own);
    let mut child = child.map_err(|why| format!("QEMU does not start: {why}"))?;
    let output = child.stdout.take().ok_or("no pipe to QEMU")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    loop {
        let timeout = if report.hello.is_some() { between } else { TO_BOOT };
        match lines.recv_timeout(timeout) {
            Ok(line) => {
                if let Some((_, said)) = line.split_once(SAYS).filter(|_| shows) {
                    eprintln!("lab: {:.0} s: {said}", begin.elapsed().as_secs_f64());
                }
                report.hear(&line, begin.elapsed());
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                report.hear("(silence)", begin.elapsed());
                break;
            }
        }
    }
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
    Ok(())
}

/// What the guest finds when it boots.
fn initramfs(guest: &Guest, scenarios: &[&str], cache: &Cache) -> Result<Vec<u8>, String> {
    let mut archive = Initramfs::new();
    programs::add(&mut archive, cache)?;
    if guest.given.scope == Scope::Runtimes {
        runtimes::add(&mut archive)?;
    }
    if guest.given.scope == Scope::Timed {
        programs::add_rivals(&mut archive, cache)?;
    }
    let json = |why: serde_json::Error| why.to_string();
    let given = serde_json::to_vec(&guest.given).map_err(json)?;
    archive.file(Path::new(given::FILE), &given);
    let scenarios = serde_json::to_vec(scenarios).map_err(json)?;
    archive.file(Path::new(given::SCENARIOS), &scenarios);
    for (path, catalogue) in [STAND_IN, EVEN] {
        archive.file(Path::new(path), catalogue.as_bytes());
    }
    Ok(archive.finish())
}
