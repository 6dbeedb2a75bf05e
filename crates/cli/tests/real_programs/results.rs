//! Results are those of an unmanaged run, byte for byte.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{How, MANAGED, TestFolder, copy_of, has, lua_source, own_program};

/// Runs a program in every way; what it writes and how it ends must be equal.
fn same_results(words: &[&str], code: i32) {
    let place = TestFolder::new();
    let alone = place.run(words, How::Unmanaged, Path::new("/"));
    assert_eq!(alone.status.code(), Some(code), "{alone:?}");
    for how in MANAGED {
        assert_same(&alone, &place.run(words, how, Path::new("/")), how);
    }
}

#[track_caller]
fn assert_same(alone: &Output, managed: &Output, how: How) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(alone.status, managed.status, "{how:?}: {}", text(&managed.stderr));
    assert_eq!(text(&alone.stderr), text(&managed.stderr), "{how:?}");
    // Compressed bytes make no good message.
    if std::str::from_utf8(&alone.stdout).is_ok() {
        assert_eq!(text(&alone.stdout), text(&managed.stdout), "{how:?}");
    }
    assert!(alone.stdout == managed.stdout, "{how:?} wrote other bytes");
}

#[test]
fn a_parallel_build_gives_the_same_files() {
    let Some(source) = lua_source() else { return };
    let place = TestFolder::new();
    let build = |how: How| {
        let folder = place.path("lua");
        let _ = fs::remove_dir_all(&folder);
        copy_of(&source, &folder);
        // Another order of lines is the parallel build's own.
        let make = ["make", "-j4", "linux", "MYCFLAGS=-O0"];
        let mut output = place.run(&make, how, &folder);
        for written in [&mut output.stdout, &mut output.stderr] {
            let mut lines: Vec<&[u8]> = written.split_inclusive(|&b| b == b'\n').collect();
            lines.sort_unstable();
            *written = lines.concat();
        }
        let built = ["lua", "luac", "liblua.a"].map(|name| fs::read(folder.join("src").join(name)));
        (output, built.map(Result::unwrap))
    };
    let (alone, built_alone) = build(How::Unmanaged);
    assert!(alone.status.success(), "{alone:?}");
    for how in MANAGED {
        let (managed, built) = build(how);
        assert_same(&alone, &managed, how);
        assert!(built == built_alone, "{how:?} built something else");
    }
}

#[test]
fn a_build_that_fails_fails_the_same_way() {
    if has("make") {
        same_results(&["make", "-s", "-C", "/", "-f", "/dev/null", "no-such-target"], 2);
    }
}

#[test]
fn a_threaded_compressor_gives_the_same_bytes() {
    if !has("xz") {
        return;
    }
    let place = TestFolder::new();
    let (input, size) = (place.path("input"), 6 << 20);
    // Text of some entropy: a linear congruential generator's high bits.
    let mut state = 1_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 28) as u8
    })
    .take(size)
    .collect();
    fs::write(&input, bytes).unwrap();
    let input = input.display().to_string();
    same_results(&["xz", "-1", "-T2", "--block-size=1MiB", "-c", &input], 0);
}

#[test]
fn python_processes_and_threads_give_the_same_results() {
    if has("python3") {
        same_results(&["python3", &own_program("hashes.py")], 3);
    }
}

#[test]
fn node_workers_give_the_same_results() {
    if has("node") {
        same_results(&["node", &own_program("hashes.js")], 5);
    }
}

#[test]
fn java_starts_with_the_same_settings() {
    if has("java") {
        same_results(
            &["java", "-Xshare:off", "-XX:+UseParallelGC", "-XX:+PrintFlagsFinal", "-version"],
            0,
        );
        same_results(&["java", "NoSuchClass"], 1);
    }
}
