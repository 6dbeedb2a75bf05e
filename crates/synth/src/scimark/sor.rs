//! Jacobi successive over-relaxation of a square grid: each inner point moves toward the mean of
//! its four neighbours, and past it.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::checksum::checksum;
use super::kernel::Workload;

/// Points along each side of the grid.
const SIDE: usize = 100;
/// Weight of the neighbours' mean; above one it is over-relaxation.
const OMEGA: f64 = 1.25;
/// Sweeps over the grid in one execution.
const SWEEPS: usize = 20;
/// Floating-point operations of one execution: six per inner point.
pub(super) const OPERATIONS: u64 = (SWEEPS * (SIDE - 2) * (SIDE - 2) * 6) as u64;

type Grid = Vec<[f64; SIDE]>;

/// Relaxes a random grid.
#[derive(Debug)]
pub(super) struct Sor {
    start: Grid,
    grid: Grid,
}

impl Sor {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let start: Grid = (0..SIDE).map(|_| std::array::from_fn(|_| rng.random())).collect();
        Self { grid: start.clone(), start }
    }
}

impl Workload for Sor {
    fn execute(&mut self) -> u64 {
        self.grid.copy_from_slice(&self.start);
        for _ in 0..SWEEPS {
            sweep(&mut self.grid);
        }
        checksum(self.grid.iter().flatten().map(|value| value.to_bits()))
    }
}

/// Relaxes each inner point once, row by row.
fn sweep(grid: &mut [[f64; SIDE]]) {
    for row in 1..grid.len().saturating_sub(1) {
        let (above, rest) = grid.split_at_mut(row);
        if let ([.., above], [current, below, ..]) = (above, rest) {
            relax(above, current, below);
        }
    }
}

fn relax(above: &[f64; SIDE], current: &mut [f64; SIDE], below: &[f64; SIDE]) {
    for column in 1..SIDE - 1 {
        let neighbours = above[column] + below[column] + current[column - 1] + current[column + 1];
        current[column] = OMEGA * 0.25 * neighbours + (1.0 - OMEGA) * current[column];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function whose value at each point is the mean of the four neighbours' values.
    fn harmonic() -> Grid {
        let value = |x: f64, y: f64| x * x - y * y + 3.0 * x * y - 2.0 * x + 1.0;
        (0..SIDE).map(|y| std::array::from_fn(|x| value(x as f64, y as f64))).collect()
    }

    fn largest_difference(a: &Grid, b: &Grid) -> f64 {
        let pairs = a.iter().flatten().zip(b.iter().flatten());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn harmonic_grid_stays_as_it_is() {
        let mut grid = harmonic();
        sweep(&mut grid);
        assert!(largest_difference(&grid, &harmonic()) < 1e-9);
    }

    #[test]
    fn grid_converges_to_the_harmonic_one_of_its_border() {
        let mut grid = harmonic();
        for row in &mut grid[1..SIDE - 1] {
            row[1..SIDE - 1].fill(0.0);
        }
        for _ in 0..20_000 {
            sweep(&mut grid);
        }
        assert!(largest_difference(&grid, &harmonic()) < 1e-6);
    }

    #[test]
    fn border_never_moves() {
        let mut sor = Sor::new(3);
        let _ = sor.execute();
        assert_eq!(sor.grid[0], sor.start[0]);
        assert_eq!(sor.grid[SIDE - 1], sor.start[SIDE - 1]);
        assert!(sor.grid.iter().zip(&sor.start).all(|(a, b)| a[0] == b[0]));
        assert!(sor.grid.iter().zip(&sor.start).all(|(a, b)| a[SIDE - 1] == b[SIDE - 1]));
        assert_ne!(sor.grid[1][1], sor.start[1][1]);
    }
}
