use std::path::Path;

use crate::harness::Programs;

use super::*;

#[test]
fn counts_are_read_from_the_last_line() {
    let account = |ipc: &str| format!(r#"{{"all": {{"values": {{{ipc}}}}}}}"#);
    let ipc = |value: f64| account(&format!(r#""ipc": {{"value": {value}, "unit": "ratio"}}"#));
    let two = format!("{}\n{}\n", ipc(0.5), ipc(1.5));
    assert_eq!(counted(&two).unwrap(), Some(1.5));
    assert_eq!(counted(&account("")).unwrap(), None);
    assert_eq!(counted(&ipc(0.0)).unwrap(), None);
    assert!(counted("").is_err());
}

#[test]
fn what_runs_on_a_cpu_stays_there() {
    let cpu = symbiont_linux::actuate::allowed().unwrap().first().unwrap();
    let within = on(cpu, || Ok(symbiont_linux::actuate::allowed().unwrap())).unwrap();
    assert_eq!(within.only(), Some(cpu));
    let elsewhere = PuId(16_000);
    let error = on(elsewhere, || Ok(())).unwrap_err().to_string();
    assert!(error.starts_with("cannot start `a program on cpu16000`"), "{error}");
}

fn core<'a>(
    programs: &'a [NamedWork],
    folder: &Path,
    symbiont: PathBuf,
    method: Method,
) -> OnCore<'a> {
    let first = symbiont_linux::actuate::allowed().unwrap().first().unwrap();
    let own = Programs { symbiont: symbiont.clone(), synth: "none".into() };
    OnCore {
        programs,
        method,
        cpus: [first, first],
        symbiont,
        kernels: Kernels::new(&own, Duration::from_millis(10), folder),
        most: Duration::from_secs(60),
        basis: String::new(),
        alone: BTreeMap::new(),
    }
}

fn program(name: &str, command: &str) -> NamedWork {
    NamedWork { name: name.to_owned(), work: Work::Command(command.to_owned()) }
}

fn cell(program: &str, co_runner: Option<&str>) -> PairCell {
    PairCell { program: program.to_owned(), co_runner: co_runner.map(str::to_owned), take: 0 }
}

const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

#[test]
fn a_run_is_timed_while_the_other_program_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        program("busy", BUSY),
        program("broken", "exit 3"),
        program("idle", "true"),
        program("long", "sleep 1000"),
    ];
    let bench = core(&programs, folder.path(), "none".into(), Method::CpuTime);
    let stop = AtomicBool::new(false);
    let measure = |one, other| bench.measure(&cell(one, other), &stop);
    for other in [None, Some("busy"), Some("idle")] {
        let speeds = measure("busy", other).unwrap();
        assert!(speeds.first > 0.0 && speeds.second.is_none() && speeds.seconds > 0.0);
    }
    for (one, other) in [("broken", None), ("busy", Some("broken"))] {
        let error = measure(one, other).unwrap_err().to_string();
        assert!(error.contains("exit 3` ended with exit status: "), "{error}");
    }
    let error = compared("true", Duration::from_micros(1551)).unwrap_err().to_string();
    let expected = "`true` takes 1.6 ms of CPU time; at least 20 ms can be compared";
    assert!(error.ends_with(expected), "{error}");
    assert_eq!(compared("x", Duration::from_millis(500)).unwrap(), 2.0);
    let stopped = bench.measure(&cell("long", Some("busy")), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn both_programs_are_counted_while_they_are_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = tempfile::tempdir().unwrap();
    // It counts as `symbiont stat` does, of a process that has to be there.
    let text = "#!/bin/sh\nfor word; do case $word in --output=*) out=${word#*=};; --pid=*) pid=${word#*=};; esac; \
                done\nkill -0 $pid && echo '{\"all\":{\"values\":{\"ipc\":{\"value\":1.25}}}}' >$out\n";
    let symbiont = crate::worlds::scripts::script(scripts.path(), "symbiont", text);
    let programs = [program("busy", BUSY), program("broken", "exit 3")];
    let bench = core(&programs, folder.path(), symbiont, Method::Ipc);
    let stop = AtomicBool::new(false);
    let both = bench.measure(&cell("busy", Some("busy")), &stop).unwrap();
    assert_eq!((both.first, both.second), (1.25, Some(1.25)));
    let alone = bench.measure(&cell("busy", None), &stop).unwrap();
    assert_eq!((alone.first, alone.second), (1.25, None));
    let error = bench.measure(&cell("busy", Some("broken")), &stop).unwrap_err().to_string();
    assert!(error.contains("exit 3` ended"), "{error}");
}
