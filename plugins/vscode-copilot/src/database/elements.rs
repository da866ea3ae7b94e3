//! Where the elements of a JSON list are, without reading them: the list may be larger than the memory.

use std::ops::Range;

/// Elements that are found. The program keeps 25.
const MAX_ELEMENTS: usize = 1_000;

/// Finds the elements of a list, of which it gets one part after the other.
#[derive(Debug, Default)]
pub(super) struct Elements {
    found: Vec<Range<u64>>,
    /// Where the element begins that is open.
    start: Option<u64>,
    /// Bytes of the parts before.
    at: u64,
    /// Objects and lists that are open.
    depth: usize,
    state: State,
    problem: Option<&'static str>,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    String,
    /// The byte behind a backslash of a string.
    Escape,
    /// What is behind the list, or is no list.
    Ended,
}

impl Elements {
    /// Looks at the next part.
    pub(super) fn add(&mut self, part: &[u8]) {
        for (offset, byte) in (self.at..).zip(part) {
            self.state = match (self.state, *byte) {
                (State::Ended, _) => return,
                (State::String, b'"') => State::Outside,
                (State::String, b'\\') => State::Escape,
                (State::String | State::Escape, _) => State::String,
                (State::Outside, byte) => self.outside(byte, offset),
            };
        }
        self.at += part.len() as u64;
    }

    /// Looks at a byte outside of strings.
    fn outside(&mut self, byte: u8, offset: u64) -> State {
        match (self.depth, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => {}
            (0, b'[') => self.depth = 1,
            (0, _) => {
                self.problem = Some("the value is no list of sessions");
                return State::Ended;
            }
            (1, b',') => self.end(offset),
            (1, b']') => {
                self.end(offset);
                return State::Ended;
            }
            _ => {
                self.start.get_or_insert(offset);
                match byte {
                    b'"' => return State::String,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1).max(1),
                    _ => {}
                }
            }
        }
        State::Outside
    }

    fn end(&mut self, offset: u64) {
        let Some(start) = self.start.take() else { return };
        if self.found.len() < MAX_ELEMENTS {
            self.found.push(start..offset);
        } else {
            self.problem = Some("the list has more sessions than fit");
        }
    }

    /// The elements, without one that is cut off, and what is wrong with the list.
    pub(super) fn finish(self) -> (Vec<Range<u64>>, Option<&'static str>) {
        let cut = (self.state != State::Ended).then_some("the list of sessions is cut off");
        (self.found, self.problem.or(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &str, part: usize) -> (Vec<&str>, bool) {
        let mut elements = Elements::default();
        list.as_bytes().chunks(part).for_each(|part| elements.add(part));
        let (ranges, problem) = elements.finish();
        let text = |range: Range<u64>| {
            list.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
        };
        (ranges.into_iter().filter_map(text).map(str::trim).collect(), problem.is_some())
    }

    #[test]
    fn elements_are_found_in_parts_of_any_length() {
        for part in 1..9 {
            let list = r#" [ {"a":"]},\"[","b":[1,{}]} , 7,"x\\",[[]] ] ,8"#;
            let all = vec![r#"{"a":"]},\"[","b":[1,{}]}"#, "7", r#""x\\""#, "[[]]"];
            assert_eq!(found(list, part), (all, false));
            assert_eq!(found("[]", part), (Vec::new(), false));
            assert_eq!(found(r#"[{"a":1},{"b"#, part), (vec![r#"{"a":1}"#], true));
            for other in [r#"{"a":[1]}"#, "7", "\"[1]\""] {
                assert_eq!(found(other, part), (Vec::new(), true), "{other}");
            }
        }
        assert_eq!(found("", 1), (Vec::new(), true));
        assert_eq!(found("]]}}[[", 1), (Vec::new(), true));
    }
}
