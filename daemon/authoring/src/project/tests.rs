use std::path::Path;

use super::*;

const GOOD: &str = "manifest-version = 1\nlanguage = \"rust\"\ndescription = \"Reads notes\"\nauthors = [\"Ana Silva\"]\n\
     license = \"MIT\"\nfiles = [\"*.json\"]\n";

fn error(text: &str) -> String {
    Project::parse(Path::new("notes"), text).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
}

#[test]
fn values_that_are_not_stated_have_defaults() -> Result<(), ProjectError> {
    let project = Project::parse(Path::new("notes"), GOOD)?;
    assert_eq!((project.memory_mib, project.language), (128, Language::Rust));
    assert_eq!((project.homepage, project.contains), (None, Vec::new()));
    Ok(())
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    assert_eq!(
        error(&format!("{GOOD}licence = \"MIT\"\n")),
        "\"notes/satchel-plugin.toml\" has the unknown key \"licence\"; did you mean `license`?"
    );
    assert!(error(&format!("{GOOD}memory_mib = 64\n")).ends_with("did you mean `memory-mib`?"));
    assert!(error(&format!("{GOOD}network = true\n")).contains("the keys are manifest-version, language"));
}

#[test]
fn an_error_names_file_key_value_and_rule() {
    let cases = [
        ("memory-mib = 4096\n", "`memory-mib` is \"4096\", but must be 16 to 512"),
        ("memory-mib = -1\n", "`memory-mib` is -1, but must be a whole number"),
        ("contains = \"note\"\n", "`contains` is \"note\", but must be a list of texts"),
        ("homepage = \"http://example.org\"\n", "`homepage` is \"http://example.org\", but must be"),
    ];
    for (line, expected) in cases {
        let found = error(&format!("{GOOD}{line}"));
        assert!(found.starts_with("\"notes/satchel-plugin.toml\": ") && found.contains(expected), "{found}");
    }
    let changed = [
        ("\"*.json\"", "\"a/b\"", "`files` is \"a/b\", but must be a pattern of file names"),
        ("\"rust\"", "\"go\"", "`language` is \"go\", but must be one of \"rust\""),
        ("version = 1", "version = 2", "`manifest-version` is 2, but must be 1"),
        ("license = \"MIT\"\n", "", "lacks the key `license`: an SPDX expression"),
        ("\"Ana Silva\"", "", "`authors` is \"\", but must be a list of at least one"),
    ];
    for (from, to, expected) in changed {
        let found = error(&GOOD.replace(from, to));
        assert!(found.contains(expected), "{found}");
    }
    assert!(error("language = ").contains("is not valid TOML: line 1, column"), "{}", error("language = "));
}

#[test]
fn a_folder_without_the_file_is_not_a_project() {
    let found = Project::read(Path::new("/nowhere")).map_err(|error| error.to_string());
    assert!(
        found
            .is_err_and(|error| error.contains("`satchel plugins new NAME --language rust` makes a project"))
    );
}
