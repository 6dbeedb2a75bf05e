//! Tests of given programs, with synthetic profiles under the names of ours.

use std::collections::BTreeMap;
use std::path::Path;

use symbiont_campaign::Error;
use symbiont_experiments_sim::Library;
use symbiont_profile::{Profile, test_support as synthetic};

use super::*;
use crate::peternier::usage;
use crate::{Context, Effort, Figure, Outcome, Source, figures, page, uses};

fn write(folder: &Path, name: &str, of: &Profile) {
    of.write(&folder.join(format!("{name}.profile"))).unwrap();
}

/// The programs of a map of this text, next to two profiles.
fn own(text: &str) -> Result<OwnPrograms, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    write(folder.path(), "integer", &synthetic::cache_resident());
    write(folder.path(), "sub/stream", &synthetic::streaming());
    std::fs::write(folder.path().join("bad.profile"), "no profile").unwrap();
    let map = folder.path().join("my.map");
    std::fs::write(&map, text).unwrap();
    OwnPrograms::read(&map)
        .map_err(|error| error.to_string().replace(&folder.path().display().to_string(), "FOLDER"))
}

#[test]
fn paths_begin_at_the_maps_folder_and_names_may_be_full() {
    let read = own("# mine\nmcf = integer.profile\n\"470.lbm\" = \"sub/stream.profile\"\nperl = integer.profile")
        .unwrap();
    assert_eq!(read.names().collect::<Vec<_>>(), ["400.perlbench", "429.mcf", "470.lbm"]);
    let given = read.get("429.mcf").unwrap();
    assert_eq!(given.fingerprint, code::profile(&given.profile));
    assert_eq!(given.fingerprint, read.get("400.perlbench").unwrap().fingerprint);
    assert_ne!(given.fingerprint, read.get("470.lbm").unwrap().fingerprint);
    assert_eq!(read.or("mcf", Some("network")), Some("429.mcf"));
    assert_eq!(read.or("gcc", Some("gcc")), Some("gcc"));
    assert_eq!(read.or("milc", None), None);
}

#[test]
fn a_map_is_refused_with_its_line() {
    for (text, said) in [
        ("mcf = integer.profile\nlbm sub/stream.profile", "FOLDER/my.map, line 2: there is no '='"),
        (
            "\nmfc = integer.profile",
            "FOLDER/my.map, line 2: no program of the papers is called 'mfc'; the nearest: ",
        ),
        ("network = integer.profile", "no program of the papers is called 'network'"),
        (
            "mcf = integer.profile\n# again\n429.mcf = integer.profile",
            "FOLDER/my.map, line 3: 429.mcf is given twice, first in line 1",
        ),
        ("mcf = none.profile", "FOLDER/my.map, line 1: 429.mcf: FOLDER/none.profile: cannot read"),
        ("mcf = bad.profile", "FOLDER/bad.profile: this is not a program profile"),
        ("mcf = sub", "FOLDER/my.map, line 1: 429.mcf: FOLDER/sub: cannot read"),
        ("# none\n", "FOLDER/my.map names no program"),
    ] {
        let refused = own(text).unwrap_err();
        assert!(refused.contains(said), "{text}: {refused}");
    }
    let unknown = own("mfc = integer.profile").unwrap_err();
    assert!(unknown.contains("mcf") && unknown.contains("perlbench, bzip2, gcc"), "{unknown}");
    let missing = OwnPrograms::read(Path::new("/nowhere/my.map")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the map of programs /nowhere/my.map: "), "{missing}");
}

#[test]
fn each_program_that_may_be_given_is_listed_with_its_stand_ins() {
    let all: BTreeMap<&str, Vec<&str>> = replaceable().collect();
    assert_eq!(all.len(), NAMED.len());
    assert_eq!(all["429.mcf"], ["network", "bfs"], "in pools and tables, and in pairs");
    assert_eq!(all["400.perlbench"], ["perl", "gawk"]);
    assert_eq!(all["SciMark.LU"], ["scimark-lu"]);
    assert!(all["433.milc"].is_empty());
}

#[test]
fn a_given_program_takes_the_place_of_its_stand_ins() {
    let own =
        own("perlbench = integer.profile\nmilc = integer.profile\nxz_r = integer.profile").unwrap();
    let pool = || ["bwa", "gawk", "lbm", "perl", "xz"].map(str::to_owned).to_vec();
    let of = |suites, added| own.in_pool(pool(), suites, added);
    assert_eq!(of(CPU2006, false), ["bwa", "400.perlbench", "lbm", "xz"]);
    assert_eq!(of(CPU2006, true), ["bwa", "400.perlbench", "lbm", "xz", "433.milc"]);
    assert_eq!(of(CPU2006_AND_2017, false), ["bwa", "400.perlbench", "lbm", "557.xz_r"]);
    assert_eq!(OwnPrograms::default().in_pool(pool(), CPU2006, true), pool());
    let uses = ProgramUse::of_pool(&of(CPU2006, true), CPU2006, &[]);
    let programs: Vec<_> = uses.iter().map(|one| (one.program, one.is_own())).collect();
    let wanted = [
        (None, false),
        (Some("400.perlbench"), true),
        (Some("470.lbm"), false),
        (None, false),
        (Some("433.milc"), true),
    ];
    assert_eq!(programs, wanted);
}

/// A library in which all of ours for Tables 1 and 2 of Peternier et al. are synthetic.
fn library(folder: &Path) -> Library {
    for named in NAMED {
        for ours in crate::peternier::stand_ins(named.short()) {
            let of = if ours == "network" {
                synthetic::streaming()
            } else {
                synthetic::cache_resident()
            };
            write(folder, ours, &of);
        }
    }
    for ours in ["matrix-integer", "matrix-float"] {
        write(folder, ours, &synthetic::cache_resident());
    }
    Library::open(folder).unwrap()
}

fn context<'a>(library: &'a Library, own: OwnPrograms, records: &Path) -> Context<'a> {
    Context {
        records: records.to_owned(),
        effort: Effort::Quick,
        seed: 1,
        workers: 2,
        library,
        own,
        traces: PathBuf::new(),
        workload: None,
        pairs: Vec::new(),
        prepare: &|_, _, _| Ok(()),
    }
}

