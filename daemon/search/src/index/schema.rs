//! The fields of the index, and how their texts are split.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tantivy::{
    TantivyDocument,
    schema::{
        FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
    },
    tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager},
};

use super::{
    document::{Document, OwnerId},
    snapshot::FacetField,
};
use crate::{
    analysis::{Language, Word, WordKind, Words, fold},
    query::FilterField,
};

/// The tokenizer of texts.
const WORDS: &str = "words";
/// Stems that a tokenizer remembers, some megabytes. There is one for each language and segment that is being written.
const MAX_KNOWN_STEMS: usize = 30_000;

/// The fields of a document.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// What the document belongs to; see [`OwnerId`].
    pub(super) owner: Field,
    pub(super) id: Field,
    /// See [`Document::key`].
    pub(super) key: Field,
    pub(super) kind: Field,
    pub(super) text: Field,
    /// The stems of the text, in the field of its language.
    pub(super) stems: Vec<(Language, Field)>,
    pub(super) title: Field,
    pub(super) platform: Field,
    pub(super) role: Field,
    pub(super) memory_type: Field,
    pub(super) status: Field,
    pub(super) model: Field,
    pub(super) tag: Field,
    pub(super) has: Field,
    pub(super) reader: Field,
    /// Platform and tags as they are, for [`super::Restriction`]; the fields of filters are folded.
    pub(super) exact_platform: Field,
    pub(super) exact_tag: Field,
    /// As `2025-06`, in UTC.
    pub(super) month: Field,
    pub(super) hidden: Field,
    pub(super) time: Field,
    /// Only memories have these, and all of them: the least and the greatest number stand for no limit.
    pub(super) valid_from: Field,
    pub(super) valid_until: Field,
    pub(super) weight: Field,
}

impl Fields {
    pub(super) fn new() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let words = |tokenizer: &str, option| {
            let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(option);
            TextOptions::default().set_indexing_options(indexing)
        };
        let positions = words(WORDS, IndexRecordOption::WithFreqsAndPositions);
        let stem = |language: &Language| format!("stem_{}", language.code());
        let fields = Self {
            owner: schema.add_text_field("owner", STRING | STORED),
            id: schema.add_text_field("id", STRING | STORED),
            key: schema.add_u64_field("key", INDEXED | FAST),
            kind: schema.add_text_field("kind", STRING | FAST | STORED),
            text: schema.add_text_field("text", positions.clone()),
            stems: Language::ALL
                .iter()
                .map(|language| {
                    let name = stem(language);
                    let options = words(&name, IndexRecordOption::WithFreqs);
                    (*language, schema.add_text_field(&name, options))
                })
                .collect(),
            title: schema.add_text_field("title", positions),
            platform: schema.add_text_field("platform", STRING | FAST),
            role: schema.add_text_field("role", STRING | FAST),
            memory_type: schema.add_text_field("type", STRING | FAST),
            status: schema.add_text_field("status", STRING | FAST),
            model: schema.add_text_field("model", STRING | FAST),
            tag: schema.add_text_field("tag", STRING | FAST),
            has: schema.add_text_field("has", STRING),
            reader: schema.add_text_field("reader", STRING),
            exact_platform: schema.add_text_field("exact_platform", STRING),
            exact_tag: schema.add_text_field("exact_tag", STRING),
            month: schema.add_text_field("month", STRING | FAST),
            hidden: schema.add_bool_field("hidden", INDEXED),
            time: schema.add_i64_field("time", INDEXED | FAST),
            valid_from: schema.add_i64_field("valid_from", FAST),
            valid_until: schema.add_i64_field("valid_until", FAST),
            weight: schema.add_f64_field("weight", FAST),
        };
        (schema.build(), fields)
    }

    /// Returns the field of a filter.
    pub(super) fn of_filter(&self, filter: FilterField) -> Field {
        match filter {
            FilterField::Platform => self.platform,
            FilterField::Role => self.role,
            FilterField::Type => self.memory_type,
            FilterField::Status => self.status,
            FilterField::Model => self.model,
            FilterField::Tag => self.tag,
            FilterField::Has => self.has,
            FilterField::In => self.kind,
            FilterField::Conversation => self.owner,
        }
    }

    /// Returns the field of a facet.
    pub(super) fn of_facet(&self, facet: FacetField) -> Field {
        match facet {
            FacetField::Kind => self.kind,
            FacetField::Platform => self.platform,
            FacetField::Role => self.role,
            FacetField::Type => self.memory_type,
            FacetField::Status => self.status,
            FacetField::Model => self.model,
            FacetField::Month => self.month,
        }
    }

    /// Returns what is indexed of a document.
    pub(super) fn document(&self, owner: &OwnerId<'_>, document: &Document<'_>) -> TantivyDocument {
        let mut out = TantivyDocument::new();
        out.add_text(self.owner, owner.to_string());
        out.add_text(self.id, &document.id);
        out.add_u64(self.key, document.key);
        out.add_text(self.kind, document.kind.word());
        out.add_text(self.text, &document.text);
        if document.kind == super::DocumentKind::Title {
            out.add_text(self.title, &document.text);
        }
        let language = Language::of(&document.text).unwrap_or(Language::English);
        for (_, field) in self.stems.iter().filter(|(one, _)| *one == language) {
            out.add_text(*field, &document.text);
        }
        out.add_text(self.platform, fold(&document.platform));
        for (field, value) in [
            (self.role, document.role),
            (self.memory_type, document.memory_type),
            (self.status, document.status),
        ] {
            value.into_iter().for_each(|value| out.add_text(field, value));
        }
        document.model.iter().for_each(|model| out.add_text(self.model, fold(model)));
        document.tags.iter().for_each(|tag| out.add_text(self.tag, fold(tag)));
        out.add_text(self.exact_platform, &document.platform);
        document.tags.iter().for_each(|tag| out.add_text(self.exact_tag, tag));
        document.has.iter().for_each(|has| out.add_text(self.has, has));
        document.readers.iter().for_each(|reader| out.add_text(self.reader, reader));
        document.time.and_then(month).iter().for_each(|month| out.add_text(self.month, month));
        out.add_bool(self.hidden, document.hidden);
        document.time.iter().for_each(|time| out.add_i64(self.time, *time));
        if document.kind == super::DocumentKind::Memory {
            out.add_i64(self.valid_from, document.valid_from.unwrap_or(i64::MIN));
            out.add_i64(self.valid_until, document.valid_until.unwrap_or(i64::MAX));
        }
        out.add_f64(self.weight, document.weight);
        out
    }
}

