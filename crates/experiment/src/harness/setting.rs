//! What a campaign rests on, kept in `campaign.json` beside its runs, so that an interrupted one goes on
//! as it began and is not mixed with another.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Error, Machine, read_json};

fn file(folder: &Path) -> PathBuf {
    folder.join("campaign.json")
}

/// The setting that the folder keeps, or a new one, which it keeps from now on.
///
/// # Errors
/// When the folder's is not the same campaign's, or the file cannot be read or written.
pub(crate) fn keep<S: Serialize + DeserializeOwned>(
    folder: &Path,
    same: impl FnOnce(&S) -> bool,
    new: impl FnOnce() -> Result<S, Error>,
) -> Result<S, Error> {
    let path = file(folder);
    if path.exists() {
        let setting = read_json(&path)?;
        return if same(&setting) { Ok(setting) } else { Err(Error::OtherCampaign { path }) };
    }
    let setting = new()?;
    let text = serde_json::to_string_pretty(&setting).map_err(Error::json(&path))?;
    fs::write(&path, text + "\n").map_err(Error::io(&path))?;
    Ok(setting)
}

/// Is this the kernel that a campaign's runs so far were made on?
///
/// # Errors
/// When it is another one.
pub(crate) fn same_kernel(folder: &Path, machine: &Machine) -> Result<(), Error> {
    if machine.kernel == Machine::read().kernel {
        return Ok(());
    }
    Err(Error::OtherCampaign { path: file(folder) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_made_once_and_not_mixed_with_another() {
        let folder = tempfile::tempdir().unwrap();
        let of = |seed: u32, new: fn() -> Result<u32, Error>| {
            keep(folder.path(), |kept| *kept == seed, new)
        };
        assert!(matches!(of(1, || Err(Error::Cancelled)), Err(Error::Cancelled)));
        assert_eq!(of(1, || Ok(1)).unwrap(), 1);
        assert_eq!(of(1, || Err(Error::Cancelled)).unwrap(), 1);
        assert!(matches!(of(2, || Ok(2)), Err(Error::OtherCampaign { .. })));
        fs::write(folder.path().join("campaign.json"), "{").unwrap();
        assert!(matches!(of(1, || Ok(1)), Err(Error::Json { .. })));
    }

    #[test]
    fn another_kernel_is_another_campaign() {
        let folder = Path::new("/nowhere");
        let machine = Machine::read();
        assert!(same_kernel(folder, &machine).is_ok());
        let other = Machine { kernel: Some("0.01".to_owned()), ..machine };
        assert!(matches!(same_kernel(folder, &other), Err(Error::OtherCampaign { .. })));
    }
}
