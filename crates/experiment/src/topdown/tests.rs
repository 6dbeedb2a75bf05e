use std::fs;
use std::path::Path;

use symbiont_counters::catalogue::Catalogue;

use super::*;

/// A file of counts: retiring, frontend, backend, memory of it, speculation,
/// contention.
fn totals(of: [u64; 6]) -> String {
    let [retiring, frontend, backend, memory, speculation, contention] = of;
    let slots = retiring + frontend + backend + speculation + contention;
    let percent = |count: u64, all: u64| 100.0 * count as f64 / all as f64;
    let mut text = format!("cpu-cycles           {slots} # 4.06 GHz\nslots      {slots} #\n");
    let categories = [
        ("retiring", retiring),
        ("frontend", frontend),
        ("backend", backend),
        ("speculation", speculation),
    ];
    for (name, count) in categories {
        let (of_all, own) = (percent(count, slots), percent(count, slots - contention));
        text += &format!("{name:<20} {count} # {of_all:4.1}% ({own:4.1}%) low\n");
        if name == "backend" {
            text += &format!("-- cpu {} #\n-- memory   {memory} # 1.0%\n", backend - memory);
        }
    }
    text + &format!("smt-contention   {contention} # 1.0% ( 0.0%)\n")
}

fn program(folder: &Path, name: &str, totals: &str, series: Option<&str>) {
    fs::create_dir(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("ipc.topdown.txt"), totals).unwrap();
    if let Some(series) = series {
        fs::write(folder.join(name).join("amdtopdown.csv"), series).unwrap();
    }
}

fn zen4() -> Catalogue {
    Catalogue::named("zen4").unwrap().unwrap()
}

fn classified(folder: &Path) -> Vec<Classified> {
    read(folder).unwrap().iter().map(|program| classify(program, &zen4()).unwrap()).collect()
}

const SERIES: &str = "time,retire,frontend,backend,speculate,\n 1.0,60.0,20.0,15.0, 5.0,\n \
                      2.0, 0.0, 0.0, 0.0, 0.0,\n 3.0,30.0,20.0,45.0, 5.0,\n 4.0,30.0,20.0,45.0, 5.0,\n";

#[test]
fn a_series_is_classified_as_its_own_totals_say() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "1.core", &totals([300, 100, 500, 100, 100, 1000]), Some(SERIES));
    program(folder.path(), "2.memory", &totals([100, 50, 800, 700, 50, 0]), None);
    program(folder.path(), "3.front", &totals([200, 500, 150, 140, 150, 333]), None);
    fs::write(folder.path().join("summary.csv"), "bench\n").unwrap();
    let all = classified(folder.path());
    let told: Vec<_> =
        all.iter().map(|c| (c.top.category.as_str(), c.split.category.as_str())).collect();
    assert_eq!(
        told,
        [
            ("backend_bound", "core_bound"),
            ("backend_bound", "memory_bound"),
            ("frontend_bound", "frontend_bound")
        ]
    );
    for (one, program) in all.iter().zip(read(folder.path()).unwrap()) {
        assert_eq!(one.own.0.name(), one.top.category);
        for (level, own) in Level1::ALL.iter().zip(program.own) {
            let (_, ours) = one.top.shares.iter().find(|(name, _)| *name == level.name()).unwrap();
            assert!((ours - own).abs() < 0.0006, "{} {level:?}: {ours} {own}", one.program);
        }
    }
    let seconds = all[0].seconds.as_ref().unwrap();
    assert_eq!((seconds.measured, seconds.changes), (3, 0.5));
    assert!((seconds.dominated[0] - 1.0 / 3.0).abs() < 1e-9, "{seconds:?}");
    assert!(all[1].seconds.is_none());
}

#[test]
fn contention_belongs_to_no_category() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "alone", &totals([300, 100, 500, 100, 100, 0]), None);
    program(folder.path(), "beside", &totals([300, 100, 500, 100, 100, 3000]), None);
    let all = classified(folder.path());
    assert_eq!((all[0].contention, all[1].contention), (0.0, 0.75));
    for (alone, beside) in all[0].split.shares.iter().zip(&all[1].split.shares) {
        assert!((alone.1 - beside.1).abs() < 1e-9, "{alone:?} {beside:?}");
    }
}

#[test]
fn a_damaged_file_is_told_with_its_line() {
    let right = totals([300, 100, 500, 100, 100, 0]);
    let head = SERIES.lines().next().unwrap();
    for (totals, series, told) in [
        ("retiring x # 1%".to_owned(), None, "ipc.topdown.txt:1: not a count"),
        ("cpu-cycles nan # 1%".to_owned(), None, "ipc.topdown.txt:1: not a count"),
        (right.replace("-- memory", "-- disk"), None, "there is no line '-- memory'"),
        (right.replace('(', "["), None, "ipc.topdown.txt:3: no percentage in parentheses"),
        (right.clone(), Some("time,a\n".to_owned()), "amdtopdown.csv:1: the columns should be"),
        (right.clone(), Some(format!("{head}\n1,2,3,\n")), "amdtopdown.csv:2: not five columns"),
        (right.clone(), Some(format!("{head}\n1,a,3,4,5,\n")), "csv:2: not a row of numbers"),
        (right.clone(), Some(format!("{head}\n1,-2,3,4,5,\n")), "csv:2: not percentages"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "p", &totals, series.as_deref());
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("no folder in it holds an ipc.topdown.txt"), "{error}");
    assert!(read(&folder.path().join("none")).is_err());
}
