//! Of maps; apart from them, since a fuzz target compiles `map` by itself.

use super::map::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<Vec<(usize, String, String)>, String> {
    let all = entries(text).map_err(|error| error.to_string())?;
    Ok(all.into_iter().map(|entry| (entry.line, entry.name, entry.path)).collect())
}

#[test]
fn lines_are_read_or_refused_with_their_number() {
    for (text, name, path) in [
        ("mcf = my-mcf.profile", "mcf", "my-mcf.profile"),
        ("mcf=a.profile # reference input", "mcf", "a.profile"),
        ("  429.mcf  =  my profiles/m#1.profile\t", "429.mcf", "my profiles/m#1.profile"),
        ("\"429.mcf\" = \"a # b = c\" # in TOML, too\r", "429.mcf", "a # b = c"),
        ("\u{feff}mcf = /a=b", "mcf", "/a=b"),
        ("mcf = a\"b", "mcf", "a\"b"),
    ] {
        assert_eq!(read(text), Ok(vec![(1, name.to_owned(), path.to_owned())]), "{text}");
    }
    assert_eq!(read("# none\n\n  # of them\n"), Ok(Vec::new()));
    for (text, what) in [
        ("mcf my-mcf.profile", "there is no '='"),
        ("\"mcf\" my-mcf.profile", "there is no '='"),
        (" = a.profile", "there is no name"),
        ("mcf =", "there is no path"),
        ("mcf = # later", "there is no path"),
        ("mcf = \"\"", "there is no path"),
        ("mcf = \"a.profile", "a quote is not closed"),
        ("\"mcf = a.profile", "a quote is not closed"),
        ("mcf = \"a\" b", "something stands behind the path"),
        ("m#cf = a", "no quotes and no '#'"),
    ] {
        let said = read(&format!("# a map\n\n{text}\nlbm = b\n")).unwrap_err();
        assert!(said.starts_with("line 3: ") && said.contains(what), "{text}: {said}");
    }
}

/// What is written of entries is read as the same entries, of consecutive lines.
fn holds(text: &str) {
    let Ok(first) = entries(text) else { return };
    let written: String = first.iter().map(|entry| format!("{entry}\n")).collect();
    let mut again = entries(&written).unwrap();
    assert_eq!(again.len(), first.len(), "{written}");
    for (again, entry) in again.iter_mut().zip(&first) {
        again.line = entry.line;
    }
    assert_eq!(again, first, "{written}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        holds(&text);
    }

    #[test]
    fn what_is_read_is_written_and_read_back_equal(
        lines in proptest::collection::vec("[ \t]?[a#\"=. ]{0,8}[ =]{0,3}[a#\"= ./]{0,10}", 0..8),
    ) {
        // Line by line, since one bad line refuses all.
        lines.iter().for_each(|line| holds(line));
        let good: Vec<String> = lines.into_iter().filter(|line| entries(line).is_ok()).collect();
        holds(&good.join("\r\n"));
    }
}
