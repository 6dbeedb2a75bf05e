//! Title and legend above a chart, wrapped to the picture's width.

use super::PlotError;
use super::canvas::{Canvas, LABEL, TITLE, WIDTH, bold, filling, stroke, style};
use super::text;
use super::theme::Role;
use plotters::style::text_anchor::{HPos, VPos};

const MARGIN: i32 = 16;
const TITLE_LINE: i32 = 22;
const LEGEND_LINE: i32 = 22;
const KEY: i32 = 26;
const GAP: i32 = 22;

/// What stands before a name in the legend.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// The mark of a series.
    Mark(usize),
    /// A bar of a series.
    Bar(usize),
    /// A line with marks.
    Line(usize),
    /// A dashed line.
    Dashes(usize),
    /// The upright tick of a reference.
    Reference,
}

/// Title and legend, laid out.
pub(super) struct Header {
    title: Vec<String>,
    legend: Vec<(i32, i32, Key, String)>,
    /// Pixels that they take from the top.
    pub(super) height: i32,
}

impl Header {
    pub(super) fn new(title: &str, names: Vec<(Key, String)>) -> Self {
        let room = f64::from(WIDTH - 2 * MARGIN);
        let title = text::wrap(title, TITLE, room);
        let top = 12 + TITLE_LINE * title.len() as i32;
        let (mut x, mut y) = (MARGIN, top + LEGEND_LINE / 2);
        let mut legend = Vec::new();
        for (key, name) in names {
            let lines = text::wrap(&name, LABEL, room - f64::from(KEY));
            for (i, line) in lines.iter().enumerate() {
                let width = KEY + text::width(line, LABEL).ceil() as i32;
                if x > MARGIN && (i > 0 || x + width > WIDTH - MARGIN) {
                    (x, y) = (MARGIN, y + LEGEND_LINE);
                }
                legend.push((x, y, key, line.clone()));
                x += width + GAP;
            }
        }
        let height = if legend.is_empty() { top } else { y + LEGEND_LINE / 2 } + 8;
        Self { title, legend, height }
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        for (i, line) in self.title.iter().enumerate() {
            let at = (MARGIN, 12 + TITLE_LINE * i as i32 + TITLE_LINE / 2);
            canvas.text(line, at, bold(TITLE, Role::Text, (HPos::Left, VPos::Center)))?;
        }
        for (x, y, key, name) in &self.legend {
            key.draw(canvas, *x, *y)?;
            let label = style(LABEL, Role::Text, (HPos::Left, VPos::Center));
            canvas.text(name, (x + KEY, *y), label)?;
        }
        Ok(())
    }
}

impl Key {
    fn draw(self, canvas: &Canvas<'_>, x: i32, y: i32) -> Result<(), PlotError> {
        let across = [(x, y), (x + 20, y)];
        match self {
            Self::Mark(series) => canvas.mark((x + 10, y), series),
            Self::Bar(series) => {
                canvas.rectangle([(x, y - 5), (x + 20, y + 5)], filling(Role::Series(series), 1.0))
            }
            Self::Line(series) => {
                canvas.line(&across, stroke(Role::Series(series), 2))?;
                canvas.mark((x + 10, y), series)
            }
            Self::Dashes(series) => canvas.dashes(&across, Role::Series(series)),
            Self::Reference => {
                canvas.line(&[(x + 10, y - 8), (x + 10, y + 8)], stroke(Role::Text, 2))
            }
        }
    }
}
