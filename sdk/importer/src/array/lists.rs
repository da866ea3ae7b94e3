//! Streams the elements of several lists in the root object of a file, in one walk.

use super::{
    ELEMENT_LIMIT, Element, JsonArray, Progress, WalkOutcome,
    walk::{Member, Walk},
};
use crate::{Bundle, ImportError, RecordKind, Sink};

/// Most names in [`ListsOutcome::others`]; one is enough to see that a format has grown. The others are counted.
const MAX_OTHERS: usize = 16;

/// Lists in the root object of a file, such as `{"conversations": […], "projects": […]}`.
#[derive(Clone, Copy, Debug)]
pub struct JsonLists<'p> {
    path: &'p str,
    lists: &'p [(&'p str, RecordKind)],
    limit: usize,
}

/// The result of a walk over several lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListsOutcome {
    /// Number of elements in each list, including skipped ones.
    pub elements: Vec<u64>,
    /// Names of the members that are not among the lists, in the order of the file; at most 16.
    pub others: Vec<String>,
    /// Number of further members that are not among the lists; see [`ListsOutcome::warn_of_more_others`].
    pub more_others: u64,
    /// Offset in bytes at which the file is truncated or stops being JSON. It was reported as a skip.
    pub cut: Option<u64>,
}

impl<'p> JsonLists<'p> {
    /// The members of the root object of `path` with these names, and the kind of record that a skipped element counts
    /// as. They may come in any order. A value that is not an array is read as a list of one element, and null as an
    /// empty list.
    pub fn new(path: &'p str, lists: &'p [(&'p str, RecordKind)]) -> Self {
        Self { path, lists, limit: ELEMENT_LIMIT }
    }

    /// The longest element that is parsed, in bytes; [`ELEMENT_LIMIT`] by default. A longer one is reported as skipped. A
    /// longer name of a member counts as a cut.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Calls `each` with the index of the list and each of its elements, as [`JsonArray::each`] does. The locator of an
    /// element names its list: `export.json.projects[3]`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotThisFormat`] if the root is not an object.
    pub fn each(
        &self,
        bundle: &Bundle,
        sink: &mut Sink,
        mut each: impl FnMut(usize, Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<ListsOutcome, ImportError> {
        let mut reader = bundle.open(self.path)?;
        let mut progress = Progress { reported: 0, total: reader.size() };
        let names: Vec<&str> = self.lists.iter().map(|(name, _)| *name).collect();
        // The lists are members of the root, so another member may follow each.
        let mut walk = Walk::new(&mut reader, "/", self.limit);
        let mut outcome = ListsOutcome { elements: vec![0; names.len()], ..ListsOutcome::default() };
        while outcome.cut.is_none() {
            let add_other = |name: &str| {
                if outcome.others.len() < MAX_OTHERS {
                    outcome.others.push(name.to_owned());
                } else {
                    outcome.more_others += 1;
                }
            };
            let number = match walk.next_list(&names, add_other).map_err(|error| error.at(self.path))? {
                Member::List(number) => number,
                Member::Cut { offset, problem } => {
                    sink.skip(RecordKind::File, &format!("{}@{offset}", self.path), problem)?;
                    outcome.cut = Some(offset);
                    break;
                }
                Member::End => break,
            };
            let (Some((name, kind)), Some(elements)) =
                (self.lists.get(number), outcome.elements.get_mut(number))
            else {
                break;
            };
            let label = format!("{}.{name}", self.path);
            let list = JsonArray::new(&label).kind(*kind).limit(self.limit);
            let mut walked = WalkOutcome { elements: *elements, cut: None };
            list.each_of(&mut walk, self.path, &mut walked, &mut progress, sink, |element, sink| {
                each(number, element, sink)
            })?;
            (*elements, outcome.cut) = (walked.elements, walked.cut);
        }
        sink.progress(progress.total, Some(progress.total))?;
        Ok(outcome)
    }
}

impl ListsOutcome {
    /// Warns that the file has more members than [`ListsOutcome::others`] names, if it has. For importers that warn of each of those.
    pub fn warn_of_more_others(&self, path: &str, sink: &mut Sink) {
        if self.more_others > 0 {
            let count = self.more_others;
            sink.warn(
                path,
                &format!("{count} more members of the file are not known either; they are not imported"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use satchel_pam::record::Line;

    use super::*;

    const LISTS: [(&str, RecordKind); 3] = [
        ("conversations", RecordKind::Conversation),
        ("projects", RecordKind::Memory),
        ("posts", RecordKind::Conversation),
    ];

    fn walk(text: &str) -> (Vec<String>, ListsOutcome, Vec<Line>) {
        let bundle = Bundle::from_files([("e.json", text)]);
        let mut sink = Sink::collecting();
        let mut seen = Vec::new();
        let lists = JsonLists::new("e.json", &LISTS).each(&bundle, &mut sink, |number, element, _| {
            if element.text() == "\"bad\"" {
                return Err(ImportError::malformed("it is bad"));
            }
            seen.push(format!("{number} {} {}", element.locator(), element.text()));
            Ok(())
        });
        (seen, lists.unwrap(), sink.into_lines())
    }

    #[test]
    fn lists_are_walked_in_the_order_of_the_file() {
        let text = "\u{feff}{\"projects\":[{\"a\":1}, \"bad\"],\"odd\":{\"x\":[1]},\"posts\":{\"one\":1},\n\"conversations\":[1,2],\"posts\":null,\"n\":0}";
        let (seen, lists, lines) = walk(text);
        assert_eq!(
            seen,
            [
                "1 e.json.projects[0] {\"a\":1}",
                "2 e.json.posts[0] {\"one\":1}",
                "0 e.json.conversations[0] 1",
                "0 e.json.conversations[1] 2"
            ]
        );
        assert_eq!(
            (lists.elements, lists.others, lists.cut),
            (vec![2, 2, 1], vec!["odd".into(), "n".into()], None)
        );
        assert!(
            matches!(&lines[..], [Line::Skip(skip)] if skip.locator == "e.json.projects[1]" && skip.kind == RecordKind::Memory)
        );
    }

    #[test]
    fn a_cut_anywhere_is_reported_and_ends_the_walk() {
        let text = r#"{"conversations":[{"a":1},{"b":2}],"odd":"x","projects":[3]}"#;
        let (whole, _, _) = walk(text);
        for end in 1..text.len() {
            let (seen, lists, lines) = walk(&text[..end]);
            assert!(whole.starts_with(&seen), "{end}: {seen:?}");
            assert!(lists.cut.is_some() && lines.len() == 1, "{end}");
        }
    }

    #[test]
    fn members_beyond_those_that_are_named_are_counted() {
        let members =
            |count: usize| (0..count).map(|at| format!("\"m{at}\":0")).collect::<Vec<_>>().join(",");
        for (count, more) in [(MAX_OTHERS, 0), (MAX_OTHERS + 2, 2)] {
            let (_, lists, _) = walk(&format!("{{{},\"posts\":[1]}}", members(count)));
            assert_eq!((lists.others.len(), lists.more_others), (MAX_OTHERS, more));
            let mut sink = Sink::collecting();
            lists.warn_of_more_others("e.json", &mut sink);
            let warned = matches!(&sink.into_lines()[..], [Line::Warning(warning)] if warning.message.starts_with("2 more"));
            assert_eq!(warned, more > 0);
        }
    }

    #[test]
    fn longer_elements_are_skipped() {
        let text = r#"{"odd":"longer than twelve","posts":["1234567890","12345678901"],"projects":"x"}"#;
        let bundle = Bundle::from_files([("e.json", text)]);
        let (mut sink, mut seen) = (Sink::collecting(), Vec::new());
        let outcome = JsonLists::new("e.json", &LISTS).limit(12).each(&bundle, &mut sink, |_, element, _| {
            seen.push(element.locator());
            Ok(())
        });
        assert_eq!(seen, ["e.json.posts[0]", "e.json.projects[0]"]);
        assert_eq!(outcome.unwrap().elements, [0, 1, 2]);
        assert!(
            matches!(&sink.into_lines()[..], [Line::Skip(skip)] if skip.locator == "e.json.posts[1]" && skip.reason == "it is longer than 12 bytes")
        );
    }

    #[test]
    fn a_root_that_is_not_an_object_is_not_this_format() {
        for text in ["", "[1]", "7"] {
            let bundle = Bundle::from_files([("e.json", text)]);
            let error = JsonLists::new("e.json", &LISTS)
                .each(&bundle, &mut Sink::collecting(), |_, _, _| Ok(()))
                .unwrap_err();
            assert_eq!(error.kind, crate::ErrorKind::NotThisFormat, "{text}");
        }
    }
}
