//! A document that is read piece by piece says what it says as a whole.

use std::io::{self, Read};

use proptest::prelude::*;
use satchel_pam::{
    checksum,
    issue::Issue,
    parse::{
        self, ChecksumStatus, SalvageReport, ScanOptions, StoreEntry, StoreReading, StoreScan, TextSource,
        UnreadableEntry,
    },
    store::{Integrity, MemoryStore},
};

use crate::full;

/// A text that comes a few bytes at a time, from its beginning on only.
struct Pieces<'t> {
    text: &'t [u8],
    length: usize,
}

impl TextSource for Pieces<'_> {
    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Dribble { rest: self.text, length: self.length }))
    }

    fn read_at(&self, _offset: u64, _length: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

struct Dribble<'t> {
    rest: &'t [u8],
    length: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.length.min(buffer.len());
        self.rest.read(&mut buffer[..length])
    }
}

type Found = (Option<MemoryStore>, Vec<Issue>, ChecksumStatus, u64, Vec<UnreadableEntry>, Option<String>);

fn at_once((reading, report): (StoreReading, SalvageReport)) -> Found {
    let StoreReading { document, issues, checksum, count, .. } = reading;
    let broken = report.broken.map(|problem| problem.to_string());
    (document, issues, checksum, count, report.unreadable, broken)
}

/// The places of the entries are checked on the way.
fn in_pieces(text: &dyn TextSource, salvage: bool) -> Found {
    let (mut memories, mut relations, mut index, mut unreadable) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::<UnreadableEntry>::new());
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    let scan = parse::scan_store(text, ScanOptions { salvage, keep_going: &|| true }, &mut |at, entry| {
        let list = match &entry {
            StoreEntry::Memory(_) => "memories",
            StoreEntry::Relation(_) => "relations",
            StoreEntry::Conversation(_) => "conversations_index",
            StoreEntry::Unreadable(entry) => entry.list,
        };
        let count = counts.entry(list).or_default();
        assert_eq!(at, *count, "entries come in order, none twice and none left out");
        *count += 1;
        match entry {
            StoreEntry::Memory(memory) => memories.push(*memory),
            StoreEntry::Relation(relation) => relations.push(relation),
            StoreEntry::Conversation(entry) => index.push(entry),
            StoreEntry::Unreadable(entry) => unreadable.push(entry),
        }
    });
    let StoreScan { root, issues, checksum, count, broken, .. } = scan.unwrap().unwrap();
    let document = root.map(|root| MemoryStore {
        schema_version: root.schema_version,
        header: root.header,
        memories,
        relations,
        conversations_index: index,
        integrity: root.integrity,
        signature: root.signature,
        unknown: root.unknown,
    });
    (document, issues, checksum, count, unreadable, broken.map(|problem| problem.to_string()))
}

