//! The files of the memory extension. Each has the memories of one category, with empty lines between them.

use std::collections::BTreeMap;

use satchel_importer::{
    Bundle, Claim, ErrorKind, Evidence, ImportError, Item, RecordKind, Sink, natural_key,
    pam::memory::{ExtractionMethod, MemoryType},
};

use crate::layout;

/// The longest file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// What ids of memories are made of, beside their text.
const KEY: &str = "goose memory";
/// Bytes of the memories of all files, which are in memory until the last file is read. What is beyond is emitted file by file.
const MAX_ALL: usize = 16 * 1024 * 1024;
/// Characters of a tag.
const MAX_TAG: usize = 64;
/// Tags of a memory.
const MAX_TAGS: usize = 64;

/// A memory of a file.
#[derive(Debug, PartialEq, Eq)]
struct Memory {
    content: String,
    tags: Vec<String>,
    /// Whether there are too many tags, or too long ones.
    cut: bool,
}

/// The files with memories. The settings beside their folder are no part of an export, so `detected` says that they were there.
pub(crate) fn files(bundle: &Bundle, detected: bool) -> impl Iterator<Item = &str> {
    let paths = bundle.entries().iter().map(|entry| entry.path.as_str());
    paths.filter(move |path| layout::is_memory(bundle, path, detected))
}

/// The memories of several files, in their order. The same text in several files is one memory, with the tags of all.
#[derive(Default)]
struct Found<'p> {
    memories: Vec<(Memory, &'p str)>,
    /// The places in the list.
    places: BTreeMap<String, usize>,
    bytes: usize,
}

impl<'p> Found<'p> {
    /// Adds a memory of the file at `path`. Returns whether tags of it do not fit.
    fn add(&mut self, memory: Memory, path: &'p str) -> bool {
        let Some((known, _)) = self.places.get(&memory.content).and_then(|at| self.memories.get_mut(*at))
        else {
            self.bytes += memory.content.len() + memory.tags.iter().map(String::len).sum::<usize>();
            self.places.insert(memory.content.clone(), self.memories.len());
            self.memories.push((memory, path));
            return false;
        };
        let new: Vec<String> = memory.tags.into_iter().filter(|tag| !known.tags.contains(tag)).collect();
        let fits = known.tags.len() + new.len() <= MAX_TAGS;
        known.tags.extend(new);
        known.tags.truncate(MAX_TAGS);
        !fits
    }

    fn emit(&mut self, sink: &mut Sink) -> Result<(), ImportError> {
        let found = std::mem::take(self);
        let evidence: Vec<Evidence> =
            found.memories.into_iter().map(|(memory, path)| statement(memory, path)).collect();
        sink.evidence(&evidence)
    }
}

/// Reads the memories of all files. Returns whether there is a file.
pub(crate) fn read(bundle: &Bundle, detected: bool, sink: &mut Sink) -> Result<bool, ImportError> {
    let (mut found, mut is_file) = (Found::default(), false);
    for path in files(bundle, detected) {
        is_file = true;
        read_file(bundle, path, &mut found, sink)?;
        if found.bytes > MAX_ALL {
            found.emit(sink)?;
        }
    }
    found.emit(sink)?;
    Ok(is_file)
}

fn read_file<'p>(
    bundle: &Bundle,
    path: &'p str,
    found: &mut Found<'p>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let bytes = match bundle.read(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == ErrorKind::Limit => {
            return sink.skip(RecordKind::Memory, path, &error.message);
        }
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        sink.warn(path, "it has bytes that are not UTF-8; they are replaced");
    }
    let (mut has_memories, mut empty, mut cut) = (false, 0, false);
    for memory in memories(&text, layout::category(path)) {
        cut |= memory.cut;
        if memory.content.is_empty() {
            empty += 1;
        } else {
            has_memories = true;
            cut |= found.add(memory, path);
        }
    }
    if cut {
        sink.warn(
            path,
            "a memory has more than 64 tags, or one of more than 64 characters; they are cut off",
        );
    }
    if empty > 0 || !has_memories {
        let problem = if empty > 0 {
            format!("{empty} of its entries have no text")
        } else {
            "it has no memories".to_owned()
        };
        sink.skip(RecordKind::Memory, path, &problem)?;
    }
    Ok(())
}

