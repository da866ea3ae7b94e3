//! The chats with people. Only one with My AI, if there is one, is read; of the others nothing but their number.

use satchel_importer::{Bundle, ImportError, JsonArray, JsonError, Parser, Surveyed};

use crate::{detect::ignore_other_formats, order::AI};

/// Entries of one chat that are sampled.
const MAX_ENTRIES: usize = 4;

/// Bytes of a chat that are in memory while chats are counted; of a longer one only the name is.
const MAX_COUNTED: usize = 64 * 1024;

/// What a file of chats has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chats {
    /// There is a chat with My AI.
    pub(crate) with_ai: bool,
    /// Its first member is a chat.
    pub(crate) are_chats: bool,
}

/// Samples the first `bytes` of a file.
pub(crate) fn sample(bundle: &Bundle, path: &str, bytes: usize) -> Result<Chats, ImportError> {
    let mut chats = Chats::default();
    let sampled = JsonArray::new(path).members().sample(bundle, bytes, |element| {
        let entries = entries(&mut element.parser()).unwrap_or_default();
        if element.index() == 0 {
            chats.are_chats = entries.is_some();
        }
        chats.with_ai |= entries.is_some_and(|entries| entries > 0) && is_ai(element.key());
        chats.are_chats && !chats.with_ai
    });
    ignore_other_formats(sampled)?;
    Ok(chats)
}

/// The number of chats that are not with My AI. Their contents are passed over.
pub(crate) fn count_others(bundle: &Bundle, path: &str) -> Result<u64, ImportError> {
    let mut others = 0;
    let counted = JsonArray::new(path).members().limit(MAX_COUNTED).survey_all(bundle, |found| {
        let (Surveyed::Element(element) | Surveyed::TooLong(element)) = found;
        others += u64::from(!is_ai(element.key()));
        Ok(true)
    });
    ignore_other_formats(counted)?;
    Ok(others)
}

fn is_ai(key: Option<&str>) -> bool {
    key.is_some_and(|key| AI.contains(&key))
}

/// The number of the first entries, if it is a list of entries with a type and a time. A list that ends inside an entry counts up to there.
fn entries(json: &mut Parser<'_>) -> Result<Option<usize>, JsonError> {
    if !json.enter_array()? {
        return Ok(None);
    }
    let mut seen = 0;
    while seen < MAX_ENTRIES && json.item().unwrap_or_default() {
        let (mut kind, mut time) = (false, false);
        if json.enter_object()? {
            while let Ok(Some(key)) = json.key() {
                kind |= key == "Media Type";
                time |= key == "Created";
            }
        }
        if !(kind && time) {
            break;
        }
        seen += 1;
    }
    let empty = seen == 0 && !json.item().unwrap_or_default();
    Ok((seen > 0 || empty).then_some(seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_of_any_length_are_counted() {
        let long = "x".repeat(65 * 1024 * 1024);
        let text = format!(r#"{{"a":[],"My AI":["{long}"],"b":["{long}"],"c":[]}}"#);
        let bundle = Bundle::from_files([("chat_history.json", text)]);
        assert_eq!(count_others(&bundle, "chat_history.json").expect("it can be read"), 3);
    }
}
