//! Turns lists of entries into evidence, one memory for each entry.

use satchel_importer::{
    Claim, EmbeddingRecord, Evidence, ImportError, Item, Leftover, Sink, natural_key,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
        record::ConfidenceRecord,
    },
    snapshot,
};

use crate::raw::{Entry, Form, Insight, List, Vector};

/// The model of MemU's vectors, and their length.
const MODEL: (&str, usize) = ("text-embedding-ada-002", 1536);
/// The model of a vector of another length.
const UNKNOWN_MODEL: &str = "unknown";
/// Items of one piece of evidence. A longer list is split into several of the same time, so that no record grows large.
const MAX_ITEMS: usize = 2_000;
/// Bytes of an id that is used unchanged in the name of a series.
const MAX_ID_BYTES: usize = 256;
const UNFIT: &str = "its other fields hold a number that no program can hold; they are left out";

/// The name of a list: `profile`, `event` or `mind`; rows may have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentType<'k>(pub(crate) &'k str);

impl<'k> ContentType<'k> {
    /// The type of an entry, and PAM's `custom_type`.
    fn entry_type(self) -> (MemoryType, Option<&'k str>) {
        match self.0 {
            "profile" => (MemoryType::Fact, None),
            "event" => (MemoryType::Context, None),
            other => (MemoryType::Custom, Some(other)),
        }
    }

    /// The type of a whole list as one text.
    fn whole_type(self) -> (MemoryType, Option<&'k str>) {
        // The whole profile identifies the person; one line of it is a fact.
        if self.0 == "profile" { (MemoryType::Identity, None) } else { self.entry_type() }
    }

    fn tag(self) -> Option<&'static str> {
        match self.0 {
            "profile" => Some("memu-profile"),
            "event" => Some("memu-event"),
            "mind" => Some("memu-mind"),
            _ => None,
        }
    }

    /// A mind is the model's conclusion; the provider stored the other lists.
    fn method(self) -> ExtractionMethod {
        if self.0 == "mind" { ExtractionMethod::LlmInference } else { ExtractionMethod::ApiExport }
    }
}

/// The memory object that a list belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryHeader<'o> {
    pub(crate) memory: Option<&'o str>,
    pub(crate) agent: Option<&'o str>,
    pub(crate) user: Option<&'o str>,
    /// When the memory was last changed.
    pub(crate) at: Option<i64>,
    /// The other fields of the memory object, as a JSON object.
    pub(crate) record: Option<&'o str>,
}

/// Where a list comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListContext<'p> {
    pub(crate) header: MemoryHeader<'p>,
    pub(crate) content_type: ContentType<'p>,
    /// The other fields of the row of `memory_contents`, as a JSON object.
    pub(crate) row: Option<&'p str>,
    pub(crate) locator: &'p str,
}

