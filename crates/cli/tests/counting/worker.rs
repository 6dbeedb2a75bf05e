//! A program of four processes on two hardware threads: two that have page
//! faults all the time, and two that have none.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use rustix::thread::CpuSet;

/// What the worker's command line begins with.
pub const WORKER: &str = "worker";
/// Pages that are touched at a time.
const PAGES: usize = 500;
/// More than allocators keep for later: it is mapped anew each time.
const LARGE: usize = 40 << 20;

/// `parent CPU CPU`: runs the others until its standard input ends, after it
/// given their roles. `hungry` and `modest`: run until the parent is gone.
pub fn main(args: &[String]) {
    match args {
        [role, cpus @ ..] if role == "parent" => parent(cpus),
        [role] => busy(role == "hungry"),
        _ => panic!("what is {args:?}?"),
    }
}

fn parent(cpus: &[String]) {
    let mut both = CpuSet::new();
    cpus.iter().for_each(|cpu| both.set(cpu.parse().unwrap()));
    rustix::thread::sched_setaffinity(None, &both).unwrap();
    // By number, hungry ones would come in pairs and so be apart by chance.
    let mut children = ["hungry", "modest", "modest", "hungry"].map(child);
    for (role, child) in &children {
        println!("{role} {}", child.id());
    }
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
    for (_, child) in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn child(role: &str) -> (&str, Child) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([WORKER, role]).stdin(Stdio::null()).stdout(Stdio::null());
    (role, command.spawn().unwrap())
}

fn busy(hungry: bool) {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        if hungry {
            let page = rustix::param::page_size();
            let mut memory: Vec<u8> = Vec::with_capacity(LARGE);
            for byte in memory.spare_capacity_mut().iter_mut().step_by(page).take(PAGES) {
                std::hint::black_box(byte.write(1));
            }
        } else {
            (0..100_000).for_each(|n| {
                std::hint::black_box(n);
            });
        }
    }
}
