use symbiont_wire::advice::{CoRunner, CpuShare, Daemon, Gain, Machine, Others, Policy};

use super::*;

/// Compares with `golden/advise-NAME.txt`; with `UPDATE_GOLDEN=1` writes it.
fn hold(name: &str, advice: &Advice) {
    let path = format!("{}/golden/advise-{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = text(advice);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{name}");
    assert!(text.lines().all(|line| width(line) <= WIDTH), "{text}");
    let validator =
        jsonschema::validator_for(&serde_json::from_str(symbiont_wire::ADVICE_SCHEMA).unwrap());
    let document = serde_json::to_value(advice).unwrap();
    let validator = validator.unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(serde_json::from_value::<Advice>(document).unwrap(), *advice);
}

fn program(name: &str, process: u32) -> AdvisedProgram {
    let on = |cpu: u32, share| CpuShare { cpu, core: Some(cpu % 4), share };
    AdvisedProgram {
        name: name.to_owned(),
        process,
        threads: 1,
        run_time_s: 6.6,
        cpus_used: 0.66,
        wait_time_s: 3.3,
        wait_share: 1.0 / 3.0,
        ran_on: vec![on(0, 0.52), on(4, 0.48)],
        co_runners: CoRunners {
            alone: 0.3,
            with: vec![CoRunner { name: "xz".into(), process: 4712, share: 0.7 }],
        },
        plans: vec![Plan { share: 1.0, reason: "one domain".into(), ..Plan::default() }],
        ..AdvisedProgram::default()
    }
}

fn quiet() -> Advice {
    Advice {
        version: "0.1.0".into(),
        watched_s: 10.04,
        quanta: 101,
        machine: Machine {
            hardware_threads: 8,
            allowed: 8,
            cores: 4,
            hardware_threads_per_core: 2,
        },
        policy: Policy {
            name: "auto".into(),
            summary: "chooses by the machine".into(),
            choice: Some(
                "serial phases first; one domain of cores; groups on a core by never-twice \
                 (symbiotic: no model is given; fpu: no FPU usage: no counters here)"
                    .into(),
            ),
            quantum_ms: 100.0,
            predicts: false,
        },
        busy_from: 0.05,
        programs: vec![program("make", 4711)],
        others: Others { programs: 38, cpus_used: 0.021 },
        prospects: "little to gain here: no SMT".into(),
        conclusion: "Nothing to change: auto would leave the busy program to the OS (one domain)."
            .into(),
        ..Advice::default()
    }
}

#[test]
fn advice_reads_as_ever() {
    hold("quiet", &quiet());

    let kept = |cpus: &str, share| Plan {
        cpus: Some(cpus.to_owned()),
        priority: None,
        share,
        reason: "one domain; symbiotic: predicted slowdowns 1.10, 1.32: throughput 1.67; least stp"
            .to_owned(),
    };
    let mut predicted = quiet();
    predicted.programs[0].plans = vec![kept("0,4", 0.9), Plan { share: 0.1, ..Plan::default() }];
    predicted.programs[0].slowdown_now = Some(1.42);
    predicted.programs[0].slowdown_planned = Some(1.1);
    let mut other = program("a-command-with-a-name-that-goes-on-and-on-and-on", 4_194_303);
    other.plans = vec![kept("1", 1.0)];
    other.plans[0].priority = Some("boosted".into());
    (other.threads, other.cpus_used) = (43, 3.96);
    other.managed_by = Some(812);
    other.co_runners.with.push(CoRunner {
        name: other.name.clone(),
        process: other.process,
        share: 0.2,
    });
    other.ran_on = (0..8).map(|cpu| CpuShare { cpu, core: None, share: 0.125 }).collect();
    predicted.programs.push(other);
    predicted.policy.predicts = true;
    (predicted.changes, predicted.gain) =
        (true, Some(Gain { speed_now: 1.61, speed_planned: 1.803 }));
    predicted.conclusion = "auto would place both busy programs.".into();
    predicted.daemon = Some(Daemon { process: 812, policy: "phases".into() });
    predicted.notes = vec!["the daemon decides by phases, not by auto".into()];
    predicted.apply = vec!["symbiont attach --pid 4711".into()];
    hold("predicted", &predicted);

    let mut unpredicted = predicted.clone();
    unpredicted.policy.choice = None;
    unpredicted.gain = None;
    unpredicted.programs.truncate(1);
    unpredicted.programs[0] = AdvisedProgram {
        ended: true,
        slowdown_now: None,
        slowdown_planned: None,
        ..unpredicted.programs[0].clone()
    };
    // As in a cpuset.
    unpredicted.machine.allowed = 2;
    unpredicted.machine.hardware_threads_per_core = 1;
    unpredicted.apply = vec!["sudo symbiont daemon &".into(), "symbiont attach --pid 4711".into()];
    hold("unpredicted", &unpredicted);
}

#[test]
fn names_and_reasons_are_no_commands_to_a_terminal() {
    let mut advice = quiet();
    advice.programs[0].name = "a\u{1b}[2J\u{202e}b".into();
    advice.programs[0].plans[0].reason = "\u{1b}]0;x\u{7}".into();
    advice.programs[0].co_runners.with[0].name = "\u{9b}c".into();
    advice.conclusion = "because \u{1b}[2J".into();
    let text = text(&advice);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(!text.contains('\u{202e}'));
}
