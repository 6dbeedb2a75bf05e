//! A daemon that has few descriptors.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::service::Service;
use crate::settings::{changed, of_tree, own, wait_for_change};
use crate::test_folder::wait_until;
use crate::trials::{own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("clients_wait_while_no_descriptor_is_left_and_the_loop_rests", no_descriptor),
        trial("more_threads_than_descriptors_are_managed", many_threads),
    ]
}

/// Sets what a process may open, of which it has opened some.
fn limit(process: u32, descriptors: u64) {
    let limit = Rlimit { current: Some(descriptors), maximum: Some(descriptors) };
    prlimit(Pid::from_raw(i32::try_from(process).unwrap()), Resource::Nofile, limit).unwrap();
}

fn opened(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// CPU time that a process has used.
fn cpu_time(process: u32) -> Duration {
    let times = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten().map(|task| {
        let times = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        times.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok()).unwrap_or_default()
    });
    Duration::from_nanos(times.sum())
}

fn no_descriptor() {
    let service = Service::start("stay");
    let room = 3;
    limit(service.id(), (opened(service.id()) + room) as u64);
    let clients: Vec<_> =
        (0..10 * room).map(|_| UnixStream::connect(service.socket()).unwrap()).collect();
    wait_until("the shortage is logged", || service.log().contains("clients have to wait"));
    // A loop that spins uses all of a CPU, or what others leave of it.
    let (begin, before) = (Instant::now(), cpu_time(service.id()));
    std::thread::sleep(Duration::from_secs(2));
    let (took, used) = (begin.elapsed(), cpu_time(service.id()) - before);
    assert!(used < took / 4, "{used:?} of {took:?}");
    assert_eq!(service.log().matches("clients have to wait").count(), 1, "{}", service.log());
    drop(clients);
    wait_until("clients are served again", || service.client(&["status"]).status.success());
}

const THREADS: &str = "
import threading, time
for _ in range(150): threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(10**6)], daemon=True).start()
time.sleep(1000)
";

fn many_threads() {
    if own_cpus().len() < 2 {
        return skip("there is one CPU only, so nothing is placed");
    }
    let (mut service, own) = (Service::start("random"), own());
    let most = 128;
    limit(service.id(), most);
    let mut python = Command::new("python3");
    let program = service.place.start(python.args(["-c", THREADS]).stdin(Stdio::null()));
    wait_until("it has its threads", || of_tree(program.id()).len() == 151);
    let done = service.client(&["attach", "--pid", &program.id().to_string()]);
    assert!(done.status.success(), "{}", service.log());
    wait_for_change(program.id(), &own);
    wait_until("all threads are seen", || service.programs()[0]["threads"] == 151);
    wait_until("the shortage is logged", || service.log().contains("descriptors are bounded"));
    let note = || service.status()["notes"].to_string();
    wait_until("status shows it", || note().contains("threads are opened at each sample"));
    assert!(opened(service.id()) as u64 <= most);
    service.end();
    assert_eq!(changed(program.id(), &own), [].into());
}
