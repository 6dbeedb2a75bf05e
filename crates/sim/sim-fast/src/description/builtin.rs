//! The descriptions that this crate carries.

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each.
        pub(super) const TEXTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*];
    };
}

texts![
    "power8-s812l",
    "xeon-e5-2620v4",
    "xeon-silver-4110",
    "opteron-6282se",
    "power7-755",
    "pentium4-ht",
    "xsim",
    "morad-8-symmetric",
    "morad-8-asymmetric",
    "zen4",
    "epyc-9004",
    "sapphire-rapids",
    "emerald-rapids-guest",
    "alder-lake",
];

/// The event catalogues that a description may name: `events` has a table for each.
pub(crate) const CATALOGUES: [&str; 10] = [
    "power8",
    "power7",
    "bulldozer",
    "zen4",
    "broadwell",
    "sapphire-rapids",
    "alder-lake-p",
    "alder-lake-e",
    "netburst",
    "xsim",
];
