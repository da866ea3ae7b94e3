//! The engines that are compared: this crate's index, SQLite's FTS5 with two tokenizers, and tantivy as it comes.
//!
//! The others get a fair chance. What has a meaning in their query languages is escaped. SQLite searches for all words first, and
//! appends what has any of them, with trigrams also what has any part of a word; tantivy searches for any word, as is its default.

use jiff::{Timestamp, tz::TimeZone};
use rusqlite::{Connection, params};
use satchel_search::{
    index::{Document, DocumentKind, IndexLocation, OwnerId, SearchIndex, SearchOptions},
    query::{Calendar, Query},
};
use tantivy::{
    Index, TantivyDocument,
    collector::TopDocs,
    query::QueryParser,
    schema::{Field, STORED, Schema, TEXT, Value as _},
};

use super::corpus::Message;

/// Hits that are judged.
pub(crate) const HITS: usize = 10;

/// Finds messages.
pub(crate) trait Engine {
    fn name(&self) -> &'static str;

    /// Returns the numbers of the best messages, at most [`HITS`].
    fn search(&self, text: &str) -> Vec<usize>;
}

/// This crate.
pub(crate) struct Satchel {
    index: SearchIndex,
    relaxed: bool,
}

impl Satchel {
    pub(crate) fn new(messages: &[Message], relaxed: bool) -> Self {
        let index = SearchIndex::open(&IndexLocation::Memory, "store").unwrap();
        for (number, message) in messages.iter().enumerate() {
            let id = number.to_string();
            let document =
                Document::new(DocumentKind::Message, id.as_str(), "chatgpt", message.text.as_str());
            index.replace(&OwnerId::Conversation(&id), [document]).unwrap();
        }
        index.commit(1).unwrap();
        Self { index, relaxed }
    }
}

impl Engine for Satchel {
    fn name(&self) -> &'static str {
        if self.relaxed { "satchel" } else { "satchel, strict" }
    }

    fn search(&self, text: &str) -> Vec<usize> {
        let calendar = Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC };
        let query = Query::parse(text, &calendar).unwrap();
        let options = SearchOptions { limit: HITS, ..SearchOptions::default() };
        let snapshot = self.index.snapshot();
        let hits = if self.relaxed {
            snapshot.search_relaxed(&query, &options).unwrap().page.hits
        } else {
            snapshot.search(&query, &options).unwrap().hits
        };
        hits.iter().map(|hit| hit.id.parse().unwrap()).collect()
    }
}

/// SQLite.
pub(crate) struct Fts5 {
    connection: Connection,
    name: &'static str,
    /// Shortest word that the tokenizer can find, in characters.
    min_chars: usize,
}

impl Fts5 {
    pub(crate) fn unicode61(messages: &[Message]) -> Self {
        Self::new(messages, "FTS5 unicode61", "unicode61 remove_diacritics 2", 1)
    }

    pub(crate) fn trigram(messages: &[Message]) -> Self {
        Self::new(messages, "FTS5 trigram", "trigram remove_diacritics 1", 3)
    }

    fn new(messages: &[Message], name: &'static str, tokenizer: &str, min_chars: usize) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        let table = format!("CREATE VIRTUAL TABLE messages USING fts5(text, tokenize = '{tokenizer}')");
        connection.execute_batch(&table).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        for (number, message) in messages.iter().enumerate() {
            let row = params![i64::try_from(number).unwrap(), message.text];
            connection.execute("INSERT INTO messages (rowid, text) VALUES (?1, ?2)", row).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        Self { connection, name, min_chars }
    }

    fn matches(&self, expression: &str) -> Vec<usize> {
        let sql = "SELECT rowid FROM messages WHERE messages MATCH ?1 ORDER BY rank LIMIT ?2";
        let mut statement = self.connection.prepare(sql).unwrap();
        let rows = statement
            .query_map(params![expression, i64::try_from(HITS).unwrap()], |row| row.get::<_, i64>(0));
        rows.unwrap().map(|row| usize::try_from(row.unwrap()).unwrap()).collect()
    }
}

impl Engine for Fts5 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn search(&self, text: &str) -> Vec<usize> {
        let words = text.split_whitespace().filter(|word| word.chars().count() >= self.min_chars);
        let quoted: Vec<String> = words.map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
        if quoted.is_empty() {
            return Vec::new();
        }
        let mut hits = self.matches(&quoted.join(" AND "));
        let mut stages = vec![quoted];
        if self.min_chars > 1 {
            stages.push(trigrams(text));
        }
        for any in stages {
            let more = self.matches(&any.join(" OR "));
            hits.extend(more.into_iter().filter(|hit| !hits.contains(hit)).collect::<Vec<_>>());
        }
        hits.truncate(HITS);
        hits
    }
}

/// Returns three characters in a row of each word, quoted.
fn trigrams(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.replace('"', "").chars().collect::<Vec<_>>());
    words.flat_map(|word| word.windows(3).map(quote).collect::<Vec<_>>()).collect()
}

fn quote(chars: &[char]) -> String {
    format!("\"{}\"", chars.iter().collect::<String>())
}

/// Tantivy with its default tokenizer and query parser.
pub(crate) struct Tantivy {
    index: Index,
    text: Field,
    number: Field,
}

impl Tantivy {
    pub(crate) fn new(messages: &[Message]) -> Self {
        let mut schema = Schema::builder();
        let text = schema.add_text_field("text", TEXT);
        let number = schema.add_u64_field("number", STORED);
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, 50 << 20).unwrap();
        for (at, message) in messages.iter().enumerate() {
            let mut document = TantivyDocument::new();
            document.add_text(text, &message.text);
            document.add_u64(number, u64::try_from(at).unwrap());
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        Self { index, text, number }
    }
}

impl Engine for Tantivy {
    fn name(&self) -> &'static str {
        "tantivy defaults"
    }

    fn search(&self, text: &str) -> Vec<usize> {
        let escaped = text.replace(|c: char| c.is_ascii_punctuation() && !"_'.".contains(c), " ");
        let (query, _) = QueryParser::for_index(&self.index, vec![self.text]).parse_query_lenient(&escaped);
        let searcher = self.index.reader().unwrap().searcher();
        let top = searcher.search(&query, &TopDocs::with_limit(HITS).order_by_score()).unwrap();
        top.into_iter()
            .map(|(_, address)| {
                let document: TantivyDocument = searcher.doc(address).unwrap();
                let number = document.get_first(self.number).and_then(|value| value.as_u64());
                usize::try_from(number.unwrap()).unwrap()
            })
            .collect()
    }
}
