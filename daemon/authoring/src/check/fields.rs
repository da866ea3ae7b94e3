//! Checks the field table of the author's README on the input of each fixture.

use std::{collections::BTreeMap, fs, path::Path};

use glob::{MatchOptions, Pattern};
use satchel_importer::testkit::{self, FieldTable, Produced};

use super::{
    CheckError, FixtureReport,
    output::SandboxOutput,
    report::{CheckKind, CheckResult, Outcome},
};

/// Faults of one fixture that are listed.
const MAX_FAULTS: usize = 20;

/// How to write the table, for those who have none.
const ADVICE: &str = "add a table to README.md whose first column is `Path`, with a row for each field, such as\n\
    | Path | What becomes of it | Where it goes |\n|---|---|---|\n\
    | `notes[].text` | verbatim | `content` |\n\
    | `notes[].date` | transformed by *time* | `created_at` |\n\
    | `notes[].**` | dropped: why | nowhere |\n\
    `notes` is the name of the file without its ending; for other names write: `notes` is `export-*.json`";

/// The reason why a fixture is not checked if the table names none of its files.
const NOT_NAMED: &str = "the table names no file of it that holds a value";

/// The field tables of a README.
pub(super) struct FieldRules {
    /// `None` if there is no README or no table in it.
    table: Option<FieldTable<'static>>,
}

impl FieldRules {
    /// Reads the tables of a README.
    pub(super) fn parse(readme: &str) -> Self {
        let plain = FieldTable::parse(readme, |_| None::<String>, &[]);
        let roots: Vec<String> = plain.roots().into_iter().map(str::to_owned).collect();
        if roots.is_empty() {
            return Self { table: None };
        }
        let names = RootNames { patterns: patterns(readme, &roots), roots };
        let table = FieldTable::parse(readme, move |file| names.root(file), &[]).trusting_unknown_rules();
        Self { table: Some(table) }
    }

    /// Checks the output of one fixture. Exports that the importer refused are not checked.
    pub(super) fn check(&self, input: &Path, output: &SandboxOutput) -> Result<CheckResult, CheckError> {
        let kind = CheckKind::Fields;
        let exports = output.produced.exports.iter().filter(|export| export.error.is_none());
        let read = Produced { exports: exports.cloned().collect() };
        let mut files = read.exports.iter().flat_map(|export| &export.detection.files);
        if !files.any(|file| fs::read(input.join(file)).is_ok_and(|bytes| has_values(&bytes))) {
            return Ok(CheckResult::not_applicable(kind, "it has no JSON that was read"));
        }
        let Some(table) = &self.table else {
            return Ok(CheckResult::new(kind, vec![format!("there is no field table; {ADVICE}")]));
        };
        let checked = table.check_fixture(input, &read)?;
        if checked.leaves == 0 {
            return Ok(CheckResult::not_applicable(kind, NOT_NAMED));
        }
        let mut faults = checked.faults;
        let more = faults.len().saturating_sub(MAX_FAULTS);
        faults.truncate(MAX_FAULTS);
        faults.extend((more > 0).then(|| format!("and {more} more")));
        Ok(CheckResult::new(kind, faults))
    }

    /// Returns the faults of the table itself: rows that say nothing, and files with values of which it names none.
    pub(super) fn table_results(&self, fixtures: &[FixtureReport]) -> Vec<CheckResult> {
        let Some(table) = &self.table else { return Vec::new() };
        let mut faults = table.unclear_rows();
        let checked = |fixture: &FixtureReport| {
            matches!(fixture.outcome(CheckKind::Fields), Some(Outcome::Passed | Outcome::Failed(_)))
        };
        let unnamed = Outcome::NotApplicable(NOT_NAMED.to_owned());
        let not_named = |fixture: &FixtureReport| fixture.outcome(CheckKind::Fields) == Some(&unnamed);
        if fixtures.iter().any(not_named) && !fixtures.iter().any(checked) {
            let roots = table.roots().into_iter().collect::<Vec<_>>().join(", ");
            faults.push(format!(
                "the table names no file of any fixture: its paths begin with {roots}; {ADVICE}"
            ));
        }
        vec![CheckResult::new(CheckKind::Fields, faults)]
    }
}

/// Whether a file is JSON or JSON Lines, and not empty.
fn has_values(bytes: &[u8]) -> bool {
    testkit::value_of(bytes).is_some_and(|value| value.as_array().is_none_or(|items| !items.is_empty()))
}

/// Gives the first name of a file's paths in the table.
struct RootNames {
    roots: Vec<String>,
    patterns: BTreeMap<String, Vec<Pattern>>,
}

impl RootNames {
    /// A pattern that the README states comes first, then the name of the file without its ending. A table whose paths
    /// all begin with one name describes every file, unless the README states a pattern for that name.
    fn root(&self, file: &str) -> Option<String> {
        let name = file.rsplit('/').next().unwrap_or(file);
        let options = MatchOptions { case_sensitive: false, ..MatchOptions::default() };
        let fits = |pattern: &Pattern| {
            let whole = if pattern.as_str().contains('/') { file } else { name };
            pattern.matches_with(whole, options)
        };
        let stated = self.patterns.iter().find(|(_, patterns)| patterns.iter().any(fits));
        let stem = name.split('.').next().unwrap_or(name);
        let named = || self.roots.iter().find(|root| *root == stem && !self.patterns.contains_key(*root));
        let only =
            || self.roots.first().filter(|root| self.roots.len() == 1 && !self.patterns.contains_key(*root));
        stated.map(|(root, _)| root).or_else(named).or_else(only).cloned()
    }
}

/// Finds the sentences of a README that say which file a name stands for: `` `main` is `conversations*.json` ``, with
/// further patterns after "or".
fn patterns(readme: &str, roots: &[String]) -> BTreeMap<String, Vec<Pattern>> {
    let mut found: BTreeMap<String, Vec<Pattern>> = BTreeMap::new();
    for root in roots {
        for (_, rest) in readme
            .match_indices(&format!("`{root}` is `"))
            .map(|(at, text)| readme.split_at(at + text.len() - 1))
        {
            let mut rest = Some(rest);
            while let Some((pattern, behind)) =
                rest.and_then(|rest| rest.strip_prefix('`')).and_then(|rest| rest.split_once('`'))
            {
                let pattern = Pattern::new(pattern).ok();
                found.entry(root.clone()).or_default().extend(pattern);
                rest = behind.strip_prefix(" or ");
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(readme: &str, roots: &[&str]) -> RootNames {
        let roots: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
        RootNames { patterns: patterns(readme, &roots), roots }
    }

    #[test]
    fn the_readme_says_which_file_a_name_stands_for() {
        let readme = "`main` is `conversations*.json` or `chats/*.json`, `user` is `user.json`.";
        let names = names(readme, &["main", "user", "notes"]);
        let root = |file: &str| names.root(file);
        assert_eq!(root("a/Conversations-2.json").as_deref(), Some("main"));
        assert_eq!(root("chats/7.json").as_deref(), Some("main"));
        assert_eq!(root("user.json").as_deref(), Some("user"));
        assert_eq!(root("b/notes.json").as_deref(), Some("notes"));
        assert_eq!(root("main.json"), None, "the README says otherwise");
        assert_eq!(root("other.json"), None);
    }

    #[test]
    fn a_single_name_stands_for_every_file() {
        assert_eq!(names("", &["notes"]).root("export.json").as_deref(), Some("notes"));
        assert_eq!(names("`notes` is `n*.json`", &["notes"]).root("export.json"), None);
    }
}
