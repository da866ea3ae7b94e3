//! The rules for what a device may read and change, the same for all methods.

use std::collections::BTreeSet;

use satchel_pam::memory::{Access, Permission, Visibility};
use serde::{Deserialize, Serialize};

use crate::error::DevicesError;

/// Shortest and longest platform that PAM allows, in characters.
const MIN_PLATFORM_CHARS: usize = 2;
const MAX_PLATFORM_CHARS: usize = 32;
/// The platform of an agent whose entity has no characters that PAM allows.
const UNNAMED_PLATFORM: &str = "agent";

/// What kind of user a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The person whose memories these are.
    Owner,
    /// A device that shows memories and changes nothing.
    Reader,
    /// A program that acts for the person: it sees what is public or shared with its entity.
    Agent,
    /// Another daemon, which exchanges changes.
    Peer,
}

/// A group of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Reading memories.
    MemoriesRead,
    /// Creating and changing memories.
    MemoriesWrite,
    /// Deleting memories.
    MemoriesDelete,
    /// Reading conversations.
    ConversationsRead,
    /// Recording conversations.
    ConversationsWrite,
    /// Importing files.
    Imports,
    /// Exporting.
    Exports,
    /// Installing and removing importers.
    Plugins,
    /// Pairing and revoking devices.
    Devices,
    /// Everything else that changes the daemon.
    Admin,
    /// Exchanging changes. Only for peers, which have no other scope.
    Sync,
}

impl Scope {
    /// All scopes that a device other than a peer may have.
    pub const ALL: [Self; 10] = [
        Self::MemoriesRead,
        Self::MemoriesWrite,
        Self::MemoriesDelete,
        Self::ConversationsRead,
        Self::ConversationsWrite,
        Self::Imports,
        Self::Exports,
        Self::Plugins,
        Self::Devices,
        Self::Admin,
    ];
}

/// The part of the memories and conversations that a device works with, or that a peer gets. An empty set does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Platforms that they may come from.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub platforms: BTreeSet<String>,
    /// Tags of which they must have one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Types that memories may have. Conversations have no type, and are not restricted by this.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub types: BTreeSet<String>,
    /// Tags that they must not have.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub denied_tags: BTreeSet<String>,
    /// When they were created. Those of which that is not known are in no period that has a bound.
    #[serde(default, skip_serializing_if = "Period::is_unbounded")]
    pub created: Period,
    /// Whether memories that exports must not contain (PAM `access.exportable`) are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exportable_only: bool,
}

/// A period of time, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    /// The first moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// The first moment after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl Period {
    /// Returns whether it has no bound.
    #[must_use]
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }

    fn contains(&self, at: Option<i64>) -> bool {
        self.is_unbounded()
            || at.is_some_and(|at| {
                self.from.is_none_or(|from| at >= from) && self.until.is_none_or(|until| at < until)
            })
    }
}

impl Selection {
    /// Returns whether everything is selected.
    pub fn is_empty(&self) -> bool {
        let Self { platforms, tags, types, denied_tags, created, exportable_only } = self;
        [platforms, tags, types, denied_tags].iter().all(|set| set.is_empty())
            && created.is_unbounded()
            && !exportable_only
    }

    /// Returns whether it contains a conversation.
    #[must_use]
    pub fn contains_conversation(&self, conversation: &RecordFacts<'_>) -> bool {
        let RecordFacts { platform, tags, created_at } = *conversation;
        (self.platforms.is_empty() || self.platforms.contains(platform))
            && (self.tags.is_empty() || tags.iter().any(|tag| self.tags.contains(tag)))
            && !tags.iter().any(|tag| self.denied_tags.contains(tag))
            && self.created.contains(created_at)
    }

    /// Returns whether it contains a memory.
    #[must_use]
    pub fn contains_memory(&self, memory: &MemoryFacts<'_>) -> bool {
        (self.types.is_empty() || self.types.contains(memory.memory_type))
            && (!self.exportable_only || memory.access.is_none_or(|access| access.exportable))
            && self.contains_conversation(&memory.record)
    }
}

/// The parts of a memory or conversation that decide whether a selection contains it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordFacts<'a> {
    /// Platform of its provenance, or its provider.
    pub platform: &'a str,
    /// Its tags.
    pub tags: &'a [String],
    /// When it was created, in microseconds since the Unix epoch; `None` if that is not known.
    pub created_at: Option<i64>,
}

/// The parts of a memory that decide who may read and change it.
#[derive(Clone, Copy, Debug)]
pub struct MemoryFacts<'a> {
    /// What it has in common with conversations.
    pub record: RecordFacts<'a>,
    /// Its type, as in the document.
    pub memory_type: &'a str,
    /// Its access block; `None` is private.
    pub access: Option<&'a Access>,
}

/// What a device may do with a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryAccess {
    /// It may see it, and that it exists.
    pub read: bool,
    /// It may change it.
    pub write: bool,
    /// It may delete it.
    pub delete: bool,
}

