//! `symbiont simulate`, `machines` and `workloads`, from outside.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use symbiont_experiments_sim::Library;

fn symbiont(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("symbiont").unwrap();
    // No folder of profiles there: the synthetic programs are left.
    let folder = env!("CARGO_TARGET_TMPDIR");
    command.current_dir(folder).env("XDG_CACHE_HOME", folder).args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = symbiont(args).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

/// The one line that says what was wrong.
fn refused(args: &[&str]) -> String {
    let output = symbiont(args).assert().failure();
    let reported = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert_eq!(reported.lines().count(), 1, "{reported}");
    reported
}

const SMALL: [&str; 13] = [
    "simulate",
    "--machine",
    "power8-s812l",
    "--cores",
    "2",
    "--smt",
    "2",
    "--alone",
    "300ms",
    "--repeats",
    "2",
    "--apps",
    "synthetic-streaming*2,synthetic-integer,synthetic-float",
];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn a_report_says_what_it_rests_on() {
    let text = stdout(&small(&["--policy", "random"]));
    assert!(text.starts_with("simulated on power8-s812l"), "{text}");
    for needle in ["unchecked", "are assumed", "not POWER runs", "STP ", "ANTT ", "synthetic"] {
        assert!(text.contains(needle), "{needle} in {text}");
    }
    let one = stdout(&[
        "simulate",
        "--machine",
        "power8-s812l",
        "--cores",
        "1",
        "--smt",
        "1",
        "--alone",
        "300ms",
        "--repeats",
        "1",
        "--apps",
        "synthetic-integer",
    ]);
    assert!(
        one.contains("; 1 core, 1 hardware thread\n") && one.contains("\n1 repeat from "),
        "{one}"
    );
    let json: Value = serde_json::from_str(&stdout(&small(&["--json"]))).unwrap();
    assert_eq!(json["provenance"]["simulated"], true);
    assert_eq!(json["provenance"]["checked"], "unchecked");
    assert_eq!(json["policy"], "stay");
    assert_eq!(json["apps"].as_array().unwrap().len(), 4);
}

#[test]
fn a_row_for_each_program_is_written_as_csv() {
    let text = stdout(&small(&["--csv", "--seed", "7"]));
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| head.iter().position(|head| *head == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 4);
    let json: Value = serde_json::from_str(&stdout(&small(&["--json", "--seed", "7"]))).unwrap();
    let sum: f64 = rows.iter().map(|row| row[at("speedup")].parse::<f64>().unwrap()).sum();
    assert!((sum - json["stp"]["value"].as_f64().unwrap()).abs() < 1e-9);
    let row = &rows[3];
    assert!(text.contains("\"synthetic-streaming"), "the workload's commas are in quotes: {text}");
    let said =
        ["machine", "policy", "seed", "place", "program", "speedup n"].map(|name| row[at(name)]);
    assert_eq!(said, ["power8-s812l", "stay", "7", "3", "synthetic-float", "2"]);
}

#[test]
fn equal_seeds_print_equal_bytes() {
    let run = |seed| stdout(&small(&["--json", "--policy", "random", "--seed", seed]));
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn inputs_that_are_no_regular_files_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("pipe.profile");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let fifo = fifo.to_str().unwrap();
    let simulate = ["simulate", "--machine", "power8-s812l"];
    for args in [
        [&simulate[..], &["--apps", fifo]].concat(),
        [&simulate[..], &["--workload", fifo]].concat(),
        [&simulate[..], &["--policy", "symbiotic", "--model", fifo]].concat(),
        [&simulate[..], &["--policy", "oracle", "--slowdowns", fifo]].concat(),
        vec!["simulate", "--machine", fifo],
        vec!["profile", "--show", fifo],
        vec!["check-sim", "--pairs", fifo],
        vec!["simulate", "--pairs", fifo],
        vec!["reproduce", "symbiont-measured-pairs", "--pairs", fifo],
        [&simulate[..], &["--policy", "activity", "--vectors", fifo]].concat(),
    ] {
        let args = args.as_slice();
        let reported = refused(args);
        assert!(
            reported.contains(fifo) && reported.contains("it is a pipe (FIFO)"),
            "{args:?}: {reported}"
        );
    }
}

#[test]
fn both_levels_are_held_against_measured_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pairs.csv");
    let names = ["integer", "float", "branchy", "chasing"].map(|name| format!("synthetic-{name}"));
    let mut text = "program,co_runner,slowdown\n".to_owned();
    for (at, one) in names.iter().enumerate() {
        for (to, other) in names.iter().enumerate() {
            text += &format!("{one},{other},{}\n", 1.1 + (at + 2 * to) as f64 / 10.0);
        }
    }
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let asked =
        ["check-sim", "--machine", "xeon-silver-4110", "--counted", "2000", "--pairs", file];
    let shown = stdout(&asked);
    for needle in ["16 ordered pairs", "fast  level: mean slowdown", "cycle level", "held against"]
    {
        assert!(shown.contains(needle), "{needle} in {shown}");
    }
    let json: Value = serde_json::from_str(&stdout(&[&asked[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["levels"][1]["held"]["pairs"], 16);
    assert!(json["levels"][0]["held"]["rank_of_co_runners"].is_number());
    assert!(json["held"].as_str().unwrap().contains("choose pairs on that machine"), "{json}");
    // Without SMT there are no pairs, and each program needs a profile.
    let alone = refused(&["check-sim", "--machine", "morad-8-symmetric", "--pairs", file]);
    assert!(alone.contains("no two hardware threads of morad-8-symmetric"), "{alone}");
    std::fs::write(file, text.replace("synthetic-float", "nameless")).unwrap();
    let unknown = refused(&asked);
    assert!(unknown.contains("nameless"), "{unknown}");
    std::fs::write(file, "program,co_runner\n").unwrap();
    assert!(refused(&asked).contains("no column is called 'slowdown'"));
}

#[test]
fn policies_run_on_measured_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("here.csv");
    // One of them with itself was not measured.
    let text = "program,co_runner,slowdown\na,a,1.9\na,b,1.2\nb,a,1.1\na,c,1.5\nc,a,1.6\nb,c,1.3\nc,b,1.2\nc,c,2.0\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let pairs = ["simulate", "--pairs", file, "--threads", "6", "--repeats", "3", "--at", "2s,5s"];
    let with = |more: &[&'static str]| [&pairs[..], more].concat();
    let json = |args: &[&str]| -> Value { serde_json::from_str(&stdout(args)).unwrap() };
    let learned = json(&with(&["--policy", "learned", "--phases", "1s", "--json"]));
    let captured = learned["captured"].as_array().unwrap();
    assert_eq!((captured.len(), learned["programs"].as_array().unwrap().len()), (2, 3));
    assert_eq!(captured[1]["until_s"], 5.0);
    let shown = stdout(&with(&["--policy", "random"]));
    assert!(shown.contains("until     2 s") && shown.contains("6 threads on 3 cores"), "{shown}");
    let counters = refused(&with(&["--policy", "hysched"]));
    assert!(counters.contains("needs more than instructions and cycles"), "{counters}");
    assert!(
        shown.contains("not measured next to themselves") && shown.contains("for it: b\n"),
        "{shown}"
    );
    assert_eq!(learned["not_next_to_themselves"], serde_json::json!(["b"]));
    let one =
        stdout(&["simulate", "--pairs", file, "--threads", "6", "--repeats", "1", "--at", "1s"]);
    assert!(one.contains("6 threads on 3 cores, 1 mix\n"), "{one}");
    let csv = stdout(&with(&["--policy", "random", "--seed", "7", "--csv"]));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        (rows.len(), rows[0][..6].join(",").as_str()),
        (3, "pairs,policy,threads,mixes,seed,until_s")
    );
    assert_eq!(
        (rows[0][6], &rows[2][..6]),
        ("captured", &[file, "random", "6", "3", "7", "5"][..])
    );
    assert!(rows[1..].iter().all(|row| row[6].parse::<f64>().is_ok()), "{csv}");
    let odd = refused(&["simulate", "--pairs", file, "--threads", "3"]);
    assert!(odd.contains("an even number from 2 to 1024"), "{odd}");

    let out = folder.path().join("out");
    let figure = ["reproduce", "symbiont-measured-pairs", "--quick", "--pairs", file, "--output"];
    let figure = [&figure[..], &[out.to_str().unwrap()]].concat();
    let twice = refused(&[&figure[..], &["--pairs", file]].concat());
    assert!(twice.contains("two files of pairs are called 'here'"), "{twice}");
    let other = refused(&["reproduce", "morad-tab4", "--pairs", file]);
    assert!(other.contains("--pairs is for symbiont-measured-pairs"), "{other}");
    let shown = stdout(&figure);
    assert!(shown.contains("symbiont-measured-pairs"), "{shown}");
}

#[test]
fn what_is_for_measured_pairs_is_refused_on_a_machine() {
    let given =
        ["--threads=4", "--at=1s", "--phases=1s", "--arrivals=1s", "--drift=0.1", "--noise=0.03"];
    for option in given {
        let error = refused(&small(&[option]));
        let name = option.split('=').next().unwrap();
        let expected = format!(
            "symbiont: {name}: only with --pairs FILE, which is given in place of --machine\n"
        );
        assert_eq!(error, expected);
    }
    assert!(
        refused(&small(&["--at=1s", "--noise=0"])).contains("--at, --noise: only with --pairs")
    );
    assert!(refused(&["simulate", "--at=1s"]).contains("--at: only with --pairs FILE"));
}

#[test]
fn a_timeline_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.jsonl");
    let args = small(&["--timeline"]);
    let mut command = symbiont(&args);
    command.arg(&path).assert().success();
    let lines = std::fs::read_to_string(&path).unwrap();
    assert!(lines.lines().count() > 2);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["simulated"], true);
    assert_eq!(first["threads"].as_array().unwrap().len(), 4);
}

