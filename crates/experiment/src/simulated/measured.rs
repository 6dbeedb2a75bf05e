//! Simulated programs beside measured ones: SPEC CPU2017 on a Zen 4 of 8 cores, 16 copies of
//! each.
//!
//! The measurements are read from a folder that is not part of this project: `summary.csv`, a row
//! for each program, and, where there is one, `PROGRAM/l2.float.txt` with counts of the L2. Each
//! profiled program stands beside the nearest of SPEC's: the same program, its descendant, or one
//! that does alike; inputs and compilers differ, so that only what is absurd tells
//! anything. Some pairs are loose, which is told ([`Beside::loose`]); programs that are like none
//! of SPEC's stand alone. As many copies are simulated as were measured, at even places of the program.
//!
//! The counts tell L3 misses of the L2's prefetcher only; simulated are all lines that come
//! from memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use symbiont_profile::Profile;
use symbiont_sim::PrepareError;
use symbiont_sim::activity::Slot;
use symbiont_sim::description::Description;
use symbiont_sim::physics::rates::Rates;

use super::steady::{Resident, Steady};
use super::{Provenance, Setup};

/// Profiled programs and the nearest of SPEC CPU2017.
const NEAREST: [(&str, &str); 19] = [
    ("povray", "511.povray_r"),
    ("calculix", "510.parest_r"),
    ("gnugo", "541.leela_r"),
    ("bzip2", "557.xz_r"),
    ("gzip", "557.xz_r"),
    ("xz", "557.xz_r"),
    ("zstd", "557.xz_r"),
    ("x264", "525.x264_r"),
    ("gcc", "502.gcc_r"),
    ("perl", "500.perlbench_r"),
    ("imagemagick", "538.imagick_r"),
    ("network", "505.mcf_r"),
    ("lbm", "519.lbm_r"),
    ("cg", "503.bwaves_r"),
    ("stream", "549.fotonik3d_r"),
    ("chase", "520.omnetpp_r"),
    ("xalan", "523.xalancbmk_r"),
    ("iverilog", "520.omnetpp_r"),
    ("gawk", "500.perlbench_r"),
];

/// Those that share no more than a trait with the nearest: sweeps over arrays, a sparse solver
/// beside one on a grid, pointers through memory, events in the order of time (of gates, not of
/// networks), hashes and patterns in an interpreter (of another language than Perl).
const LOOSE: [&str; 5] = ["stream", "cg", "chase", "iverilog", "gawk"];

/// Why measurements cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The table lacks a column.
    #[error("{}: there is no column '{column}'", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// What is missing.
        column: &'static str,
    },
    /// A value is no number.
    #[error("{}:{line}: '{column}' is no number", path.display())]
    Number {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: usize,
        /// The column.
        column: &'static str,
    },
    /// The machine cannot run a program.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
}

/// What a program does, per thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Instructions per cycle.
    pub ipc: f64,
    /// Misses of the L2 for each 1,000 instructions.
    pub l2_mpki: f64,
    /// Of the last level; measured: those of the L2's prefetcher alone.
    pub llc_mpki: Option<f64>,
    /// Mispredicted branches for each 1,000 instructions.
    pub mispredicted: f64,
    /// Shares of all slots: front end, bad speculation, retiring, back end, other threads.
    pub slots: [f64; 5],
}

/// A program, simulated and measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// The profiled program.
    pub program: String,
    /// The measured one.
    pub nearest: Option<&'static str>,
    /// Have the two no more in common than a trait?
    pub loose: bool,
    /// Copies of each.
    pub copies: usize,
    /// Simulated.
    pub simulated: Figures,
    /// Measured.
    pub measured: Option<Figures>,
}

/// All programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What the simulated figures rest on.
    pub provenance: Provenance,
    /// Program by program.
    pub programs: Vec<Beside>,
}

/// Measured figures by program, and copies.
type Series = BTreeMap<String, (usize, Figures)>;

