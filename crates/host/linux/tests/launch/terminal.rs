//! A user at a terminal sees no difference between a program that is launched
//! managed and the same program alone.

use libtest_mimic::Trial;

use crate::exits::{WAYS, Way};
use crate::helper::wait_until;
use crate::pty::{CONTROL_C, CONTROL_Z, SHELLS, Terminal};

/// A test in each shell that there is.
fn in_each_shell(
    name: &str,
    scenario: impl Fn(&mut Terminal) + Copy + Send + 'static,
) -> Vec<Trial> {
    let test = |(shell, options)| {
        Trial::test(format!("{name}, {shell}"), move || {
            match Terminal::open(shell, options) {
                Some(mut terminal) => scenario(&mut terminal),
                None => println!("skipped: there is no {shell} here"),
            }
            Ok(())
        })
    };
    SHELLS.map(test).into()
}

/// A test in each shell and for each of some ways of launching; it is given
/// the words to put before the program.
fn test_ways(ways: &[Way], name: &str, scenario: fn(&mut Terminal, &str)) -> Vec<Trial> {
    let launcher = std::env::current_exe().expect("the path of this test");
    ways.iter()
        .flat_map(|&(way_name, way)| {
            // Leaked, as it lives as long as the tests do.
            let words: &'static str = match way {
                [] => "",
                _ => format!("'{}' {}", launcher.display(), way.join(" ")).leak(),
            };
            in_each_shell(&format!("{name}: {way_name}"), move |terminal| scenario(terminal, words))
        })
        .collect()
}

/// Supervisors that say when the manager's report came.
const TELLING: [Way; 2] = [
    ("supervised", &["@job", "--announce", "--"]),
    ("supervised in a session of its own", &["@job", "--announce", "--own", "--"]),
];

fn test(name: &str, scenario: fn(&mut Terminal, &str)) -> Vec<Trial> {
    test_ways(&WAYS, name, scenario)
}

/// This module's tests.
pub fn trials() -> Vec<Trial> {
    vec![
        test("terminal_a_program_that_stops_itself_is_stopped_for_the_shell", |terminal, x| {
            terminal.line(&format!("{x} sh -c 'echo begun; kill -STOP $$; echo resumed; exit 5'"));
            terminal.expect("begun");
            terminal.prompt();
            terminal.line("fg");
            terminal.expect("resumed");
            terminal.prompt();
            assert_eq!(terminal.ask("echo code=$?").trim(), "code=5");
        }),
        test("terminal_interrupt_ends_the_whole_list", |terminal, x| {
            terminal.line(&format!("{x} sh -c 'echo begun; exec sleep 1000'; echo af\"\"ter"));
            terminal.expect("begun");
            terminal.press(CONTROL_C);
            let shown = terminal.prompt();
            assert!(!shown.contains("after"), "the list went on: {shown}");
            assert_eq!(terminal.ask("echo code=$?").trim(), "code=130");
        }),
        test("terminal_a_program_may_survive_an_interrupt", |terminal, x| {
            let program = "trap \"echo caught\" INT; echo begun; \
                           until read line && [ \"$line\" = end ]; do :; done; exit 6";
            terminal.line(&format!("{x} sh -c '{program}'; echo af\"\"ter $?"));
            terminal.expect("begun");
            terminal.press(CONTROL_C);
            terminal.expect("caught");
            terminal.line("end");
            let shown = terminal.prompt();
            assert!(!shown.contains("caught"), "it came twice: {shown}");
            assert!(shown.contains("after 6"), "the list ended: {shown}");
        }),
        test_ways(&TELLING, "terminal_interrupt_spares_the_report", |terminal, x| {
            terminal.line(&format!("{x} sh -c 'echo begun; exec sleep 1000'"));
            terminal.expect("begun");
            terminal.press(CONTROL_C);
            let shown = terminal.prompt();
            assert!(shown.contains("launch: the report is here"), "{shown}");
            assert_eq!(terminal.ask("echo code=$?").trim(), "code=130");
        }),
        test("terminal_stop_key_then_foreground", |terminal, x| {
            let program = "echo begun; read a; echo got $a; read b; echo got $b; exit 4";
            terminal.line(&format!("{x} sh -c '{program}'"));
            terminal.expect("begun");
            for word in ["one", "two"] {
                terminal.press(CONTROL_Z);
                terminal.prompt();
                assert!(terminal.ask("jobs").contains("topped"));
                terminal.line("fg");
                terminal.line(word);
                terminal.expect(&format!("got {word}"));
            }
            terminal.prompt();
            assert_eq!(terminal.ask("echo code=$?").trim(), "code=4");
        }),
        test("terminal_stop_signal_from_elsewhere_then_foreground", |terminal, x| {
            let program = "echo begun; while [ ! -e \"$0\" ]; do sleep 0.05; done; exit 8";
            let go = tempfile::tempdir().expect("a directory");
            let go = go.path().join("go");
            terminal.background(&format!("{x} sh -c '{program}' '{}' &", go.display()), "begun");
            terminal.ask("kill -TSTP $!");
            wait_until("the job is stopped", || terminal.ask("jobs").contains("topped"));
            std::fs::write(&go, "").expect("a file");
            terminal.line("fg");
            terminal.prompt();
            assert_eq!(terminal.ask("echo code=$?").trim(), "code=8");
        }),
        test("terminal_death_by_a_signal_is_reported_by_the_shell", |terminal, x| {
            for (signal, code, word) in [("KILL", 137, "Killed"), ("SEGV", 139, "egmentation")] {
                let shown = terminal.ask(&format!("{x} sh -c 'kill -{signal} $$'"));
                assert!(shown.contains(word), "the shell says {shown:?}");
                assert!(!shown.contains("dumped"), "a core dump too many: {shown:?}");
                assert_eq!(terminal.ask("echo code=$?").trim(), format!("code={code}"));
            }
        }),
        test("terminal_terminating_the_job_ends_it_by_that_signal", |terminal, x| {
            terminal.background(&format!("{x} sh -c 'echo begun; exec sleep 1000' &"), "begun");
            let shown = terminal.ask("kill $!; wait $!; echo code=$?");
            assert!(shown.contains("code=143"), "{shown}");
        }),
        test("terminal_modes_and_input_are_the_programs", |terminal, x| {
            let shown = terminal.ask(&format!("{x} sh -c 'test -t 0 && test -t 1 && echo tty'"));
            assert_eq!(shown.trim(), "tty");
        }),
        // Not in a session of its own, where no terminal stops a program.
        test_ways(&WAYS[..3], "terminal_a_background_reader_is_stopped", |terminal, x| {
            // The shell itself must not be what stops.
            let x = if x.is_empty() { "env" } else { x };
            terminal.ask(&format!("{x} sh -c 'read line; echo got $line; exit 4' &"));
            wait_until("the job is stopped", || terminal.ask("jobs").contains("topped"));
            terminal.line("fg");
            terminal.line("hello");
            terminal.expect("got hello");
            terminal.prompt();
            assert_eq!(terminal.ask("echo code=$?").trim(), "code=4");
        }),
        test_ways(
            &WAYS[..2],
            "terminal_job_is_the_process_that_the_shell_started",
            |terminal, x| {
                let shell: i64 = terminal.ask("echo $$").trim().parse().expect("a number");
                let stat = terminal.ask(&format!("{x} cat /proc/self/stat"));
                let stat: Vec<i64> =
                    stat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                let [pid, parent, group, session, _, foreground, ..] = stat[..] else {
                    panic!("no stat: {stat:?}");
                };
                assert_eq!((parent, group, session, foreground), (shell, pid, shell, pid));
            },
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