/// What a device may do. It is set by an owner when the device is paired, and may be changed later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The kind of user.
    pub role: Role,
    /// The calls that it may make.
    pub scopes: BTreeSet<Scope>,
    /// The name in grants of memories (`access.shared_with[].entity`); needed for agents, unused for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entity: String,
    /// What it may see at all. Of a peer: what it gets.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub selection: Selection,
    /// Whether what an agent writes is stored at once, without the owner's review. Only for agents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted_writes: bool,
}

impl Policy {
    /// Returns the usual policy of a role: owners may do everything, readers read, and agents also record conversations
    /// and write memories. Nothing is left out by a selection.
    #[must_use]
    pub fn for_role(role: Role, entity: &str) -> Self {
        let scopes = match role {
            Role::Owner => Scope::ALL.into(),
            Role::Reader => [Scope::MemoriesRead, Scope::ConversationsRead].into(),
            Role::Agent => [Scope::MemoriesRead, Scope::MemoriesWrite, Scope::ConversationsWrite].into(),
            Role::Peer => [Scope::Sync].into(),
        };
        let (entity, selection) = (entity.to_owned(), Selection::default());
        Self { role, scopes, entity, selection, trusted_writes: false }
    }

    /// Checks that the policy makes sense.
    ///
    /// # Errors
    /// An agent has no entity, another device has trusted writes, or a peer has other permissions than peers have.
    pub fn check(&self) -> Result<(), DevicesError> {
        if self.role == Role::Agent && self.entity.trim().is_empty() {
            return Err(DevicesError::Policy {
                problem: "of an agent needs an entity, to which memories can be shared",
            });
        }
        if self.role != Role::Agent && self.trusted_writes {
            return Err(DevicesError::Policy { problem: "has trusted writes, which are only for agents" });
        }
        let syncs = self.scopes.contains(&Scope::Sync);
        if (self.role == Role::Peer) != syncs || (syncs && self.scopes.len() > 1) {
            return Err(DevicesError::Policy {
                problem: "has other permissions than its role allows: a peer exchanges changes, and nothing else does",
            });
        }
        Ok(())
    }

    /// Returns the PAM platform of what an agent writes: its entity in lower case, with `-` in place of characters that
    /// PAM does not allow. Different entities may have the same platform.
    #[must_use]
    pub fn platform(&self) -> String {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let words: String =
            self.entity.to_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
        let words = words.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
        let cut: String = words.chars().take(MAX_PLATFORM_CHARS).collect();
        let platform = cut.trim_end_matches('-');
        if platform.len() < MIN_PLATFORM_CHARS { UNNAMED_PLATFORM.to_owned() } else { platform.to_owned() }
    }

    /// Returns whether it may make calls of this scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Returns what it may do with a memory. Each right needs its scope, and the memory must be selected. Agents need
    /// more:
    ///
    /// - to read, that the memory is public, or is shared and grants `read` to the agent's entity;
    /// - to write or delete, that the memory is not private and grants this to the agent's entity.
    ///
    /// A memory that is shared with nobody is private.
    pub fn access_to(&self, memory: &MemoryFacts<'_>) -> MemoryAccess {
        if !self.selection.contains_memory(memory) {
            return MemoryAccess::default();
        }
        let allows = |permission| match self.role {
            Role::Owner | Role::Reader => true,
            Role::Agent => memory.access.is_some_and(|access| self.agent_may(access, permission)),
            Role::Peer => false,
        };
        MemoryAccess {
            read: self.may(Scope::MemoriesRead) && allows(Permission::Read),
            write: self.may(Scope::MemoriesWrite) && allows(Permission::Write),
            delete: self.may(Scope::MemoriesDelete) && allows(Permission::Delete),
        }
    }

    /// Returns whether it may read a conversation. Agents without the scope read only those that they have recorded
    /// themselves.
    pub fn reads_conversation(&self, conversation: &RecordFacts<'_>, recorded_by_caller: bool) -> bool {
        let own = self.role == Role::Agent && recorded_by_caller;
        (self.may(Scope::ConversationsRead) || own) && self.selection.contains_conversation(conversation)
    }

    /// Returns whether it sees every memory and every conversation, so that nothing needs to be filtered.
    pub fn unrestricted(&self) -> bool {
        matches!(self.role, Role::Owner | Role::Reader)
            && self.may(Scope::MemoriesRead)
            && self.may(Scope::ConversationsRead)
            && self.selection.is_empty()
    }

    fn agent_may(&self, access: &Access, permission: Permission) -> bool {
        let granted = || {
            !self.entity.is_empty()
                && access
                    .shared_with
                    .iter()
                    .any(|grant| grant.entity == self.entity && grant.permissions.contains(&permission))
        };
        match access.visibility {
            Visibility::Private => false,
            Visibility::Shared => granted(),
            // Public is for reading only.
            Visibility::Public => permission == Permission::Read || granted(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
