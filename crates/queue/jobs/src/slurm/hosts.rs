//! Lists of nodes as Slurm writes them: `n1,rack[1-3,07-09]`.

/// The most nodes that a list may name.
pub const MOST_HOSTS: usize = 65_536;

/// The nodes that a list names.
///
/// # Errors
/// When it is no list of nodes, or names more than [`MOST_HOSTS`].
pub fn hosts(list: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in parts(list)? {
        expand(part, &mut all)?;
    }
    Ok(all)
}

/// Splits at commas outside of brackets.
fn parts(list: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => return Err(format!("'{}' has ] without [", list.escape_debug())),
            b']' => depth -= 1,
            b',' if depth == 0 => {
                parts.extend(list.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(list.get(begin..));
    Ok(parts)
}

/// Adds the names of one part: `a[1-2]b[3,4]` has four.
fn expand(part: &str, all: &mut Vec<String>) -> Result<(), String> {
    let mut names = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, behind) =
            after.split_once(']').ok_or_else(|| format!("'{}' has no ]", part.escape_debug()))?;
        let numbers = numbers(ranges)?;
        if names.len().saturating_mul(numbers.len()) > MOST_HOSTS {
            return Err(format!("more than {MOST_HOSTS} nodes"));
        }
        let with = |name: &String| -> Vec<String> {
            numbers.iter().map(|number| format!("{name}{before}{number}")).collect()
        };
        names = names.iter().flat_map(with).collect();
        rest = behind;
    }
    if part.is_empty() {
        return Err("a node without a name".to_owned());
    }
    if all.len() + names.len() > MOST_HOSTS {
        return Err(format!("more than {MOST_HOSTS} nodes"));
    }
    all.extend(names.into_iter().map(|name| name + rest));
    Ok(())
}

/// Numbers of `1-3,07`, with their leading zeros.
fn numbers(ranges: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u64>().ok()).flatten()
        };
        let ends = number(first).zip(number(last)).filter(|(low, high)| low <= high);
        let Some((low, high)) = ends else {
            return Err(format!("'{}' is no range of nodes", range.escape_debug()));
        };
        if high - low >= MOST_HOSTS as u64 || all.len() >= MOST_HOSTS {
            return Err(format!("more than {MOST_HOSTS} nodes"));
        }
        let width = first.len();
        all.extend((low..=high).map(|number| format!("{number:0width$}")));
    }
    Ok(all)
}
