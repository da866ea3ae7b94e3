//! Joins what belongs to one turn: parallel calls, their answers, and lines of the program often name the same parent, so that
//! they look like branches, although the person saw them one after the other.

use std::collections::BTreeMap;

use super::Node;

/// Steps to the end of a turn. A longer way is not searched, and the line stays where it says.
const MAX_STEPS: usize = 64;

/// Lets each line that continues a turn follow the last line of it, and what follows its parent follow that line.
///
/// Only earlier lines are looked at, so that the parent of a line does not change when the session grows.
pub(super) fn join_continuations(nodes: &mut [Node]) {
    let mut turns = Turns::new(nodes);
    for at in 0..nodes.len() {
        if !nodes[at].kept {
            continue;
        }
        let Some(stated) = turns.stated(nodes, at) else { continue };
        let moved = turns.moved(stated);
        let part = nodes[at].message.is_some() && nodes[at].message == nodes[stated].message;
        let continues = nodes[at].continues || part;
        let parent = if continues { turns.end(moved) } else { moved };
        let inserted = !nodes[at].own_id || (continues && parent != moved);
        turns.last_child[parent] = Some(at);
        if inserted {
            turns.moves[parent] = Some(at);
        }
        if parent != stated {
            if nodes[at].own_id {
                nodes[at].stated_parent = Some(nodes[stated].id.clone());
            }
            nodes[at].parent = Some(nodes[parent].id.clone());
        }
    }
}

struct Turns {
    index: BTreeMap<String, usize>,
    /// The nearest node that becomes a message, for each node: itself or one above.
    nearest: Vec<Option<usize>>,
    last_child: Vec<Option<usize>>,
    /// The node that was put behind a node: what names the first one follows the second.
    moves: Vec<Option<usize>>,
}

impl Turns {
    fn new(nodes: &[Node]) -> Self {
        let index: BTreeMap<String, usize> =
            nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at)).collect();
        let mut nearest: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            let above = || {
                node.parent
                    .as_ref()
                    .and_then(|parent| index.get(parent))
                    .and_then(|above| nearest.get(*above))
            };
            let found = if node.kept { Some(at) } else { above().copied().flatten() };
            nearest.push(found);
        }
        Self { index, nearest, last_child: vec![None; nodes.len()], moves: vec![None; nodes.len()] }
    }

    /// The parent that a line names, if it is an earlier one.
    fn stated(&self, nodes: &[Node], at: usize) -> Option<usize> {
        let parent = *self.index.get(nodes[at].parent.as_ref()?)?;
        self.nearest[parent].filter(|above| *above < at && parent < at)
    }

    /// The node that what names `at` follows.
    fn moved(&mut self, at: usize) -> usize {
        let mut end = at;
        while let Some(next) = self.moves[end] {
            end = next;
        }
        // The next look-up is short.
        let mut step = at;
        while let Some(next) = self.moves[step].filter(|_| step != end) {
            self.moves[step] = Some(end).filter(|end| *end != step);
            step = next;
        }
        end
    }

    /// The last line of the turn below `at`; itself if it has no child or the end is too far.
    fn end(&self, at: usize) -> usize {
        let mut end = at;
        for _ in 0..MAX_STEPS {
            match self.last_child[end] {
                Some(child) => end = child,
                None => return end,
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, parent: &str, continues: bool) -> Node {
        let parent = Some(parent.to_owned()).filter(|parent| !parent.is_empty());
        Node { id: id.to_owned(), parent, kept: true, own_id: true, continues, ..Node::default() }
    }

    fn parents(mut nodes: Vec<Node>) -> Vec<String> {
        join_continuations(&mut nodes);
        nodes.into_iter().map(|node| node.parent.unwrap_or_default()).collect()
    }

    #[test]
    fn parallel_calls_and_their_answers_are_one_line() {
        let part = |node: Node| Node { message: Some(1), ..node };
        let nodes = vec![
            node("question", "", false),
            part(node("call 1", "question", false)),
            part(node("call 2", "call 1", false)),
            node("answer 1", "call 1", true),
            node("answer 2", "call 2", true),
            node("next", "answer 2", false),
        ];
        assert_eq!(parents(nodes), ["", "question", "call 1", "call 2", "answer 1", "answer 2"]);
        // The second call comes after the first answer.
        let nodes = vec![
            part(node("call 1", "", false)),
            node("answer 1", "call 1", true),
            part(node("call 2", "call 1", false)),
            node("answer 2", "call 2", true),
            node("next", "answer 1", false),
        ];
        assert_eq!(parents(nodes), ["", "call 1", "answer 1", "call 2", "call 2"]);
    }

    #[test]
    fn an_edited_question_stays_a_branch() {
        let nodes = vec![
            node("answer", "", false),
            node("question", "answer", false),
            node("first", "question", false),
            node("edited", "answer", false),
        ];
        assert_eq!(parents(nodes), ["", "answer", "question", "answer"]);
    }

    #[test]
    fn what_follows_a_line_follows_what_was_put_behind_it() {
        let typed = Node { own_id: false, ..node("typed", "call", false) };
        let nodes =
            vec![node("call", "", false), typed, node("answer", "call", true), node("next", "answer", false)];
        assert_eq!(parents(nodes), ["", "call", "typed", "answer"]);
    }

    #[test]
    fn long_turns_end_in_time() {
        let mut nodes = vec![node("0", "", false)];
        nodes.extend((1..50_000).map(|at| node(&at.to_string(), &(at - 1).to_string(), false)));
        nodes.extend((0..50_000).map(|at| node(&format!("a{at}"), &at.to_string(), true)));
        let parents = parents(nodes);
        assert_eq!(parents[50_000], "0");
    }
}
