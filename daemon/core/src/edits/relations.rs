//! Adds and withdraws relations between memories.

use satchel_merge::evidence::EditAction;
use satchel_pam::{
    ids,
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::Change;

use super::{EditContext, EditError, EditOutcome, Edits};

/// A relation that the user adds.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRelation {
    /// The id of the source memory.
    pub from: String,
    /// The id of the target memory.
    pub to: String,
    /// The type of the relation.
    pub relation_type: RelationType,
    /// The confidence, from 0 to 1.
    pub confidence: Option<f64>,
}

impl Edits {
    /// Adds a relation, or returns the existing one between the same memories with the same type.
    ///
    /// # Errors
    /// When an end is not visible, when the type is `supersedes` (which follows from a memory's status), or when the
    /// store returns an error.
    pub fn draw_relation(&self, call: &EditContext, new: &NewRelation) -> Result<EditOutcome, EditError> {
        let NewRelation { from, to, relation_type, confidence } = new.clone();
        if from == to {
            return Err(EditError::invalid(
                "relation.to_id",
                "names the memory that the relation comes from",
            ));
        }
        if relation_type == RelationType::Supersedes {
            let problem = "is supersedes, which is drawn by the memory that is replaced: supersede that one";
            return Err(EditError::invalid("relation.type", problem));
        }
        if confidence.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(EditError::invalid("relation.confidence", "is not within 0 to 1"));
        }
        self.transact(call, |act| {
            for end in [&from, &to] {
                act.shown(end, "")?;
            }
            let id = ids::relation_id(&from, &to, relation_type).to_string();
            act.done.relations.push(id.clone());
            let stored = act.store.relation(&id, None)?;
            if stored.as_ref().is_some_and(|stored| !stored.withdrawn) {
                act.done.existed = true;
                return Ok(());
            }
            let last = stored.map_or(i64::MIN, |stored| stored.origin.at_micros);
            let at = act.now.max(last.saturating_add(1));
            let created_at = Timestamp::saturating(at);
            let relation = Relation { id, from, to, relation_type, confidence, created_at };
            act.record(at, EditAction::AddRelation(relation.clone()))?;
            act.change(Change::Relation(relation));
            Ok(())
        })
    }

    /// Withdraws a relation. It stays in the history, and no import adds it again.
    ///
    /// # Errors
    /// [`EditError::NoRelation`]; when the relation follows from a memory's status; or when the store returns an error.
    pub fn withdraw_relation(&self, call: &EditContext, id: &str) -> Result<EditOutcome, EditError> {
        self.transact(call, |act| {
            let stored = act.store.relation(id, None)?.filter(|stored| !stored.withdrawn);
            let stored = stored.ok_or_else(|| EditError::NoRelation(id.to_owned()))?;
            let Relation { from, to, relation_type, .. } = stored.relation;
            let target = act.store.memory(&to, None)?.and_then(|target| target.memory.temporal.superseded_by);
            if relation_type == RelationType::Supersedes && target.as_ref() == Some(&from) {
                let problem = format!(
                    "it says that memory {to:?} was replaced, and so does that memory; give that one an earlier version back"
                );
                return Err(EditError::state(id, problem));
            }
            let at = act.now.max(stored.origin.at_micros.saturating_add(1));
            act.done.relations.push(id.to_owned());
            act.record(at, EditAction::WithdrawRelation(id.to_owned()))?;
            act.change(Change::WithdrawRelation(id.to_owned()));
            Ok(())
        })
    }
}
