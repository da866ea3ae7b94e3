//! Field tables: a README states what the importer does with each field of an export, and the statements are checked on every fixture.
//!
//! The first column of a table is `Path`; a row is `` | `path` | statement | where it goes | ``. In a path, dots separate members, `[]` is
//! any item of an array, `*` any member, and a final `**` the value and everything below it. If several rows match, the one with the most
//! names in its path counts. The statement begins with one of these:
//! - `verbatim`: the output contains the value unchanged;
//! - `transformed by *rule*`: the rule of that name is true, or the output contains the value unchanged;
//! - `dropped: why`. If the reason is `private`, the output must not contain the value.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use serde_json::Value;

use super::{FixtureError, Produced, fixtures, produce_folder};
use crate::{Importer, address::unsigned, json::time_of_text};

/// Whether the output contains `value` in another form.
pub type Rule = fn(value: &Value, emitted: &Emitted) -> bool;

/// The first name of the paths of a file.
type Root<'t> = Box<dyn Fn(&str) -> Option<String> + 't>;

/// The field tables of a README, and the rules for checking them.
pub struct FieldTable<'t> {
    rows: Vec<Row>,
    rules: BTreeMap<&'t str, Rule>,
    root: Root<'t>,
    unknown_rules_hold: bool,
}

/// The result of checking a table on one fixture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldCheck {
    /// Values that were checked.
    pub leaves: usize,
    /// One line for each fault: the file, the path and what is wrong.
    pub faults: Vec<String>,
}

#[derive(Debug)]
struct Row {
    path: Vec<String>,
    treatment: Treatment,
}

#[derive(Debug)]
enum Treatment {
    Verbatim,
    Transformed(String),
    Dropped,
    Private,
    Unclear,
}

/// The check of one file.
struct Walk<'w> {
    emitted: &'w Emitted,
    /// The locators of all skipped records.
    skipped: &'w BTreeSet<String>,
    leaves: usize,
    faults: Vec<String>,
}

/// The position of a value in its file.
struct Position {
    /// As in the rows of a table.
    path: Vec<String>,
    /// As in skips; there may be several forms.
    locators: Vec<String>,
}

impl Position {
    /// The root of a file. A root that is not an array is also the element `[0]`.
    fn root(name: &str, file: &str, value: &Value) -> Self {
        let only = (!value.is_array()).then(|| format!("{file}[0]"));
        Self { path: vec![name.to_owned()], locators: std::iter::once(file.to_owned()).chain(only).collect() }
    }

    /// Goes one step down during `look`.
    fn inside(&mut self, name: &str, step: &str, look: impl FnOnce(&mut Self)) {
        self.path.push(name.to_owned());
        self.locators.iter_mut().for_each(|locator| locator.push_str(step));
        look(self);
        self.path.pop();
        for locator in &mut self.locators {
            locator.truncate(locator.len() - step.len());
        }
    }
}

/// All values that an importer emitted for one fixture.
#[derive(Debug, Default)]
pub struct Emitted {
    /// All texts and numbers, each on its own line.
    text: String,
    numbers: Vec<String>,
}

