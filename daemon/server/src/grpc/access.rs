//! What a caller may see and change. Every path to records goes through here.
//!
//! A device that does not see everything sees a memory as of any revision only if it may see the memory *now*: access
//! that was withdrawn hides earlier versions too. A record that a caller does not see looks exactly like one that does
//! not exist.

use satchel_devices::{MemoryAccess, MemoryFacts, RecordFacts, Role};
use satchel_pam::memory::Memory;
use satchel_proto::v1;
use satchel_store::{
    ConversationRecord, ConversationSummary, MemoryRecord, RelationRecord, Revision, UNKNOWN_TIME,
};

use super::{
    call_state::CallState,
    guard::{may_read_conversations, permits},
    status::{CallError, ResourceKind},
    wire::memory::View,
};

/// The keys of PAM `metadata` that agents see: those that PAM itself defines (§10). Others are of the provider or of the
/// daemon, and may name the account or a conversation.
const SHOWN_METADATA: [&str; 2] = ["language", "domain"];

/// Returns a time; `None` if it says that the time is not known.
fn known_time(micros: i64) -> Option<i64> {
    (micros != UNKNOWN_TIME).then_some(micros)
}

impl CallState {
    /// Returns whether the caller sees every memory and conversation.
    pub(super) fn sees_everything(&self) -> bool {
        self.device().is_none_or(|device| device.policy.unrestricted())
    }

    /// Returns whether fields that identify the person or her conversations are left out.
    pub(super) fn is_agent(&self) -> bool {
        self.device().is_some_and(|device| device.policy.role == Role::Agent)
    }

    fn memory_access(&self, memory: &Memory) -> MemoryAccess {
        let Some(device) = self.device() else {
            return MemoryAccess { read: true, write: true, delete: true };
        };
        device.policy.access_to(&MemoryFacts {
            record: RecordFacts {
                platform: &memory.provenance.platform,
                tags: &memory.tags,
                created_at: known_time(memory.temporal.created_at.micros()),
            },
            memory_type: memory.memory_type.as_str(),
            access: memory.access.as_ref(),
        })
    }

    /// Returns whether this version of a memory, judged by itself, is visible to the caller. Use
    /// [`CallState::sees_memory`] for what is shown now.
    pub(super) fn sees_memory_version(&self, record: &MemoryRecord) -> bool {
        self.memory_access(&record.memory).read
    }

