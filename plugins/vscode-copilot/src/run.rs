//! Reads each session in three passes: where its requests are, what must be known about all of them, then their messages. The requests
//! of a short one are read once for both.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Bundle, Content, Conversation, ErrorKind, ImportError, Importer as _, Message, RecordKind, Sink,
    Summary, address::unsigned_json, names, natural_key, pam::unread, warnings::Warnings,
};

use crate::{
    VsCodeCopilot, database, detect,
    log::{self, Restored, Session, Source},
    map::{self, Exchange, Ids, Place, Warning},
    repeated,
    session::Header,
    workspace::{self, Workspace},
};

/// What is said in place of further warnings about unknown fields and types.
const MORE_WARNINGS: &str = "there are more kinds of warnings about this session, which are not listed";
/// Bytes of the requests that are in memory together. Their messages may need thirty times as much, in a guest of 128 MiB.
const MAX_AT_ONCE: usize = 1024 * 1024;
/// Length of a UUID, which is the name of a session's file.
const UUID: usize = 36;

/// Reads all that detection claimed for `format`; each file is read in its own layout. Databases come first, because the program has
/// written the same sessions into files later.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    VsCodeCopilot::describe().version_of(format)?;
    let mut found = false;
    for path in database::candidates(bundle) {
        if detect::has_sessions(bundle, path)? {
            found = true;
            read_database(bundle, path, sink)?;
        }
    }
    for path in detect::candidates(bundle) {
        if let Some(format) = detect::format_of(bundle, path)? {
            found = true;
            let session = Session::read(bundle, path, format, sink)?;
            let version = VsCodeCopilot::describe().version_of(format)?;
            let workspace = workspace::read(bundle, names::split(path).0);
            let file = SessionFile { bundle, path, version, session: &session, workspace: &workspace };
            file.read(MAX_AT_ONCE, sink)?;
        }
    }
    if !found {
        return Err(ImportError::not_this_format("none of the files is a chat session of VS Code"));
    }
    Ok(bundle.summary())
}

/// Reads the sessions in a database, each like a file.
fn read_database(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let version = VsCodeCopilot::describe().version_of(detect::DATABASE)?;
    let workspace = workspace::read(bundle, &workspace::sessions_beside(path));
    database::sessions(bundle, path, sink, |bundle, path, sink| {
        let session = Session::read(bundle, path, detect::DOCUMENT, sink)?;
        let file = SessionFile { bundle, path, version, session: &session, workspace: &workspace };
        file.read(MAX_AT_ONCE, sink)
    })
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
        let fields = map::fields(raw, arena)?;
        let undone = map::is_undone(&fields);
        let parent = self.undone.as_deref().filter(|_| undone).or(self.last.as_deref());
        let place = Place { request: self.request.as_deref(), parent };
        let exchange = map::exchange(fields, place, &mut self.ids)?;
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

/// A request that was read, or the reason why it cannot be.
struct ReadRequest<'a> {
    exchange: Result<Exchange<'a>, ImportError>,
    restored: Restored<'a>,
}

/// The requests of a session in their order.
struct Requests<'r> {
    file: &'r SessionFile<'r>,
    source: Source,
    chain: Chain,
    next: usize,
}

impl Requests<'_> {
    /// The next request and its number; none behind the last one.
    fn next<'a>(&mut self, arena: &'a Arena) -> Result<Option<(usize, ReadRequest<'a>)>, ImportError> {
        let number = self.next;
        if number == self.file.session.len() {
            return Ok(None);
        }
        self.next += 1;
        let restored = self.file.session.request(number, &mut self.source, arena);
        let (exchange, restored) = match restored {
            Ok(restored) => (self.chain.add(restored.text, arena), restored),
            Err(error) => (Err(error), Restored::default()),
        };
        match exchange {
            Err(error) if error.kind != ErrorKind::Malformed => Err(error.at(self.file.locator(number))),
            exchange => Ok(Some((number, ReadRequest { exchange, restored }))),
        }
    }
}

impl Outline {
    /// Adds what the next request says.
    fn add(&mut self, exchange: &Exchange<'_>) {
        let id = |message: &Message<'_>| message.id.clone().into_owned();
        if self.first.is_none() {
            let mut messages = exchange.messages.iter();
            let first = messages.next();
            self.first = first.map(id);
            self.named = first.is_some_and(|first| first.provider_message_id.is_some());
            let text = messages.find_map(|message| message.content.as_ref()).and_then(Content::text);
            self.answer = text.map(Cow::into_owned);
        }
        if !exchange.undone {
            self.current = exchange.messages.last().map(id).or(self.current.take());
        }
        let sent = exchange.messages.first().and_then(|message| message.created_at);
        self.oldest = self.oldest.or(sent);
        self.newest = self.newest.max(exchange.newest);
        self.words = self.words.take().or_else(|| exchange.words.map(ToOwned::to_owned));
        self.model = exchange.model.map(ToOwned::to_owned).or(self.model.take());
        for kind in &exchange.left_out {
            *self.left_out.entry((*kind).to_owned()).or_default() += 1;
        }
    }
}

