//! `symbiont bench COMMAND…`: a user's own programs under several policies.

use std::process::Output;

use serde_json::Value;

use crate::support::TestFolder;

#[test]
fn policies_are_compared_by_own_programs_and_nothing_runs_twice() {
    let place = TestFolder::new();
    let bench = |more: &[&str]| {
        let mut command = place.symbiont();
        command.args(["bench", "--json", "--rounds=2", "--policy=random --quantum 20ms"]);
        command.arg("--output").arg(place.path("bench")).args(more);
        command.output().unwrap()
    };
    let programs = ["sleep 0.05; echo lost", "echo \"$((6 * 7))\" >/dev/null"];
    let first = bench(&programs);
    assert!(first.status.success(), "{first:?}");
    let report = |out: &Output| -> Value { serde_json::from_slice(&out.stdout).unwrap() };
    let text = report(&first).to_string();
    for expected in ["random --quantum 20ms", "sleep 0.05; echo lost", "held against"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("\nlost"));
    let second = bench(&programs);
    // What is said of the machine is said anew.
    assert_eq!(report(&second)["blocks"], report(&first)["blocks"], "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("All runs were done before"));
    let failing = bench(&["true", "echo oh >&2; exit 4"]);
    assert_eq!(failing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failing.stderr);
    assert!(said.contains("`echo oh >&2; exit 4` ended with exit status: 4: oh"), "{said}");
    let unknown = bench(&["--policy=unknown", "true"]);
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(said.contains("no comparison with 'unknown': no policy is called 'unknown'"), "{said}");
}
