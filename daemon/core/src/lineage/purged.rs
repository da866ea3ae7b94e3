//! What its owner erased for good: the ids and hashes by which it is known when it comes again.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{Deed, Document, Edge, Field, Setting, Vector, Witness, Word, memory_id};
use satchel_pam::{
    hash::ContentHash,
    memory::Memory,
    record::{Claim, Edit, Item},
};
use satchel_store::{Change, Ledger, LedgerWrite, Store, empty_memory};
use serde::{Deserialize, Serialize};

use super::{LineageError, PAGE, decode, encode};

/// How the ids of these entries begin; the ledger has others.
const KIND: &str = "purge ";
const WHAT: &str = "the record of an erasure";

/// One erasure. It says nothing of what was erased but what tells it apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeRecord {
    /// A UUID.
    pub id: String,
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// Who.
    pub actor: String,
    /// Whether the disk follows. The first thing that an erasure writes says no, so that one that is cut off is known.
    pub done: bool,
    /// Memories, each with the hashes of all that it ever said.
    pub memories: BTreeMap<String, BTreeSet<String>>,
    /// Conversations.
    pub conversations: BTreeSet<String>,
    /// Messages that were grouped from rows: another export may group them otherwise.
    pub rows: BTreeSet<String>,
    /// Where the lineage of the conversations stands.
    pub families: BTreeSet<String>,
    /// Files that came with the conversations, by the hash of their bytes, in hex.
    pub attachments: BTreeSet<String>,
}

impl PurgeRecord {
    /// All that are known, and where the entry of each stands.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn all(store: &Store) -> Result<Vec<Self>, LineageError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = store.ledger_list(Ledger::Audit, after.as_ref(), PAGE)?;
            for entry in page.items.iter().filter(|entry| entry.id.starts_with(KIND)) {
                all.push(decode(&entry.value, WHAT)?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Erasures that the disk does not follow yet.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn pending(store: &Store) -> Result<Vec<Self>, LineageError> {
        Ok(Self::all(store)?.into_iter().filter(|record| !record.done).collect())
    }

    /// What stores it.
    ///
    /// # Errors
    /// None in practice.
    pub fn change(&self) -> Result<Change, LineageError> {
        let (ledger, id, at_micros) = (Ledger::Audit, format!("{KIND}{}", self.id), self.at);
        Ok(Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value: encode(self, WHAT)? }))
    }

    /// The entry of this erasure as it stands when the disk follows; none: `id` is another entry.
    #[must_use]
    pub fn done(&self, id: &str) -> Option<Vec<u8>> {
        let own = id.strip_prefix(KIND) == Some(self.id.as_str());
        own.then(|| encode(&Self { done: true, ..self.clone() }, WHAT).ok()).flatten()
    }
}

/// Everything that was ever erased.
#[derive(Clone, Debug, Default)]
pub struct Purged {
    memories: BTreeSet<String>,
    texts: BTreeSet<String>,
    /// Memories that said one of the texts, whatever they say since: their vectors may be of it.
    said: BTreeSet<String>,
    conversations: BTreeSet<String>,
    rows: BTreeSet<String>,
}

impl Purged {
    /// As the store has it.
    ///
    /// # Errors
    /// When the ledger does not read.
    pub fn of(store: &Store) -> Result<Self, LineageError> {
        Ok(Self::from_records(&PurgeRecord::all(store)?))
    }

    /// What `records` name.
    #[must_use]
    pub fn from_records(records: &[PurgeRecord]) -> Self {
        let mut all = Self::default();
        for record in records {
            all.memories.extend(record.memories.keys().cloned());
            all.texts.extend(record.memories.values().flatten().cloned());
            all.conversations.extend(record.conversations.iter().cloned());
            all.rows.extend(record.rows.iter().cloned());
        }
        all
    }

