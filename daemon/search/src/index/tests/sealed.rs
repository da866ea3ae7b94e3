//! The index in encrypted files.

use std::{collections::BTreeMap, ops::Range};

use satchel_seal::DataKey;

use super::*;

fn location(path: &Path) -> IndexLocation {
    location_with(path, 1)
}

fn location_with(path: &Path, key: u8) -> IndexLocation {
    IndexLocation::SealedFolder {
        path: path.to_owned(),
        seal: Seal::new(&DataKey::from_bytes(&[key; DataKey::BYTES])),
    }
}

/// Different words, so that the files have several blocks.
fn long_text(seed: u64) -> String {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("w{:x}", state >> 40)
    };
    (0..200).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// A query for one of these texts.
fn first_words(seed: u64) -> String {
    long_text(seed).split(' ').take(4).collect::<Vec<_>>().join(" ")
}

/// Adds messages with these numbers, which all have the word "Canaryword".
fn add(index: &SearchIndex, numbers: Range<u64>) {
    for number in numbers {
        let (id, text) = (number.to_string(), format!("Canaryword {}", long_text(number)));
        index.replace(&OwnerId::Conversation(&format!("canary-{id}")), [message(&id, &text)]).unwrap();
    }
}

/// An index with 200 messages, closed.
fn closed(path: &Path) {
    let index = SearchIndex::open(&location(path), "store").unwrap();
    add(&index, 0..100);
    index.commit(2).unwrap();
    add(&index, 100..200);
    index.replace(&OwnerId::Conversation("canary-3"), []).unwrap();
    index.commit(3).unwrap();
    index.rest().unwrap();
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

fn total(index: &SearchIndex, text: &str) -> Result<usize, IndexError> {
    Ok(index.snapshot().search(&query(text), &options())?.total)
}

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    });
    entries.collect()
}

fn write_files(path: &Path, files: &BTreeMap<String, Vec<u8>>) {
    IndexLocation::Folder(path.to_owned()).remove().unwrap();
    fs::create_dir_all(path).unwrap();
    for (name, bytes) in files {
        fs::write(path.join(name), bytes).unwrap();
    }
}

#[test]
fn encrypted_files_show_no_word_and_are_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    closed(&path);
    assert_hidden(&path);
    let index = SearchIndex::open(&location(&path), "store").unwrap();
    assert_eq!((index.snapshot().revision(), index.snapshot().documents()), (3, 199));
    assert_eq!(total(&index, "canaryword").unwrap(), 199);
    assert_eq!(ids(&index, &first_words(7)), ["7"]);
    // Words that were removed are in no segment after it is compacted.
    add(&index, 200..210);
    index.replace(&OwnerId::Conversation("canary-7"), []).unwrap();
    index.commit(4).unwrap();
    index.compact().unwrap();
    assert_hidden(&path);
    assert_eq!(index.index.searchable_segment_ids().unwrap().len(), 1);
    assert_eq!((total(&index, "canaryword").unwrap(), ids(&index, &first_words(7)).len()), (208, 0));
    let names: Vec<String> = files(&path).into_keys().collect();
    assert_eq!(names.iter().filter(|name| has_extension(name, "idx")).count(), 1, "{names:?}");
    drop(index);
    let index = SearchIndex::open(&location(&path), "store").unwrap();
    assert_eq!((index.snapshot().revision(), total(&index, "canaryword").unwrap()), (4, 208));
}

/// No file shows a word, an id or the schema, in any case; and no name says anything.
fn assert_hidden(path: &Path) {
    for (name, bytes) in files(path) {
        let lower = bytes.to_ascii_lowercase();
        for word in ["canary", "chatgpt", "segments", "schema", "rev=", "tokenizer"] {
            assert!(
                !lower.windows(word.len()).any(|window| window == word.as_bytes()),
                "{word} is in {name}"
            );
        }
        let stem = name.split('.').next().unwrap_or_default();
        let random = stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fixed =
            ["meta.json", ".managed.json", ".tantivy-writer.lock", ".tantivy-meta.lock"].contains(&&*name);
        assert!(random || fixed, "{name}");
        assert!(!has_extension(&name, "lock") || bytes.is_empty(), "{name}");
    }
}

