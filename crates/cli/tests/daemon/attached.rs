//! Programs that run already.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use symbiont_daemon::{Client, ClientError};
use symbiont_wire::{Attached, Request};

use crate::service::Service;
use crate::settings::{changed, of_tree, own, tree as processes, wait_for_change};
use crate::test_folder::{Program, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

const THREADS: &str = "
import threading, time
def work():
    while True: pass
for _ in range(5): threading.Thread(target=work, daemon=True).start()
time.sleep(1000)
";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_running_program_is_attached_whole_and_detached_as_before", attach),
        trial("a_tree_of_processes_is_attached_by_its_first", tree),
        trial("a_program_can_be_attached_again_after_it_was_detached", again),
        trial("of_several_processes_those_are_attached_that_are_not_managed", several),
        trial("those_that_exist_are_attached_and_detached_and_named", not_all),
        trial("what_a_detached_shell_runs_is_managed_anew", detached_shell),
        trial("threads_of_the_kernel_and_the_daemon_are_refused", not_programs),
        trial("a_process_that_does_not_exist_is_refused", missing),
        trial("what_a_stopped_daemon_did_not_answer_is_not_done_later", given_up),
        trial("without_a_daemon_clients_say_how_to_start_one", no_daemon),
    ]
}

fn start(service: &Service, program: &mut Command) -> Program {
    service.place.start(program.stdin(Stdio::null()))
}