    /// Returns whether the caller may see a version of a memory now: the current version decides.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn sees_memory(&self, record: &MemoryRecord) -> Result<bool, CallError> {
        if self.sees_everything() {
            return Ok(true);
        }
        Ok(self.access_now(&record.memory.id)?.read)
    }

    /// Returns what the caller may do with a memory now.
    fn access_now(&self, id: &str) -> Result<MemoryAccess, CallError> {
        let current =
            self.store.memory(id, None)?.filter(|record| !record.withdrawn || self.sees_everything());
        Ok(current.map_or_else(MemoryAccess::default, |current| self.memory_access(&current.memory)))
    }

    /// Returns a memory as of a revision.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is none, or the caller does not see it.
    pub(super) fn visible_memory(&self, id: &str, revision: Revision) -> Result<MemoryRecord, CallError> {
        let record = self.store.memory(id, Some(revision))?;
        let missing = || CallError::not_found(ResourceKind::Memory, id);
        let record = record.ok_or_else(missing)?;
        if self.sees_memory(&record)? { Ok(record) } else { Err(missing()) }
    }

    /// Returns the record if the caller sees it.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn only_visible(
        &self,
        record: Option<MemoryRecord>,
    ) -> Result<Option<MemoryRecord>, CallError> {
        match record {
            Some(record) if self.sees_memory(&record)? => Ok(Some(record)),
            _ => Ok(None),
        }
    }

    /// Returns those of the ids that name memories that the caller sees.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn visible_memory_ids(&self, ids: Vec<String>) -> Result<Vec<String>, CallError> {
        let visible = |id: String| Ok(self.access_now(&id)?.read.then_some(id));
        ids.into_iter().filter_map(|id| visible(id).transpose()).collect()
    }

    /// Checks that the caller may change a memory.
    ///
    /// # Errors
    /// `NOT_FOUND` if the caller does not see it, `PERMISSION_DENIED` if it may only read it.
    pub(super) fn check_writable(&self, id: &str) -> Result<(), CallError> {
        self.check_access(id, |access| access.write, "change")
    }

    /// Checks that the caller may retract, archive or deprecate a memory.
    ///
    /// # Errors
    /// As [`CallState::check_writable`].
    pub(super) fn check_deletable(&self, id: &str) -> Result<(), CallError> {
        self.check_access(id, |access| access.delete, "retract")
    }

    fn check_access(
        &self,
        id: &str,
        permits: impl Fn(MemoryAccess) -> bool,
        action: &str,
    ) -> Result<(), CallError> {
        if self.device().is_none() {
            return Ok(());
        }
        let access = self.access_now(id)?;
        if !access.read {
            return Err(CallError::not_found(ResourceKind::Memory, id));
        }
        if permits(access) {
            return Ok(());
        }
        Err(self.denied(&format!("may read the memory {id:?}, but not {action} it")))
    }

    /// Checks that the caller may change any memory, for changes that affect several.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` for a device that does not see everything, or whose role is not owner.
    pub(super) fn check_owner(&self, action: &str) -> Result<(), CallError> {
        match self.device() {
            None => Ok(()),
            Some(device) if device.policy.role == Role::Owner && device.policy.unrestricted() => Ok(()),
            Some(_) => Err(self.denied(&format!("may not {action}: only the owner may"))),
        }
    }

    /// Checks that the caller is not an agent whose changes the owner wants to review.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` for an agent without trusted writes, whatever it wants to change.
    pub(super) fn check_trusted(&self) -> Result<(), CallError> {
        match self.device() {
            Some(device) if self.is_agent() && !device.policy.trusted_writes => Err(self.denied(
                "may add memories for the owner to review, but change nothing; the owner can trust it with `satchel devices update --trusted-writes`",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the caller is not an agent.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` for an agent.
    pub(super) fn check_no_agent(&self, action: &str) -> Result<(), CallError> {
        if self.is_agent() { Err(self.denied(&format!("is an agent and may not {action}"))) } else { Ok(()) }
    }

    /// Checks that the caller may add memories that are compared with all others. Those of agents are not.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` for a device that does not see everything: the answer would tell whether the memory exists.
    pub(super) fn check_may_add(&self) -> Result<(), CallError> {
        if self.sees_everything() {
            return Ok(());
        }
        Err(self.denied("may not add memories, as it does not see all of them"))
    }

    /// Checks that the caller runs on the daemon's machine, because `field` names a path there.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` for a device.
    pub(super) fn check_local(&self, field: &str) -> Result<(), CallError> {
        if self.device().is_none() {
            return Ok(());
        }
        Err(self.denied(&format!("may not set {field}, which names a path on the daemon's machine")))
    }

    /// Checks that the caller sees every memory and conversation, for exports: they contain everything.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` for a device that does not.
    pub(super) fn check_sees_everything(&self, action: &str) -> Result<(), CallError> {
        if self.sees_everything() {
            return Ok(());
        }
        Err(self.denied(&format!("may not {action}, as it does not see everything that is in them")))
    }

    fn denied(&self, rest: &str) -> CallError {
        let name = self.device().map_or_else(String::new, |device| device.name.clone());
        CallError::AccessDenied { problem: format!("the device {name:?} {rest}") }
    }

    /// Returns whether the caller may follow an operation of this kind: it needs the permission of the method that starts
    /// such operations.
    pub(super) fn sees_operation(&self, kind: v1::OperationKind) -> bool {
        let scope = match kind {
            v1::OperationKind::Unspecified => v1::Scope::Admin,
            v1::OperationKind::Import | v1::OperationKind::UndoImport | v1::OperationKind::RedoImport => {
                v1::Scope::Imports
            }
            v1::OperationKind::Export | v1::OperationKind::VerifyExport => v1::Scope::Exports,
            v1::OperationKind::Backup | v1::OperationKind::VerifyStore => v1::Scope::Admin,
            v1::OperationKind::PluginInstall => v1::Scope::Plugins,
        };
        self.device().is_none_or(|device| permits(device, scope))
    }

    /// Returns whether the caller may read conversations: all, or those that it recorded itself.
    pub(super) fn may_read_conversations(&self) -> bool {
        self.device().is_none_or(may_read_conversations)
    }

    /// Returns whether this version of a conversation, judged by itself, is visible to the caller. `own` says whether it
    /// [recorded](CallState::recorded_by_caller) the conversation.
    pub(super) fn sees_conversation_version(&self, record: &ConversationRecord, own: bool) -> bool {
        let header = &record.header;
        let facts = RecordFacts {
            platform: &header.provider.name,
            tags: &header.tags,
            created_at: known_time(header.temporal.created_at.micros()),
        };
        self.device().is_none_or(|device| device.policy.reads_conversation(&facts, own))
    }

    /// Returns whether the caller is an agent that recorded a conversation.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn recorded_by_caller(&self, id: &str) -> Result<bool, CallError> {
        let Some(agent) = self.device().filter(|_| self.is_agent()) else { return Ok(false) };
        Ok(self.imports.recordings().recorded_by(id, agent.id.as_str())?)
    }

    /// Checks that the caller may append messages to a conversation: an agent only to those that it recorded itself.
    ///
    /// # Errors
    /// `NOT_FOUND` if the caller does not see it, `PERMISSION_DENIED` if it may only read it.
    pub(super) fn check_may_append(&self, id: &str) -> Result<(), CallError> {
        if self.device().is_none() || self.recorded_by_caller(id)? {
            return Ok(());
        }
        if !self.sees_conversation_now(id)? {
            return Err(CallError::not_found(ResourceKind::Conversation, id));
        }
        if self.is_agent() {
            return Err(self.denied(&format!(
                "may read the conversation {id:?}, but append only to those that it recorded itself"
            )));
        }
        Ok(())
    }

    /// Returns whether a version of a conversation may be shown now: the current version decides.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn sees_conversation_record(&self, record: &ConversationRecord) -> Result<bool, CallError> {
        Ok(self.sees_everything() || self.sees_conversation_now(&record.header.id)?)
    }

    /// Does the same as [`CallState::sees_conversation_record`], for a row of the list.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn sees_conversation_summary(&self, summary: &ConversationSummary) -> Result<bool, CallError> {
        Ok(self.sees_everything() || self.sees_conversation_now(&summary.id)?)
    }

    /// Returns those of the ids that name conversations that the caller sees.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn visible_conversation_ids(&self, ids: Vec<String>) -> Result<Vec<String>, CallError> {
        let visible = |id: String| Ok(self.sees_conversation_now(&id)?.then_some(id));
        ids.into_iter().filter_map(|id| visible(id).transpose()).collect()
    }

    fn sees_conversation_now(&self, id: &str) -> Result<bool, CallError> {
        let current = self.store.conversation(id, None)?.filter(|record| !record.withdrawn);
        let Some(record) = current else { return Ok(false) };
        // The ledger is read only if it makes a difference.
        Ok(self.sees_conversation_version(&record, false)
            || (self.sees_conversation_version(&record, true) && self.recorded_by_caller(id)?))
    }

    /// Returns whether both memories of a relation are visible to the caller.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn sees_relation(&self, record: &RelationRecord) -> Result<bool, CallError> {
        if self.sees_everything() {
            return Ok(true);
        }
        Ok(self.access_now(&record.relation.from)?.read && self.access_now(&record.relation.to)?.read)
    }

    /// Returns a memory as the caller sees it, with its confidence as of now.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn memory_row(&self, mut record: MemoryRecord, view: View) -> Result<v1::Memory, CallError> {
        self.redact(&mut record)?;
        self.memory_with_decay(record, view)
    }

    /// Removes what the caller does not see from a memory that it sees.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) fn redact(&self, record: &mut MemoryRecord) -> Result<(), CallError> {
        if self.sees_everything() {
            return Ok(());
        }
        let memory = &mut record.memory;
        if let Some(successor) = &memory.temporal.superseded_by
            && !self.access_now(successor)?.read
        {
            memory.temporal.superseded_by = None;
        }
        if self.is_agent() {
            memory.provenance.platform_user_id = None;
        }
        if let Some(conversation) = &memory.provenance.conversation_ref
            && (self.is_agent() || !self.sees_conversation_now(conversation)?)
        {
            memory.provenance.conversation_ref = None;
            memory.provenance.message_ref = None;
        }
        if self.is_agent() {
            memory.metadata.retain(|key, _| SHOWN_METADATA.contains(&key.as_str()));
            memory.access = memory.access.take().map(|access| self.own_grants(access));
        }
        Ok(())
    }

    /// Leaves out the grants of other entities.
    fn own_grants(&self, mut access: satchel_pam::memory::Access) -> satchel_pam::memory::Access {
        let entity = self.device().map_or("", |device| device.policy.entity.as_str());
        access.shared_with.retain(|grant| grant.entity == entity);
        access
    }

    /// Refuses filters by fields that an agent does not see; its answers would reveal them.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`.
    pub(super) fn check_filter(&self, filter: Option<&v1::MemoryFilter>) -> Result<(), CallError> {
        let Some(filter) = filter.filter(|_| self.is_agent()) else { return Ok(()) };
        for (field, set) in [
            ("filter.accounts", !filter.accounts.is_empty()),
            ("filter.conversation_id", !filter.conversation_id.is_empty()),
        ] {
            if set {
                return Err(CallError::invalid_field(field, "must be empty: this device does not see it"));
            }
        }
        Ok(())
    }
}