#[test]
fn an_index_of_another_key_or_another_kind_is_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let plain = IndexLocation::Folder(path.clone());
    for other in [location_with(&path, 2), plain.clone()] {
        closed(&path);
        let index = SearchIndex::open(&other, "store").unwrap();
        assert_eq!((index.snapshot().revision(), index.snapshot().documents()), (0, 0));
        add(&index, 0..1);
        index.commit(1).unwrap();
        drop(index);
        let index = SearchIndex::open(&location(&path), "store").unwrap();
        assert_eq!((index.snapshot().revision(), index.snapshot().documents()), (0, 0));
    }
    assert_eq!(location(&path).folder(), plain.folder());
}

#[test]
fn a_killed_process_leaves_the_last_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("index"), folder.path().join("copy"));
    let state_of_copy = || {
        write_files(&copy, &files(&path));
        let index = SearchIndex::open(&location(&copy), "store").unwrap();
        let state = (index.snapshot().revision(), total(&index, "canaryword").unwrap());
        // It can be continued.
        add(&index, 1_000..1_001);
        index.commit(9).unwrap();
        index.compact().unwrap();
        assert_eq!(total(&index, "canaryword").unwrap(), state.1 + 1);
        state
    };
    let index = SearchIndex::open(&location(&path), "store").unwrap();
    assert_eq!(state_of_copy(), (0, 0));
    add(&index, 0..20);
    index.commit(1).unwrap();
    add(&index, 20..40);
    assert_eq!(state_of_copy(), (1, 20), "between replacing and committing");
    {
        let mut writer = index.lock_writer();
        // The files of the new segment are written; only the commit is missing.
        let prepared = index.started(&mut writer).unwrap().prepare_commit().unwrap();
        assert_eq!(state_of_copy(), (1, 20), "in the middle of a commit");
        prepared.abort().unwrap();
    }
    add(&index, 20..40);
    index.commit(2).unwrap();
    assert_eq!(state_of_copy(), (2, 40));
    // A file that a killed writer did not complete.
    fs::write(path.join("00000000000000000000000000000000.idx"), b"SATIDX").unwrap();
    fs::write(path.join(".tmpabcdef"), b"half").unwrap();
    assert_eq!(state_of_copy(), (2, 40));
}

/// Whatever is done to a file, the index is empty, a search fails, or it finds what it found before.
#[test]
fn damaged_files_never_give_other_hits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    closed(&path);
    let good = files(&path);
    assert!(good.iter().any(|(name, bytes)| !has_extension(name, "json") && bytes.len() > 2 * (64 << 10)));
    for (name, bytes) in good.iter().filter(|(name, _)| !has_extension(name, "lock")) {
        let other = good.iter().find(|(other, _)| *other != name && has_extension(other, "idx")).unwrap().1;
        let mut damages = vec![Vec::new(), bytes[..bytes.len() / 2].to_vec(), other.clone()];
        damages.push([bytes.as_slice(), b"more"].concat());
        for at in [0, 7, 20, 41, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            damages.push(flipped);
        }
        for damage in damages {
            let mut files = good.clone();
            files.insert(name.clone(), damage);
            write_files(&path, &files);
            assert_same_or_unreadable(&path, name);
        }
        let mut files = good.clone();
        let moved = files.remove(name).unwrap();
        write_files(&path, &files);
        assert_same_or_unreadable(&path, name);
        let (stem, extension) = name.rsplit_once('.').unwrap();
        let taken = if extension == "idx" { "term" } else { "idx" };
        files.insert(format!("{stem}.{taken}"), moved);
        write_files(&path, &files);
        assert_same_or_unreadable(&path, name);
    }
}

fn assert_same_or_unreadable(path: &Path, damaged: &str) {
    let index = SearchIndex::open(&location(path), "store").unwrap();
    let state = (index.snapshot().revision(), index.snapshot().documents());
    if state == (0, 0) {
        return;
    }
    assert_eq!(state, (3, 199), "{damaged}");
    let phrase = format!("\"canaryword {}\"", first_words(150));
    for (text, expected) in
        [("canaryword", 199), (&*first_words(150), 1), (&*first_words(3), 0), (&*phrase, 1)]
    {
        if let Ok(total) = total(&index, text) {
            assert_eq!(total, expected, "{damaged}");
        }
    }
    if let Ok(facets) = index.snapshot().facets(&query("canaryword"), &options(), &[FacetField::Role]) {
        assert_eq!(facets[0], [("user".to_owned(), 199)], "{damaged}");
    }
}
