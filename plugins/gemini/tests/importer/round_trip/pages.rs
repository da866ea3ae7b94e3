//! Reads pages of activity.
//!
//! A card is compared as the sequence of its letters and digits: title, remarks, names of files, time, answer. A page does not mark
//! title and time; the importer's own tests show that it finds both.

use satchel_importer::testkit::round_trip::{Chat, SourceFile, Stored, StoredMessage, Turn, text_of};

use super::{letters, without_markup, without_tags};

/// One card, compared by itself.
fn card(body: String) -> Chat {
    let turn =
        Turn { id: "#0".to_owned(), parts: vec![("card".to_owned(), body.clone())], ..Turn::default() };
    Chat { key: format!("card {body}"), turns: vec![turn], ..Chat::default() }
}

pub(super) fn read_chats(file: &SourceFile<'_>) -> Vec<Chat> {
    let cards = file.text.split("<div class=\"outer-cell").skip(1).enumerate();
    let is_complete = |card: &&str| card.contains("mdl-typography--caption");
    let cards = cards.filter(|(at, card)| is_complete(card) && !file.skips(&format!("{}[{at}]", file.name)));
    cards.flat_map(|(_, text)| read(text)).collect()
}

/// The card, once for each conversation that it names.
fn read(text: &str) -> Vec<Chat> {
    let cell = |class: &str| {
        text.split_once(class).map_or("", |(_, rest)| rest.split_once('>').map_or("", |(_, rest)| rest))
    };
    let header = cell("header-cell").split("</div>").next().unwrap_or_default().to_lowercase();
    if !header.contains("gemini") && !header.contains("bard") {
        return Vec::new();
    }
    let body = cell("mdl-typography--body-1\"");
    // The next cell holds the pictures.
    let body = body.split("<div class=\"content-cell").next().unwrap_or_default();
    let caption = cell("mdl-typography--caption");
    let named = caption.matches("\"https://gemini.google.com/app/").count();
    vec![card(letters(&without_tags(body))); named.max(1)]
}

pub(super) fn rebuilt(stored: &Stored) -> Vec<Chat> {
    let mut cards: Vec<String> = Vec::new();
    let mut page = false;
    for message in &stored.messages {
        let answer = super::is_answer(message);
        page = if answer { page } else { message.raw.get("caption").is_some() };
        let text = letters(&without_markup(&message.texts().join("\n")));
        match cards.last_mut().filter(|_| page && answer) {
            Some(card) => card.push_str(&text),
            None if page => cards.push(before_answer(message, &text)),
            None => {}
        }
    }
    cards.into_iter().map(card).collect()
}

/// The letters of a card before the answer, or all those of a creation.
fn before_answer(message: &StoredMessage, text: &str) -> String {
    let creation = message.role == "assistant";
    let title = message.metadata_text("title").map_or_else(|| text.to_owned(), |title| letters(&title));
    let list = |key: &str| message.raw[key].as_array().cloned().unwrap_or_default();
    let remarks: String = list("subtitles").iter().filter_map(text_of).collect();
    let names = message.attachments.iter().filter_map(|file| text_of(&file["name"]));
    let files: String = if remarks.is_empty() { String::new() } else { names.collect() };
    let time = message.metadata_text("time").unwrap_or_default();
    let verb = letters(&message.metadata_text("verb").unwrap_or_default());
    let content = if creation { text } else { "" };
    [verb, title, letters(&remarks), letters(&files), letters(&time), content.to_owned()].concat()
}
