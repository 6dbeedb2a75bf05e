//! What `why` says of real threads, by policies that predict slowdowns and by others.

use libtest_mimic::Trial;
use serde_json::Value;
use symbiont_linux::perf::support;

use crate::schema::{follows, schema};
use crate::service::Service;
use crate::test_folder::{Program, stderr, wait_until};
use crate::toy::{TOY, model, this_machine};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_policy_that_does_not_predict_says_so", unpredicted),
        trial("a_policy_that_predicts_names_the_runner_up_and_its_cost", runner_up),
    ]
}

fn why(service: &Service, program: &Program, options: &[&str]) -> String {
    let id = program.id().to_string();
    let output = service.client(&[&["why"], options, &[id.as_str()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The line with this label.
fn line<'t>(text: &'t str, label: &str) -> &'t str {
    let found = text.lines().find(|line| line.trim_start().starts_with(label));
    found.unwrap_or_else(|| panic!("no {label} in {text}"))
}

fn unpredicted() {
    for policy in ["phases", "never-twice"] {
        let service = Service::start(policy);
        let program = service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY]));
        wait_until("it is seen", || service.programs().iter().any(|p| p["threads"] == 1));
        let text = why(&service, &program, &[]);
        assert!(line(&text, "policy").ends_with(policy), "{text}");
        let slowdown = line(&text, "slowdown");
        assert!(slowdown.ends_with("this policy does not predict slowdowns"), "{text}");
        assert!(!slowdown.contains(|c: char| c.is_ascii_digit()), "{text}");
        assert!(!text.contains("runner-up"), "{text}");
        let json: Value = serde_json::from_str(&why(&service, &program, &["--json"])).unwrap();
        let one = &json["threads"][0];
        assert_eq!(one["predicts"], false);
        for absent in ["predicted_slowdown", "achieved_slowdown", "runner_up"] {
            assert!(one[absent].is_null(), "{json:#}");
        }
        program.kill_all();
    }
}

fn runner_up() {
    if let Err(error) = support().software {
        return skip(&error.to_string());
    }
    if own_cpus().len() != 2 {
        return skip("takes two CPUs, which four threads share");
    }
    let service = Service::configured(|place| {
        let model = model(place.path(".").as_path(), &this_machine());
        format!(
            "policy = \"symbiotic\"\nquantum = \"20ms\"\ncatalogue = {TOY:?}\nmodel = {model:?}\n"
        )
    });
    let programs: Vec<Program> = (0..4)
        .map(|_| service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY])))
        .collect();
    let ask =
        || -> Value { serde_json::from_str(&why(&service, &programs[0], &["--json"])).unwrap() };
    wait_until("all four are seen", || {
        service.programs().iter().filter(|program| program["threads"] == 1).count() == 4
    });
    let mut answer = Value::Null;
    wait_until("all four are placed, and compared", || {
        answer = ask();
        answer["threads"][0]["runner_up"]["threads"] == 4
    });
    follows(&schema("why"), &answer, &["", "/threads/0", "/threads/0/runner_up"]);
    let one = &answer["threads"][0];
    let best = &one["runner_up"];
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&one["predicted_slowdown"]) >= 1.0 - 1e-6, "{answer:#}");
    let others: Vec<u64> = programs[1..].iter().map(|p| u64::from(p.id())).collect();
    let with = best["exchange_with"]["thread"].as_u64().unwrap();
    assert!(others.contains(&with), "{with} of {others:?}");
    let (throughput, applied) = (&best["score"]["throughput"], &best["applied"]["throughput"]);
    // Costs that differ by less than the resolution of the choice are the same to the policy.
    assert!(number(throughput) <= number(applied) + 0.01, "{answer:#}");
    let text = why(&service, &programs[0], &[]);
    assert!(line(&text, "slowdown").contains(" predicted"), "{text}");
    assert!(line(&text, "runner-up").contains("change places with thread "), "{text}");
    programs.iter().for_each(Program::kill_all);
}
