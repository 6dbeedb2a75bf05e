//! The table of threads.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::clean::{cut, left, right, width};
use super::super::row::Row;
use super::super::screen::Screen;
use super::super::state::{Fold, State};
use super::Colours;

/// Which columns there are, and how wide those are that take what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    program: usize,
    category: usize,
    slowdown: bool,
    kept: usize,
    co_runners: usize,
    reason: usize,
    /// No daemon: nothing is kept anywhere.
    watched: bool,
    /// Is there room for cores and shares of categories?
    wide: bool,
}

impl Columns {
    /// For a terminal of this width.
    pub fn of(screen: &Screen, columns: usize) -> Self {
        let rows = screen.all();
        let categories = rows.iter().any(|row| row.category.is_some());
        let slowdown = rows.iter().any(|row| row.predicted.is_some() || row.achieved.is_some());
        let watched = screen.now.manager.is_none();
        let longest = |width: &dyn Fn(&Row) -> usize, least: usize, most: usize| {
            rows.iter().map(width).max().unwrap_or(0).clamp(least, most)
        };
        let wide = columns >= 120;
        let most = |narrow: usize, much: usize| if wide { much } else { narrow };
        let program = longest(&|row| width(&row.name), 10, most(16, 32));
        let category = longest(&|row| width(&category(row, wide)), 8, most(13, 24));
        let category = if categories { category } else { 0 };
        let kept = longest(&|row| width(row.placed.as_deref().unwrap_or("any")), 4, most(7, 12));
        let kept = if watched { 0 } else { kept };
        // Number, state, CPU, core, shares, with the gaps after them.
        let fixed = 8 + 2 + 5 + if wide { 5 } else { 0 } + 6 + 6 + if slowdown { 12 } else { 0 };
        let shown = |width: usize| if width > 0 { width + 1 } else { 0 };
        let rest = columns.saturating_sub(fixed + shown(program) + shown(category) + shown(kept));
        let co_runners = if wide { rest.min(28) } else { rest };
        let reason = rest.saturating_sub(co_runners + 1);
        let reason = if reason >= 16 && !watched { reason } else { 0 };
        let co_runners = if reason == 0 { rest } else { co_runners };
        let co_runners = if co_runners >= 8 { co_runners } else { 0 };
        Self { program, category, slowdown, kept, co_runners, reason, watched, wide }
    }

    fn title(&self, fold: Fold) -> String {
        let number = if fold == Fold::Threads { "TID" } else { "PID" };
        let mut text = format!(
            "{} {} S {} ",
            right(number, 7),
            left("PROGRAM", self.program),
            right("CPU", 4)
        );
        if self.wide {
            text += &format!("{} ", right("CORE", 4));
        }
        if !self.watched {
            text += &format!("{} ", left("KEPT", self.kept));
        }
        text += &format!("{} {} ", right("RAN%", 5), right("WAIT%", 5));
        if self.slowdown {
            text += &format!("{} {} ", right("PRED", 5), right("ACHV", 5));
        }
        // At 80 columns there is room for eight characters where all is measured.
        let co_runners = if self.co_runners < "CO-RUNNERS".len() { "CO-RUN" } else { "CO-RUNNERS" };
        for (name, width) in
            [("CATEGORY", self.category), (co_runners, self.co_runners), ("REASON", self.reason)]
        {
            if width > 0 {
                text += &format!("{} ", left(name, width));
            }
        }
        text.trim_end().to_owned()
    }

