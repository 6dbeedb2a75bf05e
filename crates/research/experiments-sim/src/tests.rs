mod unequal;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use symbiont_profile::Profile;
use symbiont_sim_cycle::check::{Gates, LevelComparison, Matrix, Performance, Plan, compare, mark};
use symbiont_sim_cycle::{CycleReference, Sample};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, Fidelity};

use super::*;

fn library() -> Library {
    Library::open(Path::new("/nonexistent")).unwrap()
}

fn profiles(workload: &Workload) -> BTreeMap<String, Profile> {
    library().load_all(workload.apps.iter().map(|app| app.program.as_str())).unwrap()
}

fn machine(cores: usize, smt: usize) -> Description {
    Description::named("power8-s812l").unwrap().restricted(Some(cores), Some(smt)).unwrap()
}

fn setup(policy: &str, seed: u64) -> Setup {
    Setup {
        policy: policy.to_owned(),
        alone: Duration::from_secs(1),
        repeats: 3,
        seed,
        ..Setup::default()
    }
}

const MIX: &str = "synthetic-streaming,synthetic-integer,synthetic-float,synthetic-branchy";

fn run(machine: Description, list: &str, setup: &Setup) -> Result<Outcome, SimulateError> {
    let workload = Workload::from_list(list).unwrap();
    let profiles = profiles(&workload);
    let builder = TableBuilder::new(machine);
    let source = |name: &str| library().source(name);
    let mut go_on = |_| ControlFlow::Continue(());
    simulate(&builder, &workload, &profiles, setup, &source, &mut go_on, None)
}

/// A scenario as a test on each level of the machine: `fn(level, profiles)` for a list of programs.
macro_rules! on_both_levels {
    ($scenario:ident, $list:expr) => {
        mod $scenario {
            use super::*;

            fn profiles() -> BTreeMap<String, Profile> {
                super::profiles(&Workload::from_list($list).unwrap())
            }

            #[test]
            fn on_the_fast_level() {
                let profiles = profiles();
                super::$scenario(&TableBuilder::new(machine(1, 2)), $list, &profiles);
            }

            #[test]
            fn on_the_cycle_level() {
                let sample = Sample { warm_up: 5_000, counted: 10_000, ..Sample::default() };
                let profiles = profiles();
                let options = symbiont_sim_cycle::CycleOptions::default();
                super::$scenario(
                    &CycleReference::new(machine(1, 2), options, sample),
                    $list,
                    &profiles,
                );
            }
        }
    };
}

on_both_levels!(a_core_is_shared_and_said_to_be_simulated, "synthetic-integer,synthetic-branchy");

fn a_core_is_shared_and_said_to_be_simulated<'p, L: Fidelity<'p>>(
    level: &L,
    list: &str,
    profiles: &'p BTreeMap<String, Profile>,
) {
    let workload = Workload::from_list(list).unwrap();
    let run = |setup: &Setup| {
        let mut go_on = |_| ControlFlow::Continue(());
        simulate(level, &workload, profiles, setup, &|_| String::new(), &mut go_on, None)
    };
    let setup = Setup { errors: Errors::NONE, ..setup("random", 1) };
    let outcome = run(&setup).unwrap();
    assert_eq!(outcome, run(&setup).unwrap());
    assert!(outcome.provenance.simulated);
    assert_eq!(outcome.provenance.level, L::NAME);
    // Less than alone each, more than in turns.
    assert!(outcome.stp.value > 1.1 && outcome.stp.value < 1.99, "{:?}", outcome.stp);
    assert!(outcome.apps.iter().all(|app| app.speedup.value < 1.0), "{:?}", outcome.apps);
    let apart = Setup { switches: Switches::ALL_PRIVATE, ..setup };
    match run(&apart) {
        Ok(apart) => assert!(apart.stp.value > outcome.stp.value, "{:?}", apart.stp),
        Err(error) => assert!(error.to_string().contains("the cycle level cannot"), "{error}"),
    }
}

