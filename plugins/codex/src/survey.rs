//! The first pass over a file: what must be known before its messages are emitted.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use satchel_importer::{Bundle, Element, ErrorKind, ImportError, Parser, Role, title};

use crate::{
    detect,
    fields::FIELD_READER,
    injected, layout,
    line::Line,
    map::{self, Mapped, Origin, UnplacedMessage, Usage},
    message_tree::MessageTree,
    session::Session,
    turn::{self, Event, Turn},
};

/// Lines of one file. Real sessions have tens of thousands at most, and a record of each is in memory.
pub(crate) const MAX_LINES: u64 = 300_000;
/// Characters of a title, which is the first line of a message.
const MAX_TITLE: usize = 120;
/// Types of lines that are counted by name.
const MAX_TYPES: usize = 64;
/// The name of all other types.
const OTHER: &str = "other";
/// Keys of messages that are kept for the second pass, which makes the others again. They need 10 MiB.
const MAX_KEYS: usize = 100_000;
/// Bytes of the tokens of one answer that are kept; real ones have about 200.
const MAX_USAGE: usize = 4096;

/// What the whole file says.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) session: Session,
    pub(crate) model: Option<String>,
    pub(crate) name: Option<String>,
    /// The first line of the first message that the person wrote.
    pub(crate) title: Option<String>,
    pub(crate) oldest: Option<i64>,
    pub(crate) newest: Option<i64>,
    /// How many lines are no messages, by their type.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// Whether there are messages.
    pub(crate) has_messages: bool,
    /// The id of the last message that was not rolled back.
    pub(crate) current: Option<String>,
    /// The keys of messages without an id of their own, by the index of the line.
    keys: BTreeMap<u64, Box<str>>,
    /// Indexes of the lines with events that repeat items.
    repeated: BTreeSet<u64>,
    /// The tokens of answers, by the index of the line.
    usage: BTreeMap<u64, AnswerUsage>,
}

/// The tokens of one answer.
#[derive(Debug)]
pub(crate) struct AnswerUsage {
    pub(crate) output: Option<u64>,
    /// As JSON text; none if it is too long.
    pub(crate) json: Option<String>,
}

/// A message of a turn that has not ended, or the tokens behind one.
enum Pending {
    Message(PendingMessage),
    Usage(AnswerUsage),
}

/// A message of a turn that has not ended.
struct PendingMessage {
    /// The index of its line.
    index: u64,
    key: String,
    /// Whether it has an id of its own.
    named: bool,
    role: Role,
    /// The first line of the person's own text.
    title: Option<String>,
    event: Option<PendingEvent>,
}

/// An event of a turn that has not ended.
struct PendingEvent {
    event: Event,
    /// The number of its type.
    kind: u8,
    /// Whether an item before it has its text.
    repeats: bool,
}

/// Makes a [`Survey`] from the lines of a file.
#[derive(Default)]
struct SurveyBuilder {
    survey: Survey,
    tree: MessageTree,
    turn: Turn,
    pending: Vec<Pending>,
    types: Types,
    /// The index of the last answer among the messages that are not pending.
    answer: Option<u64>,
    /// Digest of the last sum of tokens.
    total: u64,
}

/// Numbers of types of lines.
#[derive(Default)]
struct Types {
    numbers: BTreeMap<String, u8>,
    names: Vec<String>,
}

impl Survey {
    /// Reads the file once.
    pub(crate) fn read(bundle: &Bundle, path: &str, format: &str) -> Result<Self, ImportError> {
        let mut builder = SurveyBuilder::default();
        builder.survey.session = Session::named(layout::uuid(path));
        let mut look = |element: Element<'_>| {
            match builder.add(&element) {
                // The second pass reports it.
                Err(error) if error.kind != ErrorKind::Malformed => return Err(error),
                Ok(()) | Err(_) => {}
            }
            Ok(element.index() + 1 < MAX_LINES)
        };
        if format == detect::SAVED {
            let object = layout::object(path);
            object.pointer("/items").survey(bundle, &mut look)?;
            object.pointer("/session").survey(bundle, |element| {
                builder.add_session(&element);
                Ok(false)
            })?;
        } else {
            layout::elements(path).survey(bundle, look)?;
        }
        Ok(builder.finish())
    }

    /// Whether the event in the line `index` repeats an item.
    pub(crate) fn repeats(&self, index: u64) -> bool {
        self.repeated.contains(&index)
    }

    /// The key of the message in the line `index`, if it is kept: to make it costs as much as to read the message.
    pub(crate) fn key(&self, index: u64) -> Option<&str> {
        self.keys.get(&index).map(|key| &**key)
    }

    /// The tokens of the answer in the line `index`.
    pub(crate) fn usage(&self, index: u64) -> Option<&AnswerUsage> {
        self.usage.get(&index)
    }
}

