//! Names for files that are saved: what an export says a file is called is not trusted.

/// Bytes of a name; file systems allow 255, and a number may be added.
const MAX_BYTES: usize = 200;
/// Bytes of an extension that is kept when a name is cut.
const MAX_EXTENSION: usize = 16;

/// Returns a name without folders, control characters and characters that are special to shells or other systems, or
/// `fallback` if nothing is left.
///
/// A name begins with neither `.`, which would hide the file, nor `-`, which programs take for an option.
pub(super) fn safe(name: &str, fallback: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    let clean = clean.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '-'));
    let clean = clean.trim_end_matches(|c: char| c.is_whitespace() || c == '.');
    if clean.is_empty() { fallback.to_owned() } else { shorten(clean) }
}

/// Returns the name with a number before its extension: `hive (2).png`.
pub(super) fn numbered(name: &str, number: usize) -> String {
    let (stem, extension) = split(name);
    format!("{stem} ({number}){extension}")
}

fn is_unsafe(c: char) -> bool {
    crate::cli::text::is_unsafe(c) || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*')
}

fn shorten(name: &str) -> String {
    if name.len() <= MAX_BYTES {
        return name.to_owned();
    }
    let (stem, extension) = split(name);
    let stem = &stem[..stem.floor_char_boundary(MAX_BYTES - extension.len())];
    format!("{}{extension}", stem.trim_end())
}

/// Splits a name before the dot of its extension.
fn split(name: &str) -> (&str, &str) {
    let dot = name.rfind('.').filter(|dot| *dot > 0 && name.len() - dot <= MAX_EXTENSION);
    name.split_at(dot.unwrap_or(name.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for (given, expected) in [
            ("hive.png", "hive.png"),
            ("Rapport final (à lire).pdf", "Rapport final (à lire).pdf"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("C:\\Users\\ana\\hive.png", "hive.png"),
            ("/etc/passwd", "passwd"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("a\u{202e}gnp.exe\n", "a_gnp.exe_"),
            ("what? \"this\".txt", "what_ _this_.txt"),
            ("..", "9f86"),
            ("photos/", "9f86"),
            ("", "9f86"),
        ] {
            assert_eq!(safe(given, "9f86"), expected, "{given:?}");
        }
        assert_eq!(numbered("hive.png", 2), "hive (2).png");
        assert_eq!(numbered("README", 3), "README (3)");
    }

    #[test]
    fn long_names_keep_their_extension() {
        let name = safe(&format!("{}.jpeg", "日".repeat(300)), "x");
        assert!(name.len() <= MAX_BYTES && name.ends_with("日.jpeg"), "{name}");
    }

    proptest! {
        #[test]
        fn every_name_is_a_name(given in "\\PC*|[./\\\\ -]*") {
            let name = safe(&given, "9f86");
            prop_assert!(!name.is_empty() && name.len() <= MAX_BYTES);
            prop_assert!(!name.contains(['/', '\\', '\0']) && !name.starts_with(['.', '-']));
            prop_assert_eq!(safe(&name, "9f86"), name);
        }
    }
}
