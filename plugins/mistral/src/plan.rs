//! The order of a chat. Its file has none: a first pass finds when each message was written, a second one reads them.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Element, ImportError, JsonArray, JsonError, Leftover, Parser,
    json::{Object, Value, items},
    natural_key,
};

/// Messages of one file; real chats have thousands at most, and the order of all is held in memory.
const MAX_MESSAGES: usize = 200_000;
/// Chats of one file. There is one; each further one costs another pass over the file.
pub(crate) const MAX_CHATS: usize = 64;
/// Characters of a title that is made of a first line.
const MAX_TITLE: usize = 120;

/// What a file holds.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) chats: Vec<Chat>,
    /// The chat and the place in it of each element that is a message.
    places: BTreeMap<u64, Place>,
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The message at `at` of the chat `chat`.
    At { chat: usize, at: usize },
    /// One whose id an earlier one has.
    Repeated,
    /// One for which there is no room.
    Beyond,
}

/// One chat.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    pub(crate) id: Option<String>,
    /// Oldest first, a question before its answer.
    pub(crate) messages: Vec<Entry>,
    /// The first line of the first message that the person wrote.
    pub(crate) title: Option<String>,
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
}

/// One message.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    index: u64,
    time: Option<i64>,
    rank: u8,
    title: Option<String>,
}

/// What the first pass reads of a message.
#[derive(Default)]
struct Head<'a> {
    id: Option<&'a str>,
    chat: Option<&'a str>,
    role: Option<&'a str>,
    time: Option<i64>,
    content: Option<&'a str>,
    chunks: Option<&'a str>,
}

impl Plan {
    /// Looks at all messages of a file.
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut plan = Self::default();
        let mut seen: Vec<BTreeMap<String, u32>> = Vec::new();
        JsonArray::new(path).survey(bundle, |element| {
            if let Ok(Some(head)) = Head::read(&element) {
                plan.note(&head, &element, &mut seen);
            }
            Ok(true)
        })?;
        for (number, chat) in plan.chats.iter_mut().enumerate() {
            chat.settle();
            for (at, entry) in chat.messages.iter().enumerate() {
                plan.places.insert(entry.index, Place::At { chat: number, at });
            }
        }
        Ok(plan)
    }

    /// What the element of that number is; none if it is no message.
    pub(crate) fn place(&self, index: u64) -> Option<Place> {
        self.places.get(&index).copied()
    }

    fn note(&mut self, head: &Head<'_>, element: &Element<'_>, seen: &mut Vec<BTreeMap<String, u32>>) {
        let index = element.index();
        if self.places.len() + self.chats.iter().map(|chat| chat.messages.len()).sum::<usize>()
            >= MAX_MESSAGES
        {
            self.places.insert(index, Place::Beyond);
            return;
        }
        let Some(number) = self.chat(head.chat) else {
            self.places.insert(index, Place::Beyond);
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
                self.places.insert(index, Place::Repeated);
                return;
            }
            (count, None) => id = format!("{id}:{count}"),
        }
        let person = head.role == Some("user");
        let title = if person { text().and_then(first_line) } else { None };
        self.chats[number].messages.push(Entry {
            id,
            index,
            time: head.time,
            rank: u8::from(!person),
            title,
        });
    }

    /// The number of a chat; a message that names none belongs to the first. None if there are too many.
    fn chat(&mut self, id: Option<&str>) -> Option<usize> {
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
    fn settle(&mut self) {
        // Without a time nothing is known of a message's place; it comes last, in the order of the file.
        self.messages.sort_by_key(|entry| (entry.time.is_none(), entry.time, entry.rank, entry.index));
        self.title = self.messages.iter_mut().find_map(|entry| entry.title.take());
        for entry in &mut self.messages {
            entry.title = None;
        }
        let times = || self.messages.iter().filter_map(|entry| entry.time);
        (self.created, self.updated) = (times().min(), times().max());
    }
}

impl<'a> Head<'a> {
    /// Reads one element; none if it is no object.
    fn read(element: &Element<'a>) -> Result<Option<Self>, JsonError> {
        let mut json = Parser::new(element.text(), element.arena());
        if !json.enter_object()? {
            return Ok(None);
        }
        let (mut it, mut rest) = (Self::default(), Leftover::default());
        while let Some(key) = json.key()? {
            match key {
                "id" => it.id = rest.words(key, &mut json)?,
                "chatId" => it.chat = rest.words(key, &mut json)?,
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

    /// What it says first.
    fn text(&self, arena: &'a Arena) -> Option<&'a str> {
        let flat = self.content.filter(|text| !text.trim().is_empty());
        flat.or_else(|| items(self.chunks?, arena).into_iter().find_map(|chunk| text_of(chunk, arena)))
    }
}

fn text_of<'a>(chunk: Value<'a>, arena: &'a Arena) -> Option<&'a str> {
    Object::parse(chunk.raw()?, arena).text("text").filter(|text| !text.trim().is_empty())
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(MAX_TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let bundle = Bundle::from_files([("chat-1.json", text)]);
        Plan::read(&bundle, "chat-1.json").expect("memory can be read")
    }

    #[test]
    fn messages_are_ordered_by_time_and_questions_before_answers() {
        let plan = plan(
            r#"[{"id":"d","chatId":"1","role":"assistant"},
                {"id":"c","chatId":"1","role":"assistant","createdAt":"2026-01-01T00:00:05Z"},
                {"id":"b","chatId":"1","role":"user","createdAt":"2026-01-01T00:00:05Z","content":"\n second\nline"},
                {"id":"a","chatId":"1","role":"user","createdAt":"2026-01-01T00:00:01Z","contentChunks":[{"type":"text","text":" \n first\n"}]}]"#,
        );
        let ids: Vec<&str> = plan.chats[0].messages.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c", "d"]);
        assert_eq!(plan.chats[0].title.as_deref(), Some("first"));
        assert_eq!(plan.place(2), Some(Place::At { chat: 0, at: 1 }));
    }

    #[test]
    fn chats_of_one_file_are_kept_apart_and_repeated_ids_are_told() {
        let plan = plan(
            r#"[{"id":"a","chatId":"1"},{"id":"a","chatId":"2"},{"id":"a","chatId":"1"},{"id":"b"},null,{"role":"user"},{"role":"user"}]"#,
        );
        assert_eq!(plan.chats.len(), 2);
        assert_eq!(plan.place(1), Some(Place::At { chat: 1, at: 0 }));
        assert_eq!(plan.place(2), Some(Place::Repeated));
        assert!(matches!(plan.place(3), Some(Place::At { chat: 0, .. })));
        assert_eq!(plan.place(4), None);
        let ids: Vec<&str> = plan.chats[0].messages.iter().map(|entry| entry.id.as_str()).collect();
        assert!(ids.iter().any(|id| id.starts_with("natural:") && id.ends_with(":2")), "{ids:?}");
    }

    #[test]
    fn long_first_lines_are_cut() {
        let title = first_line(&"é".repeat(200)).expect("there is a line");
        assert_eq!(title.chars().count(), MAX_TITLE + 1);
        assert_eq!(first_line(" \n "), None);
    }
}