impl SurveyBuilder {
    fn add(&mut self, element: &Element<'_>) -> Result<(), ImportError> {
        layout::check_length(element)?;
        let mut json = Parser::new(element.text(), element.arena());
        let mut line = Line::read(&mut json, element.text())?;
        let mapped = map::line(&mut line, false)?;
        let times = [self.survey.oldest, line.time];
        self.survey.oldest = times.into_iter().flatten().min();
        self.survey.newest = self.survey.newest.max(line.time);
        match mapped {
            Mapped::Message(unplaced) => self.add_message(&unplaced, &line, element.index()),
            Mapped::Session(fields) => self.survey.session.add(fields, element.index() == 0)?,
            Mapped::Turn(turn) => {
                self.begin_turn(turn.id);
                self.survey.model = turn.model.map(ToOwned::to_owned).or(self.survey.model.take());
                self.count("turn_context");
            }
            Mapped::TurnBegun { kind, id } => {
                self.begin_turn(id);
                self.count(kind);
            }
            Mapped::Name { session, name } => {
                if session.is_none() || session == self.survey.session.id.as_deref() {
                    self.survey.name = name.map(ToOwned::to_owned);
                }
            }
            Mapped::Usage(usage) => {
                self.add_usage(&usage);
                self.count("token_count");
            }
            Mapped::RollBack(turns) => {
                self.end_turn();
                self.tree.roll_back(turns.unwrap_or_default());
            }
            Mapped::LeftOut(kind) => self.count(kind),
        }
        Ok(())
    }

    /// Reads the header of the layout with one object.
    fn add_session(&mut self, element: &Element<'_>) {
        let fields = FIELD_READER.parse(element.text(), element.arena());
        let added = fields.and_then(|fields| self.survey.session.add(fields, true));
        // A header that cannot be read leaves the items without one.
        added.unwrap_or_default();
        self.survey.newest = self.survey.newest.or(self.survey.session.created);
    }

    /// Begins a turn if the line belongs to another one than the lines before.
    fn begin_turn(&mut self, id: Option<&str>) {
        let Some(id) = id else { return };
        if self.turn.ends_at(id) {
            self.end_turn();
        }
        self.turn.set_id(id);
    }

    fn add_message(&mut self, unplaced: &UnplacedMessage<'_>, line: &Line<'_>, index: u64) {
        let event = (unplaced.origin == Origin::Event).then(|| Event::new(unplaced));
        let repeats = event.as_ref().is_some_and(|event| self.turn.repeats(event));
        let new_turn = unplaced.begins_turn() && !repeats && self.turn.is_answered();
        if new_turn || self.turn.is_full() {
            self.end_turn();
        }
        if let Some(event) = event.as_ref().filter(|_| repeats) {
            self.turn.take(event);
        }
        self.turn.add(unplaced);
        let title = (self.survey.title.is_none() && unplaced.begins_turn()).then(|| title_of(unplaced));
        let event =
            event.map(|event| PendingEvent { event, kind: self.types.number(unplaced.kind), repeats });
        self.pending.push(Pending::Message(PendingMessage {
            index,
            key: unplaced.key(line),
            named: unplaced.id.is_some(),
            role: unplaced.role,
            title: title.flatten(),
            event,
        }));
    }

    fn add_usage(&mut self, usage: &Usage<'_>) {
        let total = turn::digest(usage.total);
        let repeated = !usage.total.is_empty() && total == self.total;
        self.total = total;
        // Only the first one behind an answer counts.
        if repeated || matches!(self.pending.last(), Some(Pending::Usage(_))) {
            return;
        }
        if let Some(last) = usage.last {
            let json = (last.len() <= MAX_USAGE).then(|| last.to_owned());
            self.pending.push(Pending::Usage(AnswerUsage { output: usage.output, json }));
        }
    }

    fn count(&mut self, kind: &str) {
        let number = self.types.number(kind);
        self.count_number(number);
    }