    fn row(&self, row: &Row, colours: Colours, selected: bool) -> Line<'static> {
        let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
        let base = match (selected, row.state) {
            (true, _) => colours.selected(),
            (false, 'R') => Style::new(),
            (false, _) if row.run_time >= 0.005 => Style::new(),
            (false, _) => colours.faint(),
        };
        let marked = |style: Style| if selected { base } else { style };
        let mut spans = vec![
            Span::styled(format!("{} ", right(&row.thread.to_string(), 7)), base),
            Span::styled(format!("{} ", left(&row.name, self.program)), base),
            Span::styled(
                format!("{} ", row.state),
                if row.state == 'R' { marked(colours.used()) } else { base },
            ),
            Span::styled(format!("{} ", right(&number(row.cpu), 4)), base),
        ];
        if self.wide {
            spans.push(Span::styled(format!("{} ", right(&number(row.core), 4)), base));
        }
        if !self.watched {
            let kept = row.placed.as_deref().unwrap_or("any");
            spans.push(Span::styled(format!("{} ", left(kept, self.kept)), base));
        }
        let waits = if row.wait_time >= 0.2 * row.threads as f64 {
            marked(colours.warning())
        } else {
            base
        };
        spans.push(Span::styled(format!("{} ", percent(row.run_time)), base));
        spans.push(Span::styled(format!("{} ", percent(row.wait_time)), waits));
        if self.slowdown {
            for value in [row.predicted, row.achieved] {
                let text = value.map_or("-".to_owned(), |value| format!("{value:.2}"));
                let style = match value {
                    Some(value) if value >= 1.5 => marked(colours.bad()),
                    Some(value) if value >= 1.2 => marked(colours.warning()),
                    _ => base,
                };
                spans.push(Span::styled(format!("{} ", right(&text, 5)), style));
            }
        }
        let category = category(row, self.wide);
        for (text, width) in [
            (category.as_str(), self.category),
            (&row.co_runners, self.co_runners),
            (&row.reason, self.reason),
        ] {
            if width > 0 {
                spans.push(Span::styled(format!("{} ", left(text, width)), base));
            }
        }
        Line::from(spans)
    }
}

/// The category, with its share where there is room.
fn category(row: &Row, wide: bool) -> String {
    match &row.category {
        Some((name, share)) if wide => format!("{name} {:.0}%", share * 100.0),
        Some((name, _)) => name.clone(),
        None => "-".to_owned(),
    }
}

/// A share in percent; of several threads it is more than 100.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 999.95 => right(&format!("{percent:.1}"), 5),
        percent => right(&format!("{percent:.0}"), 5),
    }
}

/// The title and as many rows as there is room for.
pub fn lines(
    state: &State,
    screen: &Screen,
    rows: &[&Row],
    columns: usize,
    height: usize,
    colours: Colours,
) -> Vec<Line<'static>> {
    let shape = Columns::of(screen, columns);
    let mut lines = vec![Line::styled(left(&shape.title(state.fold), columns), colours.title())];
    let shown = rows.iter().enumerate().skip(state.first).take(height);
    lines.extend(shown.map(|(at, row)| shape.row(row, colours, at == state.selected)));
    if rows.is_empty() {
        lines.push(Line::raw(cut(&empty(state, screen), columns)));
    }
    lines.resize(height + 1, Line::default());
    lines
}

fn empty(state: &State, screen: &Screen) -> String {
    let why = match (state.filter.is_empty(), &screen.left_out, screen.now.manager.is_some()) {
        (true, Some(left_out), _) => left_out,
        (false, ..) => "no thread has this text in its name, number, category or reason",
        (true, None, true) => {
            "no program of yours is managed: `symbiont run -- COMMAND`, `symbiont attach`"
        }
        (true, None, false) => "no process of yours runs",
    };
    format!("  {why}")
}

/// All threads as text, or what they are folded into.
pub fn table(screen: &Screen, fold: Fold, columns: usize) -> Vec<String> {
    let shape = Columns::of(screen, columns);
    let mut state = State::new(true);
    state.fold = fold;
    let rows = screen.rows(&state);
    let mut lines = vec![shape.title(fold)];
    lines.extend(rows.iter().map(|row| shape.row(row, Colours(false), false).to_string()));
    if rows.is_empty() {
        lines.push(empty(&state, screen));
    }
    lines
}
