//! A topology as a picture: text for a terminal, SVG for documents.
//!
//! # Problem
//! Which hardware threads share a core, a cache, a node is what a placement is about, and lists of CPU numbers
//! do not show it.
//!
//! # Approach
//! Text has a line or more for each LLC domain, with a bracket for each core. SVG has a box for each package,
//! node, LLC domain, core and hardware thread, each inside the one that holds it; boxes of a level stand in as
//! many rows as columns; hardware threads of a core in one.
//!
//! ```text
//! from the innermost on: a box is as large as its children in rows, or its number, and the title above
//! draw(box, at): its frame, its title, then draw(child, at + the child's place) for each
//! ```
//!
//! # Terms and units
//! Numbers are the OS's CPU numbers. *Round brackets*: a core of the slower type. Lengths in SVG are pixels.
//!
//! # Properties
//! - Each hardware thread is drawn once, in either (`every_hardware_thread_is_drawn_once`).
//! - Cores do not overlap, and are inside the picture (`boxes_of_a_level_do_not_overlap`).
//! - Text stays within a width (`lines_fit`).

use std::fmt::Write as _;

use crate::render::grouped;
use crate::{Core, CoreKind, Topology};

impl Topology {
    /// A picture in text, of lines up to `width` columns where a core fits into them.
    ///
    /// ```
    /// let t = symbiont_topology::Topology::synthetic("core:2 smt:2 cache:32M")?;
    /// assert!(t.draw(80).contains("llc0, 32 MiB  [0 1] [2 3]\n"));
    /// # Ok::<(), symbiont_topology::SyntheticError>(())
    /// ```
    #[must_use]
    pub fn draw(&self, width: usize) -> String {
        let mut text = String::new();
        for package in self.packages() {
            let _ = writeln!(text, "{}", package.id);
            let here: Vec<&Core> =
                self.cores().iter().filter(|core| core.package == package.id).collect();
            for (node, here) in grouped(&here, |core| core.node) {
                let _ = writeln!(text, "  {node}{}", self.memory(node));
                for (llc, here) in grouped(&here, |core| core.llc) {
                    row(&mut text, &format!("    {llc}{}  ", self.cache(llc)), &here, width);
                }
            }
        }
        for node in self.nodes().iter().filter(|node| node.cpus.is_empty()) {
            let _ = writeln!(text, "{} without CPUs{}", node.id, self.memory(node.id));
        }
        let are_mixed = self.cores().iter().any(|core| core.kind == CoreKind::Efficiency);
        let legend = if are_mixed { "[ ]: a fast core, ( ): a slower one" } else { "[ ]: a core" };
        let _ = writeln!(text, "{legend}");
        text
    }

