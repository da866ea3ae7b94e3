//! Recognises natural language among the strings of a JSON text.
//!
//! A string is natural language if it has more letters than digits and, outside of HTML tags,
//! - at least two words, one of which begins with a lower-case letter or a letter of a script without case; or at least six words
//!   of any kind (`Jordan Doe`, `Deep Research` and `IN PROGRESS` are names and labels); or
//! - two consecutive letters of a script without spaces between words (Chinese, Japanese, Thai and others) or with long words
//!   (Korean).
//!
//! Words are separated by white space and, without punctuation around them, consist of letters, apostrophes and hyphens. Ids,
//! addresses, paths, times, base64 and enumeration values are therefore not words. A file name is not natural language. If a string
//! is itself JSON, the strings inside it decide.

use std::borrow::Cow;

use crate::{
    json::lexer::{Lexer, Token},
    raw::{MAX_DEPTH, RawObject},
};

/// Maximum number of words of a label; more words are a sentence, regardless of case.
const MAX_LABEL_WORDS: usize = 5;
/// Maximum nesting of JSON inside strings; providers nest it twice.
const MAX_NESTED_TEXTS: usize = 4;
/// Maximum number of words of a file name.
const MAX_FILE_NAME_WORDS: usize = 12;
/// Maximum length of a returned path; receipts would shorten a longer one anyway.
const MAX_PATH_BYTES: usize = 200;
/// Extensions by which a file name is recognised, sorted.
const FILE_EXTENSIONS: [&str; 33] = [
    "avi", "bin", "bmp", "csv", "dat", "doc", "docx", "epub", "gif", "heic", "htm", "html", "jpeg", "jpg",
    "json", "m4a", "md", "mov", "mp3", "mp4", "odt", "ogg", "pdf", "png", "ppt", "pptx", "svg", "txt", "wav",
    "webm", "webp", "xlsx", "zip",
];

/// Whether `text` is natural language by the rules of this module.
#[must_use]
pub fn is_prose(text: &str) -> bool {
    is_prose_at(text, MAX_NESTED_TEXTS)
}

/// Returns the path of the longest string of natural language in `object`, such as `content.blocks[0].text`; the first of equal
/// length.
#[must_use]
pub fn longest(object: &RawObject) -> Option<String> {
    search(object, false)
}

/// Like [`longest`], but only among strings of records, which are below a list. A list that contains only strings has no records.
#[must_use]
pub fn longest_in_records(object: &RawObject) -> Option<String> {
    search(object, true)
}

fn is_prose_at(text: &str, levels: usize) -> bool {
    let text = text.trim();
    if text.starts_with(['{', '['])
        && let Some(found) = inside_json(text, levels)
    {
        return found;
    }
    !is_file_name(text) && Count::of(text).is_prose()
}

/// Whether a string inside the JSON `text` is natural language; none if `text` is not JSON.
fn inside_json(text: &str, levels: usize) -> Option<bool> {
    let (mut lexer, mut found) = (Lexer::new(text, MAX_DEPTH), false);
    while let Some(token) = lexer.next().ok()? {
        if let Token::String(quoted) = token {
            found |= !found && levels > 0 && is_prose_at(&quoted.decode(&mut false), levels - 1);
        }
    }
    Some(found)
}

/// Counts of words and characters in a text.
#[derive(Debug, Default)]
struct Count {
    words: usize,
    /// Words that do not begin with a capital letter.
    not_capitalised: usize,
    letters: usize,
    digits: usize,
    /// Whether it has text in a script without spaces.
    unspaced: bool,
}

impl Count {
    fn of(text: &str) -> Self {
        let mut count = Self::default();
        for (index, piece) in text.split('<').enumerate() {
            count.add(if index == 0 { piece } else { after_tag(piece) });
        }
        count
    }

    fn add(&mut self, text: &str) {
        for token in text.split_whitespace() {
            self.letters += token.chars().filter(|c| c.is_alphabetic()).count();
            self.digits += token.bytes().filter(u8::is_ascii_digit).count();
            self.unspaced |= holds_unspaced(token);
            if let Some(first) = first_of_word(token) {
                self.words += 1;
                self.not_capitalised += usize::from(!first.is_uppercase());
            }
        }
    }

