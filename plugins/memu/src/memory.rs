//! From lists of entries to evidence: what MemU remembers, entry by entry; nothing is read or written here.

use satchel_importer::{
    Claim, EmbeddingRecord, Evidence, ImportError, Item, Leftover, natural_key,
    pam::{
        memory::{ExtractionMethod, MemoryType},
        raw::RawObject,
        record::ConfidenceRecord,
    },
    snapshot,
};

use crate::raw::{Entry, Form, Insight, List, Vector};

/// The model whose vectors MemU keeps, and their length.
const MODEL: (&str, usize) = ("text-embedding-ada-002", 1536);
/// What a vector of another length comes from is not said.
const UNKNOWN_MODEL: &str = "unknown";
/// Items of one piece of evidence; a longer list comes in several of the same time, so that no record grows large.
const MAX_ITEMS: usize = 2_000;
/// Bytes of an id that goes into the name of a series as it is.
const MAX_ID_BYTES: usize = 256;

/// Which of the lists an entry stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind<'k>(pub(crate) &'k str);

impl<'k> Kind<'k> {
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
        // The whole profile says who the person is, one line of it a fact.
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

    /// What is felt and thought is the model's conclusion; the rest the provider stored as said.
    fn method(self) -> ExtractionMethod {
        if self.0 == "mind" { ExtractionMethod::LlmInference } else { ExtractionMethod::ApiExport }
    }
}

/// The memory object that a list belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owner<'o> {
    pub(crate) memory: Option<&'o str>,
    pub(crate) agent: Option<&'o str>,
    pub(crate) user: Option<&'o str>,
    /// When the list was last changed.
    pub(crate) at: Option<i64>,
    /// The other fields of the memory object, as a JSON object.
    pub(crate) record: Option<&'o str>,
}

/// A list of a memory object, and where it stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    pub(crate) owner: Owner<'p>,
    pub(crate) kind: Kind<'p>,
    /// The other fields of the row of `memory_contents`, as a JSON object.
    pub(crate) row: Option<&'p str>,
    pub(crate) locator: &'p str,
}

impl Place<'_> {
    /// Which list it is, the same in every export.
    fn series(&self) -> String {
        let short = |id: &str| if id.len() > MAX_ID_BYTES { natural_key(&[Some(id)]) } else { id.to_owned() };
        let Kind(kind) = self.kind;
        match (self.owner.agent, self.owner.memory) {
            (Some(agent), _) => format!("{}/agent:{}", short(kind), short(agent)),
            (None, Some(memory)) => format!("{}/memory:{}", short(kind), short(memory)),
            (None, None) => short(kind),
        }
    }

    fn item(&self, text: &str, (memory_type, custom): (MemoryType, Option<&str>)) -> Item {
        let mut item = Item::new(text, memory_type);
        item.custom_type = custom.map(ToOwned::to_owned);
        item.tags = self.kind.tag().map(ToOwned::to_owned).into_iter().collect();
        item
    }

    fn evidence(&self, series: String, items: Vec<Item>) -> Evidence {
        let mut evidence = snapshot(series, items, self.owner.at, self.locator.to_owned());
        evidence.account = self.owner.user.map(ToOwned::to_owned);
        evidence.extraction_method = self.kind.method();
        evidence
    }

    /// Whose it is, in which list and where, under `memu`.
    fn origin(&self) -> Leftover<'static> {
        let mut origin = Leftover::default();
        let Kind(kind) = self.kind;
        let Owner { memory, agent, user, at: _, record: _ } = self.owner;
        for (key, id) in
            [("memory_id", memory), ("agent_id", agent), ("user_id", user), ("content_type", Some(kind))]
        {
            if let Some(id) = id {
                origin.add_text(key, id);
            }
        }
        origin
    }

    /// What stands once for the whole list goes to its first entry.
    fn add_record(&self, form: Form, origin: &mut Leftover<'_>) {
        if form == Form::Joined {
            origin.add_bool("joined", true);
        }
        for (key, fields) in [("record", self.owner.record), ("row", self.row)] {
            if let Some(fields) = fields {
                origin.add_json(key, fields);
            }
        }
    }
}

/// What is emitted, piece by piece: lists may be long.
pub(crate) trait Emit {
    fn evidence(&mut self, evidence: Evidence) -> Result<(), ImportError>;
    fn embedding(&mut self, embedding: EmbeddingRecord) -> Result<(), ImportError>;
    fn warn(&mut self, locator: &str, message: &str);
}

/// Every entry of a list as a memory.
pub(crate) fn entries(list: &List<'_>, place: &Place<'_>, emit: &mut dyn Emit) -> Result<(), ImportError> {
    for (number, chunk) in list.entries.chunks(MAX_ITEMS).enumerate() {
        let first = (number == 0).then_some(list.form);
        let evidence = chunk_evidence(chunk, first, place, emit);
        emit.evidence(evidence)?;
    }
    Ok(())
}

