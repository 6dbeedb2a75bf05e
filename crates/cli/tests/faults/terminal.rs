//! The keys and signals of a user at a terminal; `launch` tests them in depth.

use libtest_mimic::Trial;

use crate::pty::{CONTROL_C, CONTROL_Z, SHELLS, Terminal};
use crate::test_folder::{TestFolder, wait_until};
use crate::trials::{skip, trial};

/// In place, and supervised.
const WAYS: [(&str, &str); 2] =
    [("in place", ""), ("with a report", "--report json --report-file /dev/null")];

/// Acts at a terminal, with the words to put before programs.
type Scenario = fn(&mut Terminal, &str);

pub fn trials() -> Vec<Trial> {
    let scenarios: [(&str, Scenario); 4] = [
        ("terminal_interrupt_ends_the_whole_list", interrupt),
        ("terminal_stop_key_then_foreground", stop_key),
        ("terminal_a_program_that_stops_itself_resumes", stops_itself),
        ("terminal_signals_end_it_by_that_signal", signals),
    ];
    let mut trials = vec![trial("terminal_shows_when_management_in_place_ends_early", reported)];
    for (name, scenario) in scenarios {
        for (way, options) in WAYS {
            trials.push(Trial::test(format!("{name}: {way}"), move || {
                let place = TestFolder::new();
                let symbiont = format!(
                    "'{}' run --state-dir '{}' --policy random {options} --",
                    env!("CARGO_BIN_EXE_symbiont"),
                    place.state_dir().display(),
                );
                for (shell, flags) in SHELLS {
                    match Terminal::open(shell, flags) {
                        Some(mut terminal) => scenario(&mut terminal, &symbiont),
                        None => println!("skipped: there is no {shell} here"),
                    }
                }
                Ok(())
            }));
        }
    }
    trials
}

fn reported() {
    let place = TestFolder::new();
    let (shell, flags) = SHELLS[0];
    let Some(mut terminal) = Terminal::open(shell, flags) else {
        return skip(&format!("there is no {shell} here"));
    };
    let run = place.run(&["--policy", "stay", "--quantum", "20ms"], &["sleep", "1000"]);
    let words = [run.get_program()].into_iter().chain(run.get_args());
    let words: Vec<_> = words.map(|word| format!("'{}'", word.to_str().expect("UTF-8"))).collect();
    terminal.line(&words.join(" "));
    wait_until("it is managed", || place.manager().is_some());
    crate::state_dir::block(&place);
    terminal.expect("symbiont: ");
    terminal.expect(place.state_dir().to_str().expect("UTF-8"));
    terminal.press(CONTROL_C);
    terminal.prompt();
}

fn interrupt(terminal: &mut Terminal, x: &str) {
    terminal.line(&format!("{x} sh -c 'echo begun; exec sleep 1000'; echo af\"\"ter"));
    terminal.expect("begun");
    terminal.press(CONTROL_C);
    let shown = terminal.prompt();
    assert!(!shown.contains("after"), "the list went on: {shown}");
    assert_eq!(terminal.ask("echo code=$?").trim(), "code=130");
}

fn stop_key(terminal: &mut Terminal, x: &str) {
    terminal.line(&format!("{x} sh -c 'echo begun; read a; echo got $a; exit 4'"));
    terminal.expect("begun");
    terminal.press(CONTROL_Z);
    terminal.prompt();
    assert!(terminal.ask("jobs").contains("topped"));
    terminal.line("fg");
    terminal.line("word");
    terminal.expect("got word");
    terminal.prompt();
    assert_eq!(terminal.ask("echo code=$?").trim(), "code=4");
}

fn stops_itself(terminal: &mut Terminal, x: &str) {
    terminal.line(&format!("{x} sh -c 'echo begun; kill -STOP $$; echo resumed; exit 5'"));
    terminal.expect("begun");
    terminal.prompt();
    terminal.line("fg");
    terminal.expect("resumed");
    terminal.prompt();
    assert_eq!(terminal.ask("echo code=$?").trim(), "code=5");
}

fn signals(terminal: &mut Terminal, x: &str) {
    let shown = terminal.ask(&format!("{x} sh -c 'kill -KILL $$'"));
    assert!(shown.contains("Killed"), "{shown}");
    assert_eq!(terminal.ask("echo code=$?").trim(), "code=137");
    terminal.background(&format!("{x} sh -c 'echo begun; exec sleep 1000' &"), "begun");
    let shown = terminal.ask("kill $!; wait $!; echo code=$?");
    assert!(shown.contains("code=143"), "{shown}");
}