fn attach() {
    let (service, own) = (Service::start("random"), own());
    let program = start(&service, Command::new("python3").args(["-c", THREADS]));
    // `python3` may be a script that first calls others.
    wait_until("it has its threads, and nothing else", || {
        processes(program.id()).len() == 1 && of_tree(program.id()).len() == 6
    });
    let pid = program.id().to_string();
    let done = service.client(&["attach", "--pid", &pid]);
    assert!(done.status.success(), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("1 process with "), "{text}");
    wait_until("all threads are seen", || service.programs()[0]["threads"] == 6);
    if own_cpus().len() > 1 {
        wait_for_change(program.id(), &own);
    } else {
        skip("there is one CPU only, so nothing is placed");
    }
    let done = service.client(&["detach", "--pid", &pid]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(changed(program.id(), &own), [].into(), "restored when the command returns");
    assert!(service.programs().is_empty());
    let again = service.client(&["detach", "--pid", &pid]);
    assert!(stderr(&again).contains("not managed"), "{}", stderr(&again));
    program.kill_all();
}

fn detached_shell() {
    let service = Service::start("stay");
    let symbiont = env!("CARGO_BIN_EXE_symbiont");
    let state_dir = service.place.state_dir().display().to_string();
    let script = format!(
        "s={symbiont}; d={state_dir}; $s attach --state-dir $d --pid $$ && \
         $s detach --state-dir $d --pid $$ && sleep 1; $s run --state-dir $d -- sleep 1000"
    );
    let program = start(&service, Command::new("sh").args(["-c", &script]).stdout(Stdio::null()));
    let runs = || service.programs().iter().any(|program| program["name"] == "sleep");
    wait_until("what it runs is managed", runs);
    program.kill_all();
}

fn given_up() {
    let service = Service::start("stay");
    let program = start(&service, Command::new("sleep").arg("1000"));
    let pid = program.id().to_string();
    service.send(Signal::STOP);
    for words in [&["attach", "--pid", &pid][..], &["reload"], &["status"], &["why", &pid]] {
        let failed = service.client(words);
        let line = "symbiontd does not answer within 3s, it may be stopped";
        assert!(!failed.status.success() && stderr(&failed).contains(line), "{failed:?}");
        assert_eq!(stderr(&failed).lines().count(), 1, "{failed:?}");
    }
    // A client that asks at once, and gives up.
    let raw = i32::try_from(program.id()).unwrap();
    let process = pidfd_open(Pid::from_raw(raw).unwrap(), PidfdFlags::empty()).unwrap();
    let mut client = Client::connect_within(&service.socket(), Duration::from_millis(50)).unwrap();
    let attach = Request::Attach { name: "too late".to_owned(), class: None };
    let unanswered = client.call::<Attached>(attach, &[process.as_fd()]);
    assert!(matches!(unanswered, Err(ClientError::Silent { .. })), "{unanswered:?}");
    drop(client);
    service.send(Signal::CONT);
    assert!(service.programs().is_empty(), "{:?}", service.programs());
    assert!(!service.log().contains("read again"), "{}", service.log());
    let attached = service.client(&["attach", "--pid", &pid]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    program.kill_all();
}

fn not_programs() {
    let service = Service::start("stay");
    for (pid, why) in [(service.id(), "symbiontd itself"), (2, "thread of the kernel")] {
        let kernel = std::fs::read_to_string("/proc/2/comm").is_ok_and(|it| it == "kthreadd\n");
        let is_root = rustix::process::geteuid().is_root();
        if pid == 2 && !(kernel && is_root) {
            continue;
        }
        let done = service.client(&["attach", "--pid", &pid.to_string()]);
        assert!(stderr(&done).contains(why), "{}", stderr(&done));
    }
}

fn tree() {
    let (service, own) = (Service::start("random"), own());
    let script = format!("sh -c '{}' & sh -c '{}' & wait", "while :; do :; done", "sleep 1000");
    let program = start(&service, Command::new("sh").args(["-c", &script]));
    wait_until("it has its children", || of_tree(program.id()).len() >= 3);
    let done = service.client(&["attach", "--name", "family", "--pid", &program.id().to_string()]);
    assert!(done.status.success(), "{}", stderr(&done));
    wait_until("all are seen", || service.programs()[0]["threads"] == of_tree(program.id()).len());
    assert_eq!(service.programs()[0]["name"], "family");
    let child = *of_tree(program.id()).keys().last().unwrap();
    let done = service.client(&["detach", "--pid", &child.to_string()]);
    assert!(done.status.success(), "any of its processes stands for the program");
    assert_eq!(changed(program.id(), &own), [].into());
    program.kill_all();
}

fn again() {
    let (service, own) = (Service::start("random"), own());
    let program = start(&service, Command::new("sh").args(["-c", BUSY]));
    let pid = program.id().to_string();
    for _ in 0..5 {
        let done = service.client(&["attach", "--pid", &pid]);
        assert!(done.status.success(), "{}", stderr(&done));
        wait_until("it is seen", || service.programs()[0]["threads"] == 1);
        let done = service.client(&["detach", "--pid", &pid]);
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(changed(program.id(), &own), [].into());
    }
    program.kill_all();
}

fn several() {
    let service = Service::start("stay");
    let start = || start(&service, Command::new("sh").args(["-c", BUSY]));
    let [first, second, third] = [start(), start(), start()];
    let [one, two, three] = [&first, &second, &third].map(|of| of.id().to_string());
    let done = service.client(&["attach", "--name", "known", "--pid", &one]);
    assert!(done.status.success(), "{}", stderr(&done));
    let refused = service.client(&["attach", "--pid", &one]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("known is managed already"), "{}", stderr(&refused));
    let done = service.client(&["attach", "--name", "new", "--pid", &one, "--pid", &two]);
    assert!(done.status.success(), "{}", stderr(&done));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("new: 1 process") && said.contains("known is managed already"), "{said}");
    // Nothing of what was refused stays behind.
    let done = service.client(&["attach", "--pid", &three, "--pid", &two]);
    assert!(done.status.success(), "{}", stderr(&done));
    let done = service.client(&["detach", "--pid", &three, "--pid", &one]);
    assert!(done.status.success(), "{}", stderr(&done));
    let done = service.client(&["detach", "--pid", &three, "--pid", &two]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(service.programs().is_empty());
    for program in [first, second, third] {
        program.kill_all();
    }
}

fn not_all() {
    let service = Service::start("stay");
    let busy = start(&service, Command::new("sh").args(["-c", BUSY]));
    let sleeps = start(&service, Command::new("sleep").arg("1000"));
    let [one, two] = [&busy, &sleeps].map(|of| of.id().to_string());
    wait_until("they are what they will be", || {
        let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name(&two).is_ok_and(|name| name == "sleep\n")
    });
    let missing = "note: there is no process 4194303";
    let said = |words: &[&str], shown: &[&str]| {
        let done = service.client(words);
        assert!(done.status.success(), "{words:?}: {}", stderr(&done));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(shown.iter().all(|part| text.contains(part)), "{words:?}: {text}");
    };
    said(&["attach", "--pid", &one, "--pid", "4194303"], &["sh: 1 process", missing]);
    said(&["attach", "--pid", &one, "--pid", &two], &["sleep: 1 process", "sh is managed already"]);
    said(&["detach", "--pid", &two], &["released 1 process"]);
    let unmanaged = format!("note: process {two} was not managed");
    said(
        &["detach", "--pid", &one, "--pid", &two, "--pid", "4194303"],
        &["released 1 process", &unmanaged, missing],
    );
    assert!(service.programs().is_empty());
    said(&["attach", "--pid", &one, "--pid", &two], &["2 processes"]);
    let name = service.programs()[0]["name"].as_str().unwrap().to_owned();
    assert!(["sh, sleep", "sleep, sh"].contains(&name.as_str()), "{name}");
    for program in [busy, sleeps] {
        program.kill_all();
    }
}

fn missing() {
    let service = Service::start("stay");
    let refused = service.client(&["attach", "--pid", "4194303"]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("no process 4194303"), "{}", stderr(&refused));
    let refused = service.client(&["attach"]);
    assert!(stderr(&refused).contains("--pid"), "{}", stderr(&refused));
}

fn no_daemon() {
    let place = crate::test_folder::TestFolder::new();
    let output = place.symbiont("status").output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("symbiont daemon"), "{}", stderr(&output));
}
