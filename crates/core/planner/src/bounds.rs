//! How much may be moved.

/// Limits to how often and how much is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For how many quanta after a move a setting of a thread stays as it is;
    /// 0: it may change every quantum.
    pub hold: u32,
    /// How many moves may be made in a quantum, releases not counted; none:
    /// any number.
    pub budget: Option<usize>,
}

impl Bounds {
    /// No limits: what a policy wants is done. Published experiments need
    /// this, for the policies are compared as published.
    #[must_use]
    pub const fn none() -> Self {
        Self { hold: 0, budget: None }
    }
}
