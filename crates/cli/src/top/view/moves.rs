//! The last moves.

use ratatui::text::Line;
use symbiont_wire::MoveStatus;

use super::super::clean::{clean, cut, left, right};
use super::Colours;

/// A line for each, the newest first.
pub fn lines(moves: &[MoveStatus], columns: usize) -> impl Iterator<Item = String> + '_ {
    moves.iter().map(move |one| {
        let outcome = if one.outcome == "done" {
            String::new()
        } else {
            format!(" ({})", clean(&one.outcome))
        };
        let program = left(&clean(&one.program), if columns >= 120 { 24 } else { 12 });
        let reason =
            if one.reason.is_empty() { String::new() } else { format!("  {}", clean(&one.reason)) };
        let ago = right(&ago(one.ago_s), 6);
        let text =
            format!("{ago} {:>7} {program} to {:<7}{outcome}{reason}", one.thread, clean(&one.to));
        cut(&text, columns)
    })
}

/// The title and as many moves as there is room for.
pub fn titled(
    moves: &[MoveStatus],
    columns: usize,
    height: usize,
    colours: Colours,
) -> Vec<Line<'static>> {
    if height == 0 {
        return Vec::new();
    }
    let title = if moves.is_empty() {
        "MOVES  none lately"
    } else {
        "MOVES  ago, thread, program, CPUs, reason"
    };
    let mut all = vec![Line::styled(left(title, columns), colours.title())];
    all.extend(lines(moves, columns).take(height - 1).map(Line::raw));
    all
}

fn ago(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1}s"),
        s if s < 120.0 => format!("{s:.0}s"),
        s if s < 7200.0 => format!("{:.0}min", s / 60.0),
        s => format!("{:.0}h", s / 3600.0),
    }
}