#[test]
fn machines_are_listed_with_their_sources() {
    let list = stdout(&["machines"]);
    for name in ["power8-s812l", "zen4", "alder-lake", "xsim", "morad-8-asymmetric"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name} in {list}");
    }
    let json: Value = serde_json::from_str(&stdout(&["machines", "zen4", "--json"])).unwrap();
    let values = json["values"].as_array().unwrap();
    assert!(values.len() > 50);
    assert!(values.iter().all(|value| !value["source"].as_str().unwrap().is_empty()));
    let of = |key: &str| &values.iter().find(|value| value["key"] == key).unwrap()["value"];
    assert_eq!(of("core.performance.l1d.bytes"), "32K");
    assert_eq!(of("core.performance.l1d.ways"), 8);
    let text = stdout(&["machines", "zen4"]);
    let line = text.lines().find(|line| line.starts_with("core.performance.l1d.bytes ")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("32K"), "{line}");
    // Only where threads share a core are there pairs of them.
    let warns = |name: &str| stdout(&["machines", name]).contains("do not choose pairs");
    assert!(warns("zen4") && warns("xeon-silver-4110") && !warns("morad-8-symmetric"));
}

#[test]
fn what_memory_looks_like_is_said_to_be_simulated() {
    let reported = stdout(&["machines", "xsim", "--memory", "--json"]);
    let json: Value = serde_json::from_str(&reported).unwrap();
    assert_eq!(json["memory"]["provenance"]["simulated"], true);
}

