//! The kernels by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::fft::{self, Fft};
use super::lu::{self, Lu};
use super::matrix::{self, Integer, Series};
use super::monte_carlo::{self, MonteCarlo};
use super::sor::{self, Sor};
use super::sparse::{self, Sparse};

/// A kernel with its data.
pub trait Workload {
    /// Executes the kernel once from the start, about a millisecond of one thread, and returns
    /// the checksum of the result, each time the same.
    fn execute(&mut self) -> u64;
}

/// A numeric kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Fast Fourier transform of 1,024 complex points.
    Fft,
    /// Successive over-relaxation of a grid of 100×100 points.
    Sor,
    /// Monte Carlo integration of the quarter circle.
    MonteCarlo,
    /// Sparse matrix-vector multiplication, 1,000 rows with 5,000 elements.
    Sparse,
    /// LU factorization of a dense matrix of 100×100 elements.
    Lu,
    /// Products of 4×4 matrices of integers.
    MatrixInteger,
    /// Products of 4×4 matrices of floating-point numbers.
    MatrixFloat,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Fft,
        Self::Sor,
        Self::MonteCarlo,
        Self::Sparse,
        Self::Lu,
        Self::MatrixInteger,
        Self::MatrixFloat,
    ];

    /// Those of SciMark.
    pub const SCIMARK: [Self; 5] = [Self::Fft, Self::Sor, Self::MonteCarlo, Self::Sparse, Self::Lu];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fft => "fft",
            Self::Sor => "sor",
            Self::MonteCarlo => "monte-carlo",
            Self::Sparse => "sparse",
            Self::Lu => "lu",
            Self::MatrixInteger => "matrix-integer",
            Self::MatrixFloat => "matrix-float",
        }
    }

    /// Arithmetic operations of one execution: of floating-point numbers, but for
    /// `matrix-integer`.
    #[must_use]
    pub fn operations(self) -> u64 {
        match self {
            Self::Fft => fft::OPERATIONS,
            Self::Sor => sor::OPERATIONS,
            Self::MonteCarlo => monte_carlo::OPERATIONS,
            Self::Sparse => sparse::OPERATIONS,
            Self::Lu => lu::OPERATIONS,
            Self::MatrixInteger | Self::MatrixFloat => matrix::OPERATIONS,
        }
    }

    /// The kernel with data from a seed.
    #[must_use]
    pub fn workload(self, seed: u64) -> Box<dyn Workload> {
        match self {
            Self::Fft => Box::new(Fft::new(seed)),
            Self::Sor => Box::new(Sor::new(seed)),
            Self::MonteCarlo => Box::new(MonteCarlo::new(seed)),
            Self::Sparse => Box::new(Sparse::new(seed)),
            Self::Lu => Box::new(Lu::new(seed)),
            Self::MatrixInteger => Box::new(Series::<Integer>::new(seed)),
            Self::MatrixFloat => Box::new(Series::<f64>::new(seed)),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no kernel of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernels are fft, sor, monte-carlo, sparse, lu, matrix-integer and matrix-float")]
pub struct ParseKernelError;

impl FromStr for Kernel {
    type Err = ParseKernelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == text).ok_or(ParseKernelError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.to_string().parse(), Ok(kernel));
            assert_eq!(serde_json::to_value(kernel).unwrap(), kernel.name());
            assert!(ParseKernelError.to_string().contains(kernel.name()));
        }
        assert_eq!("FFT".parse::<Kernel>(), Err(ParseKernelError));
    }

    #[test]
    fn a_seed_gives_one_result_at_each_execution() {
        for kernel in Kernel::ALL {
            let mut workload = kernel.workload(1);
            let first = workload.execute();
            assert_eq!(workload.execute(), first, "{kernel}");
            assert_eq!(kernel.workload(1).execute(), first, "{kernel}");
            assert_ne!(kernel.workload(2).execute(), first, "{kernel}");
        }
    }
}
