//! Changes that a person makes by hand; a refusal of a change that is not allowed counts as success.

use anyhow::Result;
use satchel_core::edits::{BulkStatusChange, Draft, EditContext, EditError, EditOutcome, NewRelation};
use satchel_pam::{
    memory::{Access, MemoryType, Status},
    relation::RelationType,
};
use satchel_store::MemoryQuery;

use super::History;

impl History {
    pub(super) fn edit(&mut self) -> Result<()> {
        let call = EditContext { actor: "owner".into(), ..EditContext::default() };
        let number = self.rng.below(1_000);
        let draft = Draft { content: Some(format!("Said by hand {number}")), ..Draft::default() };
        let (Some(one), Some(other)) = (self.pick_memory()?, self.pick_memory()?) else {
            self.local.imports.edits().add_memory(&call, &draft)?;
            return Ok(());
        };
        let action = self.rng.below(10);
        self.steps.push(format!("deed {action} on {one} and {other}"));
        let imports = &self.local.imports;
        let done = match action {
            0 => imports.edits().edit_memory(&call, &one, "", &draft),
            1 => imports.edits().set_memory_status(&call, &one, "", Status::Archived),
            2 => imports.edits().set_memory_status(&call, &one, "", Status::Retracted),
            3 => imports.edits().supersede_memory(&call, &one, "", Ok(&draft)),
            4 => imports.edits().supersede_memory(&call, &one, "", Err(&other)),
            5 => {
                let relation_type = RelationType::RelatedTo;
                let new = NewRelation { from: one, to: other, relation_type, confidence: None };
                imports.edits().draw_relation(&call, &new)
            }
            6 => {
                let access = Access { exportable: false, ..Access::default() };
                imports.edits().edit_memory(
                    &call,
                    &one,
                    "",
                    &Draft { access: Some(access), ..Draft::default() },
                )
            }
            7 => self.withdraw_relation(&call)?,
            8 => self.archive_all_of_a_type(&call),
            _ => imports.edits().undo_last_change(&call, &one),
        };
        if let Err(refusal) = done {
            self.steps.push(format!("refused: {refusal}"));
        }
        Ok(())
    }

    fn withdraw_relation(&self, call: &EditContext) -> Result<Result<EditOutcome, EditError>> {
        let rows = self.local.store.relations(None, 100, self.local.store.revision())?.items;
        let Some(row) = rows.iter().find(|row| !row.withdrawn) else { return Ok(Ok(EditOutcome::default())) };
        Ok(self.local.imports.edits().withdraw_relation(call, &row.relation.id))
    }

    fn archive_all_of_a_type(&self, call: &EditContext) -> Result<EditOutcome, EditError> {
        let query = MemoryQuery { types: vec![MemoryType::Preference], ..MemoryQuery::default() };
        let bulk = BulkStatusChange { query, status: Status::Archived, dry_run: true, expected: None };
        let counted = self.local.imports.edits().set_status_of_all(call, &bulk)?;
        let expected = Some(counted.matched);
        self.local
            .imports
            .edits()
            .set_status_of_all(call, &BulkStatusChange { dry_run: false, expected, ..bulk })
    }
}
