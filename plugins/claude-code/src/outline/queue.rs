//! The queue of texts that the person typed while the model worked.

use std::collections::BTreeMap;

/// A text in the queue.
#[derive(Clone, Copy, Debug)]
struct Typed {
    /// The index of its node.
    node: usize,
    digest: u64,
}

/// Replays the operations on the queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Vec<Typed>,
    handed_over: BTreeMap<usize, u64>,
}

impl Queue {
    /// Adds an operation. `typed` is the node of a text that is added to the queue.
    pub(super) fn add(&mut self, operation: Option<&str>, text: Option<u64>, typed: Option<usize>) {
        if let (Some(node), Some(digest)) = (typed, text) {
            if operation.is_none() {
                // Nothing says what became of it.
                self.handed_over.insert(node, digest);
            } else {
                self.waiting.push(Typed { node, digest });
            }
            return;
        }
        match operation {
            // The model gets it while it works: the one that is named, or else the first.
            Some("remove") => {
                let named = text.and_then(|text| self.waiting.iter().position(|typed| typed.digest == text));
                if named.is_some() || !self.waiting.is_empty() {
                    let typed = self.waiting.remove(named.unwrap_or_default());
                    self.handed_over.insert(typed.node, typed.digest);
                }
            }
            // It becomes a line of its own.
            Some("dequeue") if !self.waiting.is_empty() => {
                self.waiting.remove(0);
            }
            // The person takes all of them back.
            Some("popAll") => self.waiting.clear(),
            _ => {}
        }
    }

    /// The nodes of the texts that the model got without a line of their own, each with its digest.
    pub(super) fn handed_over(self) -> BTreeMap<usize, u64> {
        self.handed_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_model_got_is_kept() {
        let mut queue = Queue::default();
        let typed =
            |queue: &mut Queue, node: usize| queue.add(Some("enqueue"), Some(node as u64), Some(node));
        typed(&mut queue, 1);
        queue.add(Some("popAll"), None, None);
        typed(&mut queue, 2);
        typed(&mut queue, 3);
        typed(&mut queue, 4);
        queue.add(Some("dequeue"), None, None);
        queue.add(Some("remove"), Some(4), None);
        queue.add(Some("remove"), None, None);
        queue.add(Some("remove"), None, None);
        queue.add(None, Some(9), Some(9));
        let kept: Vec<usize> = queue.handed_over().into_keys().collect();
        assert_eq!(kept, [3, 4, 9]);
    }
}