/// The memories in an order of their own, with the checksum of the specification or of the official SDK's normal form.
fn shuffled(seed: usize, wrong: bool) -> Vec<u8> {
    let mut memories: Vec<_> =
        (0..9).map(|number| full::small_memory(&format!("{number}{}", "é".repeat(number)), "x")).collect();
    memories.rotate_left(seed % 9);
    memories.swap(seed % 3, seed % 7);
    let checksum = checksum::of_memories(&memories[usize::from(wrong)..]).unwrap();
    let store = serde_json::json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "somebody"}, "memories": memories,
        "integrity": Integrity::new(checksum, 9),
    });
    serde_json::to_vec(&store).unwrap()
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let full = Just(full::store());
    let marked = Just([b"\xef\xbb\xbf".as_slice(), &full::store()].concat());
    let ordered = (any::<u8>(), any::<bool>()).prop_map(|(seed, wrong)| shuffled(seed.into(), wrong));
    let text = prop_oneof![full, marked, ordered];
    let change = prop_oneof![
        3 => Just(None),
        4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some),
    ];
    (text, change, prop::option::weighted(0.3, any::<prop::sample::Index>())).prop_map(
        |(mut text, change, cut)| {
            if let Some((at, byte)) = change {
                let at = at.index(text.len());
                text[at] = byte;
            }
            if let Some(cut) = cut {
                text.truncate(cut.index(text.len()));
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn a_store_reads_alike_however_it_comes(text in texts(), length in 1_usize..40) {
        let pieces = Pieces { text: &text, length };
        let strict = at_once((parse::store_reading(&text), SalvageReport::default()));
        let found = in_pieces(&pieces, false);
        // What came before a mistake has been handed over; the verdict is that nothing can be read.
        prop_assert_eq!((&found.0, &found.1, &found.2, found.3), (&strict.0, &strict.1, &strict.2, strict.3));
        prop_assert_eq!(in_pieces(&pieces, true), at_once(parse::salvage_store(&text)));
        prop_assert_eq!(parse::schema_from(pieces.reader().unwrap()).unwrap(), parse::schema_of(&text));
    }

    #[test]
    fn a_conversation_reads_alike_however_it_comes(cut in any::<prop::sample::Index>(), length in 1_usize..40) {
        let text = full::conversation_file();
        let text = &text[..=cut.index(text.len())];
        let input = || Dribble { rest: text, length };
        prop_assert_eq!(parse::conversation_from(input()).unwrap(), parse::conversation(text));
        let (document, issues, report) = parse::salvage_conversation_from(input()).unwrap();
        let (whole, of_whole, rest) = parse::salvage_conversation_from(text).unwrap();
        prop_assert_eq!((document, issues, report.unreadable), (whole, of_whole, rest.unreadable));
    }
}

#[test]
fn an_order_of_its_own_is_no_reason_to_doubt_a_checksum() {
    for seed in 0..20 {
        let (right, wrong) = (shuffled(seed, false), shuffled(seed, true));
        assert_eq!(in_pieces(&Pieces { text: &right, length: 7 }, false).2, ChecksumStatus::Spec);
        let found = in_pieces(&Pieces { text: &wrong, length: 7 }, false).2;
        assert!(matches!(found, ChecksumStatus::Mismatch { .. }), "{found:?}");
    }
}

#[test]
fn a_reader_that_fails_is_no_end_of_the_text() {
    struct Fails(usize);
    impl Read for Fails {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let text = br#"{"schema":"portable-ai-memory","memories":[]"#;
            let length = buffer.len().min(1);
            let Some(byte) = text.get(self.0) else { return Err(io::Error::other("the disk is gone")) };
            buffer[..length].fill(*byte);
            self.0 += length;
            Ok(length)
        }
    }
    let error = parse::conversation_from(Fails(0)).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
}

#[test]
fn a_value_that_would_fill_the_memory_is_left_out_and_its_neighbours_are_read() {
    let memory = |id: &str| serde_json::to_string(&full::small_memory(id, "x")).unwrap();
    let many = format!("[{}0]", "{},".repeat(1 << 20));
    for (hostile, reason) in [
        (many.clone(), "more than 1048576 others"),
        (format!("{{\"id\":\"deep\",\"metadata\":{many}}}"), "more than 1048576 others"),
        (format!("{{\"id\":\"{}\"}}", "x".repeat(parse::LONGEST_VALUE)), "longer than 67108864 bytes"),
    ] {
        let text = format!(
            r#"{{"schema":"portable-ai-memory","schema_version":"1.0","memories":[{},{hostile},{}]}}"#,
            memory("first"),
            memory("last")
        );
        let (document, _, _, count, unreadable, broken) = in_pieces(&text.as_bytes(), true);
        let ids: Vec<_> = document.unwrap().memories.into_iter().map(|memory| memory.id).collect();
        assert_eq!((ids, count, broken), (vec!["first".to_owned(), "last".to_owned()], 3, None));
        assert!(unreadable[0].reason.contains(reason), "{}", unreadable[0].reason);
    }
}