#[test]
fn programs_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["workloads", "--profiles", folder.path().to_str().unwrap()];
    // Those that need no profile are listed; that there is none is an error all the same.
    let output = symbiont(&args).assert().failure().get_output().clone();
    let [text, said] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(text.contains("synthetic-streaming"), "{text}");
    assert!(said.contains("no profiles of programs in ") && said.contains("--profiles"), "{said}");
    let profile = Library::default().load("synthetic-integer").unwrap();
    profile.write(&folder.path().join("mine.profile")).unwrap();
    assert!(stdout(&args).starts_with("mine "), "{}", stdout(&args));
}

#[test]
fn bad_input_is_one_clear_line() {
    let machine = |name| refused(&["simulate", "--machine", name]);
    assert!(
        machine("power8").contains("no machine 'power8' to simulate; the nearest: power8-s812l")
    );
    assert!(machine("no/such.toml").contains("machine no/such.toml: No such file"));
    let xeon = |more: &[&'static str]| {
        let args = ["simulate", "--machine", "xeon-e5-2620v4"];
        refused(&args.iter().chain(more).copied().collect::<Vec<_>>())
    };
    assert!(xeon(&["--cores", "9"]).contains("8 cores of 2 hardware threads, not 9 cores"));
    let near = xeon(&["--apps", "synthetic-strem"]);
    assert!(near.contains("no program 'synthetic-strem'; the nearest: synthetic-streaming"));
    let crowded = xeon(&["--cores", "1", "--apps", "synthetic-integer*3"]);
    assert!(crowded.contains("3 threads for 2 hardware threads"), "{crowded}");
    assert!(xeon(&["--policy", "phasse"]).contains("did you mean 'phases'"));
    assert!(xeon(&["--apps", "a@b"]).contains("'a@b': `b` is no ratio"));
}

#[test]
fn bad_profiles_are_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut later = b"SYMBPROF".to_vec();
    later.extend(99_u32.to_le_bytes());
    later.extend([0; 40]);
    std::fs::write(folder.path().join("later.profile"), later).unwrap();
    std::fs::write(folder.path().join("cut.profile"), b"SYMBPROF\x01").unwrap();
    let reported = |app| {
        let machine = ["simulate", "--machine", "xsim", "--profiles", path, "--apps", app];
        refused(&machine)
    };
    let later = reported("later");
    assert!(later.contains("later.profile: the profile has format version 99"), "{later}");
    assert!(later.contains("make it anew with `symbiont profile`"), "{later}");
    assert!(reported("cut").contains("cut.profile: the profile is damaged"));
    assert!(reported("latr").contains("no program 'latr'; the nearest: later"));
}

