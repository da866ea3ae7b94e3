//! The first pass over a file: what must be known before its messages are emitted.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Bundle, Element, ErrorKind, ImportError, Parser, Role};

use crate::{
    detect,
    fields::Fields,
    injected, layout,
    line::Line,
    map::{self, Draft, Mapped, Origin, Usage},
    session::Session,
    thread::{Thread, digest},
};

/// Lines of one file. Real sessions have tens of thousands at most, and a record of each is in memory.
pub(crate) const MAX_LINES: u64 = 300_000;
/// Characters of a title, which is the first line of a message.
const MAX_TITLE: usize = 120;
/// Events that may give the title, until an item does.
const MAX_TITLES: usize = 64;
/// Types of lines that are counted by name.
const MAX_TYPES: usize = 64;
/// The name of all other types.
const OTHER: &str = "other";
/// Blocks that the events of an answer leave out.
const BLOCKS: [&str; 2] = ["oai-mem-citation", "proposed_plan"];

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
    /// The id of the last message.
    pub(crate) current: Option<String>,
    /// Digests of the texts of items.
    texts: BTreeSet<u64>,
    /// The tokens of answers, by the index of the line.
    usage: BTreeMap<u64, AnswerUsage>,
}

/// The tokens of one answer.
#[derive(Debug)]
pub(crate) struct AnswerUsage {
    pub(crate) output: Option<u64>,
    /// As JSON text.
    pub(crate) json: String,
}

/// A message of the first pass.
struct Record {
    index: u32,
    /// The index of its type among the names.
    kind: u16,
    assistant: bool,
    /// Digests of its texts, if it is an event.
    event: Option<Box<[u64]>>,
}

/// The first pass.
#[derive(Default)]
struct Pass {
    survey: Survey,
    thread: Thread,
    records: Vec<Record>,
    kinds: Vec<String>,
    /// Index of the line, and the tokens of the answer before it.
    usages: Vec<(u64, AnswerUsage)>,
    /// Digest of the last sum of tokens.
    total: u64,
    /// Titles of events, with the digests of their texts.
    titles: Vec<(Box<[u64]>, String)>,
    /// The last item and the events behind it: their ids, and the records of the events.
    last: Vec<(String, Option<usize>)>,
}

impl Survey {
    /// Reads the file once.
    pub(crate) fn read(bundle: &Bundle, path: &str, format: &str) -> Result<Self, ImportError> {
        let mut pass = Pass::default();
        pass.survey.session = Session::named(layout::uuid(path));
        let file = layout::elements(path);
        let mut look = |element: Element<'_>| {
            match pass.add(&element) {
                // The second pass reports it.
                Err(error) if error.kind != ErrorKind::Malformed => return Err(error),
                Ok(()) | Err(_) => {}
            }
            Ok(element.index() + 1 < MAX_LINES)
        };
        if format == detect::SAVED {
            file.pointer("/items").survey(bundle, &mut look)?;
            file.pointer("/session").survey(bundle, |element| {
                pass.add_session(&element);
                Ok(false)
            })?;
        } else {
            file.survey(bundle, look)?;
        }
        Ok(pass.finish())
    }

    /// Whether the texts of an event are those of items.
    pub(crate) fn repeats(&self, draft: &Draft<'_>) -> bool {
        draft.origin == Origin::Event && self.holds(&digests(draft))
    }

    /// The tokens of the answer in the line `index`.
    pub(crate) fn usage(&self, index: u64) -> Option<&AnswerUsage> {
        self.usage.get(&index)
    }

    /// Whether the last of the digests, that of the whole text, or all others are those of items.
    fn holds(&self, digests: &[u64]) -> bool {
        let known = |digest: &u64| self.texts.contains(digest);
        digests
            .split_last()
            .is_some_and(|(whole, parts)| known(whole) || (!parts.is_empty() && parts.iter().all(known)))
    }
}

impl Pass {
    fn add(&mut self, element: &Element<'_>) -> Result<(), ImportError> {
        let mut json = Parser::new(element.text(), element.arena());
        let mut line = Line::read(&mut json, element.text())?;
        let mapped = map::line(&mut line, false)?;
        let times = [self.survey.oldest, line.time];
        self.survey.oldest = times.into_iter().flatten().min();
        self.survey.newest = self.survey.newest.max(line.time);
        match mapped {
            Mapped::Message(draft) => self.add_message(&draft, &line, element.index()),
            Mapped::Session(fields) => self.survey.session.add(fields, element.index() == 0)?,
            Mapped::Turn(turn) => {
                self.survey.model = turn.model.map(ToOwned::to_owned).or(self.survey.model.take());
                self.count("turn_context");
            }
            Mapped::Name { session, name } => {
                if session.is_none() || session == self.survey.session.id.as_deref() {
                    self.survey.name = name.map(ToOwned::to_owned);
                }
            }
            Mapped::Usage(usage) => {
                self.add_usage(&usage, element.index());
                self.count("token_count");
            }
            Mapped::RollBack(_) => {}
            Mapped::LeftOut(kind) => self.count(kind),
        }
        Ok(())
    }

    /// Reads the header of the layout with one object.
    fn add_session(&mut self, element: &Element<'_>) {
        let fields = Fields::parse(element.text(), element.arena());
        let added = fields.and_then(|fields| self.survey.session.add(fields, true));
        // A header that cannot be read leaves the items without one.
        added.unwrap_or_default();
        self.survey.newest = self.survey.newest.or(self.survey.session.created);
    }

