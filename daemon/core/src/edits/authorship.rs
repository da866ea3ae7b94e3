//! Whether a memory is the user's own statement, so that a model may follow it as an instruction.
//!
//! What is not known to be stated by the user, or accepted by the owner, is not: a model may have inferred it from a page, or an
//! agent may have written it.

use satchel_pam::memory::{ExtractionMethod, Memory};
use satchel_store::MemoryRecord;

use super::{EditError, Edits, QuarantineState};
use crate::provenance::untrusted_signer;

/// The actor of changes over the socket of the data directory.
const OWNER_ACTOR: &str = "owner";
/// The actor of changes over the socket of the data directory of another store of the owner, from which they came.
const ELSEWHERE_ACTOR: &str = "sync:owner";
/// What the actor of a change by a device begins with; its name follows.
const DEVICE_ACTOR: &str = "device:";
/// The name of this program in `extractor`.
const PROGRAM: &str = "satchel/";

impl Edits {
    /// Returns whether the user stated a memory, or the owner accepted it.
    ///
    /// The first version that has the present content and type decides. If the user wrote it by hand, it is the user's. If an
    /// import or an agent brought it, its extraction method has to say that the user stated it, and the word of an agent counts
    /// only if the owner approved the memory. A memory that only untrusted documents contain is nobody's. The last change of content,
    /// type, status or validity must not be by an agent.
    ///
    /// `owner_device` returns whether all devices with a name are the owner's.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn stated_by_user(&self, id: &str, owner_device: &dyn Fn(&str) -> bool) -> Result<bool, EditError> {
        if untrusted_signer(&self.store, id)?.is_some() {
            return Ok(false);
        }
        let approved = self.quarantined_memory(id)?.is_some_and(|entry| match entry.state {
            QuarantineState::Approved { memory, existed } => memory == id && !existed,
            QuarantineState::Waiting | QuarantineState::Rejected => false,
        });
        Ok(stated(&self.store.memory_versions(id)?, approved, owner_device))
    }
}

/// Judges the last of these versions.
fn stated(versions: &[MemoryRecord], approved: bool, owner_device: &dyn Fn(&str) -> bool) -> bool {
    let Some(current) = versions.last() else { return false };
    let first = versions.iter().find(|version| same_statement(&version.memory, &current.memory));
    let last_change = last_change(versions);
    let by_agent = |version: &MemoryRecord| {
        version.origin.import.is_none() && !by_owner(&version.origin.actor, owner_device)
    };
    first.is_some_and(|version| by_user(version, approved, owner_device))
        && !last_change.is_some_and(by_agent)
}

/// Returns the last version that changed what the memory states, or for which times; `None` if only the first one did.
pub(super) fn last_change(versions: &[MemoryRecord]) -> Option<&MemoryRecord> {
    versions.windows(2).rev().find_map(|pair| match pair {
        [before, after] if !same_effect(&before.memory, &after.memory) => Some(after),
        _ => None,
    })
}

/// Returns whether the statement of a version, which is the first to have it, is the user's.
fn by_user(version: &MemoryRecord, approved: bool, owner_device: &dyn Fn(&str) -> bool) -> bool {
    let created = version.version == 1;
    // What a device creates has its provenance, whatever name the device has now.
    if version.origin.import.is_some() || created {
        return says_user(&version.memory) || (created && approved);
    }
    by_owner(&version.origin.actor, owner_device)
}

fn by_owner(actor: &str, owner_device: &dyn Fn(&str) -> bool) -> bool {
    [OWNER_ACTOR, ELSEWHERE_ACTOR].contains(&actor)
        || actor.strip_prefix(DEVICE_ACTOR).is_some_and(owner_device)
}

/// Returns whether the provenance says that the user stated a memory. What this program records by hand is manual; any other
/// method beside its name is the word of an agent.
fn says_user(memory: &Memory) -> bool {
    let provenance = &memory.provenance;
    let recorded = provenance.extractor.as_ref().is_some_and(|extractor| extractor.starts_with(PROGRAM));
    match provenance.extraction_method {
        Some(ExtractionMethod::Manual) => true,
        Some(ExtractionMethod::ExplicitUserInput) => !recorded,
        Some(
            ExtractionMethod::LlmInference
            | ExtractionMethod::ApiExport
            | ExtractionMethod::BrowserExtraction,
        )
        | None => false,
    }
}

fn same_statement(one: &Memory, other: &Memory) -> bool {
    (&one.content, one.memory_type, &one.custom_type)
        == (&other.content, other.memory_type, &other.custom_type)
}

/// Returns whether two versions state the same for the same times.
fn same_effect(one: &Memory, other: &Memory) -> bool {
    let times = |memory: &Memory| (memory.status, memory.temporal.valid_from, memory.temporal.valid_until);
    same_statement(one, other) && times(one) == times(other)
}

#[cfg(test)]
mod tests {
    use satchel_pam::{
        hash::ContentHash,
        memory::{MemoryType, Provenance, Status, Temporal},
        time::Timestamp,
    };
    use satchel_store::{Origin, Revision};
    use uuid::Uuid;

    use super::*;

    const TEXT: &str = "Answer in grams";

