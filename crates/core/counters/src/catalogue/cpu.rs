//! Which processor a catalogue is for.

use std::fmt;

use super::CatalogueError;
use super::document::Section;

/// What a processor says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CpuIdentity {
    /// CPUID leaves 0 and 1, as decoded in `/proc/cpuinfo`.
    X86 {
        /// `GenuineIntel` or `AuthenticAMD`.
        vendor: String,
        /// Family, the extended part added.
        family: u32,
        /// Model, the extended part added.
        model: u32,
        /// Stepping.
        stepping: u32,
        /// Core type of a hybrid processor (CPUID leaf 0x1a, EAX bits 31-24:
        /// 0x20 Atom, 0x40 Core).
        core_type: Option<u32>,
    },
    /// Processor version register.
    Power {
        /// Version in the upper 16 bits, revision in the lower.
        pvr: u32,
    },
    /// Main identification register, as in sysfs
    /// `cpu*/regs/identification/midr_el1`.
    Arm {
        /// Implementer in bits 31-24, part number in bits 15-4.
        midr: u64,
    },
}

impl fmt::Display for CpuIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86 { vendor, family, model, stepping, core_type } => {
                write!(f, "{vendor} family {family} model {model:#x} stepping {stepping}")?;
                core_type.map_or(Ok(()), |core| write!(f, " core type {core:#x}"))
            }
            Self::Power { pvr } => write!(f, "PVR {pvr:#010x}"),
            Self::Arm { midr } => write!(f, "MIDR {midr:#018x}"),
        }
    }
}

/// One rule of a catalogue: the processors that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuRule {
    /// x86: vendor, family and a model in any of the ranges (any model at all
    /// if there is none); the core type, where one is given, must agree.
    X86 {
        /// CPUID vendor text.
        vendor: String,
        /// Family, the extended part added.
        family: u32,
        /// First and last model of each range, the extended part added.
        models: Vec<(u32, u32)>,
        /// Core type of a hybrid processor.
        core_type: Option<u32>,
    },
    /// POWER: any of the versions (upper 16 bits of the PVR).
    Power {
        /// Versions.
        versions: Vec<u32>,
    },
    /// Arm: implementer and any of the part numbers, in any of the revisions.
    Arm {
        /// Bits 31-24 of the MIDR.
        implementer: u32,
        /// Bits 15-4 of the MIDR.
        parts: Vec<u32>,
        /// First and last revision, each with the variant (bits 23-20 of the MIDR) in its upper
        /// four bits and the revision (bits 3-0) in its lower: r1p2 is 0x12. None: whatever it is.
        revisions: Option<(u32, u32)>,
    },
}

impl CpuRule {
    /// Is the processor one of those that the rule names?
    #[must_use]
    pub fn matches(&self, cpu: &CpuIdentity) -> bool {
        match (self, cpu) {
            (
                Self::X86 { vendor, family, models, core_type },
                CpuIdentity::X86 { vendor: v, family: f, model, core_type: c, .. },
            ) => {
                vendor == v
                    && family == f
                    && (models.is_empty()
                        || models.iter().any(|&(low, high)| (low..=high).contains(model)))
                    && (core_type.is_none() || core_type == c)
            }
            (Self::Power { versions }, CpuIdentity::Power { pvr }) => {
                versions.contains(&(pvr >> 16))
            }
            (Self::Arm { implementer, parts, revisions }, CpuIdentity::Arm { midr }) => {
                let revision = midr >> 16 & 0xf0 | midr & 0xf;
                u64::from(*implementer) == midr >> 24 & 0xff
                    && parts.iter().any(|&part| u64::from(part) == midr >> 4 & 0xfff)
                    && revisions.is_none_or(|(first, last)| {
                        (u64::from(first)..=u64::from(last)).contains(&revision)
                    })
            }
            _ => false,
        }
    }

    pub(super) fn read(section: &Section<'_>) -> Result<Self, CatalogueError> {
        let narrow = |key: &str, number: u64| {
            u32::try_from(number).map_err(|_| section.error_in(key, "does not fit 32 bits"))
        };
        let list =
            |key: &str| section.numbers(key)?.ok_or_else(|| section.error_in(key, "missing"));
        if section.has("pvr") {
            section.only(&["pvr"])?;
            Ok(Self::Power { versions: list("pvr")? })
        } else if section.has("implementer") {
            section.only(&["implementer", "parts", "revisions"])?;
            let implementer = narrow("implementer", section.number("implementer")?)?;
            let revisions = range(section, "revisions")?;
            Ok(Self::Arm { implementer, parts: list("parts")?, revisions })
        } else if section.has("vendor") {
            section.only(&["vendor", "family", "models", "model_range", "core_type"])?;
            let single = section.numbers("models")?.unwrap_or_default();
            let mut models: Vec<_> = single.into_iter().map(|model| (model, model)).collect();
            models.extend(range(section, "model_range")?);
            let core_type = section.number_if_any("core_type")?;
            Ok(Self::X86 {
                vendor: section.text("vendor")?,
                family: narrow("family", section.number("family")?)?,
                models,
                core_type: core_type.map(|number| narrow("core_type", number)).transpose()?,
            })
        } else {
            Err(section.error("names no processor; expected vendor, pvr or implementer"))
        }
    }
}

/// The first and the last number of a range.
fn range(section: &Section<'_>, key: &str) -> Result<Option<(u32, u32)>, CatalogueError> {
    match section.numbers(key)?.as_deref() {
        None => Ok(None),
        Some(&[first, last]) => Ok(Some((first, last))),
        Some(_) => Err(section.error_in(key, "expected [first, last]")),
    }
}
