//! What `--json` writes follows the published schemas.

use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::service::Service;
use crate::test_folder::{Program, stderr, wait_until};
use crate::trials::{BUSY, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("status_as_json_follows_its_schema", status),
        trial("why_as_json_follows_its_schema", why),
    ]
}

/// The schema that `symbiont COMMAND --schema` prints.
pub fn schema(command: &str) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_symbiont")).args([command, "--schema"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Holds a document against a schema, and each change of it that the schema must refuse.
pub fn follows(schema: &Value, document: &Value, objects: &[&str]) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {document:#}");
    for place in objects {
        let mut more = document.clone();
        let object = more.pointer_mut(place).unwrap().as_object_mut().unwrap();
        object.insert("unheard_of".to_owned(), json!(1));
        assert!(!validator.is_valid(&more), "an unknown field at '{place}' is refused");
        let mut less = document.clone();
        let object = less.pointer_mut(place).unwrap().as_object_mut().unwrap();
        let name = object.keys().next().unwrap().clone();
        object.remove(&name);
        assert!(!validator.is_valid(&less), "without '{name}' '{place}' is refused");
    }
}

fn status() {
    let service = Service::start("random");
    let schema = schema("status");
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&service.status()), "of a daemon without programs");
    let programs: Vec<_> = (0..3)
        .map(|_| service.place.start(&mut service.place.run(&[], &["sh", "-c", BUSY])))
        .collect();
    wait_until("all are managed", || service.programs().len() == 3);
    let document = service.status();
    follows(&schema, &document, &["", "/usage", "/programs/0"]);
    let mut wrong = document;
    wrong["programs"][0]["threads"] = json!("three");
    assert!(!validator.is_valid(&wrong));
    programs.iter().for_each(Program::kill_all);
}

fn why() {
    let service = Service::start("never-twice");
    let mut busy = Command::new("sh");
    let program = service.place.start(busy.args(["-c", BUSY]).stdin(Stdio::null()));
    let id = program.id().to_string();
    assert!(service.client(&["attach", "--pid", &id]).status.success());
    wait_until("it is seen", || service.programs()[0]["threads"] == 1);
    let output = service.client(&["why", "--json", &id]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document = serde_json::from_slice(&output.stdout).unwrap();
    follows(&schema("why"), &document, &["", "/threads/0"]);
    program.kill_all();
}
