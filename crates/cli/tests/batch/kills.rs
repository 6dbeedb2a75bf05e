//! A batch that is killed at random moments and resumed, with second instances and a disk that fills up.
//!
//! Each job logs its begin and its end. Whatever is killed: no two runs of one job overlap, none is lost, and none
//! that ended well runs again. Where keepers are killed as well, some ends are not known, and these jobs do run again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::process::{Pid, Signal, kill_process};

use super::symbiont;

/// Takes a while; every fifth fails the first time.
fn job(number: u32, random: &mut Pcg64Mcg) -> String {
    let fails = if number % 5 == 0 { "test -e failed.$n || { >failed.$n; exit 3; }; " } else { "" };
    let time_ms = 20 + random.random_range(0..400);
    format!(
        "n={number}; mkdir run.$n || echo overlap $n >>log; echo begin $n >>log; sleep 0.{time_ms:03}; \
         echo end $n >>log; rmdir run.$n; {fails}echo well $n >>log\n"
    )
}

/// In a file system of its own, so that it can be filled.
fn resumed(folder: &Path) -> Child {
    let options = ["--resume", "-n", "4", "--progress", "disk/progress"];
    symbiont(folder, &options).stderr(Stdio::null()).spawn().unwrap()
}

/// A small file system, where that is possible.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(folder: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1M", "tmpfs"]).arg(folder);
        let is_mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        is_mounted.then_some(Self(folder))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// How many jobs run.
fn running(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("run.")).count()
}

/// Kills one of the keepers.
fn kill_a_keeper(folder: &Path, random: &mut Pcg64Mcg) {
    let is_keeper = |process: &PathBuf| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)
            && words.split(|byte| *byte == 0).nth(1) == Some(b"keep-job")
    };
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let keepers: Vec<PathBuf> = processes.filter(is_keeper).collect();
    let at = random.random_range(0..keepers.len().max(1));
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse().ok();
    if let Some(keeper) = keepers.get(at).and_then(number).and_then(Pid::from_raw) {
        let _ = kill_process(keeper, Signal::KILL);
    }
}

fn campaign(kills: u32, kills_keepers: bool) {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().canonicalize().unwrap();
    let count = 6 * kills;
    let mut jobs: Vec<String> = (1..=count).map(|number| job(number, &mut random)).collect();
    fs::create_dir(path.join("disk")).unwrap();
    let disk = path.join("disk");
    let disk = Disk::mount(&disk);
    let (mut refused, mut fills, mut hits) = (0, 0, 0);
    for kill in 0..kills {
        // Comments and order change from run to run.
        let at = usize::try_from(random.random_range(0..count)).unwrap();
        jobs.rotate_left(at);
        fs::write(path.join("jobs.txt"), format!("# run {kill}\n{}", jobs.concat())).unwrap();
        let mut batch = resumed(path);
        let until = Instant::now() + Duration::from_millis(random.random_range(0..600));
        if disk.is_some() && kill % 4 == 3 {
            // Whatever fits.
            let _ = fs::write(path.join("disk/fill"), vec![0; 2 << 20]);
            fills += 1;
        }
        if kill % 7 == 2 && !until.saturating_duration_since(Instant::now()).is_zero() {
            std::thread::sleep(Duration::from_millis(100));
            let mut second = resumed(path);
            // It either is refused, or the first one was killed before.
            let code = second.wait().unwrap().code();
            refused += u32::from(code == Some(1));
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        if kill == 0 {
            super::until("a job runs", || running(path) > 0);
        }
        if kills_keepers && kill % 2 == 0 {
            kill_a_keeper(path, &mut random);
        }
        batch.kill().unwrap();
        batch.wait().unwrap();
        hits += u32::from(running(path) > 0);
        if kills_keepers && kill % 2 == 1 {
            kill_a_keeper(path, &mut random);
        }
        let _ = fs::remove_file(path.join("disk/fill"));
    }
    // The first fails where a job fails for the first time, or its end is not known.
    let last = (0..3).find(|_| resumed(path).wait().unwrap().success());
    assert!(last.is_some(), "the last runs did not end well");
    drop(disk);
    let log = fs::read_to_string(path.join("log")).unwrap();
    println!(
        "{kills} kills, {hits} of them while jobs ran, {refused} second instances refused, {fills} full disks, {count} jobs"
    );
    assert!(hits > 0, "no job ran at any kill");
    assert!(!log.contains("overlap"), "two runs of a job overlapped: {log}");
    let times = |what: &str, number: u32| {
        let line = format!("{what} {number}");
        log.lines().filter(|one| *one == line).count()
    };
    for number in 1..=count {
        let runs = if number % 5 == 0 { 2 } else { 1 };
        let seen = ["begin", "end", "well"].map(|what| times(what, number));
        match kills_keepers {
            false => assert_eq!(seen, [runs, runs, 1], "begins, ends, good ends of job {number}"),
            true => assert!(seen[0] == seen[1] && seen[2] > 0, "job {number}: {seen:?}"),
        }
    }
}

#[test]
fn ten_kills_neither_lose_a_job_nor_run_it_twice() {
    campaign(10, false);
}

#[test]
fn kills_of_keepers_lose_no_job_and_let_none_overlap() {
    campaign(10, true);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_kills_neither_lose_a_job_nor_run_it_twice() {
    campaign(200, false);
}
