//! Group chats and Codex tasks: lists in which each turn answers the one before.

use satchel_importer::testkit::round_trip::{
    Chat, SourceFile, Stored, StoredMessage, Turn, text_of, time_text,
};
use serde_json::Value;

/// The type of each text, and the text.
type Texts = Vec<(String, String)>;

/// The turns of a list, without those that the receipt names as skipped.
fn turns(place: &str, list: &str, item: &Value, file: &SourceFile<'_>) -> Vec<Turn> {
    let all = item[list].as_array().into_iter().flatten().enumerate();
    let read = all.filter(|(at, turn)| turn.is_object() && !file.skips(&format!("{place}.{list}[{at}]")));
    let read: Vec<&Value> = read.map(|(_, turn)| turn).collect();
    let id = |at: usize| text_of(&read[at]["id"]).unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: read[at]["role"].as_str().unwrap_or("system").to_owned(),
        time: time_text(&read[at]["created_at"]),
        parts: texts(read[at]),
    };
    (0..read.len()).map(turn).collect()
}

fn texts(turn: &Value) -> Texts {
    let text = turn["text"].as_str().map(|text| ("text".to_owned(), text.to_owned()));
    text.into_iter().chain(items(turn)).collect()
}

/// The item lists of a task, verbatim.
fn items(turn: &Value) -> Texts {
    let lists = ["input_items", "output_items"].into_iter().filter(|list| turn[*list].is_array());
    lists.map(|list| (list.to_owned(), turn[list].to_string())).collect()
}

pub(super) fn source_chats(file: &SourceFile<'_>) -> Vec<Chat> {
    let (list, title) = if file.base() == "codex.json" { ("turns", "title") } else { ("messages", "name") };
    let chat = |(place, item): (String, Value)| {
        let title = text_of(&item[title]);
        Chat {
            key: text_of(&item["id"]).unwrap_or_else(|| format!("{title:?}")),
            title,
            created: time_text(&item["created_at"]),
            updated: time_text(&item["updated_at"]),
            current: None,
            turns: turns(&place, list, &item, file),
        }
    };
    let chats = file.elements("chats").into_iter().filter(|(_, item)| item[list].is_array());
    chats.map(chat).filter(|chat| !chat.turns.is_empty()).collect()
}

pub(super) fn stored_chat(stored: &Stored) -> Chat {
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |(at, message): (usize, &StoredMessage)| {
        let items = items(&message.raw);
        let text = message.texts().first().map(|text| ("text".to_owned(), text.clone()));
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.metadata_text("role").unwrap_or_else(|| message.role.clone()),
            time: message.time_text("created_at"),
            parts: if items.is_empty() { text.into_iter().collect() } else { items },
        }
    };
    Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: stored.time_text(stored.created, "created_at"),
        updated: stored.time_text(stored.updated, "updated_at"),
        current: None,
        turns: stored.messages.iter().enumerate().map(turn).collect(),
    }
}