/// Two programs whose co-running CPI is `slowed` times that alone, as a level sees them.
fn level(slowed: f64) -> Matrix {
    let of = |cpi: f64| Performance { cpi, shares: [0.1; symbiont_sim_fast::activity::CYCLES] };
    let single = || [1.0, 2.0].map(of).to_vec();
    let pair = |a: f64, b: f64| vec![of(a * slowed), of(b * slowed * 1.1 * a)];
    let together = vec![pair(1.0, 1.0), pair(1.0, 2.0), pair(2.0, 2.0)];
    Matrix { alone: single(), throttled: single(), together }
}

#[test]
fn a_check_that_passes_goes_into_every_report() {
    let plan = Plan::new(["a", "b"].map(str::to_owned).to_vec(), 2, 10, 1);
    let checked = |fast: f64| -> Option<String> {
        let compared: LevelComparison = compare(&plan, &level(fast), &level(1.5));
        mark(&[compared], &Gates::default(), 2, "2026-01-31")
    };
    assert_eq!(checked(1.7), None);
    let checked = checked(1.54).unwrap();
    let text = include_str!("../../../sim/sim-fast/machines/xeon-e5-2620v4.toml");
    let marked = Description::parse("marked", &format!("checked = \"{checked}\"\n{text}")).unwrap();
    let reported = |machine: Description| {
        let machine = machine.restricted(Some(1), Some(2)).unwrap();
        run(machine, "synthetic-integer", &setup("stay", 1)).unwrap().provenance.checked
    };
    assert_eq!(reported(marked), checked);
    assert!(checked.contains("2026-01-31") && checked.contains("STP within 2.6 %"), "{checked}");
    assert_eq!(reported(Description::parse("bare", text).unwrap()), "unchecked");
}

