//! Programs that a rule has managed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::service::Service;
use crate::test_folder::{is_alive, stderr, wait_until};
use crate::trials::{skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_rule_has_a_running_program_managed_in_its_class", managed),
        trial("a_changed_rule_releases_what_it_no_longer_matches", reload),
        trial("what_a_rule_manages_is_the_rules_after_a_crash", crash),
        trial("a_rule_says_the_class_of_a_run_that_says_none", of_a_run),
        trial("what_a_user_detached_no_rule_takes_again", detached),
        trial("a_rule_that_matches_everything_leaves_the_daemon_alone", everything),
    ]
}

/// A program by a name that no other process has; ends with its value.
struct Named {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Named {
    fn start(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        // A copy that is still open for writing in another thread's child cannot be executed.
        assert!(Command::new("cp").arg("/usr/bin/sleep").arg(&path).status().unwrap().success());
        let child = Command::new(path).arg("600").stdin(Stdio::null()).spawn().unwrap();
        Self { child, _folder: folder }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// With rules in its place.
fn service(rules: &str) -> (Service, PathBuf) {
    let service = Service::ruled("stay", rules);
    let file = service.place.path("rules.d/50-test.toml");
    (service, file)
}

fn names(service: &Service) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let programs = service.programs();
    programs.iter().map(|program| (text(&program["name"]), text(&program["class"]))).collect()
}

fn own_name(tag: &str) -> String {
    format!("sy-{tag}-{}", std::process::id())
}

fn managed() {
    let name = own_name("early");
    let early = Named::start(&name);
    let (service, _) = service(&format!("[[rule]]\nexecutable = \"{name}*\"\nclass = \"batch\"\n"));
    wait_until("what runs is found", || names(&service) == [(name.clone(), "batch".to_owned())]);
    let late = Named::start(&format!("{name}-late"));
    wait_until("what starts later is found", || service.programs().len() == 2);
    drop((early, late));
    wait_until("both have ended", || service.programs().is_empty());
}

fn reload() {
    let name = own_name("again");
    let program = Named::start(&name);
    let rule = |rest: &str| format!("[[rule]]\nexecutable = \"{name}\"\n{rest}\n");
    let (service, file) = service(&rule("manage = true"));
    let shown = |class: &str| names(&service) == [(name.clone(), class.to_owned())];
    wait_until("it is managed", || shown("normal"));
    fs::write(&file, rule("class = \"batch\"")).unwrap();
    let reloaded = service.client(&["reload"]);
    assert!(String::from_utf8_lossy(&reloaded.stdout).contains("1 rule"), "{reloaded:?}");
    wait_until("it is managed in its new class", || shown("batch"));

    fs::write(&file, rule("class = \"fast\"")).unwrap();
    let refused = service.client(&["reload"]);
    let named = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(named.contains("50-test.toml") && named.contains("line 3"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let status = service.client(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("50-test.toml") && status.contains("line 3"), "{status}");
    assert!(shown("batch"), "what was read before stays");

    fs::write(&file, rule("ignore = true")).unwrap();
    assert!(service.client(&["reload"]).status.success());
    wait_until("it is released", || service.programs().is_empty());
    assert!(is_alive(program.child.id()));
    assert!(!String::from_utf8_lossy(&service.client(&["status"]).stdout).contains("50-test.toml"));
}

fn crash() {
    let (name, asked) = (own_name("crashed"), own_name("asked"));
    let (program, other) = (Named::start(&name), Named::start(&asked));
    let (mut service, file) =
        service(&format!("[[rule]]\nexecutable = \"{name}\"\nclass = \"batch\"\n"));
    let done = service.client(&["attach", "--pid", &other.child.id().to_string()]);
    assert!(done.status.success(), "{}", stderr(&done));
    wait_until("both are noted for the next start", || {
        let noted = fs::read_to_string(service.place.state_dir().join("enrolments.json"));
        noted.is_ok_and(|text| text.contains(&name) && text.contains(&asked))
    });
    service.crash_and_restart();
    wait_until("both are managed again", || service.programs().len() == 2);
    assert!(!service.log().contains(&format!("{name} of user")), "{}", service.log());
    fs::write(&file, "").unwrap();
    assert!(service.client(&["reload"]).status.success());
    wait_until("the rule's program is released, and no other", || {
        names(&service) == [(asked.clone(), "normal".to_owned())]
    });
    drop((program, other));
}

fn detached() {
    let name = own_name("free");
    let program = Named::start(&name);
    let (service, _) = service(&format!("[[rule]]\nexecutable = \"{name}\"\nmanage = true\n"));
    wait_until("it is managed", || service.programs().len() == 1);
    let done = service.client(&["detach", "--pid", &program.child.id().to_string()]);
    assert!(done.status.success(), "{}", stderr(&done));
    let other = Named::start(&name);
    wait_until("the rule still holds for others", || service.programs().len() == 1);
    assert_eq!(service.programs()[0]["roots"][0], other.child.id());
}

/// It would manage all that runs here: in a guest or a container of this test alone.
fn everything() {
    let name = own_name("all");
    let program = Named::start(&name);
    let own = rustix::process::geteuid().as_raw();
    let parents = format!("[[rule]]\nuser = {own}\nexecutable = \"symbiont\"\nmanage = true\n");
    let (mut service, _) =
        service(&format!("{parents}[[rule]]\nexecutable = \"{name}\"\nmanage = true\n"));
    wait_until("the other one is found", || {
        names(&service).iter().any(|(known, _)| *known == name)
    });
    let daemon = service.id();
    let manages_itself = service.programs().iter().any(|program| program["roots"][0] == daemon);
    assert!(!manages_itself);
    if !service.log().contains("matches symbiontd itself") {
        skip("the executable of the daemon cannot be read here");
    }
    service.send(Signal::HUP);
    drop(program);
    service.end();
}

fn of_a_run() {
    for by_rule in ["batch", "latency"] {
        of_a_run_by(by_rule);
    }
}

fn of_a_run_by(by_rule: &str) {
    let name = own_name(by_rule);
    let (service, _) =
        service(&format!("[[rule]]\nexecutable = \"{name}\"\nclass = \"{by_rule}\"\n"));
    let program = service.place.path(&name);
    assert!(Command::new("cp").arg("/usr/bin/sleep").arg(&program).status().unwrap().success());
    let words = [program.to_str().unwrap(), "600"];
    let start = |options: &[&str]| service.place.start(&mut service.place.run(options, &words));
    let stated = start(&["--class", "normal"]);
    wait_until("it is managed", || service.programs().len() == 1);
    let silent = start(&[]);
    let class = |id: u32| {
        let is_it = |program: &serde_json::Value| program["roots"][0] == id;
        service.programs().into_iter().find(is_it).map(|program| program["class"].clone())
    };
    wait_until("the rule holds", || class(silent.id()) == Some(by_rule.into()));
    assert_eq!(class(stated.id()), Some("normal".into()), "what was said holds");
    let line = format!("class {by_rule}, by a rule of");
    wait_until("the log says so", || service.log().contains(&line));
    stated.kill_all();
    silent.kill_all();
}
