//! Users and what they may do.

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::service::Service;
use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{Program, send, stderr, wait_until};
use crate::trials::{own_cpus, skip, trial};
use crate::user::{User, have_root_sleeper};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_user_cannot_have_anothers_process_managed", others),
        trial("a_user_sees_and_detaches_own_programs_only", own_only),
        trial("what_root_attaches_is_its_owners_to_see_and_detach", roots_attach),
        trial("what_root_attached_is_still_its_owners_after_a_crash", after_crash),
        trial("what_becomes_several_users_is_roots_alone", several_users),
        trial("another_users_children_are_not_managed_with_a_program", children),
        trial("a_user_may_not_reload", reload),
    ]
}

fn others() {
    let service = Service::start("stay");
    let Some(user) = User::of(&service, 1) else { return };
    let Some(other) = User::of(&service, 2) else { return };
    let (own, others) = (user.start(), other.start());
    let attach = |program: &Program| user.client(&["attach", "--pid", &program.id().to_string()]);
    let refused = attach(&others);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("belongs to user"), "{}", stderr(&refused));
    let refused = user.client(&["attach", "--pid", &service.id().to_string()]);
    assert!(!refused.status.success(), "root's own process");
    let done = attach(&own);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(service.programs().len(), 1, "root sees it");
    own.kill_all();
    others.kill_all();
}

fn own_only() {
    let service = Service::start("stay");
    let Some(user) = User::of(&service, 1) else { return };
    let Some(other) = User::of(&service, 2) else { return };
    let program = user.start();
    let pid = program.id().to_string();
    assert!(user.client(&["attach", "--pid", &pid]).status.success());
    wait_until("it is seen", || service.programs()[0]["threads"] == 1);
    let seen = |user: &User<'_>| String::from_utf8(user.client(&["status"]).stdout).unwrap();
    assert!(seen(&user).contains(&pid));
    assert!(!seen(&other).contains(&pid) && seen(&other).contains("No program of yours"));
    assert!(stderr(&other.client(&["why", &pid])).contains("belongs to another user"));
    assert!(!other.client(&["detach", "--pid", &pid]).status.success());
    assert!(user.client(&["why", &pid]).status.success());
    assert!(user.client(&["detach", "--pid", &pid]).status.success());
    program.kill_all();
}

fn roots_attach() {
    let service = Service::start("stay");
    let Some(user) = User::of(&service, 1) else { return };
    let Some(other) = User::of(&service, 2) else { return };
    let program = user.start();
    let pid = program.id().to_string();
    assert!(service.client(&["attach", "--pid", &pid]).status.success());
    wait_until("it is seen", || service.programs()[0]["threads"] == 1);
    assert_eq!(service.programs()[0]["uid"], user.id);
    assert!(user.sees(&program) && !other.sees(&program));
    assert!(user.client(&["why", &pid]).status.success());
    assert!(!other.client(&["why", &pid]).status.success());
    assert!(!other.client(&["detach", "--pid", &pid]).status.success());
    let done = user.client(&["detach", "--pid", &pid]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(service.programs().is_empty());
    program.kill_all();
}

fn after_crash() {
    let mut service = Service::start("stay");
    let Some(program) = User::of(&service, 1).map(|user| user.start()) else { return };
    let pid = program.id().to_string();
    assert!(service.client(&["attach", "--pid", &pid]).status.success());
    wait_until("it is noted for the next start", || {
        let noted = std::fs::read_to_string(service.place.state_dir().join("enrolments.json"));
        noted.is_ok_and(|text| text.contains(&pid))
    });
    service.crash_and_restart();
    let Some(user) = User::of(&service, 1) else { return };
    assert_eq!(service.programs()[0]["uid"], user.id);
    let done = user.client(&["detach", "--pid", &pid]);
    assert!(done.status.success(), "{}", stderr(&done));
    program.kill_all();
}

fn several_users() {
    let service = Service::start("stay");
    let Some(user) = User::of(&service, 1) else { return };
    let Some(program) = user.start_setuid() else { return };
    let pid = program.id().to_string();
    assert!(service.client(&["attach", "--pid", &pid]).status.success());
    assert_eq!(service.programs()[0]["uid"], user.id);
    let sleeper = have_root_sleeper(&program);
    wait_until("it is root's alone", || service.programs()[0]["uid"] == 0);
    assert_eq!(service.programs()[0]["threads"], 2, "root manages both");
    assert!(!user.sees(&program));
    assert!(!user.client(&["why", &pid]).status.success());
    let refused = user.client(&["detach", "--pid", &pid]);
    assert!(stderr(&refused).contains("not managed"), "{}", stderr(&refused));
    let done = service.client(&["detach", "--pid", &pid]);
    assert!(done.status.success(), "{}", stderr(&done));

    // What is several users' at once is so from the start.
    wait_until("it can be attached again", || {
        service.client(&["attach", "--pid", &pid]).status.success()
    });
    assert_eq!(service.programs()[0]["uid"], 0);
    assert!(!user.client(&["detach", "--pid", &pid]).status.success());
    send(sleeper, Signal::KILL);
    program.kill_all();
}

fn children() {
    let (service, own) = (Service::start("random"), own());
    let Some(user) = User::of(&service, 1) else { return };
    let Some(program) = user.start_setuid() else { return };
    let sleeper = have_root_sleeper(&program);
    let done = user.client(&["attach", "--pid", &program.id().to_string()]);
    assert!(done.status.success(), "{}", stderr(&done));
    let said = String::from_utf8(done.stdout).unwrap();
    let note = format!("note: process {sleeper} belongs to user 0 and is not managed");
    assert!(said.contains(&note) && said.contains("1 process with 1 thread managed"), "{said}");
    wait_until("the other one is", || service.programs()[0]["threads"] == 1);
    if own_cpus().len() > 1 {
        wait_for_change(program.id(), &own);
    } else {
        skip("there is one CPU only, so nothing is placed");
    }
    assert!(!changed(program.id(), &own).contains_key(&sleeper));
    send(sleeper, Signal::KILL);
    program.kill_all();
}

fn reload() {
    let service = Service::start("stay");
    let Some(user) = User::of(&service, 1) else { return };
    let refused = user.client(&["reload"]);
    assert!(stderr(&refused).contains("not permitted"), "{}", stderr(&refused));
}
