//! Fits how much slower a thread runs alone in an SMT mode than it does alone on its core.

use symbiont_model::{Shares, Throttling};

use crate::fit::Sums;
use crate::{Errors, FitError};

/// Fits throttled CPI / isolated CPI on throttled stacks with their measured ratios.
///
/// # Errors
/// [`FitError::Empty`] without any, [`FitError::Components`] when stacks
/// differ in length, [`FitError::Unsolvable`] when a ratio is not finite.
pub fn fit_throttling(measured: &[(Shares, f64)]) -> Result<Throttling, FitError> {
    let want = measured.first().ok_or(FitError::Empty)?.0.parts().len();
    let mut sums = Sums::new(want);
    for (index, (shares, ratio)) in measured.iter().enumerate() {
        let got = shares.parts().len();
        if got != want {
            return Err(FitError::Components { index, got, want });
        }
        sums.add(shares.parts(), *ratio, 1.0);
    }
    let weights = sums.solve(|_| 0.0).ok_or(FitError::Unsolvable)?.values;
    let mut fitted = Throttling { weights, error: 0.0 };
    let mut errors = Errors::default();
    for (shares, ratio) in measured {
        errors.add(fitted.ratio(shares), *ratio);
    }
    fitted.error = errors.mean_absolute().ok_or(FitError::Unsolvable)?;
    Ok(fitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ratios_are_recovered() {
        let stack = |a: f64| Shares::new(vec![a, 1.0 - a]).unwrap();
        let ratios = (0..=10).map(|tenths| f64::from(tenths) / 10.0);
        let measured: Vec<_> = ratios.map(|a| (stack(a), 1.0 + a / 2.0)).collect();
        let fitted = fit_throttling(&measured).unwrap();
        assert!((fitted.ratio(&stack(0.55)) - 1.275).abs() < 1e-9);
        assert!(fitted.error < 1e-9);
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let stack = |n: usize| Shares::new(vec![1.0; n]).unwrap();
        assert_eq!(fit_throttling(&[]), Err(FitError::Empty));
        let uneven = fit_throttling(&[(stack(2), 1.0), (stack(3), 1.0)]);
        assert_eq!(uneven, Err(FitError::Components { index: 1, got: 3, want: 2 }));
        assert_eq!(fit_throttling(&[(stack(2), f64::NAN)]), Err(FitError::Unsolvable));
    }
}