impl Emitted {
    fn of(produced: &Produced) -> serde_json::Result<Self> {
        let mut emitted = Self::default();
        emitted.add(&produced.to_json()?);
        Ok(emitted)
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text.push_str(&format!("{text}\n")),
            Value::Number(number) => {
                self.numbers.push(number.to_string());
                self.text.push_str(&format!("{number}\n"));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => members.values().for_each(|member| self.add(member)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Whether an emitted text is or contains this one.
    pub fn holds(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Whether a number was emitted.
    pub fn holds_number(&self, number: &str) -> bool {
        self.numbers.iter().any(|emitted| emitted == number)
    }

    /// Whether `text` contains JSON of which every text and number was emitted.
    pub fn holds_json_in(&self, text: &Value) -> bool {
        let inside = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        inside.is_some_and(|inside| self.holds_all(&inside))
    }

    fn holds_all(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.holds(text),
            Value::Number(number) => self.holds(&number.to_string()),
            Value::Array(items) => items.iter().all(|item| self.holds_all(item)),
            Value::Object(members) => members.values().all(|member| self.holds_all(member)),
            Value::Null | Value::Bool(_) => true,
        }
    }

    /// Whether a value was emitted unchanged, except for the signature of an address. Always true for booleans.
    fn holds_value(&self, value: &Value) -> bool {
        match value {
            // In texts that contain JSON, quotes and line breaks are escaped.
            Value::String(text) => {
                let escaped = value.to_string();
                let escaped = escaped.get(1..escaped.len() - 1).unwrap_or_default();
                self.holds(text) || self.holds(escaped) || self.holds(&unsigned(text))
            }
            Value::Number(number) => self.holds(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => true,
        }
    }
}

impl<'t> FieldTable<'t> {
    /// Reads the rows of all tables in `readme` whose first column is `Path`. `root` gives the first name of the paths for the name of a
    /// file; a file without a root is not checked. The rules `time` (in microseconds), `trim` (without white space around the text) and
    /// `bytes` (the bytes of the text as numbers) are built in.
    pub fn parse<N: Into<String>>(
        readme: &str,
        root: impl Fn(&str) -> Option<N> + 't,
        rules: &[(&'t str, Rule)],
    ) -> Self {
        let rows = tables(readme).filter_map(Row::parse).collect();
        let rules =
            rules.iter().copied().chain([("time", time as Rule), ("trim", trim), ("bytes", bytes)]).collect();
        let root = Box::new(move |file: &str| root(file).map(Into::into));
        Self { rows, rules, root, unknown_rules_hold: false }
    }

    /// The table, with every rule that has no code taken as true: for importers in languages in which rules cannot be written.
    #[must_use]
    pub fn trusting_unknown_rules(self) -> Self {
        Self { unknown_rules_hold: true, ..self }
    }

    /// The first names of the paths in the rows.
    pub fn roots(&self) -> BTreeSet<&str> {
        self.rows.iter().filter_map(|row| row.path.first()).map(String::as_str).collect()
    }

    /// The rows that do not say what becomes of a value, or name a rule that does not exist; one line for each.
    pub fn unclear_rows(&self) -> Vec<String> {
        let unclear = self.rows.iter().filter(|row| !self.is_known(&row.treatment));
        unclear
            .map(|row| format!("{}: the table does not say what becomes of it", row.path.join(".")))
            .collect()
    }

    /// Checks the table on every leaf of every fixture in `folder`. Files that are not JSON or belong to no export, empty and null values,
    /// and values of skipped records are not checked.
    ///
    /// # Errors
    /// One line for each fault.
    pub fn check<T: Importer>(&self, folder: impl AsRef<Path>) -> Result<(), FixtureError> {
        let mut faults = self.unclear_rows();
        let mut leaves = 0;
        for fixture in fixtures(folder.as_ref())? {
            let input = fixture.join("input");
            let checked = self.check_fixture(&input, &produce_folder::<T>(&input)?)?;
            leaves += checked.leaves;
            faults.extend(checked.faults.into_iter().map(|fault| format!("{}: {fault}", fixture.display())));
        }
        if leaves == 0 {
            faults.push("no fixture holds a field".to_owned());
        }
        FixtureError::of_faults(faults)
    }

    /// Checks the table on what was produced for the files in the folder `input`, wherever the importer ran.
    ///
    /// # Errors
    /// If a file cannot be read. Faults are part of the result.
    pub fn check_fixture(&self, input: &Path, produced: &Produced) -> Result<FieldCheck, FixtureError> {
        let skipped = produced.skipped();
        let emitted = Emitted::of(produced).map_err(FixtureError::at(input))?;
        let mut checked = FieldCheck::default();
        for file in produced.exports.iter().flat_map(|export| &export.detection.files) {
            let Some(root) = (self.root)(file) else { continue };
            let bytes = fs::read(input.join(file)).map_err(FixtureError::at(&input.join(file)))?;
            let Some(value) = value_of(&bytes) else { continue };
            let mut walk = Walk { emitted: &emitted, skipped: &skipped, leaves: 0, faults: Vec::new() };
            self.walk(&value, &mut Position::root(&root, file, &value), &mut walk);
            checked.leaves += walk.leaves;
            checked.faults.extend(walk.faults.into_iter().map(|fault| format!("{file}: {fault}")));
        }
        Ok(checked)
    }

    fn is_known(&self, treatment: &Treatment) -> bool {
        match treatment {
            Treatment::Verbatim | Treatment::Dropped | Treatment::Private => true,
            Treatment::Transformed(rule) => self.unknown_rules_hold || self.rules.contains_key(rule.as_str()),
            Treatment::Unclear => false,
        }
    }

    /// Checks every leaf of `value`, which is at `position`.
    fn walk(&self, value: &Value, position: &mut Position, walk: &mut Walk<'_>) {
        if position.locators.iter().any(|locator| walk.skipped.contains(locator)) {
            return;
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    position.inside(name, &format!(".{name}"), |position| self.walk(member, position, walk));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    position.inside("[]", &format!("[{index}]"), |position| self.walk(item, position, walk));
                }
            }
            Value::Null => {}
            Value::String(text) if text.trim().is_empty() => {}
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                walk.leaves += 1;
                walk.faults.extend(self.fault(value, &position.path, walk.emitted));
            }
        }
    }

    fn fault(&self, value: &Value, path: &[String], emitted: &Emitted) -> Option<String> {
        let matching = self.rows.iter().filter(|row| row.matches(path));
        let Some(row) = matching.max_by_key(|row| row.rank()) else {
            return Some(format!("{}: the table has no row for it", path.join(".")));
        };
        let true_for_value = match &row.treatment {
            Treatment::Verbatim => emitted.holds_value(value),
            Treatment::Transformed(rule) => {
                let rule = self.rules.get(rule.as_str());
                emitted.holds_value(value)
                    || rule.map_or(self.unknown_rules_hold, |rule| rule(value, emitted))
            }
            Treatment::Private => !value.as_str().is_some_and(|text| emitted.holds(text)),
            Treatment::Dropped | Treatment::Unclear => true,
        };
        (!true_for_value).then(|| format!("{} = {value}: {:?} does not hold", path.join("."), row.treatment))
    }
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.trim().strip_prefix('|')?.split(" | ").map(str::trim);
        let path = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        let treatment = cells.next()?;
        let rule = treatment.strip_prefix("transformed by *").and_then(|rest| rest.split_once('*'));
        let treatment = match (treatment.strip_prefix("dropped: "), rule) {
            (Some(reason), _) if reason.starts_with("private") => Treatment::Private,
            (Some(_), _) => Treatment::Dropped,
            (None, Some((rule, _))) => Treatment::Transformed(rule.to_owned()),
            (None, None) if treatment.starts_with("verbatim") => Treatment::Verbatim,
            (None, None) => Treatment::Unclear,
        };
        let mut names = Vec::new();
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            names.extend((!name.is_empty()).then(|| name.to_owned()));
            names.extend((0..(part.len() - name.len()) / 2).map(|_| "[]".to_owned()));
        }
        Some(Self { path: names, treatment })
    }

    fn matches(&self, path: &[String]) -> bool {
        let (own, below) = match self.path.split_last() {
            Some((last, above)) if last == "**" => (above, true),
            _ => (self.path.as_slice(), false),
        };
        (path.len() == own.len() || (below && path.len() >= own.len()))
            && own.iter().zip(path).all(|(own, name)| own == name || own == "*")
    }

    /// The row with the highest rank counts: the most names first, then a path without `**`.
    fn rank(&self) -> (usize, bool) {
        let names = self.path.iter().filter(|name| !matches!(name.as_str(), "*" | "**")).count();
        (names, self.path.last().is_none_or(|last| last != "**"))
    }
}

/// The JSON of a file; an array for JSON Lines.
pub fn value_of(bytes: &[u8]) -> Option<Value> {
    let lines = || serde_json::Deserializer::from_slice(bytes).into_iter().collect::<Result<Vec<Value>, _>>();
    serde_json::from_slice(bytes).ok().or_else(|| lines().ok().map(Value::Array))
}

/// The lines of the tables whose first column is `Path`.
fn tables(readme: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    readme.lines().filter(move |line| {
        inside = line.starts_with('|') && (inside || line.starts_with("| Path |"));
        inside
    })
}

fn trim(value: &Value, emitted: &Emitted) -> bool {
    value.as_str().is_some_and(|text| emitted.holds(text.trim()))
}

/// `Emitted` has each number on its own line.
fn bytes(value: &Value, emitted: &Emitted) -> bool {
    let bytes = value.as_str().unwrap_or_default().bytes();
    emitted.holds(&bytes.map(|byte| byte.to_string()).collect::<Vec<_>>().join("\n"))
}

/// A time in any form is emitted in microseconds.
fn time(value: &Value, emitted: &Emitted) -> bool {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return false,
    };
    let mut micros = String::new();
    time_of_text(&text)
        .is_some_and(|(time, _)| write!(micros, "{time}").is_ok() && emitted.holds_number(&micros))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(row: &str, value: &Value, emitted: &Value) -> Vec<String> {
        let readme = format!("| `x` | another table |\n\n| Path | | |\n|---|---|---|\n{row}");
        let table = FieldTable::parse(&readme, |_| Some("x"), &[]);
        let mut all = Emitted::default();
        all.add(emitted);
        faults_unless_skipped(&table, value, &all, &BTreeSet::new())
    }

