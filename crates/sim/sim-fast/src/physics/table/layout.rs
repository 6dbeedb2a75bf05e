//! A table laid out for look-up: what one look-up reads lies close together.
//!
//! # Problem
//! The tables of a few programs exceed the caches of the computer that simulates them, so that a
//! look-up costs as much as it touches.
//!
//! # Approach
//! All axes follow each other in one array, and their nodes in another. What several axes do together is
//! kept cell by cell, as the coefficients of 1, x, y, xy and so on, so that a cell is read at once;
//! value and slopes follow in a few multiplications.
//!
//! # Properties
//! A cell interpolates the nodes at its corners (`cells_say_what_their_nodes_say`).

use super::axis::Axis;
use super::{GRIDS, MOST_AXES, Places, Term, cells};

/// Equal parts of an axis in which a node is looked for.
const BUCKETS: usize = 32;

/// From one node of an axis to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    /// Coordinate and position of the node.
    from: f32,
    position: f32,
    /// Share of the way per unit of the coordinate.
    rise: f32,
    /// Positions to the next.
    step: f32,
}

/// Where a coordinate lies on an axis.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AxisPosition {
    /// The node before it, and the share of the way to the next.
    pub node: u32,
    /// 0 to 1.
    pub share: f32,
    /// Share of the way per unit of the coordinate; 0 beyond the ends.
    pub rise: f32,
    /// Positions per unit of the coordinate; 0 beyond the ends.
    pub rate: f32,
    /// Its cell in each of `GRIDS`, and where in the cell.
    pub cells: [(u32, f32); GRIDS.len()],
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
struct Head {
    input: usize,
    /// Its part of all ways.
    ways: (u32, u32),
    /// The first coordinate.
    first: f32,
    /// Parts per unit of the coordinate.
    scale: f32,
    /// The node at or before the start of each part.
    starts: [u8; BUCKETS],
}

/// A term over `N` axes.
#[derive(Debug, Clone, PartialEq)]
struct Together<const N: usize> {
    axes: [u8; N],
    grid: u8,
    /// Its first cell.
    start: u32,
}

/// Coefficients of 1, x, y, xy.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(16))]
struct Square([f32; 4]);

/// Coefficients of 1, x, y, z, xy, xz, yz, xyz.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(32))]
struct Cube([f32; 8]);

/// A table's axes and its first value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layout {
    heads: Vec<Head>,
    ways: Vec<Way>,
    pairs: Vec<Together<2>>,
    squares: Vec<Square>,
    triples: Vec<Together<3>>,
    cubes: Vec<Cube>,
}

impl Layout {
    /// Of a table with these parts, which may be of one that is not sound.
    pub(super) fn new(axes: &[Axis], terms: &[Term], first: &[[f32; 1]]) -> Self {
        let mut layout = Self::default();
        axes.iter().for_each(|axis| layout.add_axis(axis));
        for term in terms {
            let [a, b, c] = term.axes;
            let grid = term.grid % GRIDS.len() as u8;
            let cells = GRIDS[usize::from(grid)].1 as usize;
            let nodes = cells + 1;
            let at = |index: usize| {
                let value = first.get((term.start as usize).saturating_add(index));
                value.map_or(0.0, |value| f64::from(value[0]))
            };
            match term.order {
                2 => {
                    let start = layout.squares.len() as u32;
                    layout.pairs.push(Together { axes: [a, b], grid, start });
                    let squares = (0..cells * cells).map(|cell| {
                        let low = cell / cells * nodes + cell % cells;
                        square([low, low + nodes, low + 1, low + nodes + 1].map(&at))
                    });
                    layout.squares.extend(squares.map(|square| Square(square.map(short))));
                }
                3 => {
                    let start = layout.cubes.len() as u32;
                    layout.triples.push(Together { axes: [a, b, c], grid, start });
                    let cubes = (0..cells * cells * cells).map(|cell| {
                        let (i, j, k) = (cell / cells / cells, cell / cells % cells, cell % cells);
                        let low = (i * nodes + j) * nodes + k;
                        let corners = [low, low + nodes * nodes, low + nodes, low + 1];
                        cube(corners, at)
                    });
                    layout.cubes.extend(cubes.map(|cube| Cube(cube.map(short))));
                }
                _ => {}
            }
        }
        layout
    }

    fn add_axis(&mut self, axis: &Axis) {
        let (coordinates, positions) = (axis.coordinates(), axis.positions());
        let first = coordinates.first().copied().unwrap_or_default();
        let last = coordinates.last().copied().unwrap_or_default();
        let width = (last - first) / BUCKETS as f32;
        let starts = std::array::from_fn(|bucket| {
            let start = first + bucket as f32 * width;
            let after = coordinates.iter().skip(1).take_while(|node| **node <= start).count();
            u8::try_from(after.min(coordinates.len().saturating_sub(2))).unwrap_or(u8::MAX)
        });
        let scale = if width > 0.0 { 1.0 / width } else { 0.0 };
        let way = |(at, to): (&[f32], &[f32])| Way {
            from: at[0],
            position: to[0],
            rise: if at[1] > at[0] { 1.0 / (at[1] - at[0]) } else { 0.0 },
            step: to[1] - to[0],
        };
        let start = self.ways.len() as u32;
        self.ways.extend(coordinates.windows(2).zip(positions.windows(2)).map(way));
        let ways = (start, self.ways.len() as u32);
        self.heads.push(Head { input: axis.input, ways, first, scale, starts });
    }

