//! The catalogues that this crate carries.

/// For processors that no other catalogue is made for.
pub(super) const GENERIC: &str = include_str!("../../catalogues/generic.toml");

macro_rules! texts {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each, by vendor and age.
        pub(super) const TEXTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../catalogues/", $name, ".toml")))),*];
    };
}

texts![
    "power7",
    "power8",
    "power9",
    "power10",
    "bulldozer",
    "zen2",
    "zen3",
    "zen4",
    "zen5",
    "nehalem",
    "broadwell",
    "skylake-sp",
    "icelake-sp",
    "sapphire-rapids",
    "alder-lake-p",
    "alder-lake-e",
    "crestmont",
    "lion-cove",
    "skymont",
    "darkmont",
    "neoverse-n1",
    "neoverse-v1",
    "neoverse-n2-r0p0",
    "neoverse-n2",
    "neoverse-v2",
    "neoverse-n3",
    "neoverse-v3",
    "thunderx2",
    "generic",
    "software",
];
