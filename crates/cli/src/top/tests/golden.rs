//! What is shown, held against golden files.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;

use super::super::screen::Screen;
use super::super::state::{Fold, Key, State};
use super::super::view::{Parts, view};
use super::super::{PRINTED, printed_columns, text};
use super::press;
use super::world::{busy, daemon, idle, measured, names, watched};

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 60);

fn drawn(state: &mut State, screen: &Screen, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let parts = Parts::of(screen, state.fold, width, height);
    state.settle(&screen.rows(&state.clone()), parts.threads);
    terminal.draw(|frame| view(frame, state, screen)).unwrap();
    terminal.backend().buffer().clone()
}

/// As a user sees it; after a wide character there is a cell without one.
fn lines(buffer: &Buffer) -> String {
    let line = |row: u16| {
        let mut line = String::new();
        let mut column = 0;
        while column < buffer.area.width {
            let symbol = buffer[(column, row)].symbol();
            line.push_str(symbol);
            column += u16::try_from(super::super::clean::width(symbol)).unwrap().max(1);
        }
        format!("{}\n", line.trim_end())
    };
    (0..buffer.area.height).map(line).collect()
}

/// Compares with a golden file; with `UPDATE_GOLDEN=1` writes it.
fn hold(name: &str, shown: &str) {
    let path = format!("{}/golden/top/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, golden, "{name}: UPDATE_GOLDEN=1 cargo test -p symbiont-cli top");
}

#[test]
fn screens_read_as_ever() {
    for (size, label) in [(SMALL, "80x24"), (LARGE, "200x60")] {
        for (name, snapshot) in [
            ("4-loaded", daemon(4)),
            ("64-loaded", daemon(64)),
            ("4-idle", idle(4)),
            ("64-measured", measured(64)),
            ("4-measured", measured(4)),
            ("64-watched", watched(64)),
            ("empty", daemon(0)),
            ("names", names()),
            ("busy", busy(daemon(8))),
            ("busy-watched", busy(watched(4))),
        ] {
            let screen = Screen::new(None, snapshot);
            let shown = lines(&drawn(&mut State::new(true), &screen, size));
            hold(&format!("{label}-{name}"), &shown);
        }
        for (name, keys) in [
            ("help", &[Key::Char('h')][..]),
            ("processes", &[Key::Char('f')]),
            ("programs", &[Key::Char('f'), Key::Char('f'), Key::Down]),
            ("filter", &[Key::Char('/'), Key::Char('x'), Key::Char('z')]),
            ("filtered", &[Key::Char('/'), Key::Char('x'), Key::Char('y'), Key::Enter]),
            ("selected", &[Key::Char('o'), Key::PageDown, Key::Down, Key::Char(' ')]),
        ] {
            let screen = Screen::new(None, daemon(64));
            let mut state = State::new(true);
            press(&mut state, &screen, keys);
            hold(&format!("{label}-{name}"), &lines(&drawn(&mut state, &screen, size)));
        }
    }
    hold("once", &text(&Screen::new(None, measured(4)), Fold::Threads, PRINTED));
}

#[test]
fn any_size_is_drawn() {
    let screens = [daemon(0), daemon(64), measured(64), watched(4)].map(|s| Screen::new(None, s));
    for screen in &screens {
        for width in (1..100).step_by(3) {
            for height in (1..40).step_by(2) {
                let buffer = drawn(&mut State::new(false), screen, (width, height));
                // The keys that leave are always there.
                if width >= 40 {
                    let shown = lines(&buffer);
                    assert!(shown.contains("q quit") || shown.contains("q: quit"), "{shown}");
                }
            }
        }
    }
}

#[test]
fn without_colours_there_are_none() {
    let screen = Screen::new(None, measured(64));
    let colours = |plain| {
        let buffer = drawn(&mut State::new(plain), &screen, LARGE);
        buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(colours(false) && !colours(true));
}

#[test]
fn names_are_no_commands() {
    let screen = Screen::new(None, names());
    for size in [SMALL, LARGE] {
        let buffer = drawn(&mut State::new(false), &screen, size);
        let shown: String = buffer.content.iter().map(Cell::symbol).collect();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
    }
    let printed = text(&screen, Fold::Threads, PRINTED);
    assert!(!printed.chars().any(|c| c.is_control() && c != '\n'), "{printed:?}");
    assert!(!printed.contains('\u{202e}'));
}

#[test]
fn printed_lines_are_no_wider_than_asked_for() {
    for snapshot in [measured(64), daemon(64), watched(64), names()] {
        let screen = Screen::new(None, snapshot);
        for columns in [1, 40, 80, 132, PRINTED] {
            let printed = text(&screen, Fold::Threads, columns);
            let wide = |line: &&str| super::super::clean::width(line) > columns;
            assert_eq!(printed.lines().filter(wide).collect::<Vec<_>>(), Vec::<&str>::new());
            let least = screen.all().len() + screen.cores.len();
            assert!(printed.lines().count() > least, "all threads and cores are there");
        }
    }
}

#[test]
fn what_is_printed_is_as_wide_as_columns_or_the_terminal_says() {
    assert_eq!(printed_columns(Some("132"), Some(80)), 132);
    assert_eq!(printed_columns(None, Some(80)), 80);
    assert_eq!(printed_columns(None, None), PRINTED);
    for unset in ["0", "", "wide", "-1"] {
        assert_eq!(printed_columns(Some(unset), Some(80)), 80, "{unset:?}");
    }
    assert_eq!(printed_columns(Some("0"), Some(0)), PRINTED);
    let least = printed_columns(Some("1"), None);
    let printed = text(&Screen::new(None, daemon(4)), Fold::Threads, least);
    assert!(printed.starts_with("symbiont 0.1.0: policy "), "{printed}");
}

#[test]
fn notes_are_printed_whole() {
    let mut snapshot = daemon(4);
    snapshot.notes =
        ["one", "two", "three"].map(|it| format!("{it}: {}", "word ".repeat(30))).into();
    let printed = text(&Screen::new(None, snapshot), Fold::Threads, 80);
    assert_eq!(printed.matches("note: ").count(), 3);
    assert_eq!(printed.matches("word").count(), 90, "{printed}");
}
