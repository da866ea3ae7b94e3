//! The order of a chat's messages. The file has none: a first pass reads the times, a second one the messages.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Element, ImportError, JsonArray, JsonError, Leftover, Parser,
    json::{Object, Value, items},
    natural_key, title,
};

/// Messages of one file. Real chats have thousands at most, and the order of all is in memory.
const MAX_MESSAGES: usize = 200_000;
/// Chats of one file. Real files have one, and each further one costs another pass over the file.
pub(crate) const MAX_CHATS: usize = 64;
/// Characters of a title, which is the first line of a message.
const MAX_TITLE: usize = 120;

/// The chats of a file and the order of their messages.
#[derive(Debug, Default)]
pub(crate) struct FileOrder {
    pub(crate) chats: Vec<Chat>,
    /// By the index of the element.
    positions: BTreeMap<u64, Position>,
}

/// The position of an element that is a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The message at `at` of the chat `chat`.
    At { chat: usize, at: usize },
    /// An earlier message has the same id.
    Repeated,
    /// It is beyond the limits.
    BeyondLimit,
}

/// One chat.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    pub(crate) id: Option<String>,
    /// Oldest first, a question before its answer.
    pub(crate) messages: Vec<ChatEntry>,
    /// The first line of the first message that the person wrote.
    pub(crate) title: Option<String>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
}

/// One message.
#[derive(Debug)]
pub(crate) struct ChatEntry {
    pub(crate) id: String,
    index: u64,
    time: Option<i64>,
    rank: u8,
    title: Option<String>,
}

/// The fields of a message that the first pass reads.
#[derive(Default)]
struct MessageHead<'a> {
    id: Option<&'a str>,
    chat: Option<&'a str>,
    role: Option<&'a str>,
    time: Option<i64>,
    content: Option<&'a str>,
    chunks: Option<&'a str>,
}

impl FileOrder {
    /// Reads the order of all messages of a file.
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut order = Self::default();
        let mut seen: Vec<BTreeMap<String, u32>> = Vec::new();
        JsonArray::new(path).survey(bundle, |element| {
            if let Ok(Some(head)) = MessageHead::read(&element) {
                order.add(&head, &element, &mut seen);
            }
            Ok(true)
        })?;
        for (number, chat) in order.chats.iter_mut().enumerate() {
            chat.sort();
            for (at, entry) in chat.messages.iter().enumerate() {
                order.positions.insert(entry.index, Position::At { chat: number, at });
            }
        }
        Ok(order)
    }

    /// The position of the element `index`; none if it is not a message.
    pub(crate) fn position(&self, index: u64) -> Option<Position> {
        self.positions.get(&index).copied()
    }

    fn add(&mut self, head: &MessageHead<'_>, element: &Element<'_>, seen: &mut Vec<BTreeMap<String, u32>>) {
        let index = element.index();
        let count = self.positions.len() + self.chats.iter().map(|chat| chat.messages.len()).sum::<usize>();
        let number = if count < MAX_MESSAGES { self.chat_index(head.chat) } else { None };
        let Some(number) = number else {
            self.positions.insert(index, Position::BeyondLimit);
            return;
        };
        if seen.len() <= number {
            seen.resize_with(number + 1, BTreeMap::new);
        }
        let text = || head.text(element.arena());
        let time = head.time.map(|time| time.to_string());
        let mut id =
            head.id.map_or_else(|| natural_key(&[head.role, time.as_deref(), text()]), ToOwned::to_owned);
        let count = seen[number].entry(id.clone()).or_default();
        *count += 1;
        match (*count, head.id) {
            (1, _) => {}
            (_, Some(_)) => {
                self.positions.insert(index, Position::Repeated);
                return;
            }
            (count, None) => id = format!("{id}:{count}"),
        }
        let by_user = head.role == Some("user");
        let title = if by_user { text().and_then(first_line) } else { None };
        self.chats[number].messages.push(ChatEntry {
            id,
            index,
            time: head.time,
            rank: u8::from(!by_user),
            title,
        });
    }

    /// The index of a chat; a message without a chat belongs to the first. None if there are too many.
    fn chat_index(&mut self, id: Option<&str>) -> Option<usize> {
        if let Some(first) = self.chats.first_mut()
            && (id.is_none() || first.id.is_none())
        {
            first.id = first.id.take().or(id.map(ToOwned::to_owned));
            return Some(0);
        }
        if let Some(number) = self.chats.iter().position(|chat| chat.id.as_deref() == id) {
            return Some(number);
        }
        if self.chats.len() == MAX_CHATS {
            return None;
        }
        self.chats.push(Chat { id: id.map(ToOwned::to_owned), ..Chat::default() });
        Some(self.chats.len() - 1)
    }
}