    fn count_number(&mut self, number: u8) {
        let name = self.types.name(number);
        match self.survey.left_out.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.survey.left_out.insert(name.to_owned(), 1)),
        }
    }

    /// Decides which events of the turn repeat its items, now that all of these are known.
    fn end_turn(&mut self) {
        let mut turn = mem::take(&mut self.turn);
        for pending in mem::take(&mut self.pending) {
            match pending {
                Pending::Message(message) => self.place(message, &mut turn),
                Pending::Usage(usage) => {
                    if let Some(answer) = self.answer {
                        self.survey.usage.entry(answer).or_insert(usage);
                    }
                }
            }
        }
        self.turn = turn.next();
    }

    fn place(&mut self, message: PendingMessage, turn: &mut Turn) {
        if let Some(PendingEvent { event, kind, repeats }) = message.event
            && (repeats || turn.take_if_repeats(&event))
        {
            self.survey.repeated.insert(message.index);
            self.count_number(kind);
            return;
        }
        self.survey.has_messages = true;
        self.survey.title = self.survey.title.take().or(message.title);
        if !message.named && self.survey.keys.len() < MAX_KEYS {
            self.survey.keys.insert(message.index, message.key.as_str().into());
        }
        self.tree.add(message.key, message.role == Role::User);
        if message.role == Role::Assistant {
            self.answer = Some(message.index);
        }
    }

    fn finish(mut self) -> Survey {
        self.end_turn();
        self.survey.current = self.tree.into_last();
        self.survey
    }
}

impl Types {
    /// The number of a type; types beyond the limit share one.
    fn number(&mut self, kind: &str) -> u8 {
        if let Some(number) = self.numbers.get(kind) {
            return *number;
        }
        match u8::try_from(self.names.len()) {
            Ok(number) if self.names.len() < MAX_TYPES && kind.len() <= MAX_TITLE => {
                self.numbers.insert(kind.to_owned(), number);
                self.names.push(kind.to_owned());
                number
            }
            _ => u8::MAX,
        }
    }

    fn name(&self, number: u8) -> &str {
        self.names.get(usize::from(number)).map_or(OTHER, String::as_str)
    }
}

fn title_of(unplaced: &UnplacedMessage<'_>) -> Option<String> {
    let own = |text: &&str| !injected::is_image_marker(text) && !injected::is_injected(text);
    let texts = unplaced.texts.iter().map(|text| &**text).filter(own);
    texts.map(injected::request).find_map(first_line)
}

