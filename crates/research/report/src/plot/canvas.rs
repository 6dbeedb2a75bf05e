//! The drawing area in pixels, and the few shapes that charts are made of.

use super::PlotError;
use super::theme::{Role, color};
use crate::stats::Interval;
use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, IntoDrawingArea, IntoFont, PathElement, Polygon, Rectangle, SVGBackend,
    Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, RGBAColor, ShapeStyle, TextStyle};

/// Width of every picture in pixels.
pub(super) const WIDTH: i32 = 760;
/// Font size of axis labels, legends and categories.
pub(super) const LABEL: f64 = 13.0;
/// Font size of ticks and numbers.
pub(super) const SMALL: f64 = 12.0;
/// Font size of titles.
pub(super) const TITLE: f64 = 16.0;

/// Half the length of an interval's caps: beyond marks, so that an interval
/// narrower than its mark still shows.
const CAP: i32 = 7;

/// A line width that stands for a dashed line: plotters would cut dashes
/// itself, to whole pixels, which makes slanted lines uneven.
const DASHED: u32 = 1000;
const DASHES: &str = "stroke-width=\"2\" stroke-dasharray=\"7 5\"";

/// A place in pixels from the upper left corner.
pub(super) type Point = (i32, i32);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The area that a picture is drawn on.
pub(super) struct Canvas<'a> {
    pub(super) area: Area<'a>,
}

/// A picture of [`WIDTH`] by `height` pixels as SVG, in stand-in colours.
pub(super) fn picture(
    height: i32,
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    let canvas = Canvas { area: SVGBackend::with_string(&mut svg, size).into_drawing_area() };
    canvas.area.fill(&color(Role::Ground)).map_err(refused)?;
    draw(&canvas)?;
    canvas.area.present().map_err(refused)?;
    drop(canvas);
    let svg = svg.replace(&format!("stroke-width=\"{DASHED}\""), DASHES);
    Ok(svg.replace("dy=\"0.5ex\"", "dy=\"0.35em\""))
}

/// What plotters said.
pub(super) fn refused(error: impl std::fmt::Display) -> PlotError {
    PlotError::Draw(error.to_string())
}

/// A text style; `anchor` says which part of the text lies at its place.
pub(super) fn style<'a>(size: f64, role: Role, anchor: (HPos, VPos)) -> TextStyle<'a> {
    // The SVG backend divides sizes by 1.24.
    let font = ("sans-serif", size * 1.24).into_font();
    font.color(&color(role)).pos(Pos::new(anchor.0, anchor.1))
}

/// A bold text style.
pub(super) fn bold<'a>(size: f64, role: Role, anchor: (HPos, VPos)) -> TextStyle<'a> {
    let plain = style(size, role, anchor);
    TextStyle { font: plain.font.style(FontStyle::Bold), ..plain }
}

/// A line style.
pub(super) fn stroke(role: Role, width: u32) -> ShapeStyle {
    ShapeStyle { color: color(role).to_rgba(), filled: false, stroke_width: width }
}

/// A filling, `opacity` in 0…1.
pub(super) fn filling(role: Role, opacity: f64) -> ShapeStyle {
    let color: RGBAColor = color(role).mix(opacity);
    ShapeStyle { color, filled: true, stroke_width: 0 }
}

impl Canvas<'_> {
    pub(super) fn text(
        &self,
        text: &str,
        at: Point,
        style: TextStyle<'_>,
    ) -> Result<(), PlotError> {
        // XML has no way to hold control characters.
        let barred = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
        let text = text.replace(barred, "\u{fffd}");
        self.area.draw(&Text::new(text, at, style)).map_err(refused)
    }

    pub(super) fn line(&self, points: &[Point], style: ShapeStyle) -> Result<(), PlotError> {
        self.area.draw(&PathElement::new(points.to_vec(), style)).map_err(refused)
    }

    /// A dashed line through `points`.
    pub(super) fn dashes(&self, points: &[Point], role: Role) -> Result<(), PlotError> {
        self.line(points, stroke(role, DASHED))
    }

    pub(super) fn rectangle(
        &self,
        corners: [Point; 2],
        style: ShapeStyle,
    ) -> Result<(), PlotError> {
        self.area.draw(&Rectangle::new(corners, style)).map_err(refused)
    }

    pub(super) fn polygon(&self, points: &[Point], style: ShapeStyle) -> Result<(), PlotError> {
        self.area.draw(&Polygon::new(points.to_vec(), style)).map_err(refused)
    }

    /// The mark of a series: its shape differs as well as its colour.
    pub(super) fn mark(&self, (x, y): Point, series: usize) -> Result<(), PlotError> {
        let style = filling(Role::Series(series), 1.0);
        match series % 4 {
            0 => self.area.draw(&Circle::new((x, y), 4, style)).map_err(refused),
            1 => self.rectangle([(x - 4, y - 4), (x + 4, y + 4)], style),
            2 => self.polygon(&[(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)], style),
            _ => self.polygon(&[(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y)], style),
        }
    }

    /// A horizontal interval with caps; `place` gives pixels of a value.
    pub(super) fn interval_across(
        &self,
        interval: Interval,
        y: i32,
        role: Role,
        place: impl Fn(f64) -> Option<i32>,
    ) -> Result<(), PlotError> {
        let (Some(low), Some(high)) = (place(interval.low), place(interval.high)) else {
            return Ok(());
        };
        self.line(&[(low, y), (high, y)], stroke(role, 2))?;
        self.line(&[(low, y - CAP), (low, y + CAP)], stroke(role, 2))?;
        self.line(&[(high, y - CAP), (high, y + CAP)], stroke(role, 2))
    }

    /// A vertical interval with caps.
    pub(super) fn interval_up(
        &self,
        interval: Interval,
        x: i32,
        role: Role,
        place: impl Fn(f64) -> Option<i32>,
    ) -> Result<(), PlotError> {
        let (Some(low), Some(high)) = (place(interval.low), place(interval.high)) else {
            return Ok(());
        };
        self.line(&[(x, low), (x, high)], stroke(role, 2))?;
        self.line(&[(x - CAP, low), (x + CAP, low)], stroke(role, 2))?;
        self.line(&[(x - CAP, high), (x + CAP, high)], stroke(role, 2))
    }
}