/// Reads the measurements of a folder.
///
/// # Errors
/// When its table cannot be read or is another one.
pub fn read(folder: &Path) -> Result<Series, MeasuredError> {
    let path = folder.join("summary.csv");
    let text = symbiont_input::read_to_string(&path)
        .map_err(|error| MeasuredError::Read { path: path.clone(), error })?;
    let mut lines = text.lines().enumerate();
    let header: Vec<&str> = lines.next().map_or("", |(_, line)| line).split(',').collect();
    let mut series = Series::new();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |column: &'static str| {
            let at = header.iter().position(|name| *name == column);
            let at = at.ok_or_else(|| MeasuredError::Column { path: path.clone(), column })?;
            Ok::<_, MeasuredError>(cells.get(at).copied().unwrap_or_default())
        };
        let number = |column: &'static str| {
            let bad = || MeasuredError::Number { path: path.clone(), line: index + 1, column };
            cell(column)?.trim().parse::<f64>().ok().filter(|n| n.is_finite()).ok_or_else(bad)
        };
        let bench = cell("bench")?.to_owned();
        let share = |column| number(column).map(|percent| percent / 100.0);
        let figures = Figures {
            ipc: number("ipc_per_thread")?,
            l2_mpki: number("l2_access_per_kinst")? * share("l2_miss_pct")?,
            llc_mpki: prefetched(&folder.join(&bench).join("l2.float.txt")),
            mispredicted: number("branches_per_kinst")? * share("branch_miss_pct")?,
            slots: [
                share("frontend_pct")?,
                share("speculation_pct")?,
                share("retiring_pct_slots")?,
                share("backend_pct")?,
                share("smt_contention_pct")?,
            ],
        };
        series.insert(bench, (number("copies")? as usize, figures));
    }
    Ok(series)
}

/// L3 misses of the prefetcher for each 1,000 instructions, if the counts tell.
fn prefetched(path: &Path) -> Option<f64> {
    let text = symbiont_input::read_to_string(path).ok()?;
    let (mut instructions, mut found) = (None, None);
    for line in text.lines() {
        let count = || line.get(20..)?.split_whitespace().next()?.parse::<f64>().ok();
        if line.starts_with("instructions ") && found.is_none() {
            instructions = count();
        } else if line.starts_with("l3 miss from l2 pf") {
            found = Some(count()? / instructions? * 1000.0);
        }
    }
    found
}

/// Simulates as many copies of each program as were measured.
///
/// # Errors
/// When the measurements cannot be read, or the machine cannot run a program.
pub fn compare(
    description: &Description,
    profiles: &BTreeMap<String, Profile>,
    folder: &Path,
) -> Result<Comparison, MeasuredError> {
    let series = read(folder)?;
    let steady = Steady::new(description, profiles)?;
    let cpus = description.topology.cpus().len();
    let programs = steady.programs.iter().map(|program| {
        let nearest = NEAREST.iter().find(|(name, _)| *name == program.name).map(|(_, near)| *near);
        let measured = nearest.and_then(|nearest| series.get(nearest));
        let copies = measured.map_or(cpus, |(copies, _)| *copies).clamp(1, cpus);
        Beside {
            program: program.name.clone(),
            nearest,
            loose: LOOSE.contains(&program.name.as_str()),
            copies,
            simulated: copies_of(&steady, program, copies, description),
            measured: measured.map(|(_, figures)| *figures),
        }
    });
    Ok(Comparison {
        programs: programs.collect(),
        provenance: Provenance::new(description, &Setup::default()),
    })
}

/// Copies spread over all cores.
fn copies_of(
    steady: &Steady,
    program: &Resident,
    copies: usize,
    description: &Description,
) -> Figures {
    let cores = description.topology.cores().len();
    let mut places = vec![Vec::new(); cores.min(copies)];
    let count = places.len();
    for copy in 0..copies {
        let phase = program.at((copy as f64 + 0.5) / copies as f64);
        places[copy % count].push(&program.phases[phase].phase);
    }
    let mode = places.iter().map(Vec::len).max().unwrap_or(1) as u32;
    figures(&steady.together(mode, &places))
}

