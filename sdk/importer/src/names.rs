//! Names of files in an export.

/// Splits a path into its folder, with the final `/`, and its file name.
pub fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |at| at + 1))
}

/// Whether it is a file that operating systems add to folders and archives, such as `.DS_Store`.
pub fn is_junk(path: &str) -> bool {
    let (folder, name) = split(path);
    name == ".DS_Store" || name.starts_with("._") || folder.split('/').any(|folder| folder == "__MACOSX")
}

/// Whether the name has this extension, in letters of any case. `.json` alone has none.
pub fn has_extension(name: &str, extension: &str) -> bool {
    let (_, name) = split(name);
    name.rsplit_once('.').is_some_and(|(stem, own)| !stem.is_empty() && own.eq_ignore_ascii_case(extension))
}

/// Whether the name has the extension `json`.
pub fn is_json(name: &str) -> bool {
    has_extension(name, "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_and_recognised() {
        assert_eq!(split("a/b/c.json"), ("a/b/", "c.json"));
        assert_eq!(split("c.json"), ("", "c.json"));
        for junk in ["__MACOSX/a/b.json", "a/._b.json", "a/.DS_Store"] {
            assert!(is_junk(junk), "{junk}");
        }
        assert!(!is_junk("a/b.json"));
        for (name, json) in
            [("a/b.json", true), ("B.JSON", true), (".json", false), ("a.json/b", false), ("é.jsoñ", false)]
        {
            assert_eq!(is_json(name), json, "{name}");
        }
    }
}
