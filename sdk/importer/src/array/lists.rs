//! Streams the elements of several lists that the root object of one file holds, in one walk over it.

use std::{borrow::Cow, io::BufRead};

use super::{
    ELEMENT_LIMIT, Element, JsonArray, PROGRESS_STEP, locator, utf8,
    walk::{Found, Member, Walk},
};
use crate::{Arena, Bundle, ImportError, RecordKind, Sink, json::Repeated};

/// Members of the root object that are told of as not walked; one is enough to know that a format grew.
const MOST_TOLD: usize = 16;

/// Lists of the root object of a file, such as `{"conversations": […], "projects": […]}`.
#[derive(Clone, Copy, Debug)]
pub struct JsonLists<'p> {
    path: &'p str,
    lists: &'p [(&'p str, RecordKind)],
}

/// What a walk over several lists came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Elements found whole in each list, those that were skipped too.
    pub elements: Vec<u64>,
    /// Names of members that are none of the lists, in the order of the file; at most 16.
    pub others: Vec<String>,
    /// Offset in bytes at which the file breaks off or stops being JSON; it was reported as a skip.
    pub cut: Option<u64>,
}

impl<'p> JsonLists<'p> {
    /// The members of the root object of `path` that `lists` names, each with what its elements count as. They may come
    /// in any order; one that is no list counts as a list of that one value, null as an empty one.
    pub fn new(path: &'p str, lists: &'p [(&'p str, RecordKind)]) -> Self {
        Self { path, lists }
    }

    /// Calls `each` with the number of the list and every element of it, as [`JsonArray::each`] does. An element's
    /// locator names its list: `export.json.projects[3]`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotThisFormat`] if the root is no object.
    pub fn each(
        &self,
        bundle: &Bundle,
        sink: &mut Sink,
        mut each: impl FnMut(usize, Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<Lists, ImportError> {
        let mut reader = bundle.open(self.path)?;
        let total = reader.size();
        let names: Vec<&str> = self.lists.iter().map(|(name, _)| *name).collect();
        // The lists lie below the root, so nothing but another member follows one.
        let mut walk = Walk::new(&mut reader, "/", ELEMENT_LIMIT);
        let mut outcome = Lists { elements: vec![0; names.len()], ..Lists::default() };
        let mut reported = 0;
        while outcome.cut.is_none() {
            let tell = |name: &str| {
                if outcome.others.len() < MOST_TOLD {
                    outcome.others.push(name.to_owned());
                }
            };
            let number = match walk.next_list(&names, tell).map_err(|error| error.at(self.path))? {
                Member::List(number) => number,
                Member::Cut { offset, problem } => {
                    sink.skip(RecordKind::File, &format!("{}@{offset}", self.path), problem)?;
                    outcome.cut = Some(offset);
                    break;
                }
                Member::End => break,
            };
            let Some((name, kind)) = self.lists.get(number) else { break };
            let label = format!("{}.{name}", self.path);
            let mut list = List { file: self.path, list: JsonArray::new(&label).kind(*kind), count: 0 };
            list.count = outcome.elements.get(number).copied().unwrap_or_default();
            let progress = &mut Progress { reported, total };
            outcome.cut =
                list.each(&mut walk, progress, sink, |element, sink| each(number, element, sink))?;
            reported = progress.reported;
            if let Some(count) = outcome.elements.get_mut(number) {
                *count = list.count;
            }
        }
        sink.progress(total, Some(total))?;
        Ok(outcome)
    }
}

struct Progress {
    reported: u64,
    total: u64,
}

/// One of the lists while it is walked.
struct List<'l> {
    file: &'l str,
    list: JsonArray<'l>,
    /// Elements found so far.
    count: u64,
}

impl List<'_> {
    /// Gives the elements up to the list's end; the offset of the cut, if the file breaks off before.
    fn each<R: BufRead>(
        &mut self,
        walk: &mut Walk<'_, R>,
        progress: &mut Progress,
        sink: &mut Sink,
        mut each: impl FnMut(Element<'_>, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<Option<u64>, ImportError> {
        let (mut arena, repeated) = (Arena::new(), Repeated::default());
        loop {
            let (path, index) = (self.list.path, self.count);
            match walk.next().map_err(|error| error.at(self.file))? {
                Found::Element { bytes, offset, .. } => {
                    let text = utf8(bytes);
                    let (arena, repeated, key) = (&arena, &repeated, None);
                    let element =
                        Element { text: &text, arena, repeated, path, key, index, offset, whole: true };
                    if let Cow::Owned(_) = text {
                        sink.warn(&element.locator(), "invalid UTF-8 was replaced by U+FFFD");
                    }
                    self.list.settle(each(element, sink), &element, sink)?;
                    self.count += 1;
                }
                Found::TooLong { .. } => {
                    let reason = format!("it is longer than {ELEMENT_LIMIT} bytes");
                    sink.skip(self.list.kind, &locator(path, None, index), &reason)?;
                    self.count += 1;
                }
                Found::Cut { offset, problem } => {
                    sink.skip(self.list.kind, &format!("{}@{offset}", self.file), problem)?;
                    return Ok(Some(offset));
                }
                Found::End => return Ok(None),
            }
            arena.reset();
            if walk.position() >= progress.reported + PROGRESS_STEP {
                progress.reported = walk.position();
                sink.progress(progress.reported, Some(progress.total))?;
            }
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

    fn walk(text: &str) -> (Vec<String>, Lists, Vec<Line>) {
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
    fn a_cut_anywhere_is_told_and_ends_the_walk() {
        let text = r#"{"conversations":[{"a":1},{"b":2}],"odd":"x","projects":[3]}"#;
        let (whole, _, _) = walk(text);
        for end in 1..text.len() {
            let (seen, lists, lines) = walk(&text[..end]);
            assert!(whole.starts_with(&seen), "{end}: {seen:?}");
            assert!(lists.cut.is_some() && lines.len() == 1, "{end}");
        }
    }

    #[test]
    fn what_is_no_object_is_not_this_format() {
        for text in ["", "[1]", "7"] {
            let bundle = Bundle::from_files([("e.json", text)]);
            let error = JsonLists::new("e.json", &LISTS)
                .each(&bundle, &mut Sink::collecting(), |_, _, _| Ok(()))
                .unwrap_err();
            assert_eq!(error.kind, crate::ErrorKind::NotThisFormat, "{text}");
        }
    }
}