    /// A picture as an SVG document.
    #[must_use]
    pub fn draw_svg(&self) -> String {
        let packages = self.packages().iter().map(|package| {
            let here: Vec<&Core> =
                self.cores().iter().filter(|core| core.package == package.id).collect();
            let nodes = grouped(&here, |core| core.node).into_iter().map(|(node, here)| {
                let llcs = grouped(&here, |core| core.llc).into_iter().map(|(llc, here)| {
                    let cores = here.iter().map(|core| of_core(core)).collect();
                    Frame::new("llc", format!("{llc}{}", self.cache(llc)), cores)
                });
                Frame::new("node", format!("{node}{}", self.memory(node)), llcs.collect())
            });
            Frame::new("package", package.id.to_string(), nodes.collect())
        });
        let bare = self.nodes().iter().filter(|node| node.cpus.is_empty());
        let bare = bare.map(|node| {
            Frame::new(
                "node",
                format!("{} without CPUs{}", node.id, self.memory(node.id)),
                Vec::new(),
            )
        });
        let machine = Frame::new("machine", self.summary(), packages.chain(bare).collect());
        let [width, height] = machine.size;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <style>rect {{ fill: #fff; stroke: #555 }} .machine {{ stroke: none }} .node {{ fill: #f3f3f3 }} \
             .llc {{ fill: #e3edf7 }} .core {{ fill: #fff3d6 }} .slower {{ fill: #e6f2e0 }}</style>\n"
        );
        machine.draw(&mut svg, [0, 0]);
        svg.push_str("</svg>\n");
        svg
    }
}

/// Cores of an LLC domain, over as many lines as they need.
fn row(text: &mut String, title: &str, cores: &[&Core], width: usize) {
    let widest =
        cores.iter().flat_map(|core| core.cpus.iter()).map(|pu| pu.0.to_string().len()).max();
    let digits = widest.unwrap_or(1);
    let mut column = title.chars().count();
    let indent = " ".repeat(column);
    text.push_str(title);
    for (at, core) in cores.iter().enumerate() {
        let numbers: Vec<String> =
            core.cpus.iter().map(|pu| format!("{:>digits$}", pu.0)).collect();
        let (open, close) = if core.kind == CoreKind::Efficiency { ('(', ')') } else { ('[', ']') };
        let cell = format!("{open}{}{close}", numbers.join(" "));
        if at > 0 && column + 1 + cell.len() > width {
            let _ = write!(text, "\n{indent}");
            column = indent.len();
        } else if at > 0 {
            text.push(' ');
            column += 1;
        }
        column += cell.len();
        text.push_str(&cell);
    }
    text.push('\n');
}

/// Between a frame and what is in it, and between its neighbours.
const GAP: u32 = 8;
/// Height of a title.
const TITLE: u32 = 18;
/// Width that a character takes at most.
const CHARACTER: u32 = 8;

/// A box with a title, or a hardware thread with its number.
struct Frame {
    class: &'static str,
    title: String,
    /// Width and height.
    size: [u32; 2],
    /// Each with its place in this one.
    children: Vec<([u32; 2], Frame)>,
}

fn of_core(core: &Core) -> Frame {
    let threads = core.cpus.iter().map(|pu| Frame::thread(pu.0)).collect();
    let class = if core.kind == CoreKind::Efficiency { "core slower" } else { "core" };
    Frame::new(class, String::new(), threads)
}

fn pixels(count: usize, each: u32) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(each)
}

impl Frame {
    fn thread(number: u32) -> Self {
        let title = number.to_string();
        let width = pixels(title.len().max(2), CHARACTER) + GAP;
        Self { class: "thread", title, size: [width, TITLE + GAP / 2], children: Vec::new() }
    }

    /// Its children stand in rows of equal cells, below its title.
    fn new(class: &'static str, title: String, children: Vec<Self>) -> Self {
        // As many in a row as rows.
        let square = (1..).find(|n| n * n >= children.len()).unwrap_or(1);
        let columns = if class.starts_with("core") { children.len().max(1) } else { square };
        let cell =
            |axis: usize| GAP + children.iter().map(|child| child.size[axis]).max().unwrap_or(0);
        let [wide, high] = [cell(0), cell(1)];
        let above = if title.is_empty() { GAP } else { GAP + TITLE };
        let (used, rows) = (columns.min(children.len()), children.len().div_ceil(columns));
        let titled = pixels(title.chars().count(), CHARACTER) + 2 * GAP;
        let size = [(GAP + pixels(used, wide)).max(titled), above + pixels(rows, high)];
        let placed = children.into_iter().enumerate().map(|(at, child)| {
            ([GAP + pixels(at % columns, wide), above + pixels(at / columns, high)], child)
        });
        Self { class, title, size, children: placed.collect() }
    }

    fn draw(&self, svg: &mut String, [x, y]: [u32; 2]) {
        let Self { class, title, size: [width, height], children } = self;
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
        // Numbers, names and sizes of ours: nothing to escape.
        let _ = match (*class, title.is_empty()) {
            (_, true) => Ok(()),
            ("thread", _) => writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{title}</text>",
                x + width / 2,
                y + TITLE - 2
            ),
            _ => writeln!(svg, "<text x=\"{}\" y=\"{}\">{title}</text>", x + GAP, y + TITLE),
        };
        for ([dx, dy], child) in children {
            child.draw(svg, [x + dx, y + dy]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::synthetic::tests::{HYBRID, lines};

    fn number(attribute: &str, of: &str) -> u32 {
        let (_, rest) = of.split_once(&format!(" {attribute}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_machine_of_two_core_types_is_drawn() {
        let drawn = Topology::synthetic(HYBRID).unwrap().draw(60);
        assert_eq!(
            drawn,
            "\
package0
  node0
    llc0, 36 MiB  [ 0  1] [ 2  3] [ 4  5] [ 6  7] [ 8  9]
                  [10 11] [12 13] [14 15] (16) (17) (18)
                  (19) (20) (21) (22) (23) (24) (25) (26)
                  (27) (28) (29) (30) (31)
[ ]: a fast core, ( ): a slower one
"
        );
    }

    proptest! {
        #[test]
        fn every_hardware_thread_is_drawn_once(line in lines()) {
            let t = Topology::synthetic(&line).unwrap();
            let text = t.draw(80);
            let cells = text.lines().filter(|line| !line.starts_with('[')).flat_map(|line| line.split(['[', '(']).skip(1));
            let numbers = cells.flat_map(|cell| cell.split([']', ')']).next().unwrap().split_whitespace());
            let mut seen: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
            seen.sort_unstable();
            let all: Vec<u32> = t.cpus().iter().map(|pu| pu.0).collect();
            prop_assert_eq!(&seen, &all);
            let svg = t.draw_svg();
            let middle = svg.lines().filter(|line| line.contains("middle"));
            let numbers = middle.map(|line| line.split(['>', '<']).nth(2).unwrap().parse().unwrap());
            let mut seen: Vec<u32> = numbers.collect();
            seen.sort_unstable();
            prop_assert_eq!(&seen, &all);
        }

        #[test]
        fn boxes_of_a_level_do_not_overlap(line in lines()) {
            let svg = Topology::synthetic(&line).unwrap().draw_svg();
            let place = |line: &str| ["x", "y", "width", "height"].map(|name| number(name, line));
            let (width, height) = (number("width", &svg), number("height", &svg));
            for class in ["thread", "core", "llc"] {
                let of_class = svg.lines().filter(|line| line.contains(&format!("class=\"{class}")));
                let places: Vec<[u32; 4]> = of_class.map(place).collect();
                for (at, [x, y, w, h]) in places.iter().enumerate() {
                    prop_assert!(x + w <= width && y + h <= height);
                    for [x2, y2, w2, h2] in &places[..at] {
                        prop_assert!(x + w <= *x2 || x2 + w2 <= *x || y + h <= *y2 || y2 + h2 <= *y);
                    }
                }
            }
        }

        #[test]
        fn lines_fit(line in lines(), width in 40_usize..200) {
            let t = Topology::synthetic(&line).unwrap();
            let drawn = t.draw(width);
            // A title and one core may be wider.
            let has_several = |line: &&str| line.matches(['[', '(']).count() > 1;
            let mut lines = drawn.lines().filter(has_several);
            prop_assert!(lines.all(|line| line.chars().count() <= width), "{drawn}");
        }
    }
}
