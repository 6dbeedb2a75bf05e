//! Which version of its plugin interface a qemu speaks.
//!
//! # Problem
//! A qemu loads a plugin only if the version that it exports lies within the range that this qemu supports. No
//! single version lies in the ranges of all: they rose when something was removed or changed. And some changes
//! did not raise the lower end.
//!
//! | qemu | least | current | what changed of what is used here |
//! |---|---|---|---|
//! | 6.2 to 8.2 | 0 | 1 | |
//! | 9.0 | 2 | 2 | |
//! | 9.1 | 2 | 3 | the bytes of an instruction are copied to the caller |
//! | 9.2, 10.0 | 2 | 4 | |
//! | 10.1, 10.2 | 2 | 5 | |
//! | 11.0 | 2 | 6 | |
//! | 11.1 | 7 | 7 | callbacks get data of the caller instead of the plugin's number |
//!
//! # Approach
//! The plugin exports the version that is part of the name of its file
//! ([`symbiont_profile::capture::INTERFACES`]). Whatever starts qemu tries the existing ones, and qemu takes the
//! one that it supports. How qemu's functions are to be called then follows from the range that it reports
//! ([`Interface`]).
//!
//! # Properties
//! - Each qemu takes one of the versions, and its functions are called as it declares them
//!   (`each_qemu_is_spoken_to_as_it_speaks`).
//! - A range without the exported version is refused (`a_range_without_the_exported_version_is_refused`).
//! - A file of any other name exports the first version (`the_file_name_says_which_version_is_exported`).

use symbiont_profile::capture::{INTERFACES, plugin_link};

/// The version in which the bytes of instructions began to be copied.
const COPIES: i32 = 3;
/// The version in which callbacks began to get data of the caller.
const PASSES_DATA: i32 = 7;

/// How the functions of a qemu are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// The bytes of instructions are copied to a buffer of the caller; otherwise qemu lends them.
    pub copies_bytes: bool,
    /// Callbacks get the caller's data as their last argument; otherwise all but those of blocks and of accesses get
    /// the plugin's number as their first.
    pub passes_data: bool,
}

impl Interface {
    /// What the plugin that exports the version `exported` gets from a qemu that supports `least` to `current`;
    /// none if that is not among them.
    pub fn of(exported: i32, least: i32, current: i32) -> Option<Self> {
        (least..=current).contains(&exported).then_some(Self {
            copies_bytes: current >= COPIES,
            passes_data: exported >= PASSES_DATA,
        })
    }
}

/// The version that the plugin exports where it is loaded by this path.
pub fn exported(path: &str) -> i32 {
    let name = path.rsplit('/').next().unwrap_or(path);
    let named = INTERFACES.into_iter().find(|version| plugin_link(*version) == name);
    named.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use symbiont_profile::capture::{INTERFACES, plugin_link};

    use super::{Interface, exported};

    /// What the version of the interface is that the first link to be taken has.
    fn taken(least: i32, current: i32) -> Option<i32> {
        INTERFACES.into_iter().find(|version| (least..=current).contains(version))
    }

    #[test]
    fn each_qemu_is_spoken_to_as_it_speaks() {
        // Least, current, and then: are bytes copied, is data passed?
        for (qemu, least, current, copies_bytes, passes_data) in [
            ("6.2", 0, 1, false, false),
            ("7.2", 0, 1, false, false),
            ("8.2", 0, 1, false, false),
            ("9.0", 2, 2, false, false),
            ("9.1", 2, 3, true, false),
            ("9.2", 2, 4, true, false),
            ("10.0", 2, 4, true, false),
            ("10.1", 2, 5, true, false),
            ("11.0", 2, 6, true, false),
            ("11.1", 7, 7, true, true),
            ("one that adds to it", 7, 9, true, true),
        ] {
            let version = taken(least, current).unwrap();
            let interface = Interface::of(exported(&plugin_link(version)), least, current);
            assert_eq!(interface, Some(Interface { copies_bytes, passes_data }), "qemu {qemu}");
        }
    }

    #[test]
    fn a_range_without_the_exported_version_is_refused() {
        assert_eq!(taken(8, 9), None);
        assert_eq!(Interface::of(7, 2, 6), None);
        assert_eq!(Interface::of(7, 8, 9), None);
        assert_eq!(Interface::of(1, 2, 4), None);
        assert_eq!(Interface::of(1, 9, 0), None);
    }

    #[test]
    fn the_file_name_says_which_version_is_exported() {
        for version in INTERFACES {
            assert_eq!(exported(&format!("/tmp/x/{}", plugin_link(version))), version);
        }
        for other in
            ["/usr/lib/libsymbiont_profile_plugin.so", "", "/", "plug-9.so", "/plug-7.so/x"]
        {
            assert_eq!(exported(other), 1, "{other}");
        }
    }
}
