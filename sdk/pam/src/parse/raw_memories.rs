//! The text of `memories`, for the checksum that it declares.

use super::{ChecksumReading, MAX_DEPTH, store::member};
use crate::{
    checksum::Builder,
    jcs::{self, JcsError},
    json::tree::{self, Node, Notes},
    normal::normal_node,
};

/// The memories as they stand: hashed on the way as long as they come in id order.
#[derive(Default)]
pub(super) struct RawMemories<'a> {
    builder: Builder,
    /// Text of each, for a second look.
    texts: Vec<(String, &'a str)>,
    unordered: bool,
    problem: Option<JcsError>,
    buffer: Vec<u8>,
}

impl<'a> RawMemories<'a> {
    /// Entries, readable or not.
    pub(super) fn count(&self) -> u64 {
        self.texts.len() as u64
    }

    pub(super) fn push(&mut self, node: &Node<'a>) {
        let Node::Object(object) = node else {
            // No memory, so no checksum that could be right; the issue is reported where it is read.
            self.problem.get_or_insert(JcsError::Value("an entry is not an object".to_owned()));
            self.texts.push((String::new(), ""));
            return;
        };
        let id = member(node, "id").unwrap_or_default();
        self.unordered |= self.texts.last().is_some_and(|(previous, _)| *previous > id);
        self.texts.push((id, object.text));
        if self.unordered || self.problem.is_some() {
            return;
        }
        self.buffer.clear();
        match jcs::write_tree(&mut self.buffer, node) {
            Ok(()) => self.builder.push_canonical(&self.buffer),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Which reading of the memories a declared checksum fits; none once that is not wanted any more.
    pub(super) fn judge(
        mut self,
        declared: Option<&str>,
        wanted: &dyn Fn() -> bool,
    ) -> Option<ChecksumReading> {
        let Some(declared) = declared else { return Some(ChecksumReading::Absent) };
        if self.unordered && self.problem.is_none() {
            // Stable: memories with one id stay as written.
            self.texts.sort_by(|(left, _), (right, _)| left.cmp(right));
            match again(&self.texts, |node| node, wanted)? {
                Ok(builder) => self.builder = builder,
                Err(problem) => self.problem = Some(problem),
            }
        }
        if let Some(problem) = self.problem {
            return Some(ChecksumReading::NotCanonical(problem.to_string()));
        }
        let computed = self.builder.finish();
        if computed.to_string() == declared {
            return Some(ChecksumReading::Spec);
        }
        let normal = again(&self.texts, normal_node, wanted)?.map(Builder::finish);
        if normal.is_ok_and(|normal| normal.to_string() == declared) {
            return Some(ChecksumReading::SdkNormalForm);
        }
        Some(ChecksumReading::Mismatch { computed })
    }
}

/// Hashes the memories of these texts, each after `change`, as long as that is wanted.
fn again(
    texts: &[(String, &str)],
    change: fn(Node<'_>) -> Node<'_>,
    wanted: &dyn Fn() -> bool,
) -> Option<Result<Builder, JcsError>> {
    let (mut builder, mut buffer) = (Builder::new(), Vec::new());
    let mut hash = |text| {
        let node = tree::parse(text, MAX_DEPTH, &mut Notes::default())
            .map_err(|problem| JcsError::Value(problem.to_string()))?;
        buffer.clear();
        jcs::write_tree(&mut buffer, &change(node))?;
        builder.push_canonical(&buffer);
        Ok(())
    };
    for (_, text) in texts {
        if !wanted() {
            return None;
        }
        if let Err(problem) = hash(text) {
            return Some(Err(problem));
        }
    }
    Some(Ok(builder))
}
