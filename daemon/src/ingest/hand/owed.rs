//! Completes a change that a kill cut off: its words are stored, all of them, and what follows from them is not.

use satchel_store::{Change, Origin, Store};
use serde::{Deserialize, Serialize};

use super::{Act, Call, HandError, Inner};
use crate::{
    ingest::memories::known,
    lineage::{self, Counted},
    plan::evidence::Spoken,
};

/// As it lies in the mark: who made which change, and why.
#[derive(Serialize, Deserialize)]
struct Owed {
    act: String,
    actor: String,
    reason: String,
    at: i64,
}

/// Says that of this act the words are stored, and perhaps not all that follows from them.
pub(super) fn mark(act: &str, origin: &Origin) -> Result<Change, HandError> {
    let Origin { actor, reason, at_micros, .. } = origin.clone();
    let owed = Owed { act: act.to_owned(), actor, reason, at: at_micros };
    let text = serde_json::to_string(&owed).map_err(|_| HandError::Unencodable { what: "a change" })?;
    Ok(known::mark(&text))
}

impl Inner {
    /// Completes the change that is owed, if one is. Nobody writes meanwhile.
    pub(in crate::ingest) fn complete_by_hand(&self) -> Result<(), HandError> {
        let Some(Owed { act, actor, reason, at }) = owed(&self.store)? else { return Ok(()) };
        tracing::info!(change = act, "a change is completed that a stop of the program interrupted");
        let mut counted = Counted::of(&self.store, &lineage::undone(&self.store)?)?;
        let after = counted.derive();
        counted.words.retain(|word| word.act != act);
        counted.spoken = Spoken::of(&counted.words);
        let call = Call { actor: actor.clone(), reason: reason.clone(), request: None };
        let mut completing = Act::new(&self.store, &call, at);
        completing.turn(&counted.derive(), after)?;
        completing.settle(&Origin { import: None, actor, reason, at_micros: at })
    }
}

/// The change of the mark; none, if there is none, or an import set it, which the next one completes.
fn owed(store: &Store) -> Result<Option<Owed>, HandError> {
    let mark = known::by(store)?.filter(|mark| mark.starts_with(b"{"));
    let owed = mark.map(|mark| serde_json::from_slice(&mark)).transpose();
    owed.map_err(|_| HandError::Unencodable { what: "what is owed of a change" })
}
