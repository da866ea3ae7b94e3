//! Memories that the program adds to a context file below a heading, or to the file of a project, each as an item of a list.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle, Claim, ErrorKind, Evidence, ImportError, Item, RecordKind, Sink, natural_key,
    pam::memory::{ExtractionMethod, MemoryType},
};

use crate::layout;

/// The longest context file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
/// The heading above the list.
const HEADING: &str = "## Gemini Added Memories";
/// How the program finds the end of the list.
const SECTION: &str = "## ";

/// The files with memories.
pub(crate) fn files(bundle: &Bundle) -> Result<Vec<&str>, ImportError> {
    let mut found = Vec::new();
    for entry in bundle.entries() {
        if layout::is_context_file(&entry.path) && read_file(bundle, &entry.path)?.is_some() {
            found.push(entry.path.as_str());
        }
    }
    Ok(found)
}

/// Reads the memories of all files. Returns whether there is one.
pub(crate) fn read(bundle: &Bundle, sink: &mut Sink) -> Result<bool, ImportError> {
    let files = files(bundle)?;
    for path in &files {
        let items = read_file(bundle, path)?.unwrap_or_default();
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

/// The memories of a file; none if it is another file.
fn read_file(bundle: &Bundle, path: &str) -> Result<Option<Vec<String>>, ImportError> {
    let text = match bundle.read(path, MAX_FILE) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        // A list of memories is far shorter; other files are not claimed.
        Err(error) if error.kind == ErrorKind::Limit => return Ok(None),
        Err(error) => return Err(error),
    };
    if text.lines().any(is_heading) {
        let section = text.lines().skip_while(|line| !is_heading(line)).skip(1);
        return Ok(Some(items(section.take_while(|line| !line.starts_with(SECTION)))));
    }
    let of_project = layout::memory_folder(path).is_some_and(|folder| layout::is_project(bundle, folder));
    Ok(of_project.then(|| items(text.lines())))
}

fn is_heading(line: &str) -> bool {
    line.trim_end() == HEADING
}

/// The items of a list, each once. Lines that begin no item belong to the one before, but not behind another heading: what is there was
/// not added by the program.
fn items<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut other = false;
    for line in lines {
        if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            found.push(item.trim().to_owned());
            other = false;
        } else if line.starts_with('#') {
            other = true;
        } else if !line.trim().is_empty() && !other {
            match found.last_mut() {
                Some(last) => {
                    last.push('\n');
                    last.push_str(line.trim_end());
                }
                None => found.push(line.trim().to_owned()),
            }
        }
    }
    let mut once = BTreeSet::new();
    found.retain(|item| !item.is_empty() && once.insert(item.clone()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Option<Vec<String>> {
        let bundle = Bundle::from_files([(path, text), ("p/.project_root", "/home/a")]);
        read_file(&bundle, path).expect("memory can be read")
    }

    #[test]
    fn only_the_list_below_the_heading_is_read() {
        let text = "# Rules\n- Short lines.\n\n## Gemini Added Memories\n- Likes tea.\n- Has a cat,\n  called Mo.\n- Likes tea.\n-  \n\n## More\n- No.";
        for path in ["GEMINI.md", "AGENTS.md"] {
            assert_eq!(read(path, text).unwrap_or_default(), ["Likes tea.", "Has a cat,\n  called Mo."]);
        }
        assert_eq!(read("GEMINI.md", "- Likes tea."), None);
    }

    #[test]
    fn what_the_program_adds_behind_another_heading_is_read() {
        let text = "## Gemini Added Memories\n- Likes tea.\n\n# Rules\nShort lines.\n- Has a cat.\n";
        assert_eq!(read("GEMINI.md", text).unwrap_or_default(), ["Likes tea.", "Has a cat."]);
    }

    #[test]
    fn the_memories_of_a_project_have_no_heading() {
        let text = "- Tests run with make.\n- The beds are in beds.toml.\n";
        let expected = ["Tests run with make.", "The beds are in beds.toml."];
        assert_eq!(read("p/memory/MEMORY.md", text).unwrap_or_default(), expected);
        assert_eq!((read("memory/MEMORY.md", text), read("p/memory/other.md", text)), (None, None));
    }

    #[test]
    fn many_items_are_read_in_time() {
        let lines: Vec<String> = (0..149_000).map(|number| format!("- {number}")).collect();
        let begun = std::time::Instant::now();
        assert_eq!(items(lines.iter().map(String::as_str)).len(), 149_000);
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{:?}", begun.elapsed());
    }
}