    /// Whether nothing was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.memories.is_empty() && self.conversations.is_empty()
    }

    /// Whether a memory was: by its id, or because another said the same.
    #[must_use]
    pub fn memory(&self, id: &str, content_hash: &str) -> bool {
        self.memories.contains(id) || self.texts.contains(content_hash)
    }

    /// Notes that a memory said what was erased.
    pub fn note_said(&mut self, id: &str) {
        self.said.insert(id.to_owned());
    }

    /// Whether the vectors of a memory were.
    #[must_use]
    pub fn vectors(&self, memory: &str) -> bool {
        self.memories.contains(memory) || self.said.contains(memory)
    }

    /// Whether this text was that of a memory.
    #[must_use]
    pub fn text(&self, content: &str) -> bool {
        !self.texts.is_empty() && self.texts.contains(&ContentHash::of(content).to_string())
    }

    /// Whether a conversation was.
    #[must_use]
    pub fn conversation(&self, id: &str) -> bool {
        self.conversations.contains(id)
    }

    /// Whether a message that was grouped from rows was.
    #[must_use]
    pub fn row(&self, id: &str) -> bool {
        self.rows.contains(id)
    }

    /// Takes what was erased out of a piece of evidence; answers whether something was. Its place in a list stays: what came after
    /// it came after it.
    pub fn take(&self, witness: &mut Witness) -> bool {
        let mut taken = false;
        let mut item = |item: &mut Item| {
            if !item.content.is_empty() && self.memory(&memory_id(item), &hash(&item.content)) {
                *item = Item { status: item.status, ..Item::new("", item.memory_type) };
                taken = true;
            }
        };
        match &mut witness.claim {
            Claim::Statement(one)
            | Claim::Edit { edit: Edit::Add(one) | Edit::Replace { item: one, .. }, .. } => {
                item(one);
            }
            Claim::Snapshot { items, .. } => items.iter_mut().for_each(item),
            Claim::Edit { edit: Edit::Remove { .. }, .. } => {}
        }
        if let Claim::Edit { edit: Edit::Replace { target, .. } | Edit::Remove { target, .. }, .. } =
            &mut witness.claim
            && let Some(target) = target.as_mut().filter(|target| self.text(target))
        {
            // The line that it names says nothing any more.
            target.clear();
            taken = true;
        }
        taken
    }

    /// What stands in the place of a stored piece of evidence; none: it stays.
    ///
    /// # Errors
    /// When it does not read.
    pub fn evidence(&self, json: &[u8]) -> Result<Option<Vec<u8>>, LineageError> {
        const WHAT: &str = "a stored piece of evidence";
        if Document::is(json) {
            let mut document: Document = decode(json, WHAT)?;
            return self.document(&mut document).then(|| encode(&document, WHAT)).transpose();
        }
        if Edge::is(json) {
            return Ok(None);
        }
        if Vector::is(json) {
            let vector: Vector = decode(json, WHAT)?;
            let goes = self.vectors(&vector.named.memory) && !vector.is_emptied();
            return goes.then(|| encode(&vector.emptied(), WHAT)).transpose();
        }
        if Word::is(json) {
            let mut word: Word = decode(json, WHAT)?;
            return self.word(&mut word).then(|| encode(&word, WHAT)).transpose();
        }
        let mut witness: Witness = decode(json, WHAT)?;
        self.take(&mut witness).then(|| encode(&witness, WHAT)).transpose()
    }

    /// Takes what was erased out of a memory of a document.
    pub fn document(&self, document: &mut Document) -> bool {
        let goes = self.goes(&document.memory);
        if goes {
            document.memory = empty_memory(&document.memory);
        }
        goes
    }

    /// Takes what was erased out of what the person said by hand.
    pub fn word(&self, word: &mut Word) -> bool {
        match &mut word.deed {
            Deed::Add(witness) => self.take(witness),
            Deed::Set(setting) => self.setting(setting),
            Deed::Draw(_) | Deed::Withdraw(_) | Deed::Undo(_) => false,
        }
    }

    fn setting(&self, setting: &mut Setting) -> bool {
        let goes = self.goes(&setting.to);
        if goes {
            let own = self.memories.contains(&setting.to.id);
            let (status, by) = (setting.to.status, setting.to.temporal.superseded_by.take());
            setting.to = empty_memory(&setting.to);
            // How a memory stands that stays is no word of the text.
            (setting.to.status, setting.to.temporal.superseded_by) = (status, by);
            setting.fields.retain(|field| !own && *field == Field::Status);
        }
        // What was replaced stays so (PAM §7.1), and what replaced it is named no more.
        let successor = &mut setting.to.temporal.superseded_by;
        successor.take_if(|id| self.memories.contains(id)).is_some() || goes
    }

    fn goes(&self, memory: &Memory) -> bool {
        !memory.content.is_empty() && self.memory(&memory.id, &memory.content_hash.to_string())
            || self.memories.contains(&memory.id) && !satchel_store::erased(memory)
    }
}

fn hash(content: &str) -> String {
    ContentHash::of(content).to_string()
}