/// Returns the month of a time in microseconds since the Unix epoch.
fn month(micros: i64) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(micros).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m").to_string())
}

/// Returns the tokenizers of the fields.
pub(super) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::default();
    let words = WordTokenizer::default();
    for language in Language::ALL {
        let stems = WordTokenizer { stems: Some(*language), ..words.clone() };
        tokenizers.register(&format!("stem_{}", language.code()), stems);
    }
    tokenizers.register(WORDS, words);
    tokenizers
}

/// Splits texts into words, or into their stems.
#[derive(Clone, Default)]
struct WordTokenizer {
    stems: Option<Language>,
    buffer: WordBuffer,
    /// The same for all tokenizers of an index.
    last: Arc<Mutex<LastWords>>,
}

/// The words of the last text that was split into words. Its stems are those of the same words, and are asked for next.
#[derive(Default)]
struct LastWords {
    text: String,
    words: Words,
}

impl WordTokenizer {
    /// Splits a text, unless it has just been split.
    fn split(&mut self, text: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let words = &mut self.buffer.words;
        if self.stems.is_none() {
            words.split(text);
            last.words.clone_from(words);
            last.text.clear();
            last.text.push_str(text);
        } else if last.text == text {
            words.clone_from(&last.words);
        } else {
            words.split(text);
        }
    }
}

#[derive(Default)]
struct WordBuffer {
    words: Words,
    token: Token,
    /// Stems that were computed, by the word as it is written: most words of a text are frequent ones.
    known_stems: HashMap<Box<str>, Box<str>>,
}

impl WordBuffer {
    /// Puts the stem of a word into the token; nothing if it has none.
    fn stem(&mut self, language: Language, word: &str) {
        let text = &mut self.token.text;
        if let Some(stem) = self.known_stems.get(word) {
            text.push_str(stem);
            return;
        }
        language.stem_into(word, text);
        if self.known_stems.len() == MAX_KNOWN_STEMS {
            self.known_stems.clear();
        }
        self.known_stems.insert(word.into(), text.as_str().into());
    }
}

impl Clone for WordBuffer {
    fn clone(&self) -> Self {
        Self::default()
    }
}

struct WordStream<'a> {
    text: &'a str,
    stems: Option<Language>,
    buffer: &'a mut WordBuffer,
    next: usize,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.split(text);
        self.buffer.token.reset();
        WordStream { text, stems: self.stems, buffer: &mut self.buffer, next: 0 }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some(word) = self.buffer.words.get(self.next) {
            self.next += 1;
            let Word { from, to, position, kind, .. } = word;
            self.buffer.token.text.clear();
            match self.stems {
                // Pairs of characters have no stems.
                Some(_) if kind == WordKind::Pair => continue,
                Some(language) => self.buffer.stem(language, &self.text[from..to]),
                None => self.buffer.token.text.push_str(word.text),
            }
            let token = &mut self.buffer.token;
            if !token.text.is_empty() {
                (token.offset_from, token.offset_to, token.position) = (from, to, position);
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        &self.buffer.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.buffer.token
    }
}
