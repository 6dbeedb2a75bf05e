//! All caches against another simulator, Valgrind's cachegrind, on the addresses of a real program.
//!
//! Valgrind runs a program twice, each time the same way: once to write down what it accesses
//! (lackey), once to simulate caches by itself (cachegrind). What was written down goes through the
//! caches here, which are made as large as those. Cachegrind counts no sets: totals are compared.

use std::fs;
use std::path::Path;
use std::process::Command;

use symbiont_sim_cycle::levels::{Kind, Levels, UserPlace};
use symbiont_topology::CoreId;

use crate::support::machine;

/// Bytes and ways of the L1 caches and of the one behind both; lines of 64 bytes.
const CODE: (u64, u32) = (8 << 10, 2);
const DATA: (u64, u32) = (4 << 10, 4);
const BOTH: (u64, u32) = (64 << 10, 8);
const LINE: u64 = 64;

/// A program that takes the same course each time: a shell would not, which writes down the number of
/// the process that started it.
const PROGRAM: [&str; 4] = ["/bin/sed", "-E", r"s/([0-9])([0-9])/\2\1/g", "input"];

/// What a tool of Valgrind writes about the program; none where it cannot run.
fn valgrind(folder: &Path, tool: &str, options: &[String]) -> Option<String> {
    let log = folder.join(tool);
    let done = Command::new("timeout")
        .args(["120", "valgrind", &format!("--tool={tool}")])
        .arg(format!("--log-file={}", log.display()))
        .args(options)
        .args(PROGRAM)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(folder)
        .output();
    done.ok().filter(|done| done.status.success())?;
    fs::read_to_string(log).ok()
}

/// The first number of the line that is about `what`.
fn number(text: &str, what: &str) -> u64 {
    let line = text.lines().find_map(|line| line.split_once(what)).unwrap().1;
    let number = line.trim_start_matches(':').split('(').next().unwrap();
    number.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    fetches: u64,
    accesses: u64,
    code_misses: u64,
    data_misses: u64,
}

#[test]
fn misses_equal_those_of_cachegrind() {
    let folder = tempfile::tempdir().unwrap();
    let input: Vec<String> = (1..=300).map(|number| format!("{number}\n")).collect();
    fs::write(folder.path().join("input"), input.concat()).unwrap();
    let sizes = [("I1", CODE), ("D1", DATA), ("LL", BOTH)];
    let sizes = sizes.map(|(name, (bytes, ways))| format!("--{name}={bytes},{ways},{LINE}"));
    let out = format!("--cachegrind-out-file={}", folder.path().join("out").display());
    let options = [&sizes[..], &["--cache-sim=yes".to_owned(), out]].concat();
    let counted = valgrind(folder.path(), "cachegrind", &options);
    let accesses = valgrind(folder.path(), "lackey", &["--trace-mem=yes".to_owned()]);
    let (Some(counted), Some(accesses)) = (counted, accesses) else {
        println!("skipped: there is no valgrind that runs a program here");
        return;
    };
    let machine = machine(|_, core_type| {
        (core_type.l1i.bytes, core_type.l1i.ways) = CODE;
        (core_type.l1d.bytes, core_type.l1d.ways) = DATA;
        (core_type.l2.bytes, core_type.l2.ways) = BOTH;
    });
    let core = machine.topology.core(CoreId(0)).unwrap();
    let place = UserPlace {
        thread: 0,
        job: 0,
        core,
        core_type: &machine.core_types[0],
        period: 1.0,
        home: 0,
    };
    let mut levels = Levels::new(&machine, &[place], false, false);
    let mut found = Counted::default();
    let mut ns = 0.0;
    for line in accesses.lines() {
        let (kind, rest) = line.split_at_checked(3).unwrap_or_default();
        if !matches!(kind, "I  " | " L " | " S " | " M ") {
            continue;
        }
        let (address, size) = rest.split_once(',').unwrap();
        let (address, size) = (u64::from_str_radix(address, 16).unwrap(), size.parse::<u64>());
        // Of what lies in two lines a miss of either is one.
        let last = address + size.unwrap().clamp(1, LINE) - 1;
        let mut missed = false;
        for line in address / LINE..=last / LINE {
            ns += 1000.0;
            if kind == "I  " {
                let before = levels.traffic(0).l1i_misses;
                levels.code(0, ns, line * LINE, 0);
                missed |= levels.traffic(0).l1i_misses > before;
            } else {
                missed |= levels.data(0, ns, line * LINE, 0, false, true).unwrap().missed;
            }
        }
        let (counted, misses) = match kind {
            "I  " => (&mut found.fetches, &mut found.code_misses),
            _ => (&mut found.accesses, &mut found.data_misses),
        };
        *counted += 1;
        *misses += u64::from(missed);
    }
    let expected = Counted {
        fetches: number(&counted, "I   refs"),
        accesses: number(&counted, "D   refs"),
        code_misses: number(&counted, "I1  misses"),
        data_misses: number(&counted, "D1  misses"),
    };
    assert_eq!(found, expected);
    let behind: u32 = levels.sets(0, Kind::L2).iter().map(|set| set.misses).sum();
    let expected = (number(&counted, "LLi misses") + number(&counted, "LLd misses")) as f64;
    // Cachegrind looks for both lines of an access there if either is missed.
    assert!((f64::from(behind) / expected - 1.0).abs() < 0.005, "{behind} {expected}");
}