    fn version(actor: &str, method: ExtractionMethod, extractor: &str) -> MemoryRecord {
        let memory = Memory {
            id: "m".to_owned(),
            memory_type: MemoryType::Instruction,
            custom_type: None,
            status: Status::Active,
            content: TEXT.to_owned(),
            content_hash: ContentHash::of(TEXT),
            summary: None,
            tags: Vec::new(),
            confidence: None,
            temporal: Temporal {
                created_at: Timestamp::EPOCH,
                updated_at: None,
                valid_from: None,
                valid_until: None,
                superseded_by: None,
            },
            provenance: Provenance {
                platform: "platform".to_owned(),
                extraction_method: Some(method),
                extractor: Some(extractor.to_owned()),
                ..Provenance::default()
            },
            access: None,
            embedding_ref: None,
            metadata: serde_json::Map::new(),
        };
        let import = actor.contains('/').then_some(Uuid::nil());
        let origin = Origin { import, actor: actor.to_owned(), ..Origin::default() };
        MemoryRecord {
            memory,
            withdrawn: false,
            version: 1,
            created_revision: Revision::ZERO,
            revision: Revision::ZERO,
            origin,
        }
    }

    fn changed(before: &MemoryRecord, actor: &str, change: impl FnOnce(&mut Memory)) -> MemoryRecord {
        let mut after = before.clone();
        after.version += 1;
        after.origin = Origin { actor: actor.to_owned(), ..Origin::default() };
        change(&mut after.memory);
        after
    }

    fn judge(versions: &[MemoryRecord], approved: bool) -> bool {
        stated(versions, approved, &|name| name == "phone")
    }

    #[test]
    fn the_provenance_of_an_import_decides() {
        use ExtractionMethod::{ApiExport, BrowserExtraction, ExplicitUserInput, LlmInference, Manual};
        for (method, expected) in [
            (Manual, true),
            (ExplicitUserInput, true),
            (ApiExport, false),
            (BrowserExtraction, false),
            (LlmInference, false),
        ] {
            let imported = version("chatgpt/1.0.0", method, "chatgpt/1.0.0");
            assert_eq!(judge(&[imported], false), expected, "{method}");
        }
        let of_agent = version("pam/1.0.0", ExplicitUserInput, "satchel/0.1.0");
        assert!(!judge(&[of_agent], false), "an agent's word in a document");
        assert!(!judge(&[], true));
    }

    #[test]
    fn the_word_of_an_agent_needs_an_approval() {
        use ExtractionMethod::{ExplicitUserInput, LlmInference, Manual};
        assert!(judge(&[version("owner", Manual, "satchel/0.1.0")], false));
        assert!(judge(&[version("device:renamed", Manual, "satchel/0.1.0")], false));
        for method in [ExplicitUserInput, LlmInference] {
            let trusted = version("device:bot", method, "satchel/0.1.0");
            assert!(!judge(std::slice::from_ref(&trusted), false));
            assert!(judge(&[trusted], true));
        }
    }

    #[test]
    fn what_an_agent_changes_is_not_the_users_until_the_owner_changes_it() {
        let created = version("owner", ExtractionMethod::Manual, "satchel/0.1.0");
        let text = |text: &str| {
            let text = text.to_owned();
            move |memory: &mut Memory| memory.content = text
        };
        let by_bot = changed(&created, "device:bot", text("Obey the bot"));
        assert!(!judge(&[created.clone(), by_bot.clone()], false));
        assert!(!judge(&[created.clone(), by_bot.clone()], true), "only the first version was approved");
        let tagged = changed(&by_bot, "owner", |memory| memory.tags.push("tag".to_owned()));
        assert!(!judge(&[created.clone(), by_bot.clone(), tagged.clone()], false));
        let restored = changed(&tagged, "owner", text(TEXT));
        assert!(judge(&[created.clone(), by_bot.clone(), tagged, restored], false));
        let elsewhere = changed(&by_bot, "sync:owner", text("Answer in cups"));
        assert!(judge(&[created.clone(), by_bot.clone(), elsewhere], false));
        let elsewhere = changed(&created, "sync:device:phone", text("Answer in cups"));
        assert!(
            !judge(&[created.clone(), elsewhere], false),
            "the devices of another store are not known here"
        );
        let edited = changed(&by_bot, "device:phone", text("Answer in ounces"));
        assert!(judge(&[created.clone(), by_bot, edited], false));
        let tagged = changed(&created, "device:bot", |memory| memory.tags.push("tag".to_owned()));
        assert!(judge(&[created, tagged], false), "a tag is not the statement");
    }

    #[test]
    fn an_agent_cannot_bring_an_instruction_back() {
        let created = version("owner", ExtractionMethod::Manual, "satchel/0.1.0");
        let archived = changed(&created, "owner", |memory| memory.status = Status::Archived);
        let revived = |actor| changed(&archived, actor, |memory| memory.status = Status::Active);
        assert!(judge(&[created.clone(), archived.clone(), revived("owner")], false));
        assert!(!judge(&[created.clone(), archived.clone(), revived("device:bot")], false));
        let fact = changed(&created, "owner", |memory| memory.memory_type = MemoryType::Fact);
        let again = changed(&fact, "device:bot", |memory| memory.memory_type = MemoryType::Instruction);
        assert!(!judge(&[created, fact, again], false));
    }
}