    /// The inputs of the axes.
    pub(super) fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.heads.iter().map(|head| head.input)
    }

    /// Sets where inputs lie; `input` gives the coordinate of each.
    #[inline(always)]
    pub(super) fn locate(&self, input: impl Fn(usize) -> f64, places: &mut Places) {
        for (place, head) in places.0.iter_mut().zip(&self.heads) {
            *place = self.place(head, input(head.input));
        }
    }

    /// Where a coordinate lies; one beyond the ends at the end.
    #[inline(always)]
    fn place(&self, head: &Head, coordinate: f64) -> AxisPosition {
        let coordinate = coordinate as f32;
        let (start, end) = (head.ways.0 as usize, head.ways.1 as usize);
        let ways = &self.ways[start..end];
        // A cast from a float saturates.
        let bucket = ((coordinate - head.first) * head.scale) as u32 as usize;
        let mut node = usize::from(head.starts[bucket.min(BUCKETS - 1)]);
        while ways.get(node + 1).is_some_and(|next| next.from <= coordinate) {
            node += 1;
        }
        let Some(way) = ways.get(node) else { return AxisPosition::default() };
        let share = (coordinate - way.from) * way.rise;
        let within = (0.0..=1.0).contains(&share);
        let share = share.clamp(0.0, 1.0);
        let rise = if within { way.rise } else { 0.0 };
        let position = way.position + share * way.step;
        let (rate, cells) = (rise * way.step, cells(position));
        AxisPosition { node: node as u32, share, rise, rate, cells }
    }

    /// What several axes do together to the first value; adds how that rises along each axis.
    pub(super) fn together(&self, places: &Places, slopes: &mut [f32; MOST_AXES]) -> f32 {
        let mut sum = 0.0;
        for Together { axes, grid, start } in &self.pairs {
            let [a, b] = axes.map(|axis| usize::from(axis).min(MOST_AXES - 1));
            let (density, cells) = GRIDS[usize::from(*grid)];
            let [(i, x), (j, y)] = [a, b].map(|axis| places.0[axis].cells[usize::from(*grid)]);
            let Square([one, of_x, of_y, of_xy]) = self.squares[(start + i * cells + j) as usize];
            sum += one + x * of_x + y * (of_y + x * of_xy);
            slopes[a] += density * places.0[a].rate * (of_x + y * of_xy);
            slopes[b] += density * places.0[b].rate * (of_y + x * of_xy);
        }
        for Together { axes, grid, start } in &self.triples {
            let [a, b, c] = axes.map(|axis| usize::from(axis).min(MOST_AXES - 1));
            let (density, cells) = GRIDS[usize::from(*grid)];
            let at = [a, b, c].map(|axis| places.0[axis].cells[usize::from(*grid)]);
            let [(i, x), (j, y), (k, z)] = at;
            let cell = start + (i * cells + j) * cells + k;
            let Cube([one, of_x, of_y, of_z, of_xy, of_xz, of_yz, of_xyz]) =
                self.cubes[cell as usize];
            let (one, of_x) = (one + z * of_z, of_x + z * of_xz);
            let (of_y, of_xy) = (of_y + z * of_yz, of_xy + z * of_xyz);
            sum += one + x * of_x + y * (of_y + x * of_xy);
            let rise = of_z + x * of_xz + y * (of_yz + x * of_xyz);
            slopes[a] += density * places.0[a].rate * (of_x + y * of_xy);
            slopes[b] += density * places.0[b].rate * (of_y + x * of_xy);
            slopes[c] += density * places.0[c].rate * rise;
        }
        sum
    }
}

fn short(value: f64) -> f32 {
    value as f32
}

/// Coefficients of 1, x, y, xy from the values at the corners: at the origin, along x, along y, and
/// along both.
fn square([low, along_x, along_y, both]: [f64; 4]) -> [f64; 4] {
    [low, along_x - low, along_y - low, both - along_x - along_y + low]
}

/// Coefficients of 1, x, y, z, xy, xz, yz, xyz, from the places of the corners at the origin
/// and along each axis.
fn cube([low, x, y, z]: [usize; 4], at: impl Fn(usize) -> f64) -> [f64; 8] {
    let corners = [low, x, y, x + y - low];
    let near = square(corners.map(&at));
    let far = square(corners.map(|corner| at(corner + z - low)));
    let [one, of_x, of_y, of_xy] = near;
    let [of_z, of_xz, of_yz, of_xyz] = std::array::from_fn(|index| far[index] - near[index]);
    [one, of_x, of_y, of_z, of_xy, of_xz, of_yz, of_xyz]
}
