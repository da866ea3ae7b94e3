//! Reads each session in three passes: where its requests are, what must be known about all of them, then their messages.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Bundle, Content, Conversation, ErrorKind, ImportError, Importer as _, Message, RecordKind, Sink,
    Summary, address::unsigned_json, names, natural_key, pam::unread,
};

use crate::{
    VsCodeCopilot, detect,
    log::{self, Restored, Session, Source},
    map::{self, Exchange, Ids, Place, Warning},
    repeated,
    session::Header,
    workspace::{self, Workspace},
};

/// Warnings about unknown fields and types in one file.
const MAX_WARNINGS: usize = 100;
/// Length of a UUID, which is the name of a session's file.
const UUID: usize = 36;

/// Reads all that detection claimed for `format`; each file is read in its own layout.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    VsCodeCopilot::describe().version_of(format)?;
    let mut found = false;
    for path in detect::candidates(bundle) {
        if let Some(format) = detect::format_of(bundle, path)? {
            found = true;
            let session = Session::read(bundle, path, format, sink)?;
            let version = VsCodeCopilot::describe().version_of(format)?;
            let workspace = workspace::read(bundle, names::split(path).0);
            SessionFile { bundle, path, version, session: &session, workspace: &workspace }.read(sink)?;
        }
    }
    if !found {
        return Err(ImportError::not_this_format("none of the files is a chat session of VS Code"));
    }
    Ok(bundle.summary())
}

/// The file of a session.
struct SessionFile<'r> {
    bundle: &'r Bundle,
    path: &'r str,
    version: &'static str,
    session: &'r Session,
    workspace: &'r Workspace,
}

/// What is known about all requests.
#[derive(Default)]
struct Outline {
    /// The id of the first message.
    first: Option<String>,
    /// Whether the file states that id.
    named: bool,
    /// The first answer.
    answer: Option<String>,
    /// The id of the last message that was not taken back.
    current: Option<String>,
    oldest: Option<i64>,
    newest: Option<i64>,
    words: Option<String>,
    model: Option<String>,
    left_out: BTreeMap<String, u64>,
}

/// The chain of messages.
#[derive(Default)]
struct Chain {
    ids: Ids,
    /// The last message that was not taken back.
    last: Option<String>,
    /// The last request that was not taken back.
    request: Option<String>,
    /// The last message of requests that were taken back, if they are the last ones.
    undone: Option<String>,
}

impl Chain {
    /// Maps a request at its place.
    fn add<'a>(&mut self, raw: &'a str, arena: &'a Arena) -> Result<Exchange<'a>, ImportError> {
        let undone = map::is_undone(raw, arena)?;
        let parent = self.undone.as_deref().filter(|_| undone).or(self.last.as_deref());
        let place = Place { request: self.request.as_deref(), parent };
        let exchange = map::exchange(raw, place, &mut self.ids, arena)?;
        let id = |message: &Message<'_>| message.id.clone().into_owned();
        let last = exchange.messages.last().map(id);
        if undone {
            self.undone = last;
        } else {
            self.request = exchange.messages.first().map(id);
            (self.last, self.undone) = (last, None);
        }
        Ok(exchange)
    }
}