    fn add_message(&mut self, draft: &Draft<'_>, line: &Line<'_>, index: u64) {
        let texts = digests(draft);
        if draft.origin == Origin::Item {
            self.survey.texts.extend(texts.iter().copied());
            self.survey.texts.extend(variants(draft));
            self.survey.texts.extend(&draft.files);
        }
        let event = (draft.origin == Origin::Event).then(|| texts.into_boxed_slice());
        if draft.begins_turn() {
            self.add_title(draft, event.as_deref());
        }
        let (id, _) = self.thread.unique(draft.key(line));
        if event.is_none() {
            self.last.clear();
        }
        self.last.push((id, event.is_some().then_some(self.records.len())));
        let kind = self.kind(draft.kind);
        let assistant = draft.role == Role::Assistant;
        // The index is below `MAX_LINES`.
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.records.push(Record { index, kind, assistant, event });
    }

    fn add_title(&mut self, draft: &Draft<'_>, event: Option<&[u64]>) {
        if self.survey.title.is_some() || self.titles.len() == MAX_TITLES {
            return;
        }
        let own = |text: &&str| !injected::is_image_marker(text) && !injected::is_injected(text);
        let texts = draft.texts.iter().map(|text| &**text).filter(own);
        let Some(title) = texts.map(injected::request).find_map(first_line) else { return };
        match event {
            Some(event) => self.titles.push((event.into(), title)),
            None => self.survey.title = Some(title),
        }
    }

    fn add_usage(&mut self, usage: &Usage<'_>, index: u64) {
        let total = digest(usage.total);
        let repeated = !usage.total.is_empty() && total == self.total;
        self.total = total;
        if let (Some(last), false) = (usage.last, repeated) {
            let usage = AnswerUsage { output: usage.output, json: last.to_owned() };
            self.usages.push((index, usage));
        }
    }

    fn count(&mut self, kind: &str) {
        let kind = self.kind(kind);
        self.count_kind(kind);
    }

    fn count_kind(&mut self, kind: u16) {
        let name = self.kinds.get(usize::from(kind)).map_or(OTHER, String::as_str);
        match self.survey.left_out.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.survey.left_out.insert(name.to_owned(), 1)),
        }
    }

    /// The index of a type's name; types beyond the limit share one.
    fn kind(&mut self, kind: &str) -> u16 {
        let kind = if self.kinds.len() == MAX_TYPES || kind.len() > MAX_TITLE { OTHER } else { kind };
        let known = self.kinds.iter().position(|known| known == kind);
        let at = known.unwrap_or_else(|| {
            self.kinds.push(kind.to_owned());
            self.kinds.len() - 1
        });
        u16::try_from(at).unwrap_or_default()
    }

    /// Decides which events repeat items, now that all items are known.
    fn finish(mut self) -> Survey {
        let survey = &self.survey;
        let dropped = |record: &Record| record.event.as_deref().is_some_and(|event| survey.holds(event));
        let is_dropped = |at: &Option<usize>| at.and_then(|at| self.records.get(at)).is_some_and(dropped);
        let last = self.last.iter().rev().find(|(_, record)| !is_dropped(record));
        let current = last.map(|(id, _)| id.clone());
        let mut titles = self.titles.iter().filter(|(event, _)| !survey.holds(event));
        let title = titles.next().map(|(_, title)| title.clone());
        let (repeated, own): (Vec<&Record>, Vec<&Record>) =
            self.records.iter().partition(|record| dropped(record));
        let repeated: Vec<u16> = repeated.into_iter().map(|record| record.kind).collect();
        let answers = own.into_iter().filter(|record| record.assistant);
        let answers: Vec<u64> = answers.map(|record| u64::from(record.index)).collect();
        repeated.into_iter().for_each(|kind| self.count_kind(kind));
        self.survey.usage = usage_of(&answers, self.usages);
        self.survey.title = self.survey.title.or(title);
        self.survey.current = current;
        self.survey
    }
}

/// The tokens of each answer: those in the lines between it and the next one. `answers` are indexes of lines, in order.
fn usage_of(answers: &[u64], usages: Vec<(u64, AnswerUsage)>) -> BTreeMap<u64, AnswerUsage> {
    let mut found = BTreeMap::new();
    for (index, usage) in usages {
        let behind = answers.partition_point(|answer| *answer < index);
        if let Some(answer) = behind.checked_sub(1).and_then(|at| answers.get(at)) {
            found.insert(*answer, usage);
        }
    }
    found
}

/// Digests of the texts of a message, each with its role; that of the whole text is last. Of a message without texts, those of its files.
fn digests(draft: &Draft<'_>) -> Vec<u64> {
    let of = |text: &str| text_digest(draft.role, text);
    match draft.texts.as_slice() {
        [] => draft.files.clone(),
        [text] => vec![of(text)],
        texts => texts.iter().map(|text| of(text)).chain([of(&texts.concat())]).collect(),
    }
}

/// Digests of the texts of a message as events have them: joined by line breaks, without the blocks that events leave out, and the
/// texts inside these.
fn variants(draft: &Draft<'_>) -> Vec<u64> {
    let mut found = vec![text_digest(draft.role, &draft.texts.join("\n"))];
    for text in &draft.texts {
        for block in BLOCKS {
            if let Some((before, rest)) = text.split_once(&format!("<{block}>"))
                && let Some((inside, after)) = rest.split_once(&format!("</{block}>"))
            {
                found.push(text_digest(draft.role, inside));
                found.push(text_digest(draft.role, &format!("{before}{after}")));
            }
        }
    }
    found
}

fn text_digest(role: Role, text: &str) -> u64 {
    // The same words may be said by both sides.
    digest(text.trim()) ^ (role as u64)
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

    #[test]
    fn long_first_lines_are_cut() {
        let title = first_line(&"é".repeat(200)).expect("there is a line");
        assert_eq!(title.chars().count(), MAX_TITLE + 1);
        assert_eq!(first_line(" \n "), None);
    }
}
