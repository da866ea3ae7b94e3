//! What is found: a memory, a message, or the title of a conversation.

use std::{borrow::Cow, fmt};

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    Memory,
    Message,
    Title,
}

impl DocumentKind {
    /// Returns the value of `in:`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memories",
            Self::Message => "messages",
            Self::Title => "titles",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        [Self::Memory, Self::Message, Self::Title].into_iter().find(|kind| kind.word() == word)
    }
}

/// What documents belong to. It is indexed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerId<'a> {
    Memory(&'a str),
    Conversation(&'a str),
}

impl fmt::Display for OwnerId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(id) => write!(f, "m:{id}"),
            Self::Conversation(id) => write!(f, "c:{id}"),
        }
    }
}

/// The reader of a memory that everybody may read.
pub const PUBLIC_READER: &str = "public";

/// Returns the reader of a memory that is shared with an entity.
#[must_use]
pub fn shared_reader(entity: &str) -> String {
    format!("shared:{entity}")
}

/// A document to be indexed.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    pub kind: DocumentKind,
    /// The id of the memory, message or conversation.
    pub id: Cow<'a, str>,
    /// Identifies this version of the document: two with the same key are equal. 0 if it is only replaced with its owner.
    pub key: u64,
    /// The text; for a title, the title.
    pub text: Cow<'a, str>,
    pub platform: Cow<'a, str>,
    /// The role of a message, the type of a memory, and its status: words of PAM.
    pub role: Option<&'a str>,
    pub memory_type: Option<&'a str>,
    pub status: Option<&'a str>,
    pub model: Option<Cow<'a, str>>,
    pub tags: Vec<Cow<'a, str>>,
    /// Values of `has:`.
    pub has: Vec<&'static str>,
    /// Who may read a memory besides the owner: [`PUBLIC_READER`], or a [`shared_reader`].
    pub readers: Vec<String>,
    /// Microseconds since the Unix epoch.
    pub time: Option<i64>,
    /// From when to before when a memory is valid, in microseconds since the Unix epoch. `None`: always was, or still is.
    pub valid_from: Option<i64>,
    pub valid_until: Option<i64>,
    /// Hidden by the platform, or a thought: found only if it is asked for.
    pub hidden: bool,
    /// By how much hits of it count more or less, around 1.
    pub weight: f64,
}

impl<'a> Document<'a> {
    /// Returns a document of this kind without further facts.
    pub fn new(
        kind: DocumentKind,
        id: impl Into<Cow<'a, str>>,
        platform: impl Into<Cow<'a, str>>,
        text: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            kind,
            id: id.into(),
            key: 0,
            text: text.into(),
            platform: platform.into(),
            role: None,
            memory_type: None,
            status: None,
            model: None,
            tags: Vec::new(),
            has: Vec::new(),
            readers: Vec::new(),
            time: None,
            valid_from: None,
            valid_until: None,
            hidden: false,
            weight: 1.0,
        }
    }
}
