//! When a batch ends early: so many jobs failed, ended well, or ended.

use std::str::FromStr;

/// When and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halt {
    /// Are jobs that run ended, or waited for?
    pub is_now: bool,
    /// What is counted.
    pub counted: Counted,
    /// How many of them.
    pub count: usize,
}

/// Which jobs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Those that failed.
    Failed,
    /// Those that ended with 0.
    Well,
    /// All that ended.
    Done,
}

impl Halt {
    /// Is it so, after so many failed and so many ended well?
    pub fn is_reached(&self, failed: usize, well: usize) -> bool {
        let count = match self.counted {
            Counted::Failed => failed,
            Counted::Well => well,
            Counted::Done => failed + well,
        };
        count >= self.count
    }
}

impl FromStr for Halt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("'{text}' is not of the form now,fail=1 or soon,fail=1");
        let (when, why) = text.split_once(',').ok_or_else(error)?;
        let is_now = match when {
            "now" => true,
            "soon" => false,
            _ => return Err(error()),
        };
        let (counted, count) = why.split_once('=').ok_or_else(error)?;
        let counted = match counted {
            "fail" => Counted::Failed,
            "success" => Counted::Well,
            "done" => Counted::Done,
            _ => return Err(error()),
        };
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(error)?;
        Ok(Self { is_now, counted, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_reached_by_what_it_counts() {
        let halt: Halt = "soon,fail=2".parse().unwrap();
        assert_eq!(halt, Halt { is_now: false, counted: Counted::Failed, count: 2 });
        assert!(!halt.is_reached(1, 9) && halt.is_reached(2, 0));
        let halt: Halt = "now,success=1".parse().unwrap();
        assert!(halt.is_now && !halt.is_reached(3, 0) && halt.is_reached(0, 1));
        let halt: Halt = "now,done=3".parse().unwrap();
        assert!(!halt.is_reached(1, 1) && halt.is_reached(2, 1));
    }

    #[test]
    fn other_words_are_refused() {
        for text in
            ["", "now", "later,fail=1", "now,fail", "now,fail=0", "now,fail=3%", "now,lost=1"]
        {
            assert!(text.parse::<Halt>().is_err(), "{text}");
        }
    }
}
