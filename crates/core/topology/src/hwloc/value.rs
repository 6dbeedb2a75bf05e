//! What single attributes hold: pure functions from text to value.

use crate::{CpuSet, PuId, cpuset::MAX_CPU};

/// An hwloc bit map.
pub(super) fn bit_map(text: &str) -> Result<CpuSet, String> {
    match text.split(',').any(|word| word == "0xf...f") {
        true => Err(format!("the set '{text}' has no end")),
        false => CpuSet::from_bit_map(text),
    }
}

/// A CPU number.
pub(super) fn pu(text: &str) -> Result<PuId, String> {
    match number(text)? {
        n if n <= MAX_CPU => Ok(PuId(n)),
        _ => Err(format!("CPU number {text} is too large")),
    }
}

/// A number that fits the type asked for.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number that fits here"))
}

/// Numbers separated by white space.
pub(super) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    text.split_whitespace().map(number).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bit_maps_are_read() {
        let read = |text| bit_map(text).map(|set| set.to_string());
        assert_eq!(read("0x00000003"), Ok("0-1".to_owned()));
        assert_eq!(read("0x0"), Ok(String::new()));
        assert_eq!(read("0x1,,0x80000001"), Ok("0,31,64".to_owned()));
        assert!(read("0xf...f,0x0").is_err());
        assert!(read("0x123456789").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(
            text in prop_oneof![".{0,30}", "(0x[0-9a-f]{0,9}|,){0,9}", "[0-9 ]{0,30}"],
        ) {
            let _ = bit_map(&text);
            let _ = pu(&text);
            let _ = number::<u64>(&text);
            let _ = numbers(&text);
        }
    }
}
