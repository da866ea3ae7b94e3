//! The commands for memories and conversations.

use clap::{Args, Subcommand};

use super::{
    AddArgs, ContradictionsArgs, ConversationFilterArgs, DuplicatesArgs, EditArgs, GroupingArg,
    MemoryFilterArgs, MemoryReadArgs, Paging, PurgeArgs, RelatedArgs, ReviewArgs, StatusArgs, UndoEditArgs,
    edits, examples, links, purge,
};

/// `memories …`.
#[derive(Debug, Subcommand)]
pub enum Memories {
    /// List memories, most recently changed first
    #[command(after_help = examples::MEMORIES_LIST)]
    List {
        #[command(flatten)]
        select: MemoryFilterArgs,
        #[command(flatten)]
        read: MemoryReadArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a memory and its provenance
    #[command(after_help = examples::MEMORIES_SHOW)]
    Show {
        #[command(flatten)]
        id: Id,
        /// Show the memory as it was at this revision of the store; `memories history` lists revisions
        #[arg(long, value_name = "N")]
        revision: Option<i64>,
    },
    /// Show all versions of a memory, newest first
    #[command(after_help = examples::MEMORIES_HISTORY)]
    History {
        #[command(flatten)]
        id: Id,
        #[command(flatten)]
        paging: Paging,
    },
    /// List the memories that are linked to one: by relations, by succession, or by their conversation
    ///
    /// The nearest come first, each with the path that leads to it. In a path, `supports>` is a relation to the next memory, and
    /// `<supports` one from it.
    #[command(after_help = links::RELATED)]
    Related(RelatedArgs),
    /// List groups of active memories that say the same
    ///
    /// Case, punctuation and white space make no difference. Memories that have most of their words in common, in the same order, are
    /// similar. Nothing is changed; `satchel memories status ID superseded --by ID` replaces one memory by another.
    #[command(after_help = links::DUPLICATES)]
    Duplicates(DuplicatesArgs),
    /// List memories that contradict each other and are both active
    ///
    /// A relation `contradicts` says so, or one memory supersedes the other, which is active all the same. Memories that are never valid
    /// at the same time do not contradict each other.
    #[command(after_help = links::CONTRADICTIONS)]
    Contradictions(ContradictionsArgs),
    /// Add a memory
    ///
    /// If a memory with the same content exists, nothing is added and that memory is shown.
    #[command(after_help = edits::ADD)]
    Add(AddArgs),
    /// Edit a memory
    ///
    /// Imports never overwrite the fields that you edit; the other fields still follow the exports. Earlier versions stay in the history.
    #[command(after_help = edits::EDIT)]
    Edit(EditArgs),
    /// Deprecate, retract, archive or supersede a memory, or all memories that match filters
    ///
    /// An active memory can get any of these states, a superseded one only archived, a deprecated one retracted or archived. Retracted and
    /// archived are final: no import brings a retracted memory back, only `satchel memories undo` does. Without an ID, the filters select
    /// the memories, and --expect must be the number that --dry-run reported.
    #[command(after_help = edits::STATUS)]
    Status(StatusArgs),
    /// Undo your changes: the last one to a memory, a specific one, or back to an earlier version
    #[command(after_help = edits::UNDO)]
    Undo(UndoEditArgs),
    /// List the memories that agents wrote, and approve or reject them
    ///
    /// What an agent writes is shown to nobody else until you approve it, unless you trust the agent. On a terminal you are asked about
    /// one memory after the other; with --list, --json or without a terminal they are listed. A rejected memory stays stored, and
    /// --approve still accepts it.
    #[command(after_help = edits::REVIEW)]
    Review(ReviewArgs),
    /// Permanently erase a memory, with all of its versions and everything stored about it
    ///
    /// Everything else that is stored is rewritten without it, and the old files are overwritten. This needs free space for a second copy
    /// of the data, and no daemon may be running. Its id, the hash of its content, and who erased it when are kept, so that no import
    /// brings it back. Other memories with the same content are erased too. Files elsewhere are not touched: exports and backups that you
    /// made, and the files that you imported.
    #[command(after_help = purge::MEMORY)]
    Purge(PurgeArgs),
}

/// `conversations …`.
#[derive(Debug, Subcommand)]
pub enum Conversations {
    /// List conversations, most recently changed first
    #[command(after_help = examples::CONVERSATIONS_LIST)]
    List {
        #[command(flatten)]
        select: ConversationFilterArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a conversation: its current branch, another branch, or the whole tree
    #[command(after_help = examples::CONVERSATIONS_SHOW)]
    Show(ShowConversation),
    /// Count conversations, messages and tokens by platform, project, model or month
    ///
    /// The largest groups come first, months the newest first. Tokens are those that exports name, which is those of answers.
    #[command(after_help = examples::CONVERSATIONS_STATS)]
    Stats {
        /// What the conversations of a group have in common
        #[arg(long, value_name = "PROPERTY", default_value = "platform")]
        by: GroupingArg,
        #[command(flatten)]
        select: ConversationFilterArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Permanently erase a conversation, with its attachments and the memories derived from it
    ///
    /// Works like `satchel memories purge`: everything else that is stored is rewritten without it. Attachments that other conversations
    /// also have are kept.
    #[command(after_help = purge::CONVERSATION)]
    Purge {
        #[command(flatten)]
        purge: PurgeArgs,
        /// Keep the memories derived from it
        #[arg(long)]
        keep_memories: bool,
    },
}

/// `conversations show`.
#[derive(Debug, Args)]
pub struct ShowConversation {
    #[command(flatten)]
    pub id: IdOrLast,
    /// Show the branch through this message, down to its newest reply
    #[arg(long, value_name = "MESSAGE", conflicts_with = "tree")]
    pub branch: Option<String>,
    /// Show the branch through this message from shortly before it; `satchel search` prints such ids
    #[arg(long, value_name = "MESSAGE", conflicts_with_all = ["tree", "branch"])]
    pub at: Option<String>,
    /// Show all branches, with one line per message
    #[arg(long)]
    pub tree: bool,
    /// Show thoughts and tool output in full
    #[arg(long)]
    pub full: bool,
    /// Include messages that the platform hides
    #[arg(long)]
    pub hidden: bool,
}

/// The id of one record.
#[derive(Clone, Debug, Args)]
pub struct Id {
    /// Id, or a unique prefix of at least 4 characters
    #[arg(value_name = "ID")]
    pub id: String,
}

/// The id of an import, an export or a conversation, of which one is the newest.
#[derive(Clone, Debug, Args)]
pub struct IdOrLast {
    /// Id, or a unique prefix of at least 4 characters
    #[arg(value_name = "ID", required_unless_present = "last")]
    pub id: Option<String>,
    /// Use the newest one
    #[arg(long, conflicts_with = "id")]
    pub last: bool,
}

impl IdOrLast {
    /// Returns the id that was typed; `None` for the newest one.
    pub fn given(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| !self.last)
    }
}
