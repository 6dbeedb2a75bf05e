//! A `sched_ext` scheduler is loaded: Symbiont notices, says so, and leaves to it
//! what is its own.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::given::Given;
use crate::settings::{changed, of_tree, own};
use crate::test_folder::{TestFolder, wait_until};

use super::bpf::{Request, layout, requests};
use super::elf::{BEGIN, Code};
use super::siblings::{serial_gets_a_core, start_serial};
use super::skip;

const NAME: &str = "lab_scheduler";
const FOLDER: &str = "/sys/kernel/sched_ext";
/// What the kernel knows about its types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Where the data begins, behind the code.
const DATA: usize = 256;

/// Makes the requests one after the other and sleeps; ends with the error's number when one
/// is refused (System V ABI, AMD64 supplement, appendix A.2.1).
#[cfg(target_arch = "x86_64")]
fn code(requests: &[Request]) -> Option<Vec<u8>> {
    const BPF: u32 = 321;
    // Bytes of a request, and of the sleep before the end.
    const EACH: usize = 30;
    const SLEEP: usize = 9;
    let mut code = Vec::new();
    for (nth, (command, argument, size)) in requests.iter().enumerate() {
        let argument = u32::try_from(*argument).ok()?;
        // mov to eax, edi, esi, edx
        for (register, value) in [(0xb8, BPF), (0xbf, *command), (0xbe, argument), (0xba, *size)] {
            code.push(register);
            code.extend(value.to_le_bytes());
        }
        // syscall; test eax, eax; js behind the sleep
        code.extend([0x0f, 0x05, 0x85, 0xc0, 0x0f, 0x88]);
        let beyond = (requests.len() - 1 - nth) * EACH + SLEEP;
        code.extend(u32::try_from(beyond).ok()?.to_le_bytes());
    }
    // pause, again and again; neg eax; exit
    code.extend([0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7]);
    code.extend([0xf7, 0xd8, 0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]);
    Some(code)
}

#[cfg(not(target_arch = "x86_64"))]
fn code(_: &[Request]) -> Option<Vec<u8>> {
    None
}

/// A program that has a scheduler loaded while it lives.
struct Loaded(Child);

impl Loaded {
    fn start(place: &TestFolder) -> Self {
        let types = fs::read(TYPES).unwrap_or_else(|why| skip(&format!("{TYPES}: {why}")));
        let layout = layout(&types).unwrap_or_else(|| skip("the kernel has no sched_ext"));
        let (data, requests) = requests(layout, NAME, BEGIN + DATA as u64);
        let mut bytes = code(&requests)
            .unwrap_or_else(|| skip("no program that loads a scheduler for this architecture"));
        bytes.resize(DATA, 0);
        bytes.extend(data);
        let path = place.path("loader");
        Code { machine: 62, flags: 0, bytes }.write(&path);
        let mut child = Command::new(path).stdin(Stdio::null()).spawn().unwrap();
        wait_until("the scheduler is loaded", || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the kernel refused the scheduler: {ended:?}");
            state() == "enabled"
        });
        Self(child)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn state() -> String {
    fs::read_to_string(format!("{FOLDER}/state")).unwrap_or_default().trim().to_owned()
}

/// `doctor --json`: what can be steered.
fn support(place: &TestFolder) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_symbiont"))
        .args(["doctor", "--json", "--state-dir"])
        .arg(place.state_dir())
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{}", shown["support"]);
    shown["support"].clone()
}

/// Under the scheduler a serial program still gets a core of its own, but no thread's
/// priority is touched; both is said. Without it priorities are used again.
pub fn loaded(given: &Given) {
    let place = TestFolder::new();
    let before = own();
    let scheduler = Loaded::start(&place);
    let now = support(&place);
    assert_eq!(now["affinity"]["ability"], "partial");
    assert!(now["affinity"]["why"].to_string().contains(NAME), "it has a name");
    assert_eq!(
        (&now["boost"]["ability"], &now["waiting"]["ability"]),
        (&"absent".into(), &"absent".into())
    );

    let said = place.path("said");
    let program = start_serial(&place, "phases", File::create(&said).unwrap().into());
    serial_gets_a_core(given, &program);
    for (thread, now) in of_tree(program.id()) {
        let touched = (now.nice, now.class) != (before.nice, before.class);
        assert!(!touched, "thread {thread} has another priority: {now:?}");
    }
    let said = fs::read_to_string(said).unwrap();
    println!("{said}");
    assert!(said.contains(&format!("sched_ext scheduler {NAME} is loaded")), "{said}");
    assert!(said.contains("not boosted"), "{said}");
    assert_eq!(state(), "enabled", "it was not thrown out");
    place.signal_manager(rustix::process::Signal::TERM);
    assert!(changed(program.id(), &before).is_empty(), "{:?}", changed(program.id(), &before));
    drop((program, scheduler));
    wait_until("the scheduler is gone", || state() == "disabled");
    let usual = support(&place);
    assert_eq!(usual["affinity"]["ability"], "full");
    assert_ne!(usual["boost"]["ability"], "absent", "root may raise priorities");
}
