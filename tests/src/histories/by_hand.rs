//! Changes that a person makes by hand; a refusal of a change that is not allowed counts as success.

use anyhow::Result;
use satchel_core::ingest::hand::{Bulk, Call, Done, Draft, HandError, NewRelation};
use satchel_pam::{
    memory::{Access, MemoryType, Status},
    relation::RelationType,
};
use satchel_store::MemoryQuery;

use super::History;

impl History {
    pub(super) fn by_hand(&mut self) -> Result<()> {
        let call = Call { actor: "owner".into(), ..Call::default() };
        let number = self.dice.below(1_000);
        let draft = Draft { content: Some(format!("Said by hand {number}")), ..Draft::default() };
        let (Some(one), Some(other)) = (self.memory()?, self.memory()?) else {
            self.here.imports.add_memory(&call, &draft)?;
            return Ok(());
        };
        let deed = self.dice.below(10);
        self.told.push(format!("deed {deed} on {one} and {other}"));
        let imports = &self.here.imports;
        let done = match deed {
            0 => imports.edit_memory(&call, &one, "", &draft),
            1 => imports.set_memory_status(&call, &one, "", Status::Archived),
            2 => imports.set_memory_status(&call, &one, "", Status::Retracted),
            3 => imports.supersede_memory(&call, &one, "", Ok(&draft)),
            4 => imports.supersede_memory(&call, &one, "", Err(&other)),
            5 => {
                let relation_type = RelationType::RelatedTo;
                let new = NewRelation { from: one, to: other, relation_type, confidence: None };
                imports.draw_relation(&call, &new)
            }
            6 => {
                let access = Access { exportable: false, ..Access::default() };
                imports.edit_memory(&call, &one, "", &Draft { access: Some(access), ..Draft::default() })
            }
            7 => self.withdraw_relation(&call)?,
            8 => self.archive_all_of_a_type(&call),
            _ => imports.undo_last_change(&call, &one),
        };
        if let Err(refusal) = done {
            self.told.push(format!("refused: {refusal}"));
        }
        Ok(())
    }

    fn withdraw_relation(&self, call: &Call) -> Result<Result<Done, HandError>> {
        let rows = self.here.store.relations(None, 100, self.here.store.revision())?.items;
        let Some(row) = rows.iter().find(|row| !row.withdrawn) else { return Ok(Ok(Done::default())) };
        Ok(self.here.imports.withdraw_relation(call, &row.relation.id))
    }

    fn archive_all_of_a_type(&self, call: &Call) -> Result<Done, HandError> {
        let query = MemoryQuery { types: vec![MemoryType::Preference], ..MemoryQuery::default() };
        let bulk = Bulk { query, status: Status::Archived, dry_run: true, expected: None };
        let counted = self.here.imports.set_status_of_all(call, &bulk)?;
        let expected = Some(counted.matched);
        self.here.imports.set_status_of_all(call, &Bulk { dry_run: false, expected, ..bulk })
    }
}