/// Values of Table 1 of Peternier et al. by program and column, in its quickest form.
fn table_1(context: &Context<'_>) -> Result<BTreeMap<(String, String), f64>, Error> {
    let points = usage(context, &mut ())?;
    let value = |point: crate::Point| Some(((point.series, point.at), point.ours?.value));
    Ok(points.into_iter().filter_map(value).collect())
}

#[test]
fn a_copy_of_a_stand_in_gives_its_numbers_and_another_profile_others() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path());
    let records = folder.path().join("records");
    let table = |own| table_1(&context(&library, own, &records)).unwrap();
    let stand_ins = table(OwnPrograms::default());
    assert!(stand_ins.keys().all(|(program, _)| program != "milc"));

    // The stand-in of mcf is this very profile; milc has none, and comes in addition.
    let copy = own("mcf = sub/stream.profile\nmilc = integer.profile").unwrap();
    let mut copied = table(copy);
    assert!(copied.keys().any(|(program, _)| program == "milc"));
    copied.retain(|(program, _), _| program != "milc");
    assert_eq!(copied, stand_ins);

    // In the same folder of records, so that no run of one may be taken for one of the other.
    let other = table(own("mcf = integer.profile").unwrap());
    let misses = "misses of the L2 per 100 cycles";
    for ((program, column), value) in &other {
        let before = stand_ins[&(program.clone(), column.clone())];
        if program != "mcf" {
            assert_eq!(*value, before, "{program}, {column}");
        } else if column == misses {
            assert!(*value < before / 2.0, "{value}, {before}");
        }
    }
    assert_eq!(table(OwnPrograms::default()), stand_ins, "its records are still there");
}

fn of(id: &str) -> &'static Figure {
    figures().map(|(_, figure)| figure).find(|figure| figure.id == id).unwrap()
}

#[test]
fn the_report_says_what_ran_for_which_program() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path());
    let own =
        own("mcf = sub/stream.profile\nFFT = integer.profile\ngamess = integer.profile").unwrap();
    let print = own.get("429.mcf").unwrap().fingerprint[..16].to_owned();
    let context = context(&library, own, folder.path());
    let wanted = ["peternier-fig11", "peternier-tab1"].map(of);
    let uses = uses(&wanted, &context);
    let ran = |program| {
        let of = uses.iter().filter(|one| one.program == Some(program));
        of.map(|one| (one.by.as_str(), one.figures.join(" "))).collect::<Vec<_>>()
    };
    assert_eq!(ran("429.mcf"), [("429.mcf", "peternier-tab1 peternier-fig11".to_owned())]);
    let both = [("cg", "peternier-tab1".to_owned()), ("fftw", "peternier-fig11".to_owned())];
    assert_eq!(ran("482.sphinx3"), both);
    assert_eq!(ran("SciMark.FFT"), [("SciMark.FFT", "peternier-tab1".to_owned())]);
    assert!(ran("416.gamess").is_empty(), "no figure of these runs it");

    let outcome = Outcome {
        figures: wanted.map(|figure| (figure, Vec::new())).to_vec(),
        uses,
        ..Outcome::default()
    };
    let report = page(&outcome, &context);
    let out = folder.path().join("out");
    report.write(&out).unwrap();
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let csv = read("programs.csv");
    let row = |start: &str| csv.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    let mcf = row("429.mcf,429.mcf,the paper's own,");
    assert!(mcf.contains("sub/stream.profile") && mcf.contains(&print), "{mcf}");
    assert!(row("445.gobmk,gnugo,stand-in,").contains("gnugo.profile"), "{csv}");
    for text in [read("index.html"), serde_json::to_string(&report).unwrap()] {
        assert!(text.contains("no SPEC metrics") && text.contains(&print));
        let page = text.contains("own programs, as given: 429.mcf. Stand-ins: ");
        assert!(page && text.contains("fftw for 482.sphinx3"), "{text}");
    }
}

#[test]
fn a_report_without_given_programs_names_the_stand_ins() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path());
    let context = context(&library, OwnPrograms::default(), folder.path());
    let uses = crate::peternier::WorkOver.uses(&context);
    assert!(uses.iter().all(|one| !one.is_own() && one.program.is_some()), "{uses:?}");
    assert_eq!(paragraph(&uses, "peternier-tab1"), None);
    let table = table(&uses, &context.own, str::to_owned).csv();
    assert!(
        !table.contains("the paper's own") && table.contains("429.mcf,bfs,stand-in"),
        "{table}"
    );
}