    fn is_prose(&self) -> bool {
        let sentence = (self.words >= 2 && self.not_capitalised > 0) || self.words > MAX_LABEL_WORDS;
        (sentence || self.unspaced) && self.letters > self.digits
    }
}

/// The text after the tag at the start of `piece`, if there is one.
fn after_tag(piece: &str) -> &str {
    let opens = piece.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!'));
    piece.split_once('>').filter(|_| opens).map_or(piece, |(_, text)| text)
}

/// The first letter of `token`, if it is a word.
fn first_of_word(token: &str) -> Option<char> {
    let word = token.trim_matches(|c: char| !c.is_alphanumeric());
    // Other scripts have combining marks between letters.
    let fits = |c: char| c.is_ascii_alphabetic() || !c.is_ascii() || matches!(c, '\'' | '-');
    word.chars().next().filter(|first| first.is_alphabetic() && word.chars().all(fits))
}

fn holds_unspaced(token: &str) -> bool {
    let mut before = false;
    let in_a_row = |c: char| std::mem::replace(&mut before, is_unspaced(c)) && is_unspaced(c);
    !token.is_ascii() && !token.starts_with('/') && !token.contains("://") && token.chars().any(in_a_row)
}

fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{f00}'..='\u{109f}' // Tibetan, Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3040}'..='\u{30ff}' // Japanese
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}' // Chinese
        | '\u{ac00}'..='\u{d7af}' // Korean
    ) && c.is_alphanumeric()
}

fn is_file_name(text: &str) -> bool {
    let extension = text.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| FILE_EXTENSIONS.binary_search(&extension.as_str()).is_ok())
        && !text.contains('\n')
        && text.split_whitespace().count() <= MAX_FILE_NAME_WORDS
}

/// One step of a path.
enum Step<'a> {
    Key(Cow<'a, str>),
    Item(usize),
}

