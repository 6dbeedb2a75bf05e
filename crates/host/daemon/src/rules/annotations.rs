//! What the annotations of a container ask for.
//!
//! `symbiont.dev/class` names a class, `symbiont.dev/manage` is "true" or "false". They count where the configuration
//! allows it, as a rule before all others would: whatever a rule says about the process counts more.

use symbiont_containers::Identity;
use symbiont_machine::Class;

/// What is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Annotated {
    pub class: Option<Class>,
    manage: Option<bool>,
}

impl Annotated {
    /// What is not understood is as if it were not there.
    pub fn of(container: &Identity) -> Self {
        let manage = match container.annotation("symbiont.dev/manage") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let class = container.annotation("symbiont.dev/class").and_then(|class| class.parse().ok());
        Self { class, manage }
    }

    /// Is it to be managed?
    pub fn manages(self) -> bool {
        self.manage.unwrap_or(self.class.is_some())
    }
}
