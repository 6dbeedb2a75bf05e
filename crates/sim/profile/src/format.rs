//! The file format of profiles.
//!
//! # Layout
//! All numbers are stored least significant byte first.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `SYMBPROF` |
//! | 4 | version: [`VERSION`] |
//! | 4 | CRC-32 of all that follows |
//! | 8 | length of the content when unpacked |
//! | rest | the content: postcard, packed with DEFLATE |
//!
//! Micro-traces are stored by column (all classes, then all lines as differences, …), which packs to a third of
//! the size by rows. Equal profiles give equal files.
//!
//! # Properties
//! - What is written is read back equal (`profiles_round_trip`).
//! - Any other bytes are refused without a panic, also when the checksum fits
//!   (`any_bytes_are_refused`, `damage_anywhere_is_reported`,
//!   `content_that_fits_its_checksum_but_makes_no_sense_is_refused`).

mod check;
mod columns;
mod error;

use std::io::{Read, Write};
use std::path::Path;

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use crate::Profile;
use columns::StoredProfile;
pub use error::ProfileError;

/// The version that is written: it grows when the layout or the meaning of a field changes.
pub const VERSION: u32 = 3;

/// Longest profile file that is written, in bytes.
pub const LONGEST_FILE: usize = 512 * 1024;

const MAGIC: &[u8; 8] = b"SYMBPROF";
const HEADER: usize = 24;
/// Longest content that is unpacked: some thirty times that of a long file.
const LONGEST_CONTENT: u64 = 64 << 20;

/// A profile as the bytes of its file.
///
/// # Errors
/// [`ProfileError::Unusable`] when the profile contradicts itself.
pub fn to_bytes(profile: &Profile) -> Result<Vec<u8>, ProfileError> {
    let name = || profile.program.clone();
    check::check(profile).map_err(|why| ProfileError::Unusable { name: name(), why })?;
    let content = postcard::to_stdvec(&StoredProfile::of(profile))
        .map_err(|error| ProfileError::Unusable { name: name(), why: error.to_string() })?;
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail; if it did the profile would be unusable.
    let packed = packer
        .write_all(&content)
        .and_then(|()| packer.finish())
        .map_err(|error| ProfileError::Unusable { name: name(), why: error.to_string() })?;
    let mut rest = (content.len() as u64).to_le_bytes().to_vec();
    rest.extend(packed);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(checksum(&rest).to_le_bytes());
    bytes.extend(rest);
    Ok(bytes)
}

/// The profile in the bytes of a file; `name` is what errors call it.
///
/// # Errors
/// When it is no profile, one of another version, or damaged.
pub fn from_bytes(bytes: &[u8], name: &str) -> Result<Profile, ProfileError> {
    let damaged = |why: &str| ProfileError::Damaged { name: name.to_owned(), why: why.to_owned() };
    if bytes.is_empty() {
        return Err(ProfileError::Empty { name: name.to_owned() });
    }
    let Some(behind) = bytes.strip_prefix(MAGIC) else {
        let cut = bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes);
        return Err(match cut {
            true => damaged("it ends within its first bytes"),
            false => ProfileError::NotAProfile { name: name.to_owned() },
        });
    };
    let (Some((version, behind)), true) = (behind.split_first_chunk::<4>(), bytes.len() >= HEADER)
    else {
        return Err(damaged("it ends within its header"));
    };
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(ProfileError::Version { name: name.to_owned(), version, known: VERSION });
    }
    let Some((sum, rest)) = behind.split_first_chunk::<4>() else {
        return Err(damaged("it ends within its header"));
    };
    if u32::from_le_bytes(*sum) != checksum(rest) {
        return Err(damaged("its checksum does not fit: bytes were changed or are missing"));
    }
    let Some((length, packed)) = rest.split_first_chunk::<8>() else {
        return Err(damaged("it ends within its header"));
    };
    let length = u64::from_le_bytes(*length);
    let content = unpack(packed, length).map_err(|why| damaged(&why))?;
    let stored: StoredProfile =
        postcard::from_bytes(&content).map_err(|error| damaged(&error.to_string()))?;
    let profile = stored.profile().map_err(|why| damaged(&why))?;
    check::check(&profile).map_err(|why| damaged(&why))?;
    Ok(profile)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn unpack(packed: &[u8], length: u64) -> Result<Vec<u8>, String> {
    if length > LONGEST_CONTENT {
        return Err(format!("it claims {length} bytes of content; {LONGEST_CONTENT} is the limit"));
    }
    let mut content = Vec::new();
    // One byte more than promised, to see whether there is more.
    let mut unpacker = DeflateDecoder::new(packed).take(length + 1);
    unpacker
        .read_to_end(&mut content)
        .map_err(|error| format!("it cannot be unpacked: {error}"))?;
    if content.len() as u64 != length {
        return Err("its content has another length than it claims".to_owned());
    }
    Ok(content)
}

impl Profile {
    /// Reads a profile from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no profile, is of another version, or
    /// is damaged.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let name = path.display().to_string();
        let io = |source| ProfileError::Io { name: name.clone(), what: "read", source };
        let mut bytes = Vec::new();
        let longest = LONGEST_CONTENT + HEADER as u64;
        symbiont_safe_open::open(path)
            .map_err(io)?
            .take(longest)
            .read_to_end(&mut bytes)
            .map_err(io)?;
        from_bytes(&bytes, &name)
    }

    /// Writes a profile to a file, which is replaced as a whole.
    ///
    /// # Errors
    /// When the file cannot be written or the profile contradicts itself.
    pub fn write(&self, path: &Path) -> Result<(), ProfileError> {
        let bytes = to_bytes(self)?;
        let io =
            |source| ProfileError::Io { name: path.display().to_string(), what: "write", source };
        symbiont_safe_open::output::replace_by(path, 0o644, &bytes).map_err(io)
    }
}

#[cfg(test)]
mod tests;
