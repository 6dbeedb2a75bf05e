#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod golden;
mod world;

use std::time::Duration;

use symbiont_linux::occupancy::{CpuTime, CpuTimes};
use symbiont_topology::PuId;
use symbiont_wire::{Container, Snapshot};
use world::{daemon, measured, thread};

use super::only::Only;
use super::screen::Screen;
use super::source::add_busy_shares;
use super::state::{Effect, Fold, Key, Mode, Order, State};
use super::view::Parts;

/// Presses keys one after the other, as the loop does.
fn press(state: &mut State, screen: &Screen, keys: &[Key]) -> Effect {
    let mut effect = Effect::None;
    for key in keys {
        effect = state.press(*key, &screen.rows(&state.clone()));
        let parts = Parts::of(screen, state.fold, 80, 24);
        state.settle(&screen.rows(&state.clone()), parts.threads);
    }
    effect
}

fn selected(state: &State, screen: &Screen) -> u32 {
    screen.rows(state)[state.selected].thread
}

#[test]
fn shares_are_of_the_time_between_snapshots() {
    let mut before = daemon(2);
    before.threads = vec![thread(1, 0, 10.0), thread(2, 1, 20.0)];
    let mut now = before.clone();
    now.at_s += 2.0;
    now.threads[0].run_time_s += 0.5;
    now.threads[0].wait_time_s += 1.0;
    // A number that is used again: what it ran since is its last quantum.
    now.threads[1].run_time_s = 0.1;
    now.manager.as_mut().unwrap().uptime_s += 2.0;
    now.manager.as_mut().unwrap().usage.cpu_s += 0.02;
    let screen = Screen::new(Some(&before), now);
    let shares = |row: &super::row::Row| (row.run_time, row.wait_time);
    assert_eq!(shares(&screen.all()[0]), (0.25, 0.5));
    assert_eq!(shares(&screen.all()[1]), (0.96, 0.0), "of its last quantum");
    assert!((screen.daemon_share.unwrap() - 0.01).abs() < 1e-9);
}

#[test]
fn without_a_new_quantum_shares_stay() {
    let before = daemon(4);
    let screen = Screen::new(Some(&before), daemon(4));
    let run_time = |row: &super::row::Row| row.run_time;
    let first = Screen::new(None, before);
    assert_eq!(
        screen.all().iter().map(run_time).collect::<Vec<_>>(),
        first.all().iter().map(run_time).collect::<Vec<_>>()
    );
}

#[test]
fn others_than_the_threads_of_the_list_are_seen() {
    let at = |seconds, idle: &[u64]| CpuTimes {
        at: Duration::from_secs(seconds),
        cpus: (0..)
            .zip(idle)
            .map(|(cpu, idle)| {
                (PuId(cpu), CpuTime { idle: Duration::from_secs(*idle), ..CpuTime::default() })
            })
            .collect(),
    };
    let mut now = daemon(1);
    now.threads[0].ran_share = Some(0.5);
    // CPU 0 was idle for 2 s of 10, CPU 1 for 10; CPU 3 is offline, CPU 2 was busy.
    add_busy_shares(&mut now.cores, &at(0, &[0, 0, 0]), &at(10, &[2, 10, 0]));
    assert_eq!(
        now.cores.iter().map(|core| core.busy_share).collect::<Vec<_>>(),
        [Some(0.4), Some(1.0), None, None]
    );
    now.cores.truncate(2);
    let screen = Screen::new(None, now);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(close(screen.cores[0].used, 0.25) && close(screen.cores[0].others.unwrap(), 0.15));
    let (used, others) = screen.cpus_used().unwrap();
    assert!(close(used, 0.5) && close(others, 2.3), "{used} {others}");
    assert_eq!(Screen::new(None, daemon(1)).cpus_used(), None, "not known");
}

#[test]
fn folding_keeps_times_and_threads() {
    let screen = Screen::new(None, measured(64));
    let state = |fold| {
        let mut state = State::new(false);
        state.fold = fold;
        state
    };
    let sums = |fold| {
        let (mut threads, mut run_time) = (0, 0.0);
        for row in screen.rows(&state(fold)) {
            threads += row.threads;
            run_time += row.run_time;
        }
        (threads, (run_time * 1e6_f64).round())
    };
    assert_eq!(sums(Fold::Processes), sums(Fold::Threads));
    assert_eq!(sums(Fold::Programs), sums(Fold::Threads));
    let programs = screen.rows(&state(Fold::Programs));
    let names: Vec<&str> = programs.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["make x32", "xz x32"]);
    assert!(
        programs.iter().all(|row| row.run_time > 1.0 && row.cpu.is_none() && row.placed.is_some())
    );
}

