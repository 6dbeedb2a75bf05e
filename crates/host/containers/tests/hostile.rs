//! State that was made to harm is refused or harmless.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::time::Duration;

use common::{Host, ID, OTHER, is_root, root};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use symbiont_containers::Owner;

const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task/k8s.io";

fn scope() -> String {
    format!("/kubepods.slice/kubepods-podx.slice/cri-containerd-{ID}.scope")
}

fn asked() -> String {
    format!("kubepods-podx.slice:cri-containerd:{ID}")
}

fn named(name: &str) -> serde_json::Value {
    json!({"io.kubernetes.cri.container-name": name})
}

/// A file that cannot be used: the path's own identity stays, and the reason is noted once.
fn refused(host: &mut Host, reason: &str) {
    let of = host.identify(&scope(), &root()).unwrap();
    assert_eq!(
        (of.container.as_deref(), of.stated_by, of.id.as_str()),
        (None, None, ID),
        "{reason}"
    );
    let notes = host.notes();
    assert!(notes.len() == 1 && notes[0].contains(reason), "{reason}: {notes:?}");
}

#[test]
fn what_is_no_plain_file_of_root_is_refused() {
    let path = format!("{TASKS}/{ID}/config.json");
    let secret = r#"{"annotations":{"io.kubernetes.cri.container-name":"secret"}}"#;
    for (kind, reason) in [
        ("link", "symbolic links"),
        ("folder link", "symbolic links"),
        ("fifo", "a pipe (FIFO)"),
        ("long", "longer than"),
        ("broken", "cannot be understood"),
        ("deep", "cannot be understood"),
        ("not utf-8", "cannot be understood"),
        ("folder", "a directory"),
        ("another user's", "user 4242"),
    ] {
        if kind == "another user's" && !is_root() {
            continue;
        }
        let mut host = Host::new();
        let file = host.write(&path, secret);
        fs::remove_file(&file).unwrap();
        match kind {
            "link" => symlink(host.write("/home/ann/config.json", secret), &file).unwrap(),
            "folder link" => {
                host.write("/home/ann/bundle/config.json", secret);
                fs::remove_dir(file.parent().unwrap()).unwrap();
                symlink(host.path("/home/ann/bundle"), file.parent().unwrap()).unwrap();
            }
            "fifo" => mknodat(CWD, &file, FileType::Fifo, Mode::RUSR, 0).unwrap(),
            "long" => File::create(&file).unwrap().set_len(100 << 20).unwrap(),
            "broken" => fs::write(&file, &secret[..30]).unwrap(),
            "deep" => fs::write(&file, "[".repeat(1 << 20)).unwrap(),
            "not utf-8" => fs::write(&file, b"{\"annotations\":{\"\xff\":\"\"}}").unwrap(),
            "folder" => fs::create_dir(&file).unwrap(),
            _ => {
                fs::write(&file, secret).unwrap();
                chown(&file, Some(4242), Some(4242)).unwrap();
            }
        }
        refused(&mut host, reason);
    }
}

#[test]
fn a_borrowed_name_gives_nothing() {
    let mut host = Host::new();
    host.bundle(&format!("{TASKS}/{ID}/config.json"), &asked(), &named("victim"));
    for borrowed in [
        format!("/user.slice/user-1000.slice/user@1000.service{}", scope()),
        format!("/user.slice/user-1000.slice/user@1000.service/docker/{ID}"),
        format!("/elsewhere/cri-containerd-{ID}.scope"),
    ] {
        let of = host.identify(&borrowed, &root()).unwrap();
        assert_eq!((of.container.as_deref(), of.stated_by), (None, None), "{borrowed}");
    }
    assert!(host.notes().iter().all(|note| note.contains("not in this cgroup")));
    // In a container that has a cgroup of its own delegated.
    host.bundle(
        &format!("{TASKS}/{OTHER}/config.json"),
        &format!("/docker/{OTHER}"),
        &named("thief"),
    );
    let of = host.identify(&format!("/docker/{OTHER}{}", scope()), &root()).unwrap();
    assert_eq!(of.display(), "thief", "the outer one");
    assert_eq!(host.identify(&scope(), &root()).unwrap().display(), "victim");
}

#[test]
fn two_of_one_name_are_two() {
    let mut host = Host::new();
    host.bundle(&format!("{TASKS}/{ID}/config.json"), &asked(), &named("same"));
    host.bundle(
        &format!("{TASKS}/{OTHER}/config.json"),
        &format!("/docker/{OTHER}"),
        &named("same"),
    );
    let (one, two) = (
        host.identify(&scope(), &root()).unwrap(),
        host.identify(&format!("/docker/{OTHER}"), &root()).unwrap(),
    );
    assert_eq!(one.display(), two.display());
    assert_ne!(one.cgroup, two.cgroup);
}

