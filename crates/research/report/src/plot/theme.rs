//! Colours by what they are for.
//!
//! Charts are drawn with a stand-in colour for each role; [`inline`] turns
//! these into CSS variables, [`standalone`] into the light palette on white.
//! The series' colours are of Okabe and Ito's palette, which colour-blind
//! readers can distinguish, shifted where needed for contrast on the ground.

use plotters::style::RGBColor;

/// What a colour is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Text and axes.
    Text,
    /// Less important text, error bars of references.
    Muted,
    /// Grid lines and separators.
    Grid,
    /// The ground.
    Ground,
    /// Above the neutral value of a matrix; of slowdowns below it.
    Above,
    /// On the other side.
    Below,
    /// A series, by its place.
    Series(usize),
}

/// Series that have a colour of their own; more begin anew, with other marks.
pub(super) const SERIES: usize = 6;

const ROLES: usize = 6 + SERIES;

/// CSS variables and colours of a palette, in the order of the roles.
pub(crate) type Palette = [(&'static str, &'static str); ROLES];

/// On a light ground.
pub(crate) const LIGHT: Palette = [
    ("--text", "#1a1f25"),
    ("--muted", "#59636e"),
    ("--grid", "#d8dee4"),
    ("--ground", "#ffffff"),
    ("--above", "#0072b2"),
    ("--below", "#d55e00"),
    ("--series-1", "#0072b2"),
    ("--series-2", "#c85200"),
    ("--series-3", "#00815e"),
    ("--series-4", "#b0558a"),
    ("--series-5", "#8a6a00"),
    ("--series-6", "#3d8fc4"),
];

/// On a dark ground.
pub(crate) const DARK: Palette = [
    ("--text", "#e8ebee"),
    ("--muted", "#a3adb8"),
    ("--grid", "#343c46"),
    ("--ground", "#14181d"),
    ("--above", "#56b4e9"),
    ("--below", "#f08c3c"),
    ("--series-1", "#56b4e9"),
    ("--series-2", "#f08c3c"),
    ("--series-3", "#2fc79b"),
    ("--series-4", "#e3a0c8"),
    ("--series-5", "#e6c229"),
    ("--series-6", "#9fd4f3"),
];

/// The stand-in colour of a role.
pub(super) fn color(role: Role) -> RGBColor {
    RGBColor(1, 2, index(role))
}

fn index(role: Role) -> u8 {
    match role {
        Role::Text => 0,
        Role::Muted => 1,
        Role::Grid => 2,
        Role::Ground => 3,
        Role::Above => 4,
        Role::Below => 5,
        Role::Series(place) => 6 + (place % SERIES) as u8,
    }
}

/// The picture for the page: colours as variables, the page's font, the width
/// of its container, a name for screen readers (escaped by the caller).
pub(crate) fn inline(svg: &str, escaped_name: &str) -> String {
    let svg = recolor(svg, |(variable, _)| format!("\"var({variable})\""));
    let svg = svg.replace("font-family=\"sans-serif\" ", "");
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{escaped_name}\" "), 1)
}

/// The picture as a file of its own.
pub(crate) fn standalone(svg: &str) -> String {
    recolor(svg, |(_, plain)| format!("\"{plain}\""))
        .replace("font-family=\"sans-serif\"", "font-family=\"Noto Sans, system-ui, sans-serif\"")
}

/// Replaces each stand-in, which can only be a whole attribute: quotes within
/// text are escaped.
fn recolor(svg: &str, paint: impl Fn((&str, &str)) -> String) -> String {
    LIGHT.iter().enumerate().fold(svg.to_owned(), |svg, (i, &role)| {
        svg.replace(&format!("\"#0102{i:02X}\""), &paint(role))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palettes_name_the_same_roles() {
        assert_eq!(LIGHT.map(|(name, _)| name), DARK.map(|(name, _)| name));
    }

    /// Contrast ratio of WCAG 2.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |hex: &str| {
            let part = |at: usize| {
                let c = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
                if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_series_stand_out_from_the_ground() {
        for palette in [LIGHT, DARK] {
            let ground = palette[3].1;
            for (name, color) in palette {
                let least = match name {
                    "--text" | "--muted" => 4.5,
                    "--grid" | "--ground" => 1.0,
                    _ => 3.0,
                };
                let got = contrast(color, ground);
                assert!(got >= least, "{name} {color} on {ground}: {got:.2}");
            }
        }
    }
}
