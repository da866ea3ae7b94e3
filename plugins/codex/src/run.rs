//! Reads each session in two passes: first what must be known about all of it, then its messages.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Bundle, Conversation, Element, ImportError, Importer as _, JsonLists, Leftover, RecordKind, Role, Sink,
    Summary, address::unsigned_json, natural_key,
};

use crate::{
    Codex, detect, layout,
    line::Line,
    map::{self, Mapped, TurnSettings, UnplacedMessage, Warning},
    message_tree::MessageTree,
    survey::{MAX_LINES, Survey},
};

/// PAM tag of sessions that another session started.
const SUBAGENT: &str = "subagent";
/// The lists of the layout with one object.
const LISTS: [(&str, RecordKind); 2] =
    [("items", RecordKind::Message), ("session", RecordKind::Conversation)];

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Codex::describe().version_of(format)?;
    let mut found = false;
    for path in detect::candidates(bundle) {
        if let Some(layout) = detect::format_of(bundle, path)? {
            found = true;
            let survey = Survey::read(bundle, path, layout)?;
            SessionFile { bundle, path, version, survey: &survey }.read(layout, sink)?;
        }
    }
    if !found {
        return Err(ImportError::not_this_format("none of the files is a session of Codex"));
    }
    Ok(bundle.summary())
}

/// Reads the file of a session.
struct SessionFile<'r> {
    bundle: &'r Bundle,
    path: &'r str,
    version: &'static str,
    survey: &'r Survey,
}

/// The second pass.
#[derive(Default)]
struct ReadState {
    tree: MessageTree,
    model: Option<String>,
    /// The folder of the turn, if it is not the session's.
    cwd: Option<String>,
    /// The warnings of [`Warning::Once`] that were given.
    warned: BTreeSet<String>,
}

impl ReadState {
    /// Uses the settings of a turn for the messages that follow. `own` is the session's folder.
    fn begin_turn(&mut self, turn: &TurnSettings<'_>, own: Option<&str>) {
        self.model = turn.model.map(ToOwned::to_owned);
        self.cwd = turn.cwd.filter(|cwd| own != Some(cwd)).map(ToOwned::to_owned);
    }
}

impl SessionFile<'_> {
    fn read(&self, layout: &str, sink: &mut Sink) -> Result<(), ImportError> {
        if self.survey.has_messages {
            sink.conversation(&self.conversation(), &[])?;
        } else {
            sink.skip(RecordKind::Conversation, self.path, "the session holds no messages")?;
        }
        if self.survey.session.truncated {
            sink.warn(self.path, "the session's own fields are longer than 1 MiB; the rest is left out");
        }
        let mut state = ReadState::default();
        if layout != detect::SAVED {
            let lines = layout::elements(self.path).kind(RecordKind::Message);
            lines.each(self.bundle, sink, |element, sink| self.line(&element, &mut state, sink))?;
            return Ok(());
        }
        let outcome = JsonLists::new(self.path, &LISTS).each(self.bundle, sink, |list, element, sink| {
            if list == 0 { self.line(&element, &mut state, sink) } else { Ok(()) }
        })?;
        for name in &outcome.others {
            sink.warn(self.path, &format!("its field {name:?} is unknown and was not read"));
        }
        outcome.warn_of_more_others(self.path, sink);
        Ok(())
    }

    fn conversation(&self) -> Conversation<'_> {
        let (survey, session) = (self.survey, &self.survey.session);
        let id = || natural_key(&[Some(layout::stem(self.path))]);
        let title = survey.name.as_deref().or(survey.title.as_deref());
        Conversation {
            id: session.id.as_deref().map_or_else(|| id().into(), Cow::Borrowed),
            provider_conversation_id: session.id.as_deref().map(Cow::Borrowed),
            export_format_version: Some(self.version.into()),
            title: title.map(Cow::Borrowed),
            created_at: session.created.or(survey.oldest),
            updated_at: survey.newest.or(session.created),
            model: survey.model.as_deref().map(Cow::Borrowed),
            system_instruction: session.instructions.as_deref().map(Cow::Borrowed),
            is_archived: layout::is_archived(self.path),
            tags: session.subagent.then_some(SUBAGENT.into()).into_iter().collect(),
            current: survey.current.as_deref().map(Cow::Borrowed),
            raw_metadata: self.metadata(),
            locator: self.path.into(),
            ..Conversation::default()
        }
    }

    fn metadata(&self) -> Option<Cow<'_, str>> {
        let mut rest = Leftover::default();
        self.survey.session.add_to(&mut rest);
        if self.survey.name.is_none() && self.survey.title.is_some() {
            rest.add_text("title_source", "first user message");
        }
        if !self.survey.left_out.is_empty() {
            let mut counts = Leftover::default();
            for (kind, count) in &self.survey.left_out {
                counts.add_json(kind, &count.to_string());
            }
            rest.add_json("lines_left_out", &counts.into_json().unwrap_or_default());
        }
        rest.into_json().map(unsigned_json)
    }

    fn line(&self, element: &Element<'_>, state: &mut ReadState, sink: &mut Sink) -> Result<(), ImportError> {
        if element.index() >= MAX_LINES {
            return Err(ImportError::malformed(format!("the file has more than {MAX_LINES} lines")));
        }
        layout::check_length(element)?;
        if self.survey.repeats(element.index()) {
            return Ok(Line::skip(&mut element.parser())?);
        }
        let mut line = Line::read(&mut element.parser(), element.text())?;
        match map::line(&mut line, true)? {
            Mapped::Message(unplaced) => self.message(*unplaced, &line, element, state, sink)?,
            Mapped::Turn(turn) => state.begin_turn(&turn, self.survey.session.cwd.as_deref()),
            Mapped::RollBack(Some(turns)) => state.tree.roll_back(turns),
            Mapped::RollBack(None) => {
                sink.warn(&element.locator(), "it does not say how many turns were rolled back");
            }
            Mapped::Session(_)
            | Mapped::TurnBegun { .. }
            | Mapped::Name { .. }
            | Mapped::Usage(_)
            | Mapped::LeftOut(_) => {}
        }
        Ok(())
    }

    fn message(
        &self,
        mut unplaced: UnplacedMessage<'_>,
        line: &Line<'_>,
        element: &Element<'_>,
        state: &mut ReadState,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if !self.survey.has_messages {
            return Err(ImportError::malformed("the first pass found no messages in the file"));
        }
        let key = self.survey.key(element.index()).map_or_else(|| unplaced.key(line), ToOwned::to_owned);
        let place = state.tree.add(key, unplaced.begins_turn());
        match unplaced.warning.take() {
            Some(Warning::Each(text)) => sink.warn(&element.locator(), text),
            Some(Warning::Once(text)) if !state.warned.contains(&text) => {
                sink.warn(&element.locator(), &text);
                state.warned.insert(text);
            }
            Some(Warning::Once(_)) | None => {}
        }
        if let Some(cwd) = &state.cwd {
            unplaced.rest.add_text("cwd", cwd);
        }
        let model = state.model.as_deref().filter(|_| unplaced.role == Role::Assistant);
        if let Some(usage) = self.survey.usage(element.index()) {
            if let Some(json) = &usage.json {
                unplaced.rest.add_json("usage", json);
            }
            unplaced.message.token_count = usage.output;
        }
        let mut message = unplaced.finish(&place);
        message.model = model.map(Cow::Borrowed);
        sink.more_messages(&[message])
    }
}
