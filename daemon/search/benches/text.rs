//! The figures of full text search, with SQLite FTS5 and tantivy's default pipeline as peers on the same texts in the same run:
//! `make bench`, or only these with `SATCHEL_BENCH_ONLY=search`. `SATCHEL_BENCH_SEARCH_MESSAGES` sets how many messages there are.

use std::{
    error::Error,
    fs,
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use jiff::{Timestamp, tz::TimeZone};
use rusqlite::Connection;
use satchel_search::{
    index::{Document, DocumentKind, IndexLocation, OwnerId, SearchIndex, SearchOptions},
    query::{Calendar, Query},
};
use tantivy::{
    Index, IndexReader, TantivyDocument,
    collector::{Count, TopDocs},
    directory::MmapDirectory,
    query::QueryParser,
    schema::{Field, STORED, Schema, TEXT},
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const MESSAGES: usize = 1_000_000;
/// Messages of one conversation.
const CONVERSATION: usize = 20;
/// Words that the texts are made of; the most frequent one is in about every tenth place.
const VOCABULARY: usize = 80_000;
/// Searches of each kind.
const SEARCHES: usize = 400;
/// No more searches of a kind are made after this time, as some of the peers take seconds for one.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Hits of a search.
const LIMIT: usize = 20;
/// Memory of the writers, in bytes.
const WRITER_BYTES: usize = 96 << 20;

fn main() -> Outcome {
    // `cargo test --benches` also runs this program, only to check that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let only = std::env::var("SATCHEL_BENCH_ONLY").ok();
    if only.is_some_and(|only| !only.split(',').any(|one| one == "search")) {
        return Ok(());
    }
    let messages = std::env::var("SATCHEL_BENCH_SEARCH_MESSAGES").ok().and_then(|text| text.parse().ok());
    let texts = Texts { messages: messages.unwrap_or(MESSAGES) };
    let folder = tempfile::tempdir()?;
    print(&format!("{} messages, {:.0} MB of text", texts.messages, texts.megabytes()));
    let engines: [Box<dyn Engine>; 3] = [
        Box::new(Satchel::build(&folder.path().join("satchel"), &texts)?),
        Box::new(Fts5::build(&folder.path().join("fts5"), &texts)?),
        Box::new(DefaultTantivy::build(&folder.path().join("tantivy"), &texts)?),
    ];
    for kind in [SearchKind::Word, SearchKind::ThreeWords, SearchKind::Phrase, SearchKind::AsYouType] {
        let searches = texts.searches(kind);
        for engine in &engines {
            // Once to warm the caches.
            timed(&searches, |words| engine.search(kind, words))?;
            let mut times = timed(&searches, |words| engine.search(kind, words))?;
            times.sort();
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            print(&format!(
                "{:13} {:10} p50 {:>9.2?} p99 {:>9.2?}, {} searches",
                format!("{kind:?}"),
                engine.name(),
                at(50),
                at(99),
                times.len()
            ));
        }
    }
    Ok(())
}

/// Returns how long each search took.
fn timed(searches: &[Vec<String>], search: impl Fn(&[String]) -> Outcome) -> Outcome<Vec<Duration>> {
    let (mut times, first) = (Vec::new(), Instant::now());
    for words in searches {
        if first.elapsed() >= MAX_TIME {
            break;
        }
        let began = Instant::now();
        search(words)?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn print(line: &str) {
    // Nobody reads the figures if the terminal is gone.
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchKind {
    Word,
    ThreeWords,
    Phrase,
    /// The first letters of a word.
    AsYouType,
}

trait Engine {
    fn name(&self) -> &'static str;
    fn search(&self, kind: SearchKind, words: &[String]) -> Outcome;
}

/// The invented texts: the same for every engine and every run.
struct Texts {
    messages: usize,
}

/// A linear congruential generator with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit as u64).unwrap_or(0)
    }

    /// A word. As in a language, its frequency is in proportion to 1 / rank (Zipf's law).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank"
    )]
    fn word(&mut self) -> String {
        let part = self.below(1 << 24) as f64 / f64::from(1 << 24);
        let rank = (VOCABULARY as f64).powf(part) as usize;
        word(rank - 1)
    }
}

/// The word with a number, of letters that can be pronounced.
fn word(mut number: usize) -> String {
    const ONSETS: [&str; 12] = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t"];
    const NUCLEI: [&str; 6] = ["a", "e", "i", "o", "u", "ã"];
    let mut word = String::new();
    loop {
        word.push_str(ONSETS[number % 12]);
        word.push_str(NUCLEI[number / 12 % 6]);
        number /= 72;
        if number == 0 {
            return word;
        }
    }
}

impl Texts {
    fn text(message: usize) -> String {
        let mut random = Random(message as u64 + 1);
        random.below(1);
        let words = 20 + random.below(160);
        let mut text = String::new();
        for number in 0..words {
            if number > 0 {
                text.push(if random.below(12) == 0 { '\n' } else { ' ' });
            }
            text.push_str(&random.word());
        }
        text
    }

    fn megabytes(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a size")]
        let bytes = (0..self.messages).map(|message| Self::text(message).len()).sum::<usize>() as f64;
        bytes / 1e6
    }

    /// Searches for what some message has.
    fn searches(&self, kind: SearchKind) -> Vec<Vec<String>> {
        let mut random = Random(99);
        let search = |_| {
            let text = Self::text(random.below(self.messages));
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = random.below(words.len() - 3);
            let one = |at: usize| words[at].to_owned();
            match kind {
                SearchKind::Word => vec![one(at)],
                SearchKind::ThreeWords => {
                    vec![one(at), one(random.below(words.len())), one(random.below(words.len()))]
                }
                SearchKind::Phrase => vec![one(at), one(at + 1), one(at + 2)],
                SearchKind::AsYouType => vec![one(at).chars().take(3).collect()],
            }
        };
        (0..SEARCHES).map(search).collect()
    }
}

fn report(name: &str, texts: &Texts, began: Instant, folder: &Path) -> Outcome {
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let size = size_of(folder)? as f64 / 1e6;
    let (seconds, megabytes) = (began.elapsed().as_secs_f64(), texts.megabytes());
    print(&format!(
        "{name}: built in {seconds:.1} s, {:.1} MB/s; {size:.0} MB, {:.2} of the text",
        megabytes / seconds,
        size / megabytes
    ));
    Ok(())
}

fn size_of(folder: &Path) -> std::io::Result<u64> {
    fs::read_dir(folder)?.try_fold(0, |sum, entry| Ok(sum + entry?.metadata()?.len()))
}

struct Satchel(SearchIndex);

impl Satchel {
    fn build(folder: &Path, texts: &Texts) -> Outcome<Self> {
        let began = Instant::now();
        let index = SearchIndex::open(&IndexLocation::Folder(folder.to_owned()), "store")?;
        for first in (0..texts.messages).step_by(CONVERSATION) {
            let conversation = first.to_string();
            let owner = OwnerId::Conversation(&conversation);
            for message in first..(first + CONVERSATION).min(texts.messages) {
                let (id, text) = (message.to_string(), Texts::text(message));
                let document = Document::new(DocumentKind::Message, id, "chatgpt", text);
                index.add(&owner, &Document { role: Some("user"), time: Some(1), ..document })?;
            }
        }
        index.commit(1)?;
        index.rest()?;
        report("satchel", texts, began, folder)?;
        Ok(Self(index))
    }
}

impl Engine for Satchel {
    fn name(&self) -> &'static str {
        "satchel"
    }

    fn search(&self, kind: SearchKind, words: &[String]) -> Outcome {
        let calendar = Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC };
        let options = SearchOptions { limit: LIMIT, ..SearchOptions::default() };
        let text = match kind {
            SearchKind::Word | SearchKind::ThreeWords => words.join(" "),
            SearchKind::Phrase => format!("\"{}\"", words.join(" ")),
            SearchKind::AsYouType => format!("{}*", words.join(" ")),
        };
        self.0.snapshot().search(&Query::parse(&text, &calendar)?, &options)?;
        Ok(())
    }
}