/// A run that needs one table, kept in `cache`.
fn one_table(cache: &str) -> [&str; 11] {
    let [alone, repeats] = ["--alone", "--repeats"];
    let app = "synthetic-integer";
    ["simulate", "--machine", "xsim", "--apps", app, "--cache", cache, alone, "100ms", repeats, "2"]
}

#[test]
fn tables_are_kept_and_damaged_ones_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let args = one_table(folder.path().to_str().unwrap());
    let run = || {
        let output = symbiont(&args).assert().success().get_output().clone();
        (output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    let (cold, reported) = run();
    assert!(reported.starts_with("symbiont: preparing 1 program for xsim: 1 table;"), "{reported}");
    assert_eq!(run(), (cold.clone(), String::new()), "the next run finds it");
    let code = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::read_dir(code).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    let (mended, reported) = run();
    assert_eq!(mended, cold);
    assert!(reported.contains("1 kept table found damaged and made anew"), "{reported}");
    assert_eq!(run(), (cold, String::new()));
}

/// A phase for which too few micro-traces stand is simulated, and reported on either level.
#[test]
fn few_micro_traces_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Library::default().load("synthetic-integer").unwrap();
    profile.program = "few".to_owned();
    profile.phases[0].traces.truncate(4);
    profile.write(&folder.path().join("few.profile")).unwrap();
    let path = folder.path().to_str().unwrap();
    let reported = |args: &[&str]| {
        let output = symbiont(args).assert().success();
        String::from_utf8(output.get_output().stderr.clone()).unwrap()
    };
    let few = "fewer than 5 micro-traces are simulated with less certainty";
    for level in ["fast", "cycle"] {
        let machine = ["simulate", "--machine", "xsim", "--profiles", path, "--no-cache"];
        let run = ["--level", level, "--alone", "100ms", "--repeats", "2", "--apps"];
        let of = |app: &str| reported(&[&machine[..], &run, &[app]].concat());
        let said = of("few");
        assert!(said.contains(few) && said.contains("few (100 %)"), "{said}");
        let said = of("synthetic-integer");
        assert!(!said.contains(few), "{said}");
    }
    let shown = stdout(&["profile", "--show", &format!("{path}/few.profile")]);
    assert!(shown.contains("Fewer than 5 micro-traces: 1 of 1 phases"), "{shown}");
}

#[test]
fn preparing_stops_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let deadline = Duration::from_secs(600);
    let mut run = std::process::Command::new(assert_cmd::cargo::cargo_bin("symbiont"))
        .args(["simulate", "--machine", "power8-s812l", "--cores", "1", "--smt", "4", "--cache"])
        .arg(folder.path())
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (to, lines) = mpsc::channel();
    let stderr = BufReader::new(run.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        stderr.lines().map_while(Result::ok).for_each(|line| to.send(line).unwrap());
    });
    let mut reported = Vec::new();
    while !reported.last().is_some_and(|line: &String| line.contains("preparing")) {
        reported.push(lines.recv_timeout(deadline).unwrap());
    }
    let pid = run.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    // It ends as soon as the tables in the making are made.
    let heard_all = loop {
        match lines.recv_timeout(deadline) {
            Ok(line) => reported.push(line),
            Err(why) => break why == mpsc::RecvTimeoutError::Disconnected,
        }
    };
    if !heard_all {
        let _ = run.kill();
    }
    assert_eq!(run.wait().unwrap().code(), Some(1), "{reported:?}");
    assert!(
        reported.last().unwrap().contains("stopped; the tables made so far are kept"),
        "{reported:?}"
    );
    reader.join().unwrap();
}

#[test]
fn a_bad_description_names_line_key_and_reason() {
    let carried = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/sim-fast/machines/zen4.toml");
    let text = std::fs::read_to_string(carried).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let mine = path.to_str().unwrap();
    std::fs::write(&path, text.replace("rob = { entries = 320", "rob = { entries = -3")).unwrap();
    let reported = refused(&["simulate", "--machine", mine]);
    assert!(
        reported.contains("mine.toml:") && reported.contains("core.performance.rob.entries"),
        "{reported}"
    );
    std::fs::write(&path, text.replace("dispatch = 6\n", "")).unwrap();
    let reported = refused(&["simulate", "--machine", mine]);
    assert!(reported.contains("core.performance.dispatch: missing"), "{reported}");
    std::fs::write(&path, text.replace("dispatch = 6\n", "dispatch = \"six\"\n")).unwrap();
    let reported = refused(&["simulate", "--machine", mine]);
    assert!(
        reported.contains("mine.toml:") && reported.contains("core.performance.dispatch"),
        "{reported}"
    );
}