impl SessionFile<'_> {
    fn read(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let outline = self.outline()?;
        for field in &self.session.left_out {
            sink.warn(
                self.path,
                &format!("its field {field:?} is too long or not valid JSON; it was left out"),
            );
        }
        for field in &self.session.repeated {
            sink.warn(self.path, &repeated::message(field));
        }
        if outline.first.is_some() {
            self.conversation(&outline, sink)?;
        } else {
            sink.skip(RecordKind::Conversation, self.path, "the session holds no messages")?;
        }
        let mut warned = BTreeSet::new();
        self.each_request(|number, exchange, restored| {
            let locator = self.locator(number);
            log::report(&restored.failed, self.path, sink)?;
            for key in repeated::keys(restored.text) {
                sink.warn(&locator, &repeated::message(&key));
            }
            let exchange = match exchange {
                Ok(exchange) => exchange,
                Err(error) => return sink.skip(RecordKind::Message, &locator, &error.message),
            };
            for warning in exchange.warnings {
                match warning {
                    Warning::Each(text) => sink.warn(&locator, text),
                    Warning::Once(text) if warned.len() == MAX_WARNINGS || warned.contains(&text) => {}
                    Warning::Once(text) => {
                        sink.warn(&locator, &text);
                        warned.insert(text);
                    }
                }
            }
            sink.more_messages(&exchange.messages)
        })
    }

    /// Calls `each` with every request, or with the reason why it cannot be read.
    fn each_request(
        &self,
        mut each: impl FnMut(usize, Result<Exchange<'_>, ImportError>, &Restored<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let (mut source, mut chain, mut arena) =
            (Source::open(self.bundle, self.path)?, Chain::default(), Arena::new());
        for number in 0..self.session.len() {
            let restored = self.session.request(number, &mut source, &arena);
            let (read, restored) = match restored {
                Ok(restored) => (chain.add(restored.text, &arena), restored),
                Err(error) => (Err(error), Restored::default()),
            };
            match read {
                Err(error) if error.kind != ErrorKind::Malformed => {
                    return Err(error.at(self.locator(number)));
                }
                read => each(number, read, &restored)?,
            }
            arena.reset();
        }
        Ok(())
    }

    fn locator(&self, number: usize) -> String {
        format!("{}.requests[{number}]", self.path)
    }

    fn outline(&self) -> Result<Outline, ImportError> {
        let mut outline = Outline::default();
        self.each_request(|_, exchange, _| {
            let Ok(exchange) = exchange else { return Ok(()) };
            let id = |message: &Message<'_>| message.id.clone().into_owned();
            if outline.first.is_none() {
                let mut messages = exchange.messages.iter();
                let first = messages.next();
                outline.first = first.map(id);
                outline.named = first.is_some_and(|first| first.provider_message_id.is_some());
                let text = messages.find_map(|message| message.content.as_ref()).and_then(Content::text);
                outline.answer = text.map(Cow::into_owned);
            }
            if !exchange.undone {
                outline.current = exchange.messages.last().map(id).or(outline.current.take());
            }
            let sent = exchange.messages.first().and_then(|message| message.created_at);
            outline.oldest = outline.oldest.or(sent);
            outline.newest = outline.newest.max(exchange.newest);
            outline.words = outline.words.take().or_else(|| exchange.words.map(ToOwned::to_owned));
            outline.model = exchange.model.map(ToOwned::to_owned).or(outline.model.take());
            for kind in exchange.left_out {
                *outline.left_out.entry(kind.to_owned()).or_default() += 1;
            }
            Ok(())
        })?;
        Ok(outline)
    }

    fn conversation(&self, outline: &Outline, sink: &mut Sink) -> Result<(), ImportError> {
        let arena = Arena::new();
        let mut header =
            Header::read(&self.session.header, self.workspace, outline.words.as_deref(), &arena)?;
        if let Some(field) = header.rest.unread() {
            sink.warn(self.path, &unread::in_field(field));
        }
        let id = header.id.or_else(|| self.uuid());
        if id.is_none() && outline.named {
            // An exported chat does not name its session. Its messages do not change, so later exports of it are recognised by them.
            header.rest.add_text("grouped_by", "requests");
        }
        if !outline.left_out.is_empty() {
            let counts: Vec<String> =
                outline.left_out.iter().map(|(kind, count)| format!("\"{kind}\":{count}")).collect();
            header.rest.add_json("parts_left_out", &format!("{{{}}}", counts.join(",")));
        }
        // The ids of requests are unique. Without one, the first words alone are too common.
        let answer = outline.answer.as_deref().filter(|_| !outline.named);
        let key = || natural_key(&[Some("chat"), outline.first.as_deref(), answer]);
        let conversation = Conversation {
            id: id.map_or_else(|| key().into(), Cow::Borrowed),
            provider_conversation_id: id.map(Cow::Borrowed),
            export_format_version: Some(self.version.into()),
            title: header.title,
            created_at: header.created.or(outline.oldest),
            updated_at: header.updated.max(outline.newest).or(header.created),
            participants: header.participants,
            model: outline.model.as_deref().map(Cow::Borrowed),
            current: outline.current.as_deref().map(Cow::Borrowed),
            raw_metadata: header.rest.into_json().map(unsigned_json),
            locator: self.path.into(),
            ..Conversation::default()
        };
        sink.conversation(&conversation, &[])
    }

    /// The name of the file, if it is a UUID: the id of the session.
    fn uuid(&self) -> Option<&str> {
        let name = names::split(self.path).1;
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let digits = stem.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        (stem.len() == UUID && digits).then_some(stem)
    }
}