#[test]
fn a_link_in_a_users_folder_leads_nowhere() {
    if !is_root() {
        return;
    }
    let mut host = Host::new();
    let secret = host.bundle("/root/secret/config.json", "", &named("secret"));
    let cgroup =
        format!("/user.slice/user-4242.slice/user@4242.service/user.slice/libpod-{ID}.scope");
    let ann = Owner { uid: 4242, home: Some("/home/ann".into()) };
    let storage = "/home/ann/.local/share/containers/storage";
    let userdata = format!("{storage}/overlay-containers/{ID}/userdata");
    for link in ["the file", "a folder", "the storage"] {
        let _ = fs::remove_dir_all(host.path("/home/ann"));
        let file = host.write(&format!("{userdata}/config.json"), "");
        match link {
            "the file" => {
                fs::remove_file(&file).unwrap();
                symlink(&secret, &file).unwrap();
            }
            "a folder" => {
                fs::remove_dir_all(file.parent().unwrap()).unwrap();
                symlink("/root/secret", file.parent().unwrap()).unwrap();
            }
            _ => {
                fs::remove_dir_all(host.path(storage)).unwrap();
                host.write(
                    &format!("/root/storage/overlay-containers/{ID}/userdata/config.json"),
                    "{}",
                );
                symlink("/root/storage", host.path(storage)).unwrap();
            }
        }
        host.now += Duration::from_secs(1000);
        let of = host.identify(&cgroup, &ann).unwrap();
        assert_eq!((of.container.as_deref(), of.stated_by), (None, None), "{link}");
    }
}

#[test]
fn what_cannot_be_read_is_noted_once_and_tried_again() {
    let mut host = Host::new();
    host.write(&format!("{TASKS}/{ID}/config.json"), "{");
    refused(&mut host, "cannot be understood");
    let opened = host.containers.opened();
    for _ in 0..9 {
        host.now += Duration::from_millis(100);
        host.identify(&scope(), &root()).unwrap();
    }
    assert_eq!((host.containers.opened(), host.notes().len()), (opened, 0));
    for _ in 0..600 {
        host.now += Duration::from_secs(1);
        host.identify(&scope(), &root()).unwrap();
    }
    let looks = host.containers.opened() - opened;
    assert!((9..20).contains(&looks), "{looks} in 10 minutes");
    assert_eq!(host.notes().len(), 0);
    host.bundle(&format!("{TASKS}/{ID}/config.json"), &asked(), &named("late"));
    host.now += Duration::from_secs(256);
    let of = host.identify(&scope(), &root()).unwrap();
    assert_eq!(of.display(), "late");
}

#[test]
fn state_may_come_a_moment_after_the_cgroup() {
    let mut host = Host::new();
    let of = |host: &mut Host| host.identify(&scope(), &root()).unwrap().display();
    assert_eq!((of(&mut host).contains("late"), host.notes().len()), (false, 0));
    host.bundle(&format!("{TASKS}/{ID}/config.json"), &asked(), &named("late"));
    host.now += Duration::from_secs(1);
    assert_eq!((of(&mut host).as_str(), host.notes().len()), ("late", 0));
    // It never comes.
    let mut host = Host::new();
    of(&mut host);
    host.now += Duration::from_secs(1);
    refused(&mut host, "no state folder");
}

#[test]
fn a_container_of_many_users_is_noted_once() {
    let mut host = Host::new();
    for uid in 0..500 {
        // Its root can make both: processes of any user, and cgroups below its own.
        for cgroup in [scope(), format!("{}/{uid}", scope())] {
            let of = host.identify(&cgroup, &Owner { uid, home: None }).unwrap();
            assert_eq!((of.cgroup.clone(), of.stated_by), (scope(), None));
        }
    }
    host.now += Duration::from_secs(1);
    for uid in 0..500 {
        host.identify(&scope(), &Owner { uid, home: None }).unwrap();
    }
    assert_eq!(host.notes().len(), 1);
}

#[test]
fn names_cannot_act_on_a_terminal() {
    let mut host = Host::new();
    host.bundle(&format!("{TASKS}/{ID}/config.json"), &asked(), &named("a\u{1b}[2J\nb\u{202e}c"));
    assert_eq!(host.identify(&scope(), &root()).unwrap().display(), "a?[2J?b?c");
}
