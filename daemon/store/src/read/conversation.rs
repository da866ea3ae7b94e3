//! Conversations: by id, in pages, and the bodies of their messages.

use satchel_pam::conversation::ConversationHeader;

use super::{
    READ_ATTEMPTS, VisibleVersion,
    memory::{PageBuilder, spanned, tagged},
    parse, seen, walk_list,
};
use crate::{
    change::MessageHead,
    codec::heads::read_part,
    engine,
    entry::{JournalEntry, Summary},
    error::StoreError,
    journal::{ChangeLocation, frame::FrameKind},
    keys::{self, List},
    lookup::{conversation_parts, conversation_value, wrong_kind},
    query::{ConversationQuery, Cursor, Page},
    record::{BodyPlace, ConversationRecord, ConversationSummary},
    report::Damage,
    revision::Revision,
    store::Store,
    value::{ConversationValue, OldVersion, decode},
};

impl Store {
    /// Returns a conversation, withdrawn or not, without bodies: the current version, or the one at a revision.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine or the journal.
    pub fn conversation(
        &self,
        id: &str,
        at: Option<Revision>,
    ) -> Result<Option<ConversationRecord>, StoreError> {
        let at = self.at(at)?;
        let (id16, what) = (keys::id16(id), format!("conversation {id:?}"));
        for _ in 0..READ_ATTEMPTS {
            let Some(value) = conversation_value(self.engine(), id16)?.filter(|value| value.summary.id == id)
            else {
                return Ok(None);
            };
            match seen(&value.stored, at) {
                VisibleVersion::Nothing => return Ok(None),
                VisibleVersion::Current => {
                    // Parts are missing if a writer replaced the record after it was read here.
                    if let Some(rows) = conversation_parts(self.engine(), id16, &value)? {
                        return self.current_conversation(value, rows, &what).map(Some);
                    }
                }
                VisibleVersion::Older => {
                    let older = self.older(keys::OLD_CONVERSATION, id16, at, &what)?;
                    let created = value.stored.created;
                    return older
                        .map(|old| self.old_conversation(created, old.version, old.place, &what))
                        .transpose();
                }
            }
        }
        Err(StoreError::BadValue { what, problem: "parts of it are missing".to_owned() })
    }

    /// Returns one version of a conversation, by its number, without bodies.
    ///
    /// # Errors
    /// Any error of the engine or the journal.
    pub fn conversation_version(
        &self,
        id: &str,
        version: u32,
    ) -> Result<Option<ConversationRecord>, StoreError> {
        let Some(current) = self.conversation(id, None)? else { return Ok(None) };
        if current.version == version {
            return Ok(Some(current));
        }
        let (id16, created) = (keys::id16(id), current.created_revision.get());
        let mut found = None;
        let prefix = keys::object(keys::OLD_CONVERSATION, id16);
        engine::walk::<StoreError>(self.engine(), &prefix, None, |_, old| {
            let old = decode(old, id, OldVersion::take)?;
            found = (old.version == version).then_some(old.place);
            Ok(found.is_none())
        })?;
        let what = format!("version {version} of conversation {id:?}");
        found.map(|place| self.old_conversation(created, version, place, &what)).transpose()
    }

    /// Returns a page of conversations as of a revision, most recently updated first. During concurrent commits no row is
    /// repeated and none is missed. The list goes back at least a week: at an older revision, a conversation that has changed
    /// since may be missing.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`] if the store has not reached this revision; any error of the engine.
    pub fn conversations(
        &self,
        query: &ConversationQuery,
        after: Option<&Cursor>,
        limit: usize,
        at: Revision,
    ) -> Result<Page<ConversationSummary>, StoreError> {
        let at = self.at(Some(at))?;
        let title = query.title_contains.as_ref().map(|title| title.to_lowercase());
        let mut rows = PageBuilder::new(limit);
        walk_list(self.engine(), List::Conversations, after.map(Cursor::as_bytes), |key, value| {
            let Some((_, from)) = keys::entry_tail(key) else { return Ok(true) };
            let Some(summary) = spanned(value, from, at, Summary::take)? else { return Ok(true) };
            if !matches(query, title.as_deref(), &summary) {
                return Ok(true);
            }
            Ok(rows.push(key, public(summary, from)))
        })?;
        Ok(rows.page())
    }

