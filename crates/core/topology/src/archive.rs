//! Packed copies of `/sys`, as `hwloc-gather-topology` and `tar` write them.
//!
//! # Problem
//! A copy of `/sys` comes with a bug report as an archive. To unpack what a stranger sent is work, and an archive may
//! write elsewhere, fill a disk or never end.
//!
//! # Approach
//! Nothing is written: what is read of a `/sys` tree is kept in memory, and read there by the rules of
//! [`crate::sysfs`]. The packing is recognised by the first bytes, not by the name: tar, alone or compressed by gzip or
//! bzip2. Others are refused with what to do. In particular xz is, since the decoders without C code that this
//! toolchain has take as much memory as a file claims to need.
//!
//! The copy may lie below any folder. Of several the one with the shortest path counts, if that is one. A
//! leading `/` is left out. Symbolic links are followed inside the archive, and hard links, too; a link that leads out
//! or in a circle is a missing file.
//!
//! # Terms and units
//! Bounds: [`Bounds`], in bytes and entries. A machine of 4,096 CPUs has some 400,000 entries of 1 KiB each.
//!
//! # Properties
//! - An archive is read as the folder that it was made of (`an_archive_is_read_as_its_folder`).
//! - Links are followed inside the archive only (`links_are_followed_inside_the_archive_only`).
//! - What leads out, is too large or damaged is refused with a reason, without panic and with bounded memory
//!   (`hostile_archives_are_refused`, `bounds_are_kept`, `damaged_archives_do_not_panic`).

mod packed;
#[cfg(test)]
mod tests;
mod unpack;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::sysfs::{LeftOut, SysfsError, read_tree};
use crate::{Origin, Topology};
use packed::Packed;

/// Bytes that say how a file is packed.
const HEAD_BYTES: u64 = 512;

/// An archive that holds no machine.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The archive.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// It is packed in a way that is not read here.
    #[error("{path} is packed by {packer}, which is not read here; {instead}")]
    Packing {
        /// The archive.
        path: String,
        /// What packed it.
        packer: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// It cannot be unpacked.
    #[error("{path} is no whole archive: {source}")]
    Damaged {
        /// The archive.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
    /// An entry would be written elsewhere.
    #[error("{path} is refused: its entry '{entry}' leads out of it")]
    LeadsOut {
        /// The archive.
        path: String,
        /// The name of the entry.
        entry: String,
    },
    /// It holds more than a copy of `/sys` does.
    #[error("{path} is refused: it holds more than {bound}; pack only /sys/devices/system")]
    TooLarge {
        /// The archive.
        path: String,
        /// The bound that it exceeds.
        bound: String,
    },
    /// There is no copy of `/sys` in it.
    #[error("{path} holds no devices/system/cpu")]
    NoSys {
        /// The archive.
        path: String,
    },
    /// There are several.
    #[error(
        "{path} holds several copies of /sys, '{first}' and '{second}' for example: pack one of them"
    )]
    Several {
        /// The archive.
        path: String,
        /// One of them.
        first: String,
        /// Another one.
        second: String,
    },
    /// What is in it describes no machine.
    #[error(transparent)]
    Sys(#[from] SysfsError),
}

/// What is read of an archive at most.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Files, folders and links.
    pub entries: usize,
    /// Bytes after decompression.
    pub unpacked: u64,
    /// Bytes of what is kept in memory, names included.
    pub kept: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { entries: 1 << 20, unpacked: 2 << 30, kept: 256 << 20 }
    }
}

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// A tar archive.
    Tar,
    /// Compressed by gzip.
    Gzip,
    /// Compressed by bzip2.
    Bzip2,
    /// By something else.
    Unread {
        /// The program.
        packer: &'static str,
        /// What to do.
        instead: &'static str,
    },
}

impl Packing {
    /// By the first bytes of a file; none if it is no archive.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        const FOLDER: &str = "unpack it, and give the folder";
        const XZ: &str = "decompress it (xz -dk FILE), and give the .tar";
        const ZSTD: &str = "decompress it (zstd -d FILE), and give the .tar";
        let unread = |packer, instead| Some(Self::Unread { packer, instead });
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => unread("xz", XZ),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => unread("zstd", ZSTD),
            [b'P', b'K', 3 | 5, 4 | 6, ..] => unread("zip", FOLDER),
            [b'7', b'z', 0xbc, 0xaf, ..] => unread("7z", FOLDER),
            [b'0', b'7', b'0', b'7', b'0', ..] => unread("cpio", FOLDER),
            _ => (head.get(257..262) == Some(b"ustar")).then_some(Self::Tar),
        }
    }
}

/// How the file is packed; none if it is no archive.
///
/// # Errors
/// When it cannot be read.
pub fn packing(path: &Path) -> Result<Option<Packing>, ArchiveError> {
    let head = || {
        let mut head = Vec::new();
        symbiont_safe_open::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(head)
    };
    let shown = path.display().to_string();
    let head = head().map_err(|source| ArchiveError::Read { path: shown, source })?;
    // Before POSIX archives had no sign of their own.
    let named = || path.extension().is_some_and(|end| end == "tar").then_some(Packing::Tar);
    Ok(Packing::of(&head).or_else(named))
}

/// Reads a machine from a packed copy of its `/sys` tree, and what was left out.
///
/// # Errors
/// When the archive is refused or holds no machine.
pub fn read_archive(path: &Path) -> Result<(Topology, Vec<LeftOut>), ArchiveError> {
    let shown = path.display().to_string();
    let packing = packing(path)?.unwrap_or(Packing::Tar);
    let file = symbiont_safe_open::open(path);
    let file: File = file.map_err(|source| ArchiveError::Read { path: shown.clone(), source })?;
    read(BufReader::new(file), packing, &shown, Bounds::default())
}

/// Reads a machine from the bytes of an archive; `shown` stands for it in errors.
///
/// # Errors
/// As [`read_archive`].
pub fn read_packed(
    bytes: &[u8],
    shown: &str,
    bounds: Bounds,
) -> Result<(Topology, Vec<LeftOut>), ArchiveError> {
    let packing = Packing::of(bytes.get(..HEAD_BYTES as usize).unwrap_or(bytes));
    read(bytes, packing.unwrap_or(Packing::Tar), shown, bounds)
}

fn read(
    from: impl io::BufRead,
    packing: Packing,
    shown: &str,
    bounds: Bounds,
) -> Result<(Topology, Vec<LeftOut>), ArchiveError> {
    let entries = match packing {
        Packing::Tar => unpack::unpack(from, shown, bounds),
        Packing::Gzip => unpack::unpack(flate2::bufread::MultiGzDecoder::new(from), shown, bounds),
        Packing::Bzip2 => unpack::unpack(bzip2::bufread::MultiBzDecoder::new(from), shown, bounds),
        Packing::Unread { packer, instead } => {
            Err(ArchiveError::Packing { path: shown.to_owned(), packer, instead })
        }
    }?;
    let packed = Packed::find(entries, shown)?;
    Ok(read_tree(&packed, Origin::SysTree(shown.to_owned()))?)
}
