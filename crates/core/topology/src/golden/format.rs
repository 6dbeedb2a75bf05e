//! A `/sys` tree as text.
//!
//! A line is a path below the root, a tab, and what the file holds, which is
//! one line. `#` starts a comment line. A component `cpu{LIST}` of a path
//! stands for all these CPUs' files, so that a large machine is readable.

use std::collections::BTreeMap;

use crate::{CpuSet, PuId};

/// More files than a text may stand for; a machine of 8192 CPUs has fewer.
const MAX_FILES: usize = 1 << 18;

/// Path and content.
type File = (String, String);

/// The files of a text.
pub(super) fn unpack(text: &str) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = |reason: &str| format!("line {number}: {reason}");
        let (path, content) = line.split_once('\t').ok_or_else(|| fault("there is no tab"))?;
        let plain = |c: &str| !matches!(c, "" | "." | "..");
        if path.contains('\0') || !path.split('/').all(plain) {
            return Err(fault("the path is not one below the root"));
        }
        let paths = match path.split_once('{') {
            None => vec![path.to_owned()],
            Some((before, rest)) => {
                let (list, after) = rest.split_once('}').ok_or_else(|| fault("'{' without '}'"))?;
                let cpus: CpuSet = list.parse().map_err(|e| fault(&format!("{e}")))?;
                cpus.iter().map(|pu| format!("{before}{}{after}", pu.0)).collect()
            }
        };
        files.extend(paths.into_iter().map(|path| (path, format!("{content}\n"))));
        if files.len() > MAX_FILES {
            return Err(fault("too many files"));
        }
    }
    Ok(files)
}

/// The text of files, each of which holds one line.
pub(super) fn pack(files: &[File]) -> String {
    const CPUS: &str = "devices/system/cpu/cpu";
    let mut lines: BTreeMap<(String, &str), CpuSet> = BTreeMap::new();
    for (path, content) in files {
        let cpu = path.strip_prefix(CPUS).and_then(|rest| rest.split_once('/'));
        let cpu = cpu.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        let (template, member) = match cpu {
            Some((number, rest)) => (format!("{CPUS}{{}}/{rest}"), Some(PuId(number))),
            None => (path.clone(), None),
        };
        lines.entry((template, content.trim_end())).or_default().extend(member);
    }
    let line = |((template, content), cpus): ((String, &str), CpuSet)| {
        format!("{}\t{content}\n", template.replace("{}", &format!("{{{cpus}}}")))
    };
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::synthetic::tests::lines;
    use crate::{Topology, sys_tree};

    proptest! {
        #[test]
        fn packed_trees_unpack_to_the_same_files(line in lines()) {
            let files = sys_tree(&Topology::synthetic(&line).unwrap());
            let packed = pack(&files);
            prop_assert!(packed.lines().count() <= files.len());
            let unpacked: BTreeMap<_, _> = unpack(&packed).unwrap().into_iter().collect();
            prop_assert_eq!(unpacked, files.into_iter().collect::<BTreeMap<_, _>>());
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(
            text in prop_oneof![".{0,60}", "([a-z./{}#]|[0-9]{1,3}|-|\t|\n){0,40}"],
        ) {
            for (path, _) in unpack(&text).unwrap_or_default() {
                prop_assert!(!path.starts_with('/'));
                prop_assert!(!path.split('/').any(|c| c == ".."));
            }
        }
    }

    #[test]
    fn errors_say_where() {
        let error = |text| unpack(text).unwrap_err();
        assert_eq!(error("# fine\nno tab here"), "line 2: there is no tab");
        assert_eq!(error("../x\t1"), "line 1: the path is not one below the root");
        assert_eq!(error("/x\t1"), "line 1: the path is not one below the root");
        assert_eq!(error("cpu{0-3\t1"), "line 1: '{' without '}'");
        let many = "cpu{0-16383}/online\t1\n".repeat(17);
        assert_eq!(unpack(&many).unwrap_err(), "line 17: too many files");
    }
}
