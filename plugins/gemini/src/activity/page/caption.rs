//! The caption of a card: product, conversations, why the card exists.

use std::borrow::Cow;

use satchel_importer::{Leftover, json::Value};

use super::line::{Line, collapse_spaces};
use crate::activity::row::{ReadMode, Row, conversation_id};

/// A bold label, and the lines below it.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) label: String,
    pub(super) lines: Vec<Line>,
}

/// The content of a caption.
#[derive(Debug)]
pub(super) struct Caption {
    conversations: Vec<String>,
    /// The lines of the first section.
    products: Vec<String>,
    /// All sections as a JSON object.
    json: Option<String>,
}

impl Caption {
    pub(super) fn new(sections: &[Section], mode: ReadMode) -> Self {
        let links = sections.iter().flat_map(|section| &section.lines).flat_map(|line| &line.links);
        let conversations = links.filter_map(|link| conversation_id(&link.address)).map(ToOwned::to_owned);
        let products = sections.iter().take(1).flat_map(|section| &section.lines);
        let mut json = Leftover::default();
        for section in sections.iter().filter(|_| mode == ReadMode::Full) {
            let lines: Vec<String> = section.lines.iter().map(Line::with_address).collect();
            add_list(&mut json, section.label.trim(), &lines);
        }
        Self {
            conversations: conversations.collect(),
            products: products.map(|line| collapse_spaces(&line.text)).collect(),
            json: json.into_json().map(Cow::into_owned),
        }
    }

    pub(super) fn add_to(&self, row: &mut Row<'_>) {
        for id in &self.conversations {
            row.add_conversation(Some(Cow::Owned(id.clone())));
        }
        // The products of a card without a header are in its caption.
        if row.labels.is_empty() {
            row.labels.extend(self.products.iter().map(|product| Cow::Owned(product.clone())));
        }
        if let Some(json) = &self.json {
            row.rest.add_json("caption", json);
        }
    }
}

/// Adds the texts as a list, if there are any.
pub(super) fn add_list<'k>(rest: &mut Leftover<'k>, key: &'k str, texts: &[String]) {
    if !texts.is_empty() {
        let texts: Vec<_> = texts.iter().map(|text| Value::Text(text).json()).collect();
        rest.add_json(key, &format!("[{}]", texts.join(",")));
    }
}