    fn faults_unless_skipped(
        table: &FieldTable<'_>,
        value: &Value,
        emitted: &Emitted,
        skipped: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut walk = Walk { emitted, skipped, leaves: 0, faults: Vec::new() };
        table.walk(value, &mut Position::root("x", "x.json", value), &mut walk);
        walk.faults
    }

    #[test]
    fn each_statement_is_checked() {
        let value = json!([{"a": "tea", "at": "2025-06-21T12:00:00Z"}]);
        let verbatim = "| `x[].*` | verbatim | `raw` |\n| `x[].at` | transformed by *time* | `created_at` |";
        assert_eq!(
            faults(verbatim, &value, &json!({"m": ["a cup of tea", 1_750_507_200_000_000_i64]})),
            [""; 0]
        );
        assert_eq!(faults(verbatim, &value, &json!([])).len(), 2);
        assert_eq!(faults("| `x[].a` | dropped: a copy |", &value, &json!([])).len(), 1, "one has no row");
        assert_eq!(faults("| `x.**` | dropped: private |", &value, &json!("tea")).len(), 1);
        assert_eq!(faults("| `x.**` | dropped: private |", &value, &json!("rye")), [""; 0]);
    }

    #[test]
    fn a_rule_without_code_is_trusted_only_if_asked_for() {
        let readme = "| Path | | |\n|---|---|---|\n| `x.a` | transformed by *own* | |\n| `x.b` | gone | |";
        let table = || FieldTable::parse(readme, |_| Some("x"), &[]);
        let faults = |table: &FieldTable<'_>| {
            faults_unless_skipped(table, &json!({"a": "tea"}), &Emitted::default(), &BTreeSet::new()).len()
        };
        let trusting = table().trusting_unknown_rules();
        assert_eq!((faults(&table()), faults(&trusting)), (1, 0));
        assert_eq!((table().unclear_rows().len(), trusting.unclear_rows().len()), (2, 1));
        assert_eq!(trusting.roots().into_iter().collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn the_row_with_the_most_names_counts() {
        let rows = "| `x.**` | dropped: nobody wants it |\n| `x.b.c[][]` | verbatim | here |";
        assert_eq!(faults(rows, &json!({"a": 1, "b": {"c": [["lost"]], "d": 2}}), &json!([])).len(), 1);
    }

    #[test]
    fn a_skip_covers_only_what_it_names() {
        let table =
            FieldTable::parse("| Path | | |\n|---|---|---|\n| `x.**` | verbatim | |", |_| Some("x"), &[]);
        let left = |value: Value, locator: &str| {
            faults_unless_skipped(&table, &value, &Emitted::default(), &[locator.to_owned()].into()).len()
        };
        assert_eq!(left(json!([{"a": "tea"}, {"a": "rye"}]), "x.json[1]"), 1);
        assert_eq!(left(json!([{"a": "tea", "ab": "rye"}]), "x.json[0].a"), 1);
        assert_eq!(left(json!({"a": "tea", "b": ["rye", "oat"]}), "x.json[0].b[1]"), 2);
        assert_eq!(left(json!({"a": "tea"}), "x.json"), 0);
        assert_eq!(left(json!([{"a": "tea"}]), "y.json[0]"), 1);
    }
}
