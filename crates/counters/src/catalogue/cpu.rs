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
    /// Arm: implementer and any of the part numbers, whatever the revision.
    Arm {
        /// Bits 31-24 of the MIDR.
        implementer: u32,
        /// Bits 15-4 of the MIDR.
        parts: Vec<u32>,
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
            (Self::Arm { implementer, parts }, CpuIdentity::Arm { midr }) => {
                u64::from(*implementer) == midr >> 24 & 0xff
                    && parts.iter().any(|&part| u64::from(part) == midr >> 4 & 0xfff)
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
            section.only(&["implementer", "parts"])?;
            let implementer = narrow("implementer", section.number("implementer")?)?;
            Ok(Self::Arm { implementer, parts: list("parts")? })
        } else if section.has("vendor") {
            section.only(&["vendor", "family", "models", "model_range", "core_type"])?;
            let single = section.numbers("models")?.unwrap_or_default();
            let mut models: Vec<_> = single.into_iter().map(|model| (model, model)).collect();
            match section.numbers("model_range")?.as_deref() {
                None => {}
                Some(&[low, high]) => models.push((low, high)),
                Some(_) => return Err(section.error_in("model_range", "expected [first, last]")),
            }
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
