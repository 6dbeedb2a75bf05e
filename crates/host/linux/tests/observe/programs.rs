//! The watched programs: this binary, run again with [`CHOICE`] set.

use std::io::{BufRead, Read};
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use symbiont_linux::observe::{WatchOptions, Watcher};

use crate::support::{PROGRAM, Running, until};

/// Names the program to be.
pub const CHOICE: &str = "SYMBIONT_TEST_PROGRAM";

/// Not a test: the entry of the programs.
#[test]
fn run() {
    let Ok(choice) = std::env::var(CHOICE) else { return };
    let mut words = choice.split(' ');
    let name = words.next().unwrap();
    let mut number = || words.next().unwrap().parse::<u32>().unwrap();
    println!("up");
    wait_for_line();
    match name {
        "threads" => threads(number()),
        "ticking" => ticking(),
        "exec-from-thread" => exec_from_thread(),
        "thread-storm" => thread_storm(number(), number()),
        "fork-storm" => fork_storm(number()),
        "reuse" => reuse(number()),
        "watch" => watch(number()),
        "starved" => starved(),
        other => panic!("no program {other}"),
    }
}

fn wait_for_line() {
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
}

fn wait_for_end() {
    let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
}

/// Threads that wait; then, with each line, one ends and another is born.
fn threads(count: u32) {
    let waiting = || {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
        });
        (end, thread)
    };
    let mut all: std::collections::VecDeque<_> = (0..count).map(|_| waiting()).collect();
    println!("ready");
    while std::io::stdin().lock().read_line(&mut String::new()).unwrap() > 0 {
        let (end, thread) = all.pop_front().unwrap();
        drop(end);
        thread.join().unwrap();
        all.push_back(waiting());
        println!("replaced");
    }
}

/// A thread that wakes every other millisecond and hardly runs then.
fn ticking() {
    std::thread::spawn(|| {
        println!("ticks {}", rustix::thread::gettid().as_raw_nonzero());
        loop {
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    wait_for_end();
}

fn exec_from_thread() {
    let thread = std::thread::spawn(|| {
        println!("thread {}", rustix::thread::gettid().as_raw_nonzero());
        wait_for_line();
        std::process::Command::new("/bin/sh").args(["-c", "echo execed; read end"]).exec()
    });
    panic!("exec failed: {:?}", thread.join());
}

/// A thread that sleeps until a line comes, and then wants a hardware thread on which
/// another one spins, before which it does not come.
#[expect(unsafe_code, reason = "rustix does not set the class")]
fn starved() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).find(|cpu| allowed.is_set(*cpu)).unwrap();
    let pin = move || {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        rustix::thread::sched_setaffinity(None, &only).unwrap();
    };
    let (wake, woken) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        pin();
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel only reads the parameters.
        let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
        assert_eq!(set, 0);
        println!("sleeper {}", rustix::thread::gettid().as_raw_nonzero());
        let () = woken.recv().unwrap();
        loop {
            std::hint::spin_loop();
        }
    });
    std::thread::spawn(move || {
        pin();
        loop {
            std::hint::spin_loop();
        }
    });
    wait_for_line();
    wake.send(()).unwrap();
    println!("woken");
    wait_for_end();
}

/// So many short-lived threads a second, for so many milliseconds.
fn thread_storm(per_second: u32, milliseconds: u32) {
    let (start, length) = (Instant::now(), Duration::from_millis(milliseconds.into()));
    let mut made = 0;
    while start.elapsed() < length {
        std::thread::spawn(|| ()).join().unwrap();
        made += 1;
        let due = Duration::from_secs(1) * made / per_second;
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }
    println!("made {made}");
    wait_for_end();
}

/// So many children, one after the other, and then one that stays.
fn fork_storm(count: u32) {
    let script = format!(
        "i=0; while [ $i -lt {count} ]; do (:); i=$((i+1)); done; sleep 1000 & echo stays $!; \
         read end"
    );
    panic!("{}", std::process::Command::new("/bin/sh").args(["-c", &script]).exec());
}

/// With each line, a child with this number in the place of the former one.
fn reuse(number: u32) {
    let number = i32::try_from(number).unwrap();
    loop {
        if let Err(error) = child_with_number(number) {
            println!("number refused: {error}");
            return;
        }
        println!("number taken");
        wait_for_line();
        let child = rustix::process::Pid::from_raw(number).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).unwrap();
    }
}

/// Makes a child process with a number of choice; it waits for ever.
#[expect(unsafe_code, reason = "no other call chooses a number")]
fn child_with_number(number: i32) -> std::io::Result<()> {
    /// The first version of the kernel's `struct clone_args` that has set_tid.
    #[derive(Default)]
    #[repr(C)]
    struct CloneArgs {
        unused: [u64; 4],
        exit_signal: u64,
        unused_too: [u64; 3],
        set_tid: u64,
        set_tid_size: u64,
    }
    let arguments = CloneArgs {
        exit_signal: u64::try_from(libc::SIGCHLD).unwrap(),
        set_tid: std::ptr::from_ref(&number).addr() as u64,
        set_tid_size: 1,
        ..CloneArgs::default()
    };
    let (arguments, size) = (&raw const arguments, size_of::<CloneArgs>());
    // SAFETY: the kernel reads `size` bytes behind the pointer and one number
    // behind set_tid; both live. Without CLONE_VM the child has a copy of the
    // memory, as after fork, and does nothing but wait.
    match unsafe { libc::syscall(libc::SYS_clone3, arguments, size) } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => loop {
            // SAFETY: pause only waits for a signal.
            unsafe { libc::pause() };
        },
        _ => Ok(()),
    }
}

/// Watches a shell as an ordinary user, if asked to as root.
fn watch(user: u32) {
    if user != 0 {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(user)).unwrap();
    }
    let options = WatchOptions { timeout: Duration::from_millis(300), ..WatchOptions::default() };
    let mut watcher = Watcher::start(options, Box::new(())).unwrap();
    println!("method {:?}", watcher.method());
    let mut shell = Running::shell("sleep 1000 & echo child $!; wait");
    watcher.enrol(PROGRAM, shell.process()).unwrap();
    shell.go();
    let child: u32 = shell.says("child ").parse().unwrap();
    until(&mut watcher, "found", |all| all.iter().any(|thread| thread.id.process == child));
    drop(shell);
    println!("found its child");
}
