//! Help: keys and columns.

use ratatui::text::Line;

use super::super::clean::{cut, left};
use super::Colours;

const KEYS: [(&str, &str); 10] = [
    ("h ? F1", "this help; Esc leaves it"),
    ("q ^C", "quit"),
    ("Up Down", "select a thread: the line above the keys says why it is there"),
    ("PgUp PgDn", "by pages; Home: the first one again, End: the last one"),
    ("c p o d t", "sort by cpu, program, core, slowdown, thread; s: by the next of these"),
    ("r", "the other way round"),
    ("f", "fold: a row for each thread, process, program, or pod if any"),
    ("/", "only what has this text in name, number, category or reason; Esc: all"),
    ("space", "pause, and go on"),
    ("^Z", "back to the shell; `fg` continues"),
];

const COLUMNS: [(&str, &str); 11] = [
    ("PROGRAM", "program, and the name of the thread where that is another one"),
    ("S", "R runnable, S sleeping, T stopped"),
    ("CPU CORE", "hardware thread where it runs or ran last, and its core"),
    ("KEPT", "hardware threads that the policy keeps it on; any: left to the OS"),
    ("RAN% WAIT%", "share of the time that it ran, and waited for a CPU"),
    ("PRED ACHV", "slowdown, predicted and achieved (1 is as fast as alone)"),
    ("CATEGORY", "Top-Down category or part of the CPI stack with the largest share"),
    ("CO-RUNNERS", "programs of the other threads that ran on the same core"),
    ("REASON", "why, in the policy's words"),
    ("CORES", "in use by threads of this list (|), by any others (:)"),
    ("", "yellow or bold: more threads want to run than there are CPUs"),
];

/// What `symbiont top --help` says below its options.
pub fn help_of_keys() -> String {
    let keys: String = KEYS.iter().map(|(name, text)| format!("\n  {name:<11} {text}")).collect();
    format!(
        "\
Examples:
  symbiont top
  symbiont top --once | head -20
  symbiont top --once --fold programs
  symbiont top --json --interval 5s

Keys:{keys}

Environment:
  NO_COLOR    if set and not empty, no colours are used"
    )
}

/// All lines.
pub fn lines(columns: usize, colours: Colours) -> Vec<Line<'static>> {
    let title = |text: &str| Line::styled(left(text, columns), colours.title());
    let one =
        |(name, text): &(&str, &str)| Line::raw(cut(&format!("  {name:<11} {text}"), columns));
    let mut all = vec![title("KEYS")];
    all.extend(KEYS.iter().map(one));
    all.push(title("COLUMNS"));
    all.extend(COLUMNS.iter().map(one));
    all
}