/// All threads over the same time.
fn figures(rates: &[Rates]) -> Figures {
    let sum = |of: &dyn Fn(&Rates) -> f64| rates.iter().map(|r| of(r) / r.cpi).sum::<f64>();
    let instructions = sum(&|_| 1.0);
    let slots = sum(&|r| r.window.slots.iter().sum());
    let share = |causes: &[Slot]| {
        causes.iter().map(|c| sum(&|r| r.window.slots[*c as usize])).sum::<f64>() / slots
    };
    Figures {
        ipc: instructions / rates.len().max(1) as f64,
        l2_mpki: 1000.0 * sum(&|r| r.l2_misses) / instructions,
        llc_mpki: Some(1000.0 * sum(&|r| r.llc_misses) / instructions),
        mispredicted: 1000.0 * sum(&|r| r.mispredicts) / instructions,
        slots: [
            share(&[Slot::FetchLatency, Slot::FetchBandwidth]),
            share(&[Slot::BadSpeculation]),
            share(&[Slot::Retiring]),
            share(&[Slot::Core, Slot::L1, Slot::L2, Slot::L3, Slot::Memory, Slot::Store]),
            share(&[Slot::OtherThread]),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::super::Library;
    use super::*;

    const HEADER: &str = "bench,copies,ipc_per_thread,retiring_pct_slots,frontend_pct,backend_pct,\
                          speculation_pct,smt_contention_pct,l2_access_per_kinst,l2_miss_pct,\
                          branches_per_kinst,branch_miss_pct";

    #[test]
    fn programs_stand_beside_the_nearest() {
        let folder = tempfile::tempdir().unwrap();
        let row = "511.povray_r,16,1.81,31.7,4.0,23.6,1.3,39.5,63.187,0.06,157.689,0.25";
        fs::write(folder.path().join("summary.csv"), format!("{HEADER}\n{row}\n")).unwrap();
        fs::create_dir(folder.path().join("511.povray_r")).unwrap();
        let counts = "instructions         1000000  # 0.2 l2\nl3 miss from l2 pf   2000    #\n";
        fs::write(folder.path().join("511.povray_r/l2.float.txt"), counts).unwrap();
        let library = Library::open(Path::new("/nonexistent")).unwrap();
        let mut profiles = library.load_all(["synthetic-float"]).unwrap();
        let profile = profiles.remove("synthetic-float").unwrap();
        for name in ["povray", "gawk"] {
            profiles.insert(name.to_owned(), profile.clone());
        }
        profiles.insert("another".to_owned(), profile);
        let zen4 = Description::named("zen4").unwrap();
        let comparison = compare(&zen4, &profiles, folder.path()).unwrap();
        let [another, gawk, povray] = &comparison.programs[..] else { panic!("three programs") };
        assert_eq!((another.nearest, another.measured), (None, None));
        assert_eq!((gawk.nearest, gawk.measured), (Some("500.perlbench_r"), None));
        assert_eq!([another.loose, gawk.loose, povray.loose], [false, true, false]);
        let measured = povray.measured.unwrap();
        assert_eq!((povray.copies, measured.ipc, measured.llc_mpki), (16, 1.81, Some(2.0)));
        assert!(povray.simulated.ipc > 0.1 && povray.simulated.ipc <= 3.0);
        assert!((povray.simulated.slots.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn each_program_has_one_nearest_and_is_shipped() {
        let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
        let mut names = BTreeSet::new();
        for (program, nearest) in NEAREST {
            assert!(names.insert(program), "{program} is there twice");
            let shipped = profiles.join(format!("{program}.profile"));
            assert!(shipped.is_file(), "{program} has no profile");
            // Rate programs of SPEC CPU2017 are numbered from 500.
            let number = nearest.split('.').next().and_then(|digits| digits.parse::<u32>().ok());
            let rate = number.is_some_and(|number| (500..600).contains(&number));
            assert!(rate && nearest.ends_with("_r"), "{program}: {nearest}");
        }
        assert!(LOOSE.iter().all(|loose| names.contains(loose)), "{LOOSE:?}");
    }

    #[test]
    fn other_tables_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = || read(folder.path()).unwrap_err().to_string();
        assert!(refused().contains("summary.csv"));
        fs::write(folder.path().join("summary.csv"), "bench,copies\nx,16\n").unwrap();
        assert!(refused().contains("there is no column 'ipc_per_thread'"));
        let bad = format!("{HEADER}\nx,16,fast,1,1,1,1,1,1,1,1,1\n");
        fs::write(folder.path().join("summary.csv"), bad).unwrap();
        assert!(refused().contains("summary.csv:2: 'ipc_per_thread' is no number"));
    }
}