impl SessionFile<'_> {
    /// Reads all requests together if they have at most `at_once` bytes, otherwise one by one in two passes.
    fn read(&self, at_once: usize, sink: &mut Sink) -> Result<(), ImportError> {
        if self.session.request_bytes() <= at_once {
            self.read_at_once(sink)
        } else {
            self.read_one_by_one(sink)
        }
    }

    fn read_at_once(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let (arena, mut outline, mut read) = (Arena::new(), Outline::default(), Vec::new());
        let mut requests = self.requests()?;
        while let Some((number, request)) = requests.next(&arena)? {
            request.exchange.iter().for_each(|exchange| outline.add(exchange));
            read.push((number, request));
        }
        self.begin(&outline, sink)?;
        let mut warned = Warnings::new(MORE_WARNINGS);
        read.into_iter().try_for_each(|(number, request)| self.emit(number, request, &mut warned, sink))
    }

    fn read_one_by_one(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut arena, mut outline) = (Arena::new(), Outline::default());
        let mut requests = self.requests()?;
        while let Some((_, request)) = requests.next(&arena)? {
            request.exchange.iter().for_each(|exchange| outline.add(exchange));
            drop(request);
            arena.reset();
        }
        self.begin(&outline, sink)?;
        let (mut requests, mut warned) = (self.requests()?, Warnings::new(MORE_WARNINGS));
        while let Some((number, request)) = requests.next(&arena)? {
            self.emit(number, request, &mut warned, sink)?;
            arena.reset();
        }
        Ok(())
    }

    fn requests(&self) -> Result<Requests<'_>, ImportError> {
        let source = Source::open(self.bundle, self.path)?;
        Ok(Requests { file: self, source, chain: Chain::default(), next: 0 })
    }

    /// Reports what is known of the session, and emits its conversation.
    fn begin(&self, outline: &Outline, sink: &mut Sink) -> Result<(), ImportError> {
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
            self.conversation(outline, sink)
        } else {
            sink.skip(RecordKind::Conversation, self.path, "the session holds no messages")
        }
    }

    /// Emits the messages of a request. `warned` has the warnings that are given once.
    fn emit(
        &self,
        number: usize,
        request: ReadRequest<'_>,
        warned: &mut Warnings,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let locator = self.locator(number);
        log::report(&request.restored.failed, self.path, sink)?;
        for key in repeated::keys(request.restored.text) {
            sink.warn(&locator, &repeated::message(&key));
        }
        let exchange = match request.exchange {
            Ok(exchange) => exchange,
            Err(error) => return sink.skip(RecordKind::Message, &locator, &error.message),
        };
        for warning in exchange.warnings {
            match warning {
                Warning::Each(text) => sink.warn(&locator, text),
                Warning::Once(text) => warned.warn(&locator, text, sink),
            }
        }
        sink.more_messages(&exchange.messages)
    }

    fn locator(&self, number: usize) -> String {
        format!("{}.requests[{number}]", self.path)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is emitted for a log if requests of `at_once` bytes are read together.
    fn lines(log: &str, at_once: usize) -> Vec<satchel_importer::Line> {
        let bundle = Bundle::from_files([("a.jsonl", log)]);
        let (mut sink, workspace) = (Sink::collecting(), Workspace::default());
        let session = Session::read(&bundle, "a.jsonl", detect::LOG, &mut sink).expect("it is in memory");
        let (bundle, path, version) = (&bundle, "a.jsonl", "1");
        let file = SessionFile { bundle, path, version, session: &session, workspace: &workspace };
        file.read(at_once, &mut sink).expect("it is in memory");
        sink.into_lines()
    }

    #[test]
    fn requests_are_read_the_same_together_and_one_by_one() {
        let request = |number: u32, more: &str| {
            format!(
                r#"{{"requestId":"r{number}","message":{{"text":"Question {number}?"}},"response":[{{"value":"So."}}]{more}}}"#
            )
        };
        let first = format!(
            r#"{{"kind":0,"v":{{"version":3,"sessionId":"s","requests":[{},7,{},{}]}}}}"#,
            request(1, r#","odd":"a field of words","odd":"another of them""#),
            request(2, r#","isHidden":true"#),
            request(3, "")
        );
        let log = [
            first.as_str(),
            r#"{"kind":2,"k":["requests",2,"response"],"v":[{"kind":"new","text":"This is unknown."}]}"#,
            r#"{"kind":1,"k":["requests",3,"response",9,"value"],"v":"nowhere"}"#,
            r#"{"kind":2,"k":["requests"],"v":[{"message":{"text":"Without an id?"},"response":[{"kind":"new","text":"Unknown again."}]}]}"#,
        ]
        .join("\n");
        let together = lines(&log, MAX_AT_ONCE);
        assert_eq!(together, lines(&log, 0));
        assert!(together.len() > 3, "there are skips and warnings: {together:#?}");
    }
}