#[test]
fn the_levels_are_held_against_each_other() {
    let asked = ["check-sim", "--apps", "synthetic-integer,synthetic-float", "--counted", "2000"];
    let text = stdout(&asked);
    for needle in ["simulated on xeon-e5-2620v4", "SMT2, 3 groups", "slowdown", "STP", "memory"] {
        assert!(text.contains(needle), "{needle} in {text}");
    }
    let json: Value = serde_json::from_str(&stdout(&[&asked[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["simulated"], true);
    assert_eq!(json["compared"][0]["slowdown"]["values"], 6);
    assert!(refused(&[&asked[..], &["--smt", "4"]].concat()).contains("2 hardware threads"));
}

#[test]
fn the_cycle_level_takes_the_same_options_and_says_so() {
    let machine = ["simulate", "--machine", "xeon-e5-2620v4", "--cores", "1", "--apps"];
    let runs = ["synthetic-integer,synthetic-branchy", "--alone", "200ms", "--repeats", "2"];
    let asked = |more: &[&'static str]| [&machine[..], &runs, more].concat();
    let cycle = stdout(&asked(&["--level", "cycle"]));
    assert!(cycle.lines().next().unwrap().contains("cycle level"), "{cycle}");
    let reported = |level| -> Value {
        serde_json::from_str(&stdout(&asked(&["--level", level, "--json"]))).unwrap()
    };
    let (cycle, fast) = (reported("cycle"), reported("fast"));
    assert_eq!(cycle["provenance"]["level"], "cycle level");
    assert_eq!(fast["provenance"]["level"], "fast level");
    assert_eq!(
        cycle.as_object().unwrap().keys().collect::<Vec<_>>(),
        fast.as_object().unwrap().keys().collect::<Vec<_>>()
    );
    let private = refused(&asked(&["--level", "cycle", "--private", "caches"]));
    assert!(private.contains("cannot give threads resources for themselves"), "{private}");
    assert!(refused(&asked(&["--traces", "."])).contains("--level cycle"));
    let missing = refused(&asked(&["--level", "cycle", "--traces", "nowhere"]));
    assert!(missing.contains("no folder nowhere"), "{missing}");
}

/// `symbiont … | head`: once no process reads, a command ends quietly, also one that prints
/// little (`println!` would panic).
#[test]
fn commands_whose_reader_is_gone_end_quietly() {
    let profiles = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles");
    let profile = std::fs::read_dir(profiles).unwrap().flatten().map(|entry| entry.path());
    let profile = profile.filter(|path| path.extension().is_some_and(|e| e == "profile")).min();
    let profile = profile.unwrap();
    let commands: [&[&str]; 9] = [
        &["profile", "--show", profile.to_str().unwrap()],
        &["profile", "--show", profile.to_str().unwrap(), "--json"],
        &["policies"],
        &["machines"],
        &["machines", "power8-s812l"],
        &["workloads"],
        &["doctor"],
        &["doctor", "--json"],
        &["analyze", "phases", "--cores", "8", "--fast", "2"],
    ];
    for command in commands {
        let (read, write) = rustix::pipe::pipe().unwrap();
        drop(read);
        let mut symbiont = std::process::Command::new(env!("CARGO_BIN_EXE_symbiont"));
        symbiont.args(command).stdout(write).stderr(Stdio::piped());
        let output = symbiont.spawn().unwrap().wait_with_output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && reported.is_empty(), "{command:?}: {reported}");
    }
}

#[test]
fn a_machine_is_arranged_as_a_topology() {
    let arranged = |topology: &str| -> Vec<String> {
        let mut words = SMALL.map(str::to_owned).to_vec();
        words.splice(3..7, ["--topology".to_owned(), topology.to_owned()]);
        words
    };
    let words = arranged("pack:2 core:1 pu:2");
    let said = stdout(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.contains(", arranged as 'pack:2 core:1 pu:2')"), "{said}");
    assert!(said.contains("2 cores, 4 hardware threads"), "{said}");
    let words = arranged("core:2 | core:2 kind:efficiency capacity:500");
    let said = refused(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.contains("power8-s812l describes no efficiency cores"), "{said}");
}