/// The memories in a text. Tags are in the first line of one, behind a number sign.
fn memories(text: &str, category: &str) -> Vec<Memory> {
    let mut found = Vec::new();
    let mut entry: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            entry.push(line);
        } else if !entry.is_empty() {
            found.push(memory(&std::mem::take(&mut entry), category));
        }
    }
    found
}

fn memory(lines: &[&str], category: &str) -> Memory {
    let tagged = lines.first().and_then(|line| line.strip_prefix('#'));
    let own = if tagged.is_some() { lines.get(1..).unwrap_or_default() } else { lines };
    let (mut tags, mut cut): (Vec<String>, bool) = (Vec::new(), false);
    for word in std::iter::once(category).chain(tagged.unwrap_or_default().split_whitespace()) {
        let tag = tag(word);
        if tag.is_empty() || tags.contains(&tag) {
            continue;
        }
        let fits = tags.len() < MAX_TAGS;
        cut |= !fits || word.chars().nth(MAX_TAG).is_some();
        tags.extend(Some(tag).filter(|_| fits));
    }
    let content = own.join("\n");
    // A heading without anything below it was not written as tags.
    let content = if content.trim().is_empty() { tagged.unwrap_or_default() } else { &content };
    Memory { content: content.trim().to_owned(), tags, cut }
}

/// A word in the form of a PAM tag.
fn tag(word: &str) -> String {
    let letters = word.to_lowercase();
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
    let tag: String =
        letters.chars().map(|letter| if fits(letter) { letter } else { '-' }).take(MAX_TAG).collect();
    tag.trim_matches(|sign| "_-".contains(sign)).to_owned()
}

/// The statement of a memory. The file does not say when it was added.
fn statement(memory: Memory, path: &str) -> Evidence {
    let Memory { content, tags, cut: _ } = memory;
    let id = natural_key(&[Some(KEY), Some(&content)]);
    let mut item = Item::new(content, MemoryType::Fact);
    item.tags = tags;
    Evidence {
        id,
        claim: Claim::Statement(item),
        at: None,
        account: None,
        conversation: None,
        message: None,
        extraction_method: ExtractionMethod::LlmInference,
        locator: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_stand_between_empty_lines() {
        let text = "# python Style!\nUses black.\nAlways.\r\n\r\n\nNo tags here.\n\n#\n# heading\n\n# Only a heading\n\n#\n";
        let found = memories(text, "development");
        let contents: Vec<&str> = found.iter().map(|memory| memory.content.as_str()).collect();
        assert_eq!(contents, ["Uses black.\nAlways.", "No tags here.", "# heading", "Only a heading", ""]);
        assert_eq!(found[0].tags, ["development", "python", "style"]);
        assert_eq!(found[1].tags, ["development"]);
    }

    #[test]
    fn the_same_text_in_two_files_is_one_memory_with_the_tags_of_both() {
        let bundle = Bundle::from_files([
            (".goose/memory/a.txt", "# x\nUses black.\n\nOnly here.\n"),
            (".goose/memory/b (1).txt", "# y x\nUses black.\n"),
        ]);
        let mut found = Found::default();
        let mut sink = Sink::collecting();
        for path in files(&bundle, false) {
            read_file(&bundle, path, &mut found, &mut sink).expect("it can be read");
        }
        let tags: Vec<_> =
            found.memories.iter().map(|(memory, path)| (memory.tags.join(" "), *path)).collect();
        let first = ".goose/memory/a.txt";
        assert_eq!(tags, [("a x b y".to_owned(), first), ("a".to_owned(), first)]);
    }

    #[test]
    fn tags_have_the_form_of_pam() {
        assert_eq!(
            (tag("Köln 1").as_str(), tag("--").as_str(), tag("a_b-C").as_str()),
            ("k-ln-1", "", "a_b-c")
        );
    }
}
