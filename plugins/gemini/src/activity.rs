//! Activity of Takeout: rows of a list or cards of a page, each a prompt with its answer, in no order that matters.
//!
//! Files are walked over once to learn of each row when it was, to which conversations it belongs and where it stands;
//! then conversation by conversation is read and emitted.

pub(crate) mod cards;
mod emit;
mod group;
mod index;
mod key;
mod messages;
mod page;
pub(crate) mod row;
mod shelf;
mod verb;

pub(crate) use emit::emit;
pub(crate) use index::{Index, Shape};

/// Whether a card of a page is one of Gemini's.
pub(crate) fn is_our_card(html: &str) -> bool {
    let row = page::read(html, row::Depth::Noted).row;
    !row.labels.is_empty() && row.is_ours()
}
