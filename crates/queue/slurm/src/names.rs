//! Names that a user gives, checked against those that Slurm knows.

/// A name that Slurm does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} '{name}'; there are {}", there.join(", "))]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    there: Vec<String>,
}

/// Refuses a partition that Slurm does not have; `there`: those that it has.
///
/// # Errors
/// [`UnknownName`] when it is not among them.
pub fn check_partition(name: &str, there: &[String]) -> Result<(), UnknownName> {
    check("partition", name, there)
}

/// Refuses a QOS that Slurm does not have; `there`: those that it has. Where it knows none it cannot say: then a line
/// says so.
///
/// # Errors
/// [`UnknownName`] when there are only others.
pub fn check_qos(name: &str, there: &[String]) -> Result<Option<String>, UnknownName> {
    if there.is_empty() {
        let why = "Slurm knows none, as without an accounting database";
        return Ok(Some(format!("it cannot be checked that there is a QOS '{name}': {why}")));
    }
    check("QOS", name, there).map(|()| None)
}

fn check(kind: &'static str, name: &str, there: &[String]) -> Result<(), UnknownName> {
    match there.iter().any(|one| one == name) {
        true => Ok(()),
        false => Err(UnknownName { kind, name: name.to_owned(), there: there.to_vec() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qos_that_slurm_does_not_know_is_refused() {
        let there = ["long".to_owned(), "normal".to_owned()];
        assert_eq!(check_qos("long", &there).unwrap(), None);
        let refused = check_qos("lnog", &there).unwrap_err().to_string();
        assert_eq!(refused, "there is no QOS 'lnog'; there are long, normal");
        let line = check_qos("long", &[]).unwrap().unwrap();
        assert!(line.starts_with("it cannot be checked that there is a QOS 'long'"), "{line}");
    }

    #[test]
    fn a_partition_that_slurm_does_not_know_is_refused() {
        let there = ["p".to_owned()];
        assert_eq!(check_partition("p", &there), Ok(()));
        let refused = check_partition("q", &there).unwrap_err().to_string();
        assert_eq!(refused, "there is no partition 'q'; there are p");
        assert!(check_partition("q", &[]).is_err());
    }
}