#[test]
fn where_there_are_pods_rows_fold_by_them() {
    let mut snapshot = measured(64);
    let pods = |snapshot: Snapshot| {
        let screen = Screen::new(None, snapshot);
        let mut state = State::new(false);
        let mut folds = Vec::new();
        for _ in 0..4 {
            let rows = screen.rows(&state);
            state.press(Key::Char('f'), &rows);
            folds.push(state.fold);
        }
        state.fold = Fold::Pods;
        let rows = screen.rows(&state);
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        (names, rows.iter().map(|row| row.threads).sum::<usize>(), folds.contains(&Fold::Pods))
    };
    let both = vec!["make x32".to_owned(), "xz x32".to_owned()];
    assert_eq!(pods(snapshot.clone()), (both, 64, false));
    let within = |pod: &str| {
        Some(Container {
            namespace: Some("shop".into()),
            pod: Some(pod.into()),
            ..Container::default()
        })
    };
    snapshot.programs[0].container = within("web\u{1b}");
    assert_eq!(pods(snapshot.clone()), (vec!["shop/web? x32".into(), "xz x32".into()], 64, true));
    for program in &mut snapshot.programs {
        program.container = within("web");
    }
    assert_eq!(pods(snapshot), (vec!["shop/web x64".into()], 64, true));
}

#[test]
fn only_what_is_asked_for_is_listed() {
    let kept = |only: Only| {
        let mut snapshot = daemon(8);
        snapshot.programs[1].uid = 2000;
        let left_out = only.keep(&mut snapshot);
        assert_eq!(left_out.is_some(), snapshot.threads.is_empty(), "{left_out:?}");
        (snapshot.programs.len(), snapshot.threads.len(), snapshot.moves.len())
    };
    assert_eq!(kept(Only::default()), (2, 8, 8));
    assert_eq!(kept(Only { pids: vec![4701], user: None }), (1, 4, 4));
    assert_eq!(kept(Only { pids: vec![], user: Some(1000) }), (1, 4, 4));
    assert_eq!(kept(Only { pids: vec![4701], user: Some(1000) }), (0, 0, 0));
}

#[test]
fn what_a_filter_left_out_is_said_where_nothing_is_left() {
    let mut now = daemon(8);
    let left_out = Only { pids: vec![1, 2], user: Some(7) }.keep(&mut now);
    let printed = super::text(&super::shown(None, (now, left_out)), Fold::Threads, 200);
    let line = "  nothing is left by -u 7 -p 1,2: 2 programs with 8 threads not shown\n";
    assert!(printed.contains(line) && !printed.contains("no program of yours"), "{printed}");
    let mut none = daemon(0);
    assert_eq!(Only { pids: vec![1], user: None }.keep(&mut none), None, "there is nothing");
}

#[test]
fn what_is_printed_can_be_folded() {
    let screen = Screen::new(None, daemon(8));
    let printed = super::text(&screen, Fold::Programs, 200);
    assert!(printed.contains("make x4") && printed.contains("xz x4"), "{printed}");
}

#[test]
fn the_help_of_the_command_line_names_the_keys() {
    let help = super::help_of_keys();
    assert!(
        help.contains(
            "\n  f           fold: a row for each thread, process, program, or pod if any"
        )
    );
}

#[test]
fn co_runners_are_the_busy_threads_of_the_same_core() {
    let mut now = daemon(3);
    for thread in &mut now.threads {
        (thread.cpu, thread.placed) = (Some(0), None);
    }
    // Sleeps: it is not among them, but has them.
    now.threads[2].ran_share = Some(0.0);
    now.threads[2].waited_share = Some(0.0);
    now.cores[0].others = 2;
    let screen = Screen::new(None, now);
    let co_runners: Vec<_> = screen.all().iter().map(|row| row.co_runners.as_str()).collect();
    assert_eq!(co_runners[0], "xz, 2 of others");
    assert_eq!(co_runners[2], "make, xz, 2 of others");
    assert_eq!(screen.cores[0].programs, "make, xz, 2 of others");
}

#[test]
fn a_thread_counts_for_the_core_where_it_is_kept() {
    let mut now = daemon(1);
    (now.threads[0].cpu, now.threads[0].placed) = (Some(0), Some("3".into()));
    let core = Screen::new(None, now).all()[0].core;
    assert_eq!(core, Some(1), "CPU 3 is of core 1, where it runs next");
}