fn first_line(text: &str) -> Option<String> {
    title::first_line(text, MAX_TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(lines: &[&str]) -> Survey {
        let bundle = Bundle::from_files([("a.jsonl", lines.join("\n"))]);
        Survey::read(&bundle, "a.jsonl", detect::WRAPPED).expect("memory can be read")
    }

    const ANSWER: &str = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done. <oai-mem-citation>x</oai-mem-citation>"}]}}"#;
    const EVENT: &str = r#"{"type":"event_msg","payload":{"type":"agent_message","message":" Done."}}"#;
    const OTHER_EVENT: &str =
        r#"{"type":"event_msg","payload":{"type":"agent_message","message":"Almost done."}}"#;

    #[test]
    fn events_that_repeat_items_are_left_out_wherever_they_are() {
        let both = survey(&[EVENT, ANSWER, OTHER_EVENT, EVENT]);
        assert_eq!(both.left_out.get("agent_message"), Some(&2));
        let alone = survey(&[EVENT, OTHER_EVENT]);
        assert_eq!(alone.left_out.get("agent_message"), None);
        assert!(
            both.current.is_some() && both.current == alone.current,
            "the other event is the last message"
        );
    }

    #[test]
    fn tokens_belong_to_the_answer_before_them_and_are_not_counted_twice() {
        let tokens = |output: u64, total: u64| {
            format!(
                r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"output_tokens":{output}}}}}}}}}"#
            )
        };
        let survey = survey(&[
            &tokens(1, 1),
            ANSWER,
            &tokens(7, 8),
            &tokens(9, 8),
            OTHER_EVENT,
            EVENT,
            &tokens(2, 10),
        ]);
        let outputs: Vec<_> = survey.usage.iter().map(|(at, usage)| (*at, usage.output)).collect();
        assert_eq!(outputs, [(1, Some(7)), (4, Some(2))]);
    }

    fn item(role: &str, texts: &[&str]) -> String {
        let part = |text: &&str| format!(r#"{{"type":"input_text","text":"{text}"}}"#);
        let parts: Vec<_> = texts.iter().map(part).collect();
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{}]}}}}"#,
            parts.join(",")
        )
    }

    fn event(kind: &str, text: &str) -> String {
        format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}","message":"{text}"}}}}"#)
    }

    /// The indexes of the lines that repeat others.
    fn repeated(lines: &[String]) -> Vec<u64> {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        survey(&lines).repeated.into_iter().collect()
    }

    #[test]
    fn events_leave_out_plans_and_citations_of_answers() {
        let cite = |text: &str| format!("<oai-mem-citation>{text}</oai-mem-citation>");
        let plan = "<proposed_plan>\\n- step\\n</proposed_plan>\\n";
        let (one, two) = (cite("x"), cite("y"));
        for (texts, shown) in [
            (vec![format!("before\\n{plan}after")], "before\\nafter"),
            (vec![format!("before\\n{plan}after {one}")], "before\\nafter"),
            (vec![format!("before {one}and {two}after")], "before and after"),
            (vec![format!("before{one}"), format!(" after{two}")], "before after"),
            (vec!["before <oai-mem-citation>x".to_owned()], "before"),
        ] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let lines = [event("agent_message", shown), item("assistant", &texts)];
            assert_eq!(repeated(&lines), [0], "{texts:?}");
        }
        let plan_event = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"Plan","text":"- step\n"}}}"#;
        let lines = [item("assistant", &[&format!("before\\n{plan}after")]), plan_event.to_owned()];
        assert_eq!(repeated(&lines), [1]);
    }

    #[test]
    fn events_leave_out_the_markers_of_images() {
        let item = item("user", &["a", "<image name=[Image #1]>", "</image>", "b"]);
        assert_eq!(repeated(&[item, event("user_message", "ab")]), [1]);
    }

    #[test]
    fn completed_items_that_only_name_files_are_no_messages() {
        let named = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"local_image","path":"/a b c.png"},{"type":"skill","name":"s"},{"type":"mention","name":"m"}]}}}"#;
        let survey = survey(&[named]);
        assert!(!survey.has_messages);
        assert_eq!(survey.left_out.get("item_completed"), Some(&1));
    }

    #[test]
    fn events_are_compared_with_the_items_of_their_turn() {
        let ask = |text: &str| [item("user", &[text]), event("user_message", text)];
        let answer = || item("assistant", &["Done."]);
        let done = || event("agent_message", "Done.");
        let lines = [ask("Go on.").to_vec(), vec![answer()], ask("Go on.").to_vec(), vec![done()]].concat();
        assert_eq!(repeated(&lines), [1, 4], "the last answer has no item");
        let only_event = vec![event("user_message", "Go on.")];
        let lines = [ask("Go on.").to_vec(), vec![answer()], only_event, vec![done()]].concat();
        assert_eq!(repeated(&lines), [1], "the person wrote it twice");
        let turn = |id: &str| format!(r#"{{"type":"turn_context","payload":{{"turn_id":"{id}"}}}}"#);
        let lines = [turn("a"), answer(), turn("a"), done(), turn("b"), done()];
        assert_eq!(repeated(&lines), [3]);
        let thought =
            r#"{"type":"event_msg","payload":{"type":"agent_reasoning","text":"Done."}}"#.to_owned();
        assert_eq!(repeated(&[answer(), thought]), [0; 0], "a thought is not an answer");
    }

    #[test]
    fn the_first_tokens_behind_an_answer_count() {
        let tokens = |output: &str| {
            format!(
                r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"output_tokens":{output}}}}}}}}}"#
            )
        };
        let seen = survey(&[ANSWER, &tokens("1"), &tokens("2"), EVENT, &tokens("3")]);
        assert_eq!(seen.usage(0).and_then(|usage| usage.output), Some(1));
        let long = tokens(&format!("4,\"more\":\"{}\"", "x".repeat(MAX_USAGE)));
        let seen = survey(&[ANSWER, &long]);
        assert!(seen.usage(0).is_some_and(|usage| usage.json.is_none() && usage.output == Some(4)));
    }

    #[test]
    fn types_beyond_the_limit_are_counted_together() {
        let mut types = Types::default();
        let numbers: BTreeSet<u8> = (0..500).map(|at| types.number(&format!("type {at}"))).collect();
        assert_eq!((numbers.len(), types.names.len()), (MAX_TYPES + 1, MAX_TYPES));
        let known = types.number("type 3");
        assert_eq!((types.name(known), types.name(u8::MAX)), ("type 3", OTHER));
    }

    #[test]
    fn long_first_lines_are_cut() {
        let title = first_line(&"é".repeat(200)).expect("there is a line");
        assert_eq!(title.chars().count(), MAX_TITLE + 1);
        assert_eq!(first_line(" \n "), None);
    }
}
