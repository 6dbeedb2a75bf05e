//! Fast Fourier transform: complex, radix 2, in place.

use std::f64::consts::TAU;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::checksum::checksum;
use super::kernel::Workload;

/// Points of the transform.
const POINTS: usize = 1024;
/// Pairs of a transform and its inverse in one execution.
const PAIRS: usize = 12;
/// Floating-point operations of one execution: 10 per butterfly.
pub(super) const OPERATIONS: u64 = (2 * PAIRS * 5 * POINTS * POINTS.ilog2() as usize) as u64;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    fn times(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }

    fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }
}

/// Transforms a signal forth and back.
#[derive(Debug)]
pub(super) struct Fft {
    signal: Vec<Complex>,
    data: Vec<Complex>,
    roots: Vec<Complex>,
}

impl Fft {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let signal: Vec<Complex> =
            (0..POINTS).map(|_| Complex { re: rng.random(), im: rng.random() }).collect();
        Self { data: signal.clone(), signal, roots: roots(POINTS) }
    }
}

impl Workload for Fft {
    fn execute(&mut self) -> u64 {
        self.data.copy_from_slice(&self.signal);
        for _ in 0..PAIRS {
            transform(&mut self.data, &self.roots);
            invert(&mut self.data, &self.roots);
        }
        checksum(self.data.iter().flat_map(|c| [c.re.to_bits(), c.im.to_bits()]))
    }
}

/// The first half of the `points`-th roots of unity, clockwise.
fn roots(points: usize) -> Vec<Complex> {
    let angle = |k: usize| -TAU * k as f64 / points as f64;
    (0..points / 2).map(|k| Complex { re: angle(k).cos(), im: angle(k).sin() }).collect()
}

/// Replaces `data` by its transform: the Cooley-Tukey algorithm. The length is a power of two, at
/// least two, and `roots` are those of this length.
fn transform(data: &mut [Complex], roots: &[Complex]) {
    reverse_bits(data);
    let mut half = 1;
    while half < data.len() {
        let stride = roots.len() / half;
        for block in data.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((a, b), root) in low.iter_mut().zip(high).zip(roots.iter().step_by(stride)) {
                let turned = b.times(*root);
                *b = a.minus(turned);
                *a = a.plus(turned);
            }
        }
        half *= 2;
    }
}

/// The inverse of [`transform`].
fn invert(data: &mut [Complex], roots: &[Complex]) {
    data.iter_mut().for_each(|c| *c = c.conjugate());
    transform(data, roots);
    let scale = 1.0 / data.len() as f64;
    data.iter_mut().for_each(|c| *c = Complex { re: c.re * scale, im: -c.im * scale });
}

/// Moves each element to the index with the reverse order of bits.
fn reverse_bits(data: &mut [Complex]) {
    let unused = usize::BITS - data.len().ilog2();
    for index in 0..data.len() {
        let reversed = index.reverse_bits() >> unused;
        if index < reversed {
            data.swap(index, reversed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: Complex, b: Complex) -> bool {
        (a.re - b.re).abs() < 1e-9 && (a.im - b.im).abs() < 1e-9
    }

    #[test]
    fn inverse_gives_the_input_back() {
        let mut fft = Fft::new(1);
        let _ = fft.execute();
        assert!(fft.data.iter().zip(&fft.signal).all(|(a, b)| near(*a, *b)));
    }

    #[test]
    fn transform_is_the_sum_of_its_definition() {
        for points in [2, 4, 32] {
            let input = &Fft::new(2).signal[..points];
            let mut data = input.to_vec();
            transform(&mut data, &roots(points));
            for (k, found) in data.iter().enumerate() {
                let term = |(n, c): (usize, &Complex)| {
                    let angle = -TAU * (k * n) as f64 / points as f64;
                    c.times(Complex { re: angle.cos(), im: angle.sin() })
                };
                let zero = Complex { re: 0.0, im: 0.0 };
                let sum = input.iter().enumerate().map(term).fold(zero, Complex::plus);
                assert!(near(*found, sum), "{points} points, {k}");
            }
        }
    }

    #[test]
    fn transform_of_a_tone_is_one_line() {
        let angle = |n: usize| TAU * (5 * n) as f64 / POINTS as f64;
        let mut data: Vec<Complex> =
            (0..POINTS).map(|n| Complex { re: angle(n).cos(), im: angle(n).sin() }).collect();
        transform(&mut data, &roots(POINTS));
        for (k, found) in data.iter().enumerate() {
            let re = if k == 5 { POINTS as f64 } else { 0.0 };
            assert!(near(*found, Complex { re, im: 0.0 }), "{k}: {found:?}");
        }
    }
}