impl Chat {
    /// Sorts the messages, then sets the title and the times.
    fn sort(&mut self) {
        // Messages without a time come last, in the order of the file.
        self.messages.sort_by_key(|entry| (entry.time.is_none(), entry.time, entry.rank, entry.index));
        self.title = self.messages.iter_mut().find_map(|entry| entry.title.take());
        for entry in &mut self.messages {
            entry.title = None;
        }
        let times = || self.messages.iter().filter_map(|entry| entry.time);
        (self.created, self.updated) = (times().min(), times().max());
    }
}

impl<'a> MessageHead<'a> {
    /// Reads one element; none if it is not an object.
    fn read(element: &Element<'a>) -> Result<Option<Self>, JsonError> {
        let mut json = Parser::new(element.text(), element.arena());
        if !json.enter_object()? {
            return Ok(None);
        }
        let (mut it, mut rest) = (Self::default(), Leftover::default());
        while let Some(key) = json.key()? {
            match key {
                "id" => it.id = rest.nonempty_text(key, &mut json)?,
                "chatId" => it.chat = rest.nonempty_text(key, &mut json)?,
                "role" => it.role = rest.text(key, &mut json)?,
                "createdAt" => it.time = rest.time(key, &mut json)?,
                "content" => it.content = rest.text(key, &mut json)?,
                "contentChunks" => it.chunks = Some(json.raw_value()?),
                _ => {}
            }
        }
        json.end()?;
        Ok(Some(it))
    }

    /// Its first text.
    fn text(&self, arena: &'a Arena) -> Option<&'a str> {
        let flat = self.content.filter(|text| !text.trim().is_empty());
        flat.or_else(|| items(self.chunks?, arena).into_iter().find_map(|chunk| text_of(chunk, arena)))
    }
}

fn text_of<'a>(chunk: Value<'a>, arena: &'a Arena) -> Option<&'a str> {
    Object::parse(chunk.raw()?, arena).text("text").filter(|text| !text.trim().is_empty())
}

fn first_line(text: &str) -> Option<String> {
    title::first_line(text, MAX_TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str) -> FileOrder {
        let bundle = Bundle::from_files([("chat-1.json", text)]);
        FileOrder::read(&bundle, "chat-1.json").expect("memory can be read")
    }

    #[test]
    fn messages_are_ordered_by_time_and_questions_before_answers() {
        let order = order(
            r#"[{"id":"d","chatId":"1","role":"assistant"},
                {"id":"c","chatId":"1","role":"assistant","createdAt":"2026-01-01T00:00:05Z"},
                {"id":"b","chatId":"1","role":"user","createdAt":"2026-01-01T00:00:05Z","content":"\n second\nline"},
                {"id":"a","chatId":"1","role":"user","createdAt":"2026-01-01T00:00:01Z","contentChunks":[{"type":"text","text":" \n first\n"}]}]"#,
        );
        let ids: Vec<&str> = order.chats[0].messages.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c", "d"]);
        assert_eq!(order.chats[0].title.as_deref(), Some("first"));
        assert_eq!(order.position(2), Some(Position::At { chat: 0, at: 1 }));
    }

    #[test]
    fn chats_of_one_file_are_separate_and_repeated_ids_are_found() {
        let order = order(
            r#"[{"id":"a","chatId":"1"},{"id":"a","chatId":"2"},{"id":"a","chatId":"1"},{"id":"b"},null,{"role":"user"},{"role":"user"}]"#,
        );
        assert_eq!(order.chats.len(), 2);
        assert_eq!(order.position(1), Some(Position::At { chat: 1, at: 0 }));
        assert_eq!(order.position(2), Some(Position::Repeated));
        assert!(matches!(order.position(3), Some(Position::At { chat: 0, .. })));
        assert_eq!(order.position(4), None);
        let ids: Vec<&str> = order.chats[0].messages.iter().map(|entry| entry.id.as_str()).collect();
        assert!(ids.iter().any(|id| id.starts_with("natural:") && id.ends_with(":2")), "{ids:?}");
    }

    #[test]
    fn long_first_lines_are_cut() {
        let title = first_line(&"é".repeat(200)).expect("there is a line");
        assert_eq!(title.chars().count(), MAX_TITLE + 1);
        assert_eq!(first_line(" \n "), None);
    }
}
