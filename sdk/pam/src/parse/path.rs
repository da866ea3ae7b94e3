//! JSON paths, written only for issues.

use std::fmt;

/// A position in a document, as a linked list on the stack.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl Path<'static> {
    pub(super) const ROOT: Self = Self { parent: None, step: Step::Root };
}

impl<'p> Path<'p> {
    pub(super) fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }
}

/// Characters of a key that a path shows, because keys may be hostile and paths are displayed.
const MAX_KEY_CHARS: usize = 60;

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => f.write_str("$"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Step::Key(key) => write!(f, "[{:?}]", key.chars().take(MAX_KEY_CHARS).collect::<String>()),
        }
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= MAX_KEY_CHARS
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
