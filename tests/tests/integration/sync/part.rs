//! A part of a store that another one gets.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use satchel_core::{
    edits::ReviewDecision,
    sync::{RecordFacts, RecordFilter},
};
use satchel_pam::memory::{Access, Memory};
use satchel_store::MemoryQuery;
use satchel_sync::SignedChange;
use satchel_tests::test_core::{ExportedState, demo_folder};
use serde_json::{Value, json};

use super::{Peer, agent_memories, payloads::write_prompts, recordings};

/// Records of these platforms and with one of these tags; an empty list does not restrict.
#[derive(Clone, Default)]
pub(super) struct Part {
    pub(super) platforms: Vec<&'static str>,
    pub(super) tags: Vec<&'static str>,
    pub(super) denied: Vec<&'static str>,
}

impl Part {
    pub(super) fn of_platform(platform: &'static str) -> Self {
        Self { platforms: vec![platform], ..Self::default() }
    }

    pub(super) fn tagged(tag: &'static str) -> Self {
        Self { tags: vec![tag], ..Self::default() }
    }

    pub(super) fn includes(&self, memory: &Memory) -> bool {
        self.contains(&memory.provenance.platform, &memory.tags)
    }

    fn contains(&self, platform: &str, tags: &[String]) -> bool {
        let has = |known: &[&str]| tags.iter().any(|tag| known.contains(&tag.as_str()));
        (self.platforms.is_empty() || self.platforms.contains(&platform))
            && (self.tags.is_empty() || has(&self.tags))
            && !has(&self.denied)
    }
}

impl RecordFilter for Part {
    fn includes_memory(&self, facts: &RecordFacts<'_>, _: &str, _: Option<&Access>) -> bool {
        self.contains(facts.platform, facts.tags)
    }

    fn includes_conversation(&self, facts: &RecordFacts<'_>) -> bool {
        self.contains(facts.platform, facts.tags)
    }
}

/// Sends what `to` lacks, as far as it gets it; returns what was sent.
pub(super) fn give(from: &Peer, to: &Peer, part: &Part) -> Result<Vec<SignedChange>> {
    let sent = changes(from, to, part)?;
    take(to, &sent)?;
    Ok(sent)
}

/// Returns what `to` lacks, as far as it gets it.
pub(super) fn changes(from: &Peer, to: &Peer, part: &Part) -> Result<Vec<SignedChange>> {
    from.sync.record_history()?;
    let mut changes = Vec::new();
    from.sync.changes_after(&to.sync.frontier()?, Some(part), |change| {
        changes.push(change);
        true
    })?;
    Ok(changes)
}

/// Sends the payloads that `to` lacks, as far as it gets them now; returns their number.
pub(super) fn give_payloads(from: &Peer, to: &Peer, part: &Part) -> Result<usize> {
    let (missing, mut sent) = (to.sync.missing_payloads()?, Vec::new());
    from.sync.payloads(&missing, Some(part), &|| true, |change| {
        sent.push(change);
        true
    })?;
    take(to, &sent)?;
    Ok(sent.len())
}

pub(super) fn take(to: &Peer, changes: &[SignedChange]) -> Result<()> {
    let (received, applied) = to.take(changes.to_vec())?;
    ensure!(received.refused.is_empty() && applied.blocked.is_empty(), "{received:?} {applied:?}");
    Ok(())
}

/// Returns all memories that a store shows.
pub(super) fn shown(peer: &Peer) -> Result<Vec<Memory>> {
    let store = &peer.core.store;
    let page = store.memories(&MemoryQuery::default(), None, 10_000, store.revision())?;
    Ok(page.items.into_iter().map(|record| record.memory).collect())
}

/// Returns those of which `part` has something, with their ids in order.
pub(super) fn included(peer: &Peer, part: &Part) -> Result<Vec<Memory>> {
    let mut memories = shown(peer)?;
    memories.retain(|memory| part.includes(memory));
    memories.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(memories)
}

/// Returns a store with imports, edits, a recording, and what an agent wrote.
pub(super) fn full(folder: &Path) -> Result<Peer> {
    let peer = Peer::new(folder, 1)?;
    for export in ["chatgpt-export", "claude-export"] {
        for import in peer.core.import(&demo_folder().join(export))? {
            ensure!(import.conversations.balanced(), "{import:?}");
        }
    }
    let bees = peer.add("Keeps bees")?;
    peer.tag(&bees, &["work"])?;
    recordings::record(&peer, None, "What do bees eat?")?;
    let (good, _) = (agent_memories::write(&peer, "Sells honey")?, agent_memories::write(&peer, "Is sad")?);
    agent_memories::review(&peer, &good, ReviewDecision::Approve)?;
    Ok(peer)
}

/// Returns a store with lists of rows, of which the third one joins the first two, and another export.
pub(super) fn with_rows(folder: &Path) -> Result<Peer> {
    let peer = Peer::new(folder, 1)?;
    for (name, prompts) in [("first", 0..4), ("second", 8..14), ("both", 2..10)] {
        peer.import(&write_prompts(&folder.join(name), prompts)?)?;
        peer.sync.record_history()?;
    }
    peer.import(&demo_folder().join("claude-export"))?;
    Ok(peer)
}

/// Writes a ChatGPT export in which the assistant has a list of memories.
pub(super) fn write_list(folder: &Path, lines: &[&str]) -> Result<PathBuf> {
    let numbered = (1..).zip(lines).map(|(at, line)| format!("{at}. [2025-05-0{at}]. {line}"));
    let list = numbered.collect::<Vec<_>>().join("\n");
    let export = json!([{
        "title": "Hives", "create_time": 1_751_360_400, "update_time": 1_751_360_500,
        "current_node": "list", "conversation_id": "68148099-7a10-800f-9c51-000000000001",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["list"]},
            "list": {"id": "list", "parent": "root", "children": [], "message": {
                "id": "list", "author": {"role": "assistant"}, "create_time": 1_751_360_401.0, "recipient": "all",
                "content": {"content_type": "model_editable_context", "model_set_context": list},
                "metadata": {}}},
        },
    }]);
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("conversations.json"), export.to_string())?;
    Ok(folder.to_owned())
}

pub(super) fn for_seeds(usual: u64, history: fn(u64) -> Result<()>) -> Result<()> {
    let seeds = std::env::var("SATCHEL_SYNC_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    (0..seeds.unwrap_or(usual))
        .try_for_each(|seed| history(seed).map_err(|error| error.context(format!("seed {seed}"))))
}

/// Returns the conversations of a platform that a store shows, by the names of their files.
pub(super) fn conversations_of(state: &ExportedState, platform: &str) -> Vec<(String, Value)> {
    let all = state.conversations.clone().into_iter();
    all.filter(|(_, shown)| shown["provider"]["name"] == platform).collect()
}
