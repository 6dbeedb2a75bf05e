//! Runs that fail are tried again.
//!
//! A campaign takes an hour and more, and runs of it may fail for reasons of the moment: another
//! manager holds the lock, the machine stands still for longer than a run may take.

use super::{Error, Progress};

/// Attempts at one run before the campaign is given up.
const ATTEMPTS: u32 = 3;

/// Carries out the run of this name, and again if it fails; `carry_out` is told which attempt it is,
/// from 1. Gives the attempts that it took, too.
///
/// # Errors
/// When the user stopped the campaign, or no attempt succeeded.
pub(crate) fn attempt<T>(
    run: &str,
    progress: &mut dyn Progress,
    mut carry_out: impl FnMut(u32, &dyn Progress) -> Result<T, Error>,
) -> Result<(T, u32), Error> {
    let mut attempts = 1;
    loop {
        match carry_out(attempts, progress) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(source) if attempts == ATTEMPTS => {
                return Err(Error::Hopeless {
                    run: run.to_owned(),
                    attempts,
                    source: Box::new(source),
                });
            }
            Err(error) => progress.note(&format!("{run}: trying again, as {error}")),
            Ok(done) => return Ok((done, attempts)),
        }
        attempts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(fails: u32, with: fn() -> Error) -> Result<(u32, u32), Error> {
        let carry_out = |at, _: &dyn Progress| if at <= fails { Err(with()) } else { Ok(7) };
        attempt("a run", &mut (), carry_out)
    }

    #[test]
    fn a_run_that_fails_is_tried_again_a_few_times() {
        let wrong = || Error::Unmanaged("another manager holds the lock".to_owned());
        assert_eq!(trial(0, wrong).unwrap(), (7, 1));
        assert_eq!(trial(2, wrong).unwrap(), (7, 3));
        let hopeless = trial(3, wrong).unwrap_err();
        assert!(matches!(hopeless, Error::Hopeless { attempts: 3, .. }), "{hopeless}");
    }

    #[test]
    fn what_the_user_stopped_is_not_tried_again() {
        assert!(matches!(trial(1, || Error::Cancelled), Err(Error::Cancelled)));
    }
}
