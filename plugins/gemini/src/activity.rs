//! Activity of Takeout: rows of a list or cards of a page, each a prompt with its answer, in any order.
//!
//! The first pass over the files indexes each row: its time, its conversations and its position. The second pass reads
//! the rows conversation by conversation and emits them.

mod block_cache;
pub(crate) mod cards;
mod emit;
mod group;
mod index;
mod key;
mod messages;
mod page;
pub(crate) mod row;
mod verb;

pub(crate) use emit::emit;
pub(crate) use index::{ActivityFormat, Index};

/// Whether a card of a page is one of Gemini's.
pub(crate) fn is_gemini_card(html: &str) -> bool {
    let row = page::read(html, row::ReadMode::Summary).row;
    !row.labels.is_empty() && row.is_gemini()
}
