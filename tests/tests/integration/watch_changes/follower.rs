//! A client that keeps a copy of what it sees, and checks the order of what it is sent.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, change::Record, memory_service_client::MemoryServiceClient,
    watch_service_client::WatchServiceClient,
};
use tonic::{Streaming, transport::Channel};

use crate::watch_changes::watch;

/// A change as it was sent: revision, id, and whether the record was put.
pub(crate) type Told = (i64, String, bool);

#[derive(Debug, Default)]
pub(crate) struct Follower {
    pub(crate) filter: Option<v1::ChangeFilter>,
    /// The last revision that was applied; the client continues after it.
    pub(crate) revision: i64,
    pub(crate) store_id: String,
    /// The memories, by id.
    pub(crate) memories: BTreeMap<String, v1::Memory>,
    pub(crate) relations: BTreeSet<String>,
    /// All changes that were applied.
    pub(crate) told: Vec<Told>,
    /// Changes of a revision of which more may follow.
    pub(crate) pending: Vec<v1::Change>,
}

impl Follower {
    pub(crate) fn with_filter(filter: v1::ChangeFilter) -> Self {
        Self { filter: Some(filter), ..Self::default() }
    }

    pub(crate) fn request(&self) -> v1::WatchChangesRequest {
        v1::WatchChangesRequest {
            store_id: self.store_id.clone(),
            filter: self.filter.clone(),
            ..crate::watch_changes::after(self.revision)
        }
    }

    /// Watches until it has caught up with `revision`.
    pub(crate) async fn follow_until(&mut self, channel: &Channel, revision: i64) -> Result<()> {
        let mut stream = watch(channel, self.request()).await?;
        self.read_until(&mut stream, revision).await
    }

    pub(crate) async fn read_until(
        &mut self,
        stream: &mut Streaming<v1::WatchChangesResponse>,
        revision: i64,
    ) -> Result<()> {
        loop {
            let message = stream.message().await?.context("the stream does not end")?;
            let caught_up = message.caught_up;
            self.apply(message)?;
            if caught_up && self.revision >= revision {
                return Ok(());
            }
        }
    }

    /// Watches, reads this many messages, and breaks the connection, with whatever was not complete.
    pub(crate) async fn follow_messages(&mut self, channel: &Channel, messages: u64) -> Result<()> {
        let mut stream = watch(channel, self.request()).await?;
        for _ in 0..messages {
            self.apply(stream.message().await?.context("the stream does not end")?)?;
        }
        self.drop_pending();
        Ok(())
    }

    /// Forgets what was not complete when a connection broke; it is sent again.
    pub(crate) fn drop_pending(&mut self) {
        self.pending.clear();
    }

    /// Does the same as [`Follower::follow_until`] with pages of `page_size`.
    pub(crate) async fn list(&mut self, channel: &Channel, page_size: i32) -> Result<()> {
        let mut client = WatchServiceClient::new(channel.clone());
        let mut request = v1::ListChangesRequest {
            store_id: self.store_id.clone(),
            after_revision: self.revision,
            filter: self.filter.clone(),
            page_size,
            ..v1::ListChangesRequest::default()
        };
        loop {
            let page = client.list_changes(request.clone()).await?.into_inner();
            ensure!(page.changes.len() <= usize::try_from(page_size)?, "more rows than asked for");
            request.page_token = page.next_page_token;
            let fragment = !request.page_token.is_empty();
            let (header, changes) = (page.header, page.changes);
            self.apply(v1::WatchChangesResponse { header, changes, caught_up: !fragment, fragment })?;
            if !fragment {
                return Ok(());
            }
        }
    }

    pub(crate) fn apply(&mut self, message: v1::WatchChangesResponse) -> Result<()> {
        let v1::WatchChangesResponse { header, changes, caught_up, fragment } = message;
        let header = header.context("a header")?;
        ensure!(header.revision >= self.revision, "the revision goes back: {header:?} {}", self.revision);
        ensure!(!(caught_up && fragment), "caught up within a revision");
        self.pending.extend(changes);
        if fragment {
            return Ok(());
        }
        for change in std::mem::take(&mut self.pending) {
            ensure!(change.revision > self.revision, "told again: {change:?} after {}", self.revision);
            ensure!(change.revision <= header.revision, "ahead of its header: {change:?}");
            self.apply_change(change)?;
        }
        (self.revision, self.store_id) = (header.revision, header.store_id);
        Ok(())
    }

    fn apply_change(&mut self, change: v1::Change) -> Result<()> {
        let put = match change.kind() {
            v1::ChangeKind::Put => true,
            v1::ChangeKind::OutOfView => false,
            v1::ChangeKind::Unspecified => anyhow::bail!("an unknown kind: {change:?}"),
        };
        let revision = change.revision;
        let (id, modified) = match change.record.context("a record")? {
            Record::Memory(memory) => {
                let (id, modified) = (memory.id.clone(), memory.mod_revision);
                if put {
                    self.memories.insert(id.clone(), memory);
                } else {
                    ensure!(memory == v1::Memory { id: id.clone(), ..Default::default() }, "{memory:?}");
                    self.memories.remove(&id);
                }
                (id, modified)
            }
            Record::Relation(relation) => {
                if put {
                    self.relations.insert(relation.id.clone());
                } else {
                    self.relations.remove(&relation.id);
                }
                (relation.id, relation.mod_revision)
            }
            Record::Conversation(conversation) => (conversation.id, conversation.mod_revision),
        };
        ensure!(!put || modified == revision, "{id} shows revision {modified} at {revision}");
        if let Some((last, ..)) = self.told.last() {
            ensure!(*last <= revision, "out of order: {revision} after {last}");
        }
        let same_revision = self.told.iter().rev().take_while(|told| told.0 == revision);
        ensure!(same_revision.into_iter().all(|told| told.1 != id), "{id} twice at {revision}");
        self.told.push((revision, id, put));
        Ok(())
    }

    /// Checks that the copy has the memories of a list with `filter`, as they are now.
    pub(crate) async fn check_against_list(&self, channel: &Channel, filter: v1::MemoryFilter) -> Result<()> {
        let listed = list_memories(channel, filter).await?;
        let versions = |memories: &BTreeMap<String, v1::Memory>| -> Vec<(String, i64, i32, String)> {
            let version = |memory: &v1::Memory| {
                (memory.id.clone(), memory.mod_revision, memory.status, memory.content.clone())
            };
            memories.values().map(version).collect()
        };
        let (copy, list) = (versions(&self.memories), versions(&listed));
        ensure!(copy == list, "the copy is {copy:#?}, the list {list:#?}");
        Ok(())
    }
}

/// Returns all memories of a list, by id.
pub(crate) async fn list_memories(
    channel: &Channel,
    filter: v1::MemoryFilter,
) -> Result<BTreeMap<String, v1::Memory>> {
    let mut client = MemoryServiceClient::new(channel.clone());
    let mut request =
        v1::ListMemoriesRequest { filter: Some(filter), page_size: 1_000, ..Default::default() };
    let mut all = BTreeMap::new();
    loop {
        let page = client.list_memories(request.clone()).await?.into_inner();
        all.extend(page.memories.into_iter().map(|memory| (memory.id.clone(), memory)));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(all);
        }
    }
}
