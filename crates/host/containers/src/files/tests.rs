#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use proptest::prelude::*;

use super::*;

const BUNDLE: &str = r#"{"ociVersion":"1.0.2-dev","process":{"args":["sleep"]},"annotations":{"app":"web"},
    "linux":{"cgroupsPath":"/default/web","namespaces":[]}}"#;
const DOCKER: &str = r#"{"State":{"Running":true},"ID":"f3","Config":{"Hostname":"f3","Image":"example.org/busy:1",
    "Labels":{"app":"web"}},"Image":"sha256:bf","Name":"/dweb"}"#;
const STORAGE: &str = r#"[{"id":"2a","names":["web"],"image":"e9","layer":"64",
    "metadata":"{\"image-name\":\"example.org/busy:1\",\"name\":\"web\"}"},{"id":"2b","names":null}]"#;
const RUNC: &str = r#"{"id":"trial","config":{"rootfs":"/b/rootfs","labels":["app=web","bundle=/b","odd"]},
    "cgroup_paths":{"cpu":"/sys/fs/cgroup/cpu/trial","memory":"/sys/fs/cgroup/memory/caller/trial"}}"#;
const CRUN: &str = r#"{"pid":139,"cgroup-path":"/trial","scope":"","rootfs":"rootfs","systemd-cgroup":false,
    "bundle":"/b"}"#;

#[test]
fn files_of_each_runtime_are_read() {
    let facts = bundle(BUNDLE.as_bytes()).unwrap();
    assert_eq!(facts.annotations.get("app"), Some("web"));
    assert_eq!(facts.cgroups, [Recorded::Asked("/default/web".to_owned())]);
    let facts = docker(DOCKER.as_bytes()).unwrap();
    assert_eq!(
        (facts.name.as_deref(), facts.image.as_deref()),
        (Some("dweb"), Some("example.org/busy:1"))
    );
    assert_eq!(facts.labels.get("app"), Some("web"));
    let names = storage(STORAGE.as_bytes()).unwrap();
    assert_eq!(names["2a"].name.as_deref(), Some("web"));
    assert_eq!(names["2a"].image.as_deref(), Some("example.org/busy:1"));
    assert_eq!(names["2b"], StoredNames::default());
    let facts = runc(RUNC.as_bytes()).unwrap();
    assert_eq!(
        facts.annotations.iter().collect::<Vec<_>>(),
        [("app", "web")],
        "the bundle is no annotation"
    );
    assert_eq!(facts.cgroups.len(), 2);
    assert_eq!(crun(CRUN.as_bytes()).unwrap().cgroups, [Recorded::Path("/trial".to_owned())]);
}

#[test]
fn what_is_another_file_is_refused() {
    let readers = [bundle as fn(&[u8]) -> Result<Facts, String>, docker, runc, crun];
    for bad in [
        "",
        "[",
        "3",
        "\"text\"",
        "[]",
        r#"{"annotations":3,"Config":3,"config":3,"cgroup-path":3}"#,
    ] {
        for read in readers {
            // An object without what is looked for is a bundle without it.
            assert!(read(bad.as_bytes()).is_err() || bad == "[]", "{bad}");
        }
    }
    assert!(docker(b"{}").is_err() && crun(b"{}").is_err());
    let deep = "[".repeat(100_000);
    assert!(bundle(deep.as_bytes()).is_err() && storage(deep.as_bytes()).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(at in 0usize..400, byte in any::<u8>()) {
        for text in [BUNDLE, DOCKER, STORAGE, RUNC, CRUN] {
            let mut bytes = text.as_bytes().to_vec();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = (bundle(&bytes), docker(&bytes), storage(&bytes), runc(&bytes), crun(&bytes));
        }
    }
}
