//! Axes with grid, ticks and labels, and where values lie between them.

use super::PlotError;
use super::canvas::{Canvas, LABEL, SMALL, WIDTH, refused, stroke, style};
use super::text;
use super::theme::Role;
use super::ticks::Ruler;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::ChartBuilder;
use plotters::style::TRANSPARENT;
use plotters::style::text_anchor::{HPos, VPos};

/// Height of ticks and label below a chart, in pixels.
pub(super) const BELOW: i32 = 52;
/// Height of the label above an upright axis, in pixels.
pub(super) const ABOVE: i32 = 26;

/// An axis to draw: its ruler and label.
pub(super) type Side<'a> = (&'a Ruler, String);

/// Where values lie.
pub(super) struct Frame {
    x: Span,
    y: Span,
}

/// An axis and the pixels that it spans.
struct Span {
    ruler: Ruler,
    pixels: (i32, i32),
}

impl Span {
    fn place(&self, value: f64) -> Option<i32> {
        self.ruler.share(value).map(|_| self.ruler.map(&value, self.pixels))
    }
}

impl Frame {
    /// Draws the axes `top` pixels from the top, `right` from the right; `left`
    /// is the room for the ticks of `y`. Its label stands above the axis, so
    /// that it reads without turning the head: `top` leaves [`ABOVE`] pixels
    /// for it. Without `y` there are no rows.
    pub(super) fn draw(
        canvas: &Canvas<'_>,
        (top, left, right): (i32, i32, i32),
        (x, x_label): Side<'_>,
        y: Option<Side<'_>>,
    ) -> Result<Self, PlotError> {
        let blank = Ruler::blank();
        let (y, y_label) = y.map_or((&blank, None), |(y, label)| (y, Some(label)));
        let mut chart = ChartBuilder::on(&canvas.area)
            .margin_top(top)
            .margin_right(right)
            .x_label_area_size(BELOW)
            .y_label_area_size(left)
            .build_cartesian_2d(x.clone(), y.clone())
            .map_err(refused)?;
        let ticks = style(SMALL, Role::Muted, (HPos::Center, VPos::Center));
        chart
            .configure_mesh()
            .bold_line_style(stroke(Role::Grid, 1))
            .light_line_style(TRANSPARENT)
            .axis_style(stroke(Role::Muted, 1))
            .set_all_tick_mark_size(4)
            .label_style(ticks)
            .draw()
            .map_err(refused)?;
        let (left, bottom) = chart.backend_coord(&(x.range().start, y.range().start));
        let (right, top) = chart.backend_coord(&(x.range().end, y.range().end));
        let label = |h| style(LABEL, Role::Text, (h, VPos::Center));
        let room = f64::from(WIDTH - 32);
        let x_label = text::fit(&x_label, LABEL, room);
        let half = text::width(&x_label, LABEL).ceil() as i32 / 2;
        let middle = ((left + right) / 2).min(WIDTH - 16 - half).max(16 + half);
        canvas.text(&x_label, (middle, bottom + 36), label(HPos::Center))?;
        if let Some(y_label) = y_label {
            let y_label = text::fit(&y_label, LABEL, room);
            canvas.text(&y_label, (16, top - 14), label(HPos::Left))?;
        }
        Ok(Self {
            x: Span { ruler: x.clone(), pixels: (left, right) },
            y: Span { ruler: y.clone(), pixels: (bottom, top) },
        })
    }

    /// Pixels from the left of a value of x.
    pub(super) fn x(&self, value: f64) -> Option<i32> {
        self.x.place(value)
    }

    /// Pixels from the top of a value of y.
    pub(super) fn y(&self, value: f64) -> Option<i32> {
        self.y.place(value)
    }
}