struct Fts5(Connection);

impl Fts5 {
    fn build(folder: &Path, texts: &Texts) -> Outcome<Self> {
        fs::create_dir_all(folder)?;
        let began = Instant::now();
        let mut connection = Connection::open(folder.join("fts.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -96000;
             CREATE VIRTUAL TABLE texts USING fts5(text, content = '', tokenize = 'unicode61');",
        )?;
        let transaction = connection.transaction()?;
        for message in 0..texts.messages {
            let mut insert = transaction.prepare_cached("INSERT INTO texts (rowid, text) VALUES (?, ?)")?;
            insert.execute((i64::try_from(message)?, Texts::text(message)))?;
        }
        transaction.commit()?;
        report("FTS5", texts, began, folder)?;
        Ok(Self(connection))
    }
}

impl Engine for Fts5 {
    fn name(&self) -> &'static str {
        "FTS5"
    }

    fn search(&self, kind: SearchKind, words: &[String]) -> Outcome {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let text = match kind {
            SearchKind::Word | SearchKind::ThreeWords => quoted.join(" "),
            SearchKind::Phrase => format!("\"{}\"", words.join(" ")),
            SearchKind::AsYouType => format!("{}*", quoted.join(" ")),
        };
        let query = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 20";
        let mut select = self.0.prepare_cached(query)?;
        select.query_map([text], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?;
        Ok(())
    }
}

struct DefaultTantivy {
    reader: IndexReader,
    parser: QueryParser,
}

impl DefaultTantivy {
    fn build(folder: &Path, texts: &Texts) -> Outcome<Self> {
        fs::create_dir_all(folder)?;
        let began = Instant::now();
        let mut schema = Schema::builder();
        let (id, text) = (schema.add_text_field("id", STORED), schema.add_text_field("text", TEXT));
        let index = Index::builder().schema(schema.build()).open_or_create(MmapDirectory::open(folder)?)?;
        Self::fill(&index, (id, text), texts)?;
        report("tantivy", texts, began, folder)?;
        let mut parser = QueryParser::for_index(&index, vec![text]);
        parser.set_conjunction_by_default();
        Ok(Self { reader: index.reader()?, parser })
    }

    fn fill(index: &Index, (id, text): (Field, Field), texts: &Texts) -> Outcome {
        let mut writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
        for message in 0..texts.messages {
            let mut document = TantivyDocument::new();
            document.add_text(id, message.to_string());
            document.add_text(text, Texts::text(message));
            writer.add_document(document)?;
        }
        writer.commit()?;
        writer.wait_merging_threads()?;
        Ok(())
    }
}

impl Engine for DefaultTantivy {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn search(&self, kind: SearchKind, words: &[String]) -> Outcome {
        let searcher = self.reader.searcher();
        let text = match kind {
            SearchKind::Word | SearchKind::ThreeWords => words.join(" "),
            // It has no prefixes of words but in phrases.
            SearchKind::Phrase => format!("\"{}\"", words.join(" ")),
            SearchKind::AsYouType => format!("\"{} {}\"*", words.join(" "), words.join(" ")),
        };
        let query = self.parser.parse_query(&text)?;
        let (top, _) = searcher.search(&query, &(TopDocs::with_limit(LIMIT).order_by_score(), Count))?;
        for (_, address) in top {
            searcher.doc::<TantivyDocument>(address)?;
        }
        Ok(())
    }
}
