//! Memories that the program adds to a context file, each as an item of one list.

use satchel_importer::{
    Bundle, Claim, ErrorKind, Evidence, ImportError, Item, RecordKind, Sink, natural_key,
    pam::memory::{ExtractionMethod, MemoryType},
};

use crate::layout;

/// The longest context file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// The heading above the list.
const HEADING: &str = "## Gemini Added Memories";

/// The context files with memories.
pub(crate) fn files(bundle: &Bundle) -> Result<Vec<&str>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries() {
        if layout::is_context_file(&entry.path) && read_file(bundle, &entry.path)?.is_some() {
            found.push(entry.path.as_str());
        }
    }
    Ok(found)
}

/// Reads the memories of all context files. Returns whether there is one.
pub(crate) fn read(bundle: &Bundle, sink: &mut Sink) -> Result<bool, ImportError> {
    let files = files(bundle)?;
    for path in &files {
        let text = read_file(bundle, path)?.unwrap_or_default();
        let items = items(&text);
        if items.is_empty() {
            sink.skip(RecordKind::Memory, path, "the list of memories is empty")?;
        }
        let evidence: Vec<Evidence> = items.iter().map(|item| statement(item, path)).collect();
        sink.evidence(&evidence)?;
    }
    Ok(!files.is_empty())
}

/// A memory. The file does not say when it was added.
fn statement(content: &str, path: &str) -> Evidence {
    Evidence {
        id: natural_key(&[Some(HEADING), Some(content)]),
        claim: Claim::Statement(Item::new(content, MemoryType::Fact)),
        at: None,
        account: None,
        conversation: None,
        message: None,
        extraction_method: ExtractionMethod::LlmInference,
        locator: path.to_owned(),
    }
}

/// The text of a context file with the heading; none if it is another file.
fn read_file(bundle: &Bundle, path: &str) -> Result<Option<String>, ImportError> {
    match bundle.read(path, MAX_FILE) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(text.lines().any(is_heading).then_some(text))
        }
        // A list of memories is far shorter; other files are not claimed.
        Err(error) if error.kind == ErrorKind::Limit => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_heading(line: &str) -> bool {
    line.trim_end() == HEADING
}

/// The items of the list, each once. Lines that begin no item belong to the one before.
fn items(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let section = text.lines().skip_while(|line| !is_heading(line)).skip(1);
    for line in section.take_while(|line| !line.starts_with("# ") && !line.starts_with("## ")) {
        if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            found.push(item.trim().to_owned());
        } else if !line.trim().is_empty() {
            match found.last_mut() {
                Some(last) => {
                    last.push('\n');
                    last.push_str(line.trim_end());
                }
                None => found.push(line.trim().to_owned()),
            }
        }
    }
    let mut once: Vec<String> = Vec::with_capacity(found.len());
    for item in found {
        if !item.is_empty() && !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_list_below_the_heading_is_read() {
        let text = "# Rules\n- Short lines.\n\n## Gemini Added Memories\n- Likes tea.\n- Has a cat,\n  called Mo.\n- Likes tea.\n-  \n\n## More\n- No.";
        assert_eq!(items(text), ["Likes tea.", "Has a cat,\n  called Mo."]);
        assert!(items("- Likes tea.").is_empty());
    }
}
