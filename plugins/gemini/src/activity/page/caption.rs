//! The caption of a card: product, conversations, why it is there.

use std::borrow::Cow;

use satchel_importer::{Leftover, json::quote};

use super::line::{Line, plain};
use crate::activity::row::{Depth, Row, conversation_of};

/// A line in bold of the caption, and those under it.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) label: String,
    pub(super) lines: Vec<Line>,
}

/// What a caption comes to.
#[derive(Debug)]
pub(super) struct Caption {
    conversations: Vec<String>,
    /// The lines under its first words in bold: the products.
    products: Vec<String>,
    /// The text of a JSON object with all that it says.
    kept: Option<String>,
}

impl Caption {
    pub(super) fn of(sections: &[Section], depth: Depth) -> Self {
        let links = sections.iter().flat_map(|section| &section.lines).flat_map(|line| &line.links);
        let conversations = links.filter_map(|link| conversation_of(&link.address)).map(ToOwned::to_owned);
        let products = sections.iter().take(1).flat_map(|section| &section.lines);
        let mut kept = Leftover::default();
        for section in sections.iter().filter(|_| depth == Depth::Read) {
            let lines: Vec<String> = section.lines.iter().map(Line::with_address).collect();
            add_list(&mut kept, section.label.trim(), &lines);
        }
        Self {
            conversations: conversations.collect(),
            products: products.map(|line| plain(&line.text)).collect(),
            kept: kept.into_json().map(Cow::into_owned),
        }
    }

    pub(super) fn put(&self, row: &mut Row<'_>) {
        for id in &self.conversations {
            row.belongs_to(Some(Cow::Owned(id.clone())));
        }
        // A card that says nothing above may say below of which product it is.
        if row.labels.is_empty() {
            row.labels.extend(self.products.iter().map(|product| Cow::Owned(product.clone())));
        }
        if let Some(kept) = &self.kept {
            row.rest.add_json("caption", kept);
        }
    }
}

pub(super) fn add_list<'k>(rest: &mut Leftover<'k>, key: &'k str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    let mut list = String::new();
    for text in texts {
        list.push(if list.is_empty() { '[' } else { ',' });
        quote(text, &mut list);
    }
    list.push(']');
    rest.add_json(key, &list);
}
