//! What single files hold: pure functions from text to value. The text comes
//! without the white space around it.

use crate::CpuSet;

type Parsed<T> = Result<T, String>;

/// A CPU list: `0-3,8`.
pub(super) fn list(text: &str) -> Parsed<CpuSet> {
    text.parse().map_err(|error: crate::ParseCpuSetError| error.reason())
}

/// A bit map of CPUs: `00000000,0000ff0f`.
pub(super) fn bit_map(text: &str) -> Parsed<CpuSet> {
    match text
        .split(',')
        .all(|word| word.chars().all(|c| c.is_ascii_hexdigit()) && !word.is_empty())
    {
        true => CpuSet::from_bit_map(text),
        false => Err("expected hexadecimal words of a bit map".to_owned()),
    }
}

/// A plain number.
pub(super) fn number(text: &str) -> Parsed<u64> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

/// An identifier, for which the kernel writes -1 where it does not know.
pub(super) fn identifier(text: &str) -> Parsed<Option<u32>> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Ok(None),
        Ok(n) => u32::try_from(n).map(Some).map_err(|_| "the number is too large".to_owned()),
        Err(_) => Err("expected a number".to_owned()),
    }
}

/// A size in bytes: `8192K`, `32M`, `512`; none if it is 0, which is how some
/// firmware says that it does not know.
pub(super) fn size(text: &str) -> Parsed<Option<u64>> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((end, 'K')) => (&text[..end], 10),
        Some((end, 'M')) => (&text[..end], 20),
        Some((end, 'G')) => (&text[..end], 30),
        _ => (text, 0),
    };
    let number: u64 =
        digits.parse().map_err(|_| "expected a size like 512, 8192K or 32M".to_owned())?;
    let bytes = number.checked_mul(1 << shift).ok_or("the size is too large")?;
    Ok((bytes > 0).then_some(bytes))
}

/// A capacity: a number above 0.
pub(super) fn capacity(text: &str) -> Parsed<u64> {
    match number(text)? {
        0 => Err("a capacity must be at least 1".to_owned()),
        n => Ok(n),
    }
}

/// The design of an Arm CPU: implementer and part of its `midr_el1`
/// (`0x00000000411fd850`); variant and revision say nothing of the type.
pub(super) fn design(text: &str) -> Parsed<u64> {
    let hex = text.strip_prefix("0x").ok_or("expected 0x and hexadecimal digits")?;
    let midr = u64::from_str_radix(hex, 16).map_err(|_| "expected 0x and hexadecimal digits")?;
    Ok(midr & 0xff00_fff0)
}

/// Total memory in bytes, from a node's `meminfo`
/// (`Node 0 MemTotal:  16384 kB`).
pub(super) fn memory_total(text: &str) -> Parsed<u64> {
    let line = text.lines().find(|l| l.contains("MemTotal:")).ok_or("no line has MemTotal")?;
    let kilobytes: u64 = line
        .split_whitespace()
        .skip_while(|word| *word != "MemTotal:")
        .nth(1)
        .and_then(|word| word.parse().ok())
        .ok_or("MemTotal is not a number of kB")?;
    kilobytes.checked_mul(1024).ok_or_else(|| "MemTotal is too large".to_owned())
}

/// Distances to all nodes: `10 21`.
pub(super) fn distances(text: &str) -> Parsed<Vec<u32>> {
    text.split_whitespace()
        .map(|word| word.parse().map_err(|_| format!("'{word}' is not a number")))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(
            text in prop_oneof![".{0,30}", "[0-9 ,KMGk:-]{0,24}", "Node 0 MemTotal: .{0,20}"],
        ) {
            let _ = list(&text);
            let _ = bit_map(&text);
            let _ = number(&text);
            let _ = identifier(&text);
            let _ = size(&text);
            let _ = capacity(&text);
            let _ = memory_total(&text);
            let _ = distances(&text);
            let _ = design(&text);
        }
    }

    #[test]
    fn bit_maps_have_words_of_32_bits() {
        let read = |text| bit_map(text).map(|set| set.to_string());
        assert_eq!(read("00000001,80000003"), Ok("0-1,31-32".to_owned()));
        assert_eq!(read("003ff"), Ok("0-9".to_owned()));
        assert_eq!(read("00000000,00000000"), Ok(String::new()));
        for bad in ["", "1,", "0x1", "+1", "123456789", "g", &format!("1{}", ",0".repeat(512))] {
            assert!(bit_map(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("8192K"), Ok(Some(8 << 20)));
        assert_eq!(size("32M"), Ok(Some(32 << 20)));
        assert_eq!(size("512"), Ok(Some(512)));
        assert_eq!(size("0K"), Ok(None));
        for bad in ["", "K", "8 K", "-1K", "8k", "99999999999999999999", "18446744073709551615G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn minus_one_means_not_known() {
        assert_eq!(identifier("-1"), Ok(None));
        assert_eq!(identifier("17"), Ok(Some(17)));
        assert!(identifier("4294967296").is_err());
        assert!(identifier("one").is_err());
    }

    #[test]
    fn revisions_of_a_core_are_one_design() {
        assert_eq!(design("0x00000000411fd850"), design("0x410fd851"));
        assert_ne!(design("0x00000000411fd850"), design("0x00000000411fd870"));
        assert!(design("411fd850").is_err() && design("0x").is_err());
    }

    #[test]
    fn memory_is_the_total() {
        let meminfo = "Node 1 MemTotal:       2048 kB\nNode 1 MemFree:        1 kB";
        assert_eq!(memory_total(meminfo), Ok(2 << 20));
        assert!(memory_total("Node 1 MemFree: 1 kB").is_err());
        assert!(memory_total("Node 1 MemTotal: many kB").is_err());
        assert!(memory_total("Node 1 MemTotal: 18446744073709551615 kB").is_err());
    }
}