impl ListContext<'_> {
    /// The name of the list, the same in every export.
    fn series(&self) -> String {
        let short = |id: &str| if id.len() > MAX_ID_BYTES { natural_key(&[Some(id)]) } else { id.to_owned() };
        let ContentType(name) = self.content_type;
        match (self.header.agent, self.header.memory) {
            (Some(agent), _) => format!("{}/agent:{}", short(name), short(agent)),
            (None, Some(memory)) => format!("{}/memory:{}", short(name), short(memory)),
            (None, None) => short(name),
        }
    }

    fn item(&self, text: &str, (memory_type, custom): (MemoryType, Option<&str>)) -> Item {
        let mut item = Item::new(text, memory_type);
        item.custom_type = custom.map(ToOwned::to_owned);
        item.tags = self.content_type.tag().map(ToOwned::to_owned).into_iter().collect();
        item
    }

    fn evidence(&self, series: String, items: Vec<Item>) -> Evidence {
        let mut evidence = snapshot(series, items, self.header.at, self.locator.to_owned());
        evidence.account = self.header.user.map(ToOwned::to_owned);
        evidence.extraction_method = self.content_type.method();
        evidence
    }

    /// The ids and the list of an entry, which `metadata` puts under `memu`.
    fn origin(&self) -> Leftover<'static> {
        let mut origin = Leftover::default();
        let ContentType(name) = self.content_type;
        let MemoryHeader { memory, agent, user, at: _, record: _ } = self.header;
        for (key, id) in
            [("memory_id", memory), ("agent_id", agent), ("user_id", user), ("content_type", Some(name))]
        {
            if let Some(id) = id {
                origin.add_text(key, id);
            }
        }
        origin
    }

    /// Adds the fields of the whole list, which its first entry holds.
    fn add_record(&self, form: Form, origin: &mut Leftover<'_>) {
        if form == Form::Joined {
            origin.add_bool("joined", true);
        }
        for (key, fields) in [("record", self.header.record), ("row", self.row)] {
            if let Some(fields) = fields {
                origin.add_json(key, fields);
            }
        }
    }

    /// Emits every entry of a list as a memory.
    pub(crate) fn emit_entries(&self, list: &List<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        for (number, chunk) in list.entries.chunks(MAX_ITEMS).enumerate() {
            let first = (number == 0).then_some(list.form);
            let evidence = self.chunk_evidence(chunk, first, sink);
            sink.evidence(&[evidence])?;
        }
        Ok(())
    }

    /// The entries of `chunk`; `first` is the form of the list if it starts here.
    fn chunk_evidence(&self, chunk: &[Entry<'_>], first: Option<Form>, sink: &mut Sink) -> Evidence {
        let mut items = Vec::with_capacity(chunk.len());
        for (at, entry) in chunk.iter().enumerate() {
            let mut item = self.item(entry.text, self.content_type.entry_type());
            let mut origin = self.origin();
            origin.add_json("index", &entry.index.to_string());
            if let Some(rest) = &entry.rest {
                origin.add_json("entry", rest);
            }
            if let (0, Some(form)) = (at, first) {
                self.add_record(form, &mut origin);
            }
            item.metadata = metadata(origin).or_else(|| {
                sink.warn(self.locator, UNFIT);
                metadata(self.origin())
            });
            items.push(item);
        }
        let evidence = self.evidence(self.series(), items);
        // In a list of one line, a newer line replaces the older one; an event does not replace another.
        if chunk.len() == 1 && self.content_type.0 == "event" { as_statement(evidence) } else { evidence }
    }

    /// Emits the list of a row, and the vector of its text. Each vector of PAM belongs to one memory, so if the list has
    /// several entries, its text becomes another memory. There must be an entry or a text.
    pub(crate) fn emit_row(
        &self,
        list: &List<'_>,
        text: Option<&str>,
        vector: Option<Vector>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let Some(vector) = vector else { return self.emit_entries(list, sink) };
        let whole =
            text.filter(|text| !text.trim().is_empty()).map_or_else(|| list.joined(), ToOwned::to_owned);
        let mut evidence = match list.entries.as_slice() {
            [only] if only.text == whole => self.chunk_evidence(&list.entries, Some(list.form), sink),
            _ => {
                self.emit_entries(list, sink)?;
                self.whole_evidence(&whole, list)
            }
        };
        let key = evidence.id.clone();
        let item = match &mut evidence.claim {
            Claim::Statement(item) => Some(item),
            Claim::Snapshot { items, .. } => items.first_mut(),
            Claim::Edit { .. } => None,
        };
        if let Some(item) = item {
            item.key = Some(key.clone());
        }
        sink.evidence(&[evidence])?;
        self.emit_vector(key, vector, sink)
    }

    /// The text of a whole list as one memory.
    fn whole_evidence(&self, whole: &str, list: &List<'_>) -> Evidence {
        let mut item = self.item(whole, self.content_type.whole_type());
        let mut origin = self.origin();
        origin.add_bool("whole", true);
        if list.entries.is_empty() {
            self.add_record(list.form, &mut origin);
        }
        item.metadata = metadata(origin);
        self.evidence(format!("{}/whole", self.series()), vec![item])
    }

    /// Emits the vector of the memory with the given key.
    fn emit_vector(&self, memory: String, vector: Vector, sink: &mut Sink) -> Result<(), ImportError> {
        let Vector(numbers) = vector;
        let (model, length) = MODEL;
        let known = numbers.len() == length;
        if !known {
            let message =
                format!("its vector has {} numbers, not {length}; its model is not known", numbers.len());
            sink.warn(self.locator, &message);
        }
        sink.embeddings(&[EmbeddingRecord {
            memory,
            model: if known { model } else { UNKNOWN_MODEL }.to_owned(),
            dimensions: u32::try_from(numbers.len()).unwrap_or(u32::MAX),
            created_at: self.header.at,
            vector: Some(numbers),
            storage: None,
        }])
    }

    /// Emits the pipeline's conclusion from a conversation.
    pub(crate) fn emit_insight(
        &self,
        insight: &Insight<'_>,
        conversation: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let mut item = self.item(insight.text, self.content_type.entry_type());
        item.confidence = insight
            .confidence
            .map(|score| ConfidenceRecord { initial: Some(score), ..ConfidenceRecord::default() });
        item.metadata = metadata(self.origin());
        let mut evidence = as_statement(self.evidence(format!("insight/{conversation}"), vec![item]));
        evidence.conversation = Some(conversation.to_owned());
        sink.evidence(&[evidence])
    }
}

/// Turns a snapshot of one item into a statement.
fn as_statement(mut evidence: Evidence) -> Evidence {
    if let Claim::Snapshot { items, .. } = &mut evidence.claim
        && let Some(item) = items.pop()
    {
        evidence.claim = Claim::Statement(item);
    }
    evidence
}

/// The metadata of an item; none if it is not valid.
fn metadata(origin: Leftover<'_>) -> Option<RawObject> {
    let mut metadata = Leftover::default();
    metadata.add_json("memu", &origin.into_json()?);
    RawObject::parse(metadata.into_json()?.into_owned()).ok()
}
