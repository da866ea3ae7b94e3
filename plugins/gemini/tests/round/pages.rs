//! Pages of activity: each card tells its words, the time as it stands in the account's language, and the answer.
//!
//! A card is one run of letters and digits in its order: title, remarks, names of files, time, answer. What of it is title or time, the
//! page does not say; that the importer found both is held by its own tests.

use satchel_importer::testkit::round::{Chat, SourceFile, Stored, StoredMessage, Turn, text_of};

use super::{letters, without_marks, without_tags};

/// One card by itself, in each conversation that it names.
fn card(body: String) -> Chat {
    let turn = Turn { id: "#0".to_owned(), said: vec![("card".to_owned(), body.clone())], ..Turn::default() };
    Chat { key: format!("card {body}"), turns: vec![turn], ..Chat::default() }
}

pub(super) fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    let cards = file.text.split("<div class=\"outer-cell").skip(1).enumerate();
    let whole = |card: &&str| card.contains("mdl-typography--caption");
    let cards = cards.filter(|(at, card)| whole(card) && !file.skips(&format!("{}[{at}]", file.name)));
    cards.flat_map(|(_, text)| one(text)).collect()
}

fn one(text: &str) -> Vec<Chat> {
    let cell = |class: &str| {
        text.split_once(class).map_or("", |(_, rest)| rest.split_once('>').map_or("", |(_, rest)| rest))
    };
    let header = cell("header-cell").split("</div>").next().unwrap_or_default().to_lowercase();
    if !header.contains("gemini") && !header.contains("bard") {
        return Vec::new();
    }
    let body = cell("mdl-typography--body-1\"");
    // The next cell is that of pictures.
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
        let text = letters(&without_marks(&message.texts().join("\n")));
        match cards.last_mut().filter(|_| page && answer) {
            Some(card) => card.push_str(&text),
            None if page => cards.push(head(message, &text)),
            None => {}
        }
    }
    cards.into_iter().map(card).collect()
}

/// What a card says before the answer; of what Gemini made, all.
fn head(message: &StoredMessage, text: &str) -> String {
    let made = message.role == "assistant";
    let title = message.kept("title").map_or_else(|| text.to_owned(), |title| letters(&title));
    let list = |key: &str| message.raw[key].as_array().cloned().unwrap_or_default();
    let remarks: String = list("subtitles").iter().filter_map(text_of).collect();
    let given = message.attachments.iter().filter_map(|file| text_of(&file["name"]));
    let files: String = if remarks.is_empty() { String::new() } else { given.collect() };
    let time = message.kept("time").unwrap_or_default();
    let verb = letters(&message.kept("verb").unwrap_or_default());
    let work = if made { text } else { "" };
    [verb, title, letters(&remarks), letters(&files), letters(&time), work.to_owned()].concat()
}