fn chunk_evidence(
    chunk: &[Entry<'_>],
    first: Option<Form>,
    place: &Place<'_>,
    emit: &mut dyn Emit,
) -> Evidence {
    let mut items = Vec::with_capacity(chunk.len());
    for (at, entry) in chunk.iter().enumerate() {
        let mut item = place.item(entry.text, place.kind.entry_type());
        let mut origin = place.origin();
        origin.add_json("index", &entry.index.to_string());
        if let Some(rest) = &entry.rest {
            origin.add_json("entry", rest);
        }
        if let (0, Some(form)) = (at, first) {
            place.add_record(form, &mut origin);
        }
        item.metadata = metadata(origin).or_else(|| {
            emit.warn(place.locator, UNFIT);
            metadata(place.origin())
        });
        items.push(item);
    }
    let mut evidence = place.evidence(place.series(), items);
    alone(place.kind, &mut evidence);
    evidence
}

/// A list of one line is a slot in which a newer line takes the place of the older. Of events that is not so: one that
/// happened does not undo another.
fn alone(kind: Kind<'_>, evidence: &mut Evidence) {
    if kind != Kind("event") {
        return;
    }
    if let Claim::Snapshot { items, .. } = &mut evidence.claim
        && items.len() == 1
        && let Some(item) = items.pop()
    {
        evidence.claim = Claim::Statement(item);
    }
}

/// The list of a row and the vector of its text. PAM's vectors are those of one memory each: of a list with several
/// entries, the text that the vector stands for becomes a memory beside them. There is an entry or a text.
pub(crate) fn row(
    list: &List<'_>,
    text: Option<&str>,
    vector: Option<Vector>,
    place: &Place<'_>,
    emit: &mut dyn Emit,
) -> Result<(), ImportError> {
    let Some(vector) = vector else { return entries(list, place, emit) };
    let whole = text.filter(|text| !text.trim().is_empty()).map_or_else(|| list.joined(), ToOwned::to_owned);
    let mut evidence = match list.entries.as_slice() {
        [only] if only.text == whole => chunk_evidence(&list.entries, Some(list.form), place, emit),
        _ => {
            entries(list, place, emit)?;
            whole_evidence(&whole, list, place)
        }
    };
    let key = name(&mut evidence);
    emit.evidence(evidence)?;
    emit_vector(key, vector, place, emit)
}

/// The text of a whole list as one memory.
fn whole_evidence(whole: &str, list: &List<'_>, place: &Place<'_>) -> Evidence {
    let mut item = place.item(whole, place.kind.whole_type());
    let mut origin = place.origin();
    origin.add_bool("whole", true);
    if list.entries.is_empty() {
        place.add_record(list.form, &mut origin);
    }
    item.metadata = metadata(origin);
    place.evidence(format!("{}/whole", place.series()), vec![item])
}

/// Gives the first item a key, by which its vector is named.
fn name(evidence: &mut Evidence) -> String {
    let key = evidence.id.clone();
    let item = match &mut evidence.claim {
        Claim::Statement(item) => Some(item),
        Claim::Snapshot { items, .. } => items.first_mut(),
        Claim::Edit { .. } => None,
    };
    if let Some(item) = item {
        item.key = Some(key.clone());
    }
    key
}

fn emit_vector(
    key: String,
    vector: Vector,
    place: &Place<'_>,
    emit: &mut dyn Emit,
) -> Result<(), ImportError> {
    let Vector(numbers) = vector;
    let (model, length) = MODEL;
    let known = numbers.len() == length;
    if !known {
        let message =
            format!("its vector has {} numbers, not {length}; its model is not known", numbers.len());
        emit.warn(place.locator, &message);
    }
    emit.embedding(EmbeddingRecord {
        memory: key,
        model: if known { model } else { UNKNOWN_MODEL }.to_owned(),
        dimensions: u32::try_from(numbers.len()).unwrap_or(u32::MAX),
        created_at: place.owner.at,
        vector: Some(numbers),
        storage: None,
    })
}

/// What the pipeline concluded from a conversation.
pub(crate) fn insight(
    insight: &Insight<'_>,
    conversation: &str,
    place: &Place<'_>,
    emit: &mut dyn Emit,
) -> Result<(), ImportError> {
    let mut item = place.item(insight.text, place.kind.entry_type());
    item.confidence = insight
        .confidence
        .map(|score| ConfidenceRecord { initial: Some(score), ..ConfidenceRecord::default() });
    item.metadata = metadata(place.origin());
    let series = format!("insight/{conversation}");
    let mut evidence = place.evidence(series, vec![item]);
    evidence.conversation = Some(conversation.to_owned());
    if let Claim::Snapshot { items, .. } = &mut evidence.claim
        && let Some(item) = items.pop()
    {
        evidence.claim = Claim::Statement(item);
    }
    emit.evidence(evidence)
}

/// The metadata of an item; none if it cannot be kept.
fn metadata(origin: Leftover<'_>) -> Option<RawObject> {
    let mut metadata = Leftover::default();
    metadata.add_json("memu", &origin.into_json()?);
    RawObject::parse(metadata.into_json()?.into_owned()).ok()
}

const UNFIT: &str = "its other fields hold a number that no program can hold; they are left out";