fn search(object: &RawObject, only_in_records: bool) -> Option<String> {
    let mut lexer = Lexer::new(object.as_str(), MAX_DEPTH);
    let (mut steps, mut longest): (Vec<Step<'_>>, _) = (Vec::new(), None);
    // The text of a RawObject is valid JSON, so there are no errors.
    while let Ok(Some(token)) = lexer.next() {
        match token {
            Token::BeginObject => steps.push(Step::Key(Cow::Borrowed(""))),
            Token::BeginArray => steps.push(Step::Item(0)),
            Token::EndObject | Token::EndArray => {
                steps.pop();
                next_item(&mut steps);
            }
            Token::Key(quoted) => {
                steps.pop();
                steps.push(Step::Key(quoted.decode(&mut false)));
            }
            Token::String(quoted) => {
                let text = quoted.decode(&mut false);
                let longer = longest.as_ref().is_none_or(|(most, _)| *most < text.len());
                let fits = !only_in_records || is_in_record(&steps);
                if longer && fits && is_prose(&text) {
                    longest = Some((text.len(), path(&steps)));
                }
                next_item(&mut steps);
            }
            Token::Number(_) | Token::Bool(_) | Token::Null => next_item(&mut steps),
        }
    }
    longest.map(|(_, path)| path)
}

fn is_in_record(steps: &[Step<'_>]) -> bool {
    steps.len() > 2 && steps.iter().any(|step| matches!(step, Step::Item(_)))
}

fn next_item(steps: &mut [Step<'_>]) {
    if let Some(Step::Item(number)) = steps.last_mut() {
        *number += 1;
    }
}

fn path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(key) => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.extend(key.chars().filter(|c| !c.is_control()));
            }
            Step::Item(number) => path.push_str(&format!("[{number}]")),
        }
    }
    if path.len() > MAX_PATH_BYTES {
        path.truncate(path.floor_char_boundary(MAX_PATH_BYTES));
        path.push('…');
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_people_and_models_are_natural_language() {
        for text in [
            "What is tea?",
            "guten Tag",
            "Привет, как дела",
            "مرحبا بك",
            "नमस्ते दुनिया",
            "你好",
            "お茶はいかが",
            "안녕하세요",
            "สวัสดี",
            "<p>Tea is <b>a drink</b>.</p>",
            "don't use well-known words",
            "- milk\n- 12 eggs and butter",
            "THE KETTLE IS NOT ON THE STOVE",
            "Please read Report 2024.pdf and tell me what you think of the second part of it, thanks.",
            r#"[{"step":"FINAL","content":{"answer":"{\"answer\":\"Tea is a drink\"}"}}]"#,
        ] {
            assert!(is_prose(text), "{text:?}");
        }
    }

    #[test]
    fn ids_addresses_times_and_labels_are_not() {
        for text in [
            "",
            "   ",
            "tea",
            "finished_successfully",
            "IN PROGRESS",
            "Deep Research",
            "Jordan Doe",
            "Claude Sonnet 4.5",
            "3f2a1b4c-aaaa-4bbb-8ccc-0123456789ab",
            "https://example.org/a/page?with=words",
            "https://example.org/写真",
            "/home/person/notes",
            "C:\\Program Files\\tea",
            "Takeout/My Activity/Gemini Apps",
            "2025-06-21T12:00:00.123Z",
            "2025-06-21 12:00:00 +02:00",
            "Jun 21, 2025, 12:00:00 PM CEST",
            "12 of 30",
            "aGVsbG8gd29ybGQ=",
            "VGhpcyBpcyBhIHRlc3Q\nIHRlc3QgdGVzdA0KMTIz",
            "My holiday picture.jpg",
            "写真.png",
            "image/png",
            "gpt-4o mini",
            "<div class=\"two words\"></div>",
            r#"{"status":"in_progress","two words":1}"#,
        ] {
            assert!(!is_prose(text), "{text:?}");
        }
        assert!(FILE_EXTENSIONS.is_sorted());
    }

    #[test]
    fn the_path_of_the_longest_is_found() {
        let object = |value: serde_json::Value| RawObject::parse(value.to_string()).expect("it is an object");
        let found = object(json!({
            "id": "a b", "list": [1, {"x": "tea is hot"}, [["green tea is hot, too"]], "Jordan Doe"],
            "note": "this stands in no list, and is the longest of all",
        }));
        assert_eq!(longest(&found).as_deref(), Some("note"));
        assert_eq!(longest_in_records(&found).as_deref(), Some("list[2][0][0]"));
        assert_eq!(
            longest(&object(json!({"a": {"b\n": {"c": ["x", "tea is hot"]}}}))).as_deref(),
            Some("a.b.c[1]")
        );
        assert_eq!(longest(&object(json!({"id": "3f2a", "n": 5, "l": [], "o": {}}))), None);
        let deep = object(json!({"k".repeat(500): "tea is hot"}));
        assert!(longest(&deep).is_some_and(|path| path.len() < 300));
    }

    proptest! {
        #[test]
        fn one_token_without_unspaced_letters_is_never_prose(token in "[!-~]{0,80}") {
            let may_hold_others = token.starts_with(['{', '[']) || token.contains('<');
            prop_assert!(may_hold_others || !is_prose(&token), "{}", token);
        }

        #[test]
        fn a_sentence_is_prose_wherever_it_stands(
            words in prop::collection::vec("[a-z]{1,9}", 2..8), before in "[0-9]{0,1}", key in "[a-z]{1,8}", depth in 0_usize..20,
        ) {
            let text = format!("{before} {}.", words.join(" "));
            prop_assert!(is_prose(&text));
            let nested = (0..depth).fold(json!(text), |inner, level| {
                if level % 2 == 0 { json!([1, inner]) } else { json!({"id": "x", "k": inner}) }
            });
            let object = RawObject::parse(json!({&key: nested}).to_string()).expect("it is an object");
            prop_assert!(longest(&object).is_some_and(|path| path.starts_with(&key)));
        }

        #[test]
        fn any_text_is_judged(text in any::<String>()) {
            let _: bool = is_prose(&text);
        }
    }
}
