//! Group chats and tasks of Codex: lists, in which each turn answers the one before.

use satchel_importer::testkit::round::{Chat, SourceFile, Stored, StoredMessage, Turn, text_of, time_told};
use serde_json::Value;

type Said = Vec<(String, String)>;

/// Turns of a list that the receipt does not name as skipped.
fn turns(place: &str, list: &str, item: &Value, file: &SourceFile<'_>) -> Vec<Turn> {
    let all = item[list].as_array().into_iter().flatten().enumerate();
    let kept = all.filter(|(at, turn)| turn.is_object() && !file.skips(&format!("{place}.{list}[{at}]")));
    let kept: Vec<&Value> = kept.map(|(_, turn)| turn).collect();
    let id = |at: usize| text_of(&kept[at]["id"]).unwrap_or_else(|| format!("#{at}"));
    let turn = |at: usize| Turn {
        id: id(at),
        parent: at.checked_sub(1).map(id),
        role: kept[at]["role"].as_str().unwrap_or("system").to_owned(),
        time: time_told(&kept[at]["created_at"]),
        said: told_said(kept[at]),
    };
    (0..kept.len()).map(turn).collect()
}

fn told_said(turn: &Value) -> Said {
    let text = turn["text"].as_str().map(|text| ("text".to_owned(), text.to_owned()));
    text.into_iter().chain(items(turn)).collect()
}

/// Items of a task are kept as they stand.
fn items(turn: &Value) -> Said {
    let lists = ["input_items", "output_items"].into_iter().filter(|list| turn[*list].is_array());
    lists.map(|list| (list.to_owned(), turn[list].to_string())).collect()
}

pub(super) fn told(file: &SourceFile<'_>) -> Vec<Chat> {
    let (list, title) = if file.base() == "codex.json" { ("turns", "title") } else { ("messages", "name") };
    let chat = |(place, item): (String, Value)| {
        let title = text_of(&item[title]);
        Chat {
            key: text_of(&item["id"]).unwrap_or_else(|| format!("{title:?}")),
            title,
            created: time_told(&item["created_at"]),
            updated: time_told(&item["updated_at"]),
            current: None,
            turns: turns(&place, list, &item, file),
        }
    };
    let chats = file.elements("chats").into_iter().filter(|(_, item)| item[list].is_array());
    chats.map(chat).filter(|chat| !chat.turns.is_empty()).collect()
}

pub(super) fn rebuilt(stored: &Stored) -> Chat {
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at}"));
    let turn = |(at, message): (usize, &StoredMessage)| {
        let items = items(&message.raw);
        let text = message.texts().first().map(|text| ("text".to_owned(), text.clone()));
        Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.kept("role").unwrap_or_else(|| message.role.clone()),
            time: message.told("created_at"),
            said: if items.is_empty() { text.into_iter().collect() } else { items },
        }
    };
    Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{:?}", stored.title)),
        title: stored.title.clone(),
        created: stored.told(stored.created, "created_at"),
        updated: stored.told(stored.updated, "updated_at"),
        current: None,
        turns: stored.messages.iter().enumerate().map(turn).collect(),
    }
}
