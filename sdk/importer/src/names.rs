//! Names of files inside an export.

/// The folder of a path with its final `/`, and the name in it.
pub fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |at| at + 1))
}

/// Whether it is one of the files that operating systems leave in folders and archives.
pub fn is_junk(path: &str) -> bool {
    let (folder, name) = split(path);
    name == ".DS_Store" || name.starts_with("._") || folder.split('/').any(|folder| folder == "__MACOSX")
}

/// Whether the name ends in `.` and `ending` (lower case), in letters of any case.
pub fn ends_in(name: &str, ending: &str) -> bool {
    let (_, name) = split(name);
    name.rsplit_once('.').is_some_and(|(stem, other)| !stem.is_empty() && other.eq_ignore_ascii_case(ending))
}

/// Whether the name is that of a JSON file.
pub fn is_json(name: &str) -> bool {
    ends_in(name, "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
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
