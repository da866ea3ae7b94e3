//! Random histories of exports and changes by hand, with a clock that may go back.

use proptest::prelude::*;
use satchel_pam::relation::RelationType;

use super::*;

/// A step of a history; its numbers select among the records that exist at that time.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Stated(u8),
    Slot(u8),
    Removed(u8),
    Add(u8),
    Content(u8, u8),
    Tags(u8, u8),
    Status(u8, u8),
    Replace(u8, u8),
    Restore(u8, u8),
    Undo(u8),
    UndoLast(u8),
    Draw(u8, u8),
    Withdraw(u8),
    Clock(i8),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let two = || (any::<u8>(), any::<u8>());
    prop_oneof![
        any::<u8>().prop_map(Step::Stated),
        any::<u8>().prop_map(Step::Slot),
        any::<u8>().prop_map(Step::Removed),
        any::<u8>().prop_map(Step::Add),
        two().prop_map(|(one, other)| Step::Content(one, other)),
        two().prop_map(|(one, other)| Step::Tags(one, other)),
        two().prop_map(|(one, other)| Step::Status(one, other)),
        two().prop_map(|(one, other)| Step::Replace(one, other)),
        two().prop_map(|(one, other)| Step::Restore(one, other)),
        any::<u8>().prop_map(Step::Undo),
        any::<u8>().prop_map(Step::UndoLast),
        two().prop_map(|(one, other)| Step::Draw(one, other)),
        any::<u8>().prop_map(Step::Withdraw),
        any::<i8>().prop_map(Step::Clock),
    ]
}

/// Returns one of a few texts, so that exports and the user often state the same.
fn text(number: u8) -> String {
    format!("Fact number {}", number % 5)
}

pub(super) struct History {
    pub(super) fixture: Fixture,
    acts: Vec<String>,
    imported: i64,
    name: &'static str,
}

impl History {
    /// Begins a history whose exports name what they say after `name`.
    pub(super) fn new(name: &'static str) -> Self {
        Self { fixture: Fixture::new(), acts: Vec::new(), imported: 0, name }
    }

    /// Returns the id of one of the visible memories.
    fn some(&self, number: u8) -> Option<String> {
        let ids: Vec<String> = self.fixture.shown().0.into_keys().collect();
        ids.get(usize::from(number) % ids.len().max(1)).cloned()
    }

    fn evidence(&mut self, claim: Claim) -> StoredEvidence {
        self.imported += 1;
        // The times of the evidence are not in the order of its arrival.
        let at = (self.imported * 7) % 13;
        evidence(&format!("{}{}", self.name, self.imported), at, claim)
    }

    pub(super) fn apply(&mut self, step: &Step) -> Option<()> {
        let call = call("a test");
        let done = match step {
            Step::Stated(number) => {
                let evidence = self.evidence(Claim::Statement(item(&text(*number))));
                self.fixture.import(&[evidence]);
                return Some(());
            }
            Step::Slot(number) => {
                let items = vec![item(&text(*number))];
                let evidence = self.evidence(Claim::Snapshot { series: "about".to_owned(), items });
                self.fixture.import(&[evidence]);
                return Some(());
            }
            Step::Removed(number) => {
                let log = "edits".to_owned();
                let add =
                    Claim::Edit { log: log.clone(), sequence: 0, edit: Edit::Add(item(&text(*number))) };
                let target = Some(text(*number));
                let remove = Claim::Edit { log, sequence: 1, edit: Edit::Remove { line: None, target } };
                let both = [self.evidence(add), self.evidence(remove)];
                self.fixture.import(&both);
                return Some(());
            }
            Step::Clock(seconds) => {
                self.fixture.clock.0.fetch_add(i64::from(*seconds) * SECOND, Ordering::Relaxed);
                return None;
            }
            Step::Add(number) => self.fixture.imports.edits().add_memory(&call, &content(&text(*number))),
            Step::Content(number, other) => self.fixture.imports.edits().edit_memory(
                &call,
                &self.some(*number)?,
                "",
                &content(&text(*other)),
            ),
            Step::Tags(number, other) => {
                let tags = tags(&[format!("tag-{}", other % 3).as_str()]);
                self.fixture.imports.edits().edit_memory(&call, &self.some(*number)?, "", &tags)
            }
            Step::Status(number, other) => {
                let status = Status::ALL[usize::from(*other) % Status::ALL.len()];
                self.fixture.imports.edits().set_memory_status(&call, &self.some(*number)?, "", status)
            }
            Step::Replace(number, other) => {
                let by = self.some(*other)?;
                self.fixture.imports.edits().supersede_memory(&call, &self.some(*number)?, "", Err(&by))
            }
            Step::Restore(number, other) => {
                let version = u32::from(*other % 4) + 1;
                self.fixture.imports.edits().restore_memory_version(&call, &self.some(*number)?, version)
            }
            Step::Undo(number) => {
                let act = self.acts.get(usize::from(*number) % self.acts.len().max(1))?.clone();
                self.fixture.imports.edits().undo_change(&call, &act)
            }
            Step::UndoLast(number) => {
                self.fixture.imports.edits().undo_last_change(&call, &self.some(*number)?)
            }
            Step::Draw(number, other) => {
                let (from, to) = (self.some(*number)?, self.some(*other)?);
                let new = NewRelation { from, to, relation_type: RelationType::RelatedTo, confidence: None };
                self.fixture.imports.edits().draw_relation(&call, &new)
            }
            Step::Withdraw(number) => {
                let ids: Vec<String> = self.fixture.shown().1.into_keys().collect();
                let id = ids.get(usize::from(*number) % ids.len().max(1))?.clone();
                self.fixture.imports.edits().withdraw_relation(&call, &id)
            }
        };
        let act = done.ok()?.act;
        self.acts.extend((!act.is_empty()).then_some(act));
        Some(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn visible_records_follow_from_all_evidence(steps in prop::collection::vec(step(), 1..24)) {
        let mut history = History::new("w");
        for (number, step) in steps.iter().enumerate() {
            history.apply(step);
            let checked = history.fixture.check();
            prop_assert!(checked.is_ok(), "after step {number}, {step:?}: {}", checked.unwrap_err());
        }
        let before = history.fixture.shown();
        let fixture = history.fixture.restarted(true);
        prop_assert_eq!(fixture.shown(), before);
    }
}