#[test]
fn equal_setups_give_equal_results() {
    let text = |seed| {
        serde_json::to_string(&run(machine(2, 2), MIX, &setup("random", seed)).unwrap()).unwrap()
    };
    let (first, again, other) = (text(1), text(1), text(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(first.contains("\"simulated\":true") && first.contains("\"checked\":\"unchecked\""));
}

#[test]
fn programs_that_share_a_core_are_slowed() {
    let outcome = run(machine(2, 2), MIX, &setup("stay", 1)).unwrap();
    assert_eq!((outcome.repeats, outcome.unfinished), (3, 0));
    assert!(outcome.stp.value > 1.5 && outcome.stp.value < 3.9, "{:?}", outcome.stp);
    assert!(outcome.antt.value > 1.02, "{:?}", outcome.antt);
    assert!(outcome.apps.iter().all(|app| app.speedup.value < 1.02), "{:?}", outcome.apps);
}

#[test]
fn programs_that_share_nothing_are_not_slowed() {
    let apart = Setup { switches: Switches::ALL_PRIVATE, errors: Errors::NONE, ..setup("stay", 1) };
    // One hardware thread per core, so that no core is split either.
    let outcome = run(machine(4, 1), MIX, &apart).unwrap();
    assert!((outcome.stp.value - 4.0).abs() < 0.02, "{:?}", outcome.stp);
    assert!((outcome.antt.value - 1.0).abs() < 0.005, "{:?}", outcome.antt);
    assert_eq!(outcome.provenance.made_private, ["units", "caches", "bandwidth", "predictor"]);
}

/// On eight cores. What others take from the serial program under the OS it gets back; where no thread
/// takes anything from it there is nothing to get back.
#[test]
fn serial_phases_first_helps_the_serial_program() {
    let speedup = |others: &str, policy: &str| {
        let morad = Description::named("morad-8-symmetric").unwrap();
        let list = format!("synthetic-integer@1:inf,{others}");
        run(morad, &list, &setup(policy, 1)).unwrap().apps[0].speedup.value
    };
    let with = |others: &str| ["stay", "phases"].map(|policy| speedup(others, policy));
    // Nine threads: under the OS the serial one may share its core with a parallel one.
    let [stay, phases] = with("synthetic-integer@inf:1");
    assert!(phases > 0.97, "{phases}");
    assert!(phases >= stay - 0.01, "{stay} {phases}");
    // Seventeen: under the OS two or three are on each core, in turns. With a core of its own the
    // serial one loses what passes until it is known as one.
    let [stay, phases] = with("synthetic-integer@inf:1*2");
    assert!((0.3..0.6).contains(&stay), "{stay}");
    assert!(phases > 0.9, "{phases}");
    // Negative control: eight, each on a core of its own anyway.
    let [stay, phases] = with("synthetic-integer*7");
    assert!(stay > 0.97 && (phases - stay).abs() < 0.02, "{stay} {phases}");
}

#[test]
fn bad_input_is_one_clear_line() {
    let reported = |list: &str, setup: &Setup| {
        let error = run(machine(1, 2), list, setup).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert_eq!(
        reported("synthetic-integer*3", &setup("stay", 1)),
        "3 threads for 2 hardware threads; name fewer programs, or let them share (--share)"
    );
    assert!(
        reported("synthetic-integer", &setup("stya", 1)).contains("no policy is called 'stya'")
    );
    let short = Setup { until: Duration::from_millis(100), ..setup("stay", 1) };
    assert!(reported("synthetic-integer", &short).starts_with("no repeat ended within 100ms"));
    let unknown = library().load("synthetic-streming").unwrap_err().to_string();
    assert!(unknown.contains("the nearest: synthetic-streaming"), "{unknown}");
}

#[test]
fn a_timeline_has_a_line_for_each_quantum() {
    let workload = Workload::from_list(MIX).unwrap();
    let profiles = profiles(&workload);
    let builder = TableBuilder::new(machine(2, 2));
    let mut lines = Vec::new();
    let source = |_: &str| String::new();
    let mut go_on = |_| ControlFlow::Continue(());
    let setup = Setup { repeats: 1, ..setup("random", 1) };
    let outcome =
        simulate(&builder, &workload, &profiles, &setup, &source, &mut go_on, Some(&mut lines))
            .unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count() as u64, outcome.quanta);
    for line in lines.lines() {
        let quantum: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(quantum["threads"].as_array().unwrap().len(), 4);
        assert_eq!(quantum["simulated"], true);
    }
}

#[test]
fn drawn_workloads_fill_the_machine_evenly() {
    let workload = fill(&library(), 12, 3);
    assert_eq!(workload.apps.len(), 12);
    for listed in library().list() {
        let count = workload.apps.iter().filter(|app| app.program == listed.name).count();
        assert!((2..=3).contains(&count), "{}: {count}", listed.name);
    }
    assert_eq!(fill(&library(), 12, 3), workload);
    assert_ne!(fill(&library(), 12, 4), workload);
}

#[test]
fn memory_looks_as_feliu_et_al_measured_it() {
    let sizes = [16 << 10, 256 << 10, 4 << 20, 1792 << 20];
    let memory = membench::measure(&Description::named("power8-s812l").unwrap(), &sizes).unwrap();
    let reported = serde_json::to_value(&memory.provenance).unwrap();
    assert_eq!(reported["simulated"], true);
    assert_eq!(reported["machine"], "power8-s812l");
    let ns: Vec<&Vec<f64>> = memory.latency.iter().map(|latency| &latency.ns).collect();
    // Fig. 4: equal from both nodes as long as the array fits the caches …
    for (cached, cycles) in ns.iter().zip([3.0, 13.0, 27.0]) {
        assert!((cached[0] / cached[1] - 1.0).abs() < 0.01, "{ns:?}");
        assert!(cached[0] * 3.0 > 0.8 * cycles && cached[0] * 3.0 < 1.8 * cycles, "{ns:?}");
    }
    // … and about 20 % lower on the memory's own node beyond.
    let far = ns[3][1] / ns[3][0];
    assert!((1.15..1.35).contains(&far), "{ns:?}");
    assert!(ns[3][0] > 4.0 * ns[2][0], "{ns:?}");
    // Table 2: 5.1 to 8.5 % more bandwidth on the memory's own node, up to the 24 GB/s
    // that the module gives.
    for bandwidth in &memory.bandwidth {
        let more = bandwidth.gbps[0] / bandwidth.gbps[1];
        assert!((1.04..1.10).contains(&more), "{bandwidth:?}");
        assert!((12.0..25.0).contains(&bandwidth.gbps[0]), "{bandwidth:?}");
    }
}