#[test]
fn keys_do_what_help_says() {
    let screen = Screen::new(None, daemon(8));
    let mut state = State::new(false);
    for (key, order) in [
        ('c', Order::Cpu),
        ('p', Order::Program),
        ('o', Order::Core),
        ('d', Order::Slowdown),
        ('t', Order::Thread),
    ] {
        press(&mut state, &screen, &[Key::Char(key)]);
        assert_eq!(state.order, order);
    }
    press(&mut state, &screen, &[Key::Char('s')]);
    assert_eq!(state.order, Order::Cpu, "the first follows the last");
    press(&mut state, &screen, &[Key::Char('t'), Key::Char('r')]);
    let numbers: Vec<_> = screen.rows(&state).iter().map(|row| row.thread).collect();
    assert!(numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
    press(&mut state, &screen, &[Key::Char('?')]);
    assert_eq!(state.mode, Mode::Help);
    press(&mut state, &screen, &[Key::Escape]);
    assert_eq!(state.mode, Mode::Normal);
    press(&mut state, &screen, &[Key::Char(' ')]);
    assert!(state.paused);
    for quit in [Key::Char('q'), Key::Control('c')] {
        assert_eq!(press(&mut state, &screen, &[quit]), Effect::Quit);
    }
    assert_eq!(press(&mut state, &screen, &[Key::Control('z')]), Effect::Suspend);
}

#[test]
fn a_filter_keeps_what_has_its_text() {
    let screen = Screen::new(None, daemon(8));
    let mut state = State::new(false);
    press(&mut state, &screen, &[Key::Char('/'), Key::Char('x'), Key::Char('Z')]);
    assert!(screen.rows(&state).iter().all(|row| row.program == "xz"));
    assert_eq!(screen.rows(&state).len(), 4);
    // In a filter, letters are its text.
    assert_eq!(press(&mut state, &screen, &[Key::Char('q')]), Effect::None);
    assert!(screen.rows(&state).is_empty());
    press(&mut state, &screen, &[Key::Backspace, Key::Enter]);
    assert_eq!((state.mode, state.filter.as_str()), (Mode::Normal, "xZ"));
    press(&mut state, &screen, &[Key::Escape]);
    assert_eq!(screen.rows(&state).len(), 8);
}

#[test]
fn the_selected_thread_is_followed() {
    let before = Screen::new(None, daemon(64));
    let mut state = State::new(false);
    press(&mut state, &before, &[Key::Char('t'), Key::Down, Key::Down]);
    let chosen = selected(&state, &before);
    press(&mut state, &before, &[Key::Char('r')]);
    assert_eq!(selected(&state, &before), chosen);
    let page = Parts::of(&before, state.fold, 80, 24).threads;
    assert!((state.first..state.first + page).contains(&state.selected), "{state:?}");
    // It ends: the row stays.
    let mut now = daemon(64);
    now.threads.retain(|thread| thread.thread != chosen);
    let now = Screen::new(None, now);
    let at = state.selected;
    state.settle(&now.rows(&state.clone()), page);
    assert!(state.selected == at && selected(&state, &now) != chosen);
    press(&mut state, &now, &[Key::Home]);
    assert_eq!((state.selected, state.first), (0, 0));
}

#[test]
fn folded_rows_leave_their_room_to_moves() {
    let mut now = daemon(64);
    let one = now.moves.first().cloned().unwrap_or_default();
    now.moves = vec![one; 64];
    let screen = Screen::new(None, now);
    let threads = |fold| Parts::of(&screen, fold, 80, 40).threads;
    let rows = screen.folded(Fold::Programs).len();
    assert!(threads(Fold::Threads) > rows);
    assert_eq!(threads(Fold::Programs), rows, "no blank rows");
}

#[test]
fn pages_reach_the_first_and_the_last_thread() {
    let screen = Screen::new(None, daemon(64));
    let mut state = State::new(false);
    press(&mut state, &screen, &[Key::PageDown; 64]);
    assert_eq!(state.selected, 63);
    press(&mut state, &screen, &[Key::PageUp; 64]);
    assert_eq!((state.selected, state.first), (0, 0));
    press(&mut state, &screen, &[Key::End, Key::Down]);
    assert_eq!(state.selected, 63);
    let empty = Screen::new(None, daemon(0));
    press(&mut state, &empty, &[Key::Down, Key::PageDown, Key::End, Key::Up]);
    assert_eq!(state.selected, 0);
}