    /// Returns the bodies of the messages at the given indexes of a record, in the requested order. The cost depends on the
    /// number of requested bodies, not on the length of the conversation.
    ///
    /// # Errors
    /// [`StoreError::DamagedRecord`] if the journal does not contain them undamaged.
    pub fn bodies_at(&self, record: &ConversationRecord, at: &[usize]) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut bodies = MessageBodies::new(self, record);
        let known = at.iter().filter_map(|at| record.heads.get(*at).zip(record.body_locations.get(*at)));
        known.map(|(head, place)| Ok(bodies.body(&head.id, *place)?.1)).collect()
    }

    /// Iterates over the bodies of all messages in order, unpacking each frame once.
    #[must_use]
    pub fn all_bodies<'a>(&'a self, record: &'a ConversationRecord) -> MessageBodies<'a> {
        MessageBodies::new(self, record)
    }

    fn current_conversation(
        &self,
        value: ConversationValue,
        rows: Vec<(MessageHead, BodyPlace)>,
        what: &str,
    ) -> Result<ConversationRecord, StoreError> {
        let ConversationValue { withdrawn, stored, current, opaque, header, .. } = value;
        let header: ConversationHeader = match header {
            Some(header) => parse(&header, what)?,
            None => match self.change(stored.place, what)? {
                (_, _, JournalEntry::Conversation(entry)) => parse(&entry.header, what)?,
                _ => return Err(wrong_kind(what)),
            },
        };
        let (heads, places) = rows.into_iter().unzip();
        Ok(ConversationRecord {
            header,
            withdrawn,
            current,
            opaque,
            heads,
            body_locations: places,
            version: stored.version,
            created_revision: Revision::new(stored.created),
            revision: Revision::new(stored.revision),
            origin: stored.origin,
        })
    }

    fn old_conversation(
        &self,
        created: u64,
        version: u32,
        place: ChangeLocation,
        what: &str,
    ) -> Result<ConversationRecord, StoreError> {
        let (origin, revision, JournalEntry::Conversation(entry)) = self.change(place, what)? else {
            return Err(wrong_kind(what));
        };
        let (mut heads, mut places) = (Vec::new(), Vec::new());
        for part in &entry.parts {
            read_part(part, &mut heads, &mut places).map_err(|error| StoreError::BadValue {
                what: what.to_owned(),
                problem: error.to_string(),
            })?;
        }
        Ok(ConversationRecord {
            header: parse(&entry.header, what)?,
            withdrawn: entry.withdrawn,
            current: entry.current,
            opaque: entry.opaque,
            heads,
            body_locations: places,
            version,
            created_revision: Revision::new(created),
            revision: Revision::new(revision),
            origin,
        })
    }
}

/// An iterator over the bodies of a conversation, in order. Holds one unpacked frame.
pub struct MessageBodies<'a> {
    store: &'a Store,
    record: &'a ConversationRecord,
    next: usize,
    frame: Option<(u32, u64, Vec<u8>)>,
}

impl<'a> MessageBodies<'a> {
    fn new(store: &'a Store, record: &'a ConversationRecord) -> Self {
        Self { store, record, next: 0, frame: None }
    }

    fn body(&mut self, id: &str, place: BodyPlace) -> Result<(String, Vec<u8>), StoreError> {
        let BodyPlace { segment, offset, start, length } = place;
        let what = || format!("message {id:?} of conversation {:?}", self.record.header.id);
        let frame = match self.frame.take().filter(|frame| (frame.0, frame.1) == (segment, offset)) {
            Some(frame) => frame,
            None => (
                segment,
                offset,
                self.store.reader().frame(segment, offset, &[FrameKind::Body], &what())?.payload,
            ),
        };
        let range = start as usize..start as usize + length as usize;
        let body = frame.2.get(range).map(<[u8]>::to_vec).ok_or_else(|| StoreError::DamagedRecord {
            what: what(),
            damage: Damage {
                file: self.store.reader().context().segment_path(segment),
                offset,
                length: frame.2.len() as u64,
                revisions: Vec::new(),
                problem: "a frame that is shorter than a record says".to_owned(),
            },
        })?;
        self.frame = Some(frame);
        Ok((id.to_owned(), body))
    }
}

impl Iterator for MessageBodies<'_> {
    type Item = Result<(String, Vec<u8>), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (head, place) = (self.record.heads.get(self.next)?, *self.record.body_locations.get(self.next)?);
        self.next += 1;
        Some(self.body(&head.id, place))
    }
}

pub(crate) fn matches(query: &ConversationQuery, title: Option<&str>, summary: &Summary) -> bool {
    let ConversationQuery {
        platforms,
        accounts,
        tags_any,
        tags_all,
        archived,
        created,
        updated,
        title_contains: _,
    } = query;
    (platforms.is_empty() || platforms.contains(&summary.platform))
        && (accounts.is_empty() || summary.account.as_ref().is_some_and(|account| accounts.contains(account)))
        && tagged(tags_any, tags_all, &summary.tags)
        && archived.is_none_or(|archived| archived == summary.archived)
        && created.holds(summary.created)
        && updated.holds(summary.updated)
        && title.is_none_or(|part| {
            summary.title.as_ref().is_some_and(|title| title.to_lowercase().contains(part))
        })
}

pub(crate) fn public(summary: Summary, revision: u64) -> ConversationSummary {
    let Summary { id, title, platform, account, created, updated, messages, archived, tags } = summary;
    ConversationSummary {
        id,
        title,
        platform,
        account,
        created_at_micros: created,
        updated_at_micros: updated,
        messages,
        archived,
        tags,
        revision: Revision::new(revision),
    }
}
