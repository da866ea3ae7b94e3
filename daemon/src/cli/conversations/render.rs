//! Conversations as text for a person: a list, a branch or a tree.

use satchel_merge::groups::CONTINUED_IN;
use satchel_proto::{
    integers::unsigned,
    v1::{Conversation, Message, Role},
};

use super::{
    branches::{Branches, Fork},
    message::{INDENT, MessageBody, first_text},
};
use crate::cli::{
    labels,
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
    time::{Calendar, UNKNOWN},
};

/// Maximum indentation of the tree, in forks; beyond it, lines would have no room.
const MAX_DEPTH: usize = 12;

/// Returns the table of `conversations list`.
pub(super) fn table(rows: &[Conversation], calendar: &Calendar) -> Table {
    let ids = text::ShortIds::new(rows.iter().map(|row| row.id.as_str()));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("title").shrinks_to(24),
        Column::new("platform").optional(2),
        Column::right("messages").optional(3),
        Column::new("changed").optional(1),
    ]);
    for row in rows {
        let title = row.title.as_deref().filter(|title| !title.trim().is_empty());
        table.row([
            Cell::painted(&ids.shorten(&row.id), Paint::Id),
            title.map_or_else(|| Cell::painted("(untitled)", Paint::Dim), Cell::new),
            Cell::new(&row.platform),
            Cell::new(&text::number(unsigned(row.message_count))),
            Cell::painted(
                &calendar.short_or_unknown(row.updated_at.as_ref().or(row.created_at.as_ref())),
                Paint::Dim,
            ),
        ]);
    }
    table
}

/// Returns why a conversation is no longer shown.
fn hidden_reason(conversation: &Conversation) -> String {
    let raw = conversation.raw_metadata_json.as_deref().and_then(|raw| serde_json::from_str(raw).ok());
    let raw: serde_json::Value = raw.unwrap_or_default();
    if raw.pointer("/satchel/purged") == Some(&serde_json::Value::Bool(true)) {
        return "not shown: you erased it permanently".to_owned();
    }
    match raw.get(CONTINUED_IN).and_then(serde_json::Value::as_str) {
        Some(id) => format!("not shown: its messages are now in {}", text::one_line(id)),
        None => "not shown: the import that added it was undone".to_owned(),
    }
}

/// The options for showing a conversation.
pub(in crate::cli) struct ConversationView<'a> {
    pub(in crate::cli) calendar: &'a Calendar,
    pub(in crate::cli) style: TerminalStyle,
    /// True if nothing is folded.
    pub(in crate::cli) full: bool,
    /// True if messages that the platform hides are included.
    pub(in crate::cli) hidden: bool,
}

impl ConversationView<'_> {
    /// Returns one branch, from its root.
    #[cfg(test)]
    fn branch(&self, conversation: &Conversation, messages: &[Message], branches: &Branches) -> String {
        let mut renderer = BranchRenderer::new(self, conversation, branches);
        let rest: String = messages.iter().map(|message| renderer.message(message)).collect();
        format!("{}{rest}", self.head(conversation))
    }

    /// Returns the text above the messages.
    pub(in crate::cli) fn head(&self, conversation: &Conversation) -> String {
        let title = text::one_line(conversation.title.as_deref().unwrap_or_default());
        let title = if title.is_empty() { "(untitled)" } else { &title };
        let mut facts = vec![text::one_line(&conversation.platform)];
        facts.extend(conversation.model.as_deref().map(text::one_line));
        facts.push(text::count(unsigned(conversation.message_count), "message", "messages"));
        let (started, changed) = (
            self.calendar.minute(conversation.created_at.as_ref()),
            self.calendar.minute(conversation.updated_at.as_ref()),
        );
        facts.push(match (started.as_str(), changed.as_str()) {
            ("", "") => UNKNOWN.to_owned(),
            ("", changed) => format!("changed {changed}"),
            (_, "") => started,
            _ if changed == started => started,
            _ => format!("{started} to {changed}"),
        });
        if conversation.is_archived {
            facts.push("archived".to_owned());
        }
        if conversation.withdrawn {
            facts.push(hidden_reason(conversation));
        }
        facts.extend(conversation.tags.iter().map(|tag| format!("#{}", text::one_line(tag))));
        let mut out = format!(
            "{}\n{}\n{}\n",
            self.style.paint(Paint::Strong, title),
            self.style.paint(Paint::Dim, &facts.join(" · ")),
            self.style.paint(Paint::Dim, &text::one_line(&conversation.id)),
        );
        let instruction = text::one_line(conversation.system_instruction.as_deref().unwrap_or_default());
        if !instruction.is_empty() {
            let room = if self.full { usize::MAX } else { self.style.text_columns() };
            let line = format!("instructions: {instruction}");
            text::append(
                &mut out,
                format_args!("{}\n", self.style.paint(Paint::Dim, &text::fit(&line, room))),
            );
        }
        out
    }

    /// Returns the line that stands for the first messages of a branch.
    pub(super) fn left_out(&self, messages: usize) -> String {
        let messages = text::count(messages as u64, "message", "messages");
        format!(
            "\n{}\n",
            self.style.paint(Paint::Dim, &format!("… {messages} before; omit --at to show them"))
        )
    }

    fn heading(&self, conversation: &Conversation, message: &Message) -> String {
        let (name, paint) = speaker(conversation, message);
        let mut facts = vec![self.calendar.minute_or_unknown(message.created_at.as_ref())];
        if message.role() == Role::Assistant {
            let model =
                message.model.as_deref().filter(|model| Some(*model) != conversation.model.as_deref());
            facts.extend(model.map(text::one_line));
        }
        if message.hidden {
            facts.push("hidden".to_owned());
        }
        facts.retain(|fact| !fact.is_empty());
        format!("{}  {}\n", self.style.paint(paint, &name), self.style.paint(Paint::Dim, &facts.join(" · ")))
    }

    fn fork(&self, fork: &Fork, conversation: &str, ids: &text::ShortIds) -> String {
        let mark = format!("⑂ branch {} of {}", fork.number, fork.of);
        let mut out = format!("{}\n", self.style.paint(Paint::Warn, &mark));
        for other in &fork.others {
            let show = format!(
                "satchel conversations show {} --branch {}",
                text::short_id(conversation),
                ids.shorten(&other.id)
            );
            let line = format!("{INDENT}`{show}`  {}", other.preview);
            let line = text::fit(&line, self.style.columns.unwrap_or(usize::MAX)).into_owned();
            text::append(&mut out, format_args!("{}\n", self.style.paint(Paint::Dim, &line)));
        }
        if fork.of > fork.others.len() + 1 {
            text::append(
                &mut out,
                format_args!("{}\n", self.style.paint(Paint::Dim, &format!("{INDENT}--tree shows all"))),
            );
        }
        out
    }

    /// Returns one line per message, indented at each fork.
    pub(super) fn tree(
        &self,
        conversation: &Conversation,
        messages: &[Message],
        branches: &Branches,
    ) -> String {
        let ids = text::ShortIds::new(branches.ids());
        let depths = branches.depths();
        let mut out = format!("{}\n", self.head(conversation));
        for message in messages.iter().filter(|message| self.hidden || !message.hidden) {
            let depth = depths.get(message.id.as_str()).copied().unwrap_or(0).min(MAX_DEPTH);
            let fork = branches
                .fork(&message.id)
                .map(|fork| format!("{}/{} ", fork.number, fork.of))
                .unwrap_or_default();
            let (mark, paint) =
                if message.on_active_branch { ("●", Paint::Good) } else { ("○", Paint::Dim) };
            let who = if message.is_thought { "thought".to_owned() } else { labels::role(message.role) };
            let lead = "  ".repeat(depth);
            let id = ids.shorten(&message.id);
            let used = text::width(&lead) + text::width(&fork) + text::width(&id) + 2 + 11 + 2;
            let room = self.style.columns.map_or(usize::MAX, |columns| columns.saturating_sub(used));
            let preview = text::one_line(&first_text(message));
            text::append(
                &mut out,
                format_args!(
                    "{lead}{} {}{}  {who:<9}  {}\n",
                    self.style.paint(paint, mark),
                    self.style.paint(Paint::Warn, &fork),
                    self.style.paint(Paint::Id, &id),
                    text::fit(&preview, room),
                ),
            );
        }
        out
    }
}

/// A branch that is shown message by message, from its root.
pub(in crate::cli) struct BranchRenderer<'a> {
    view: &'a ConversationView<'a>,
    conversation: &'a Conversation,
    branches: &'a Branches,
    ids: text::ShortIds,
    /// Forks that are shown with the next visible message.
    forks: Vec<Fork>,
    last_folded: bool,
}

impl<'a> BranchRenderer<'a> {
    pub(in crate::cli) fn new(
        view: &'a ConversationView<'a>,
        conversation: &'a Conversation,
        branches: &'a Branches,
    ) -> Self {
        let ids = text::ShortIds::new(branches.ids());
        Self { view, conversation, branches, ids, forks: Vec::new(), last_folded: false }
    }

    /// Returns the text of the next message, with a line above it if it is the one that was asked for.
    pub(in crate::cli) fn marked_message(&mut self, message: &Message, marked: bool) -> String {
        let text = self.message(message);
        if !marked {
            return text;
        }
        format!("\n{}{text}", self.view.style.paint(Paint::Warn, "▼"))
    }

    /// Returns the text of the next message.
    pub(super) fn message(&mut self, message: &Message) -> String {
        let view = self.view;
        self.forks.extend(self.branches.fork(&message.id));
        if message.hidden && !view.hidden {
            return String::new();
        }
        let mut out = String::new();
        for fork in self.forks.drain(..) {
            text::append(&mut out, format_args!("\n{}", view.fork(&fork, &self.conversation.id, &self.ids)));
        }
        let body = MessageBody { style: view.style, full: view.full };
        let folded = body.folds(message);
        // A folded message needs no heading, and follows another folded message without a blank line.
        if !(folded && self.last_folded) {
            out.push('\n');
        }
        if !folded {
            out.push_str(&view.heading(self.conversation, message));
        }
        out.push_str(&body.render(message));
        self.last_folded = folded;
        out
    }
}

/// Returns the name under which the person knows the speaker, and its paint.
fn speaker(conversation: &Conversation, message: &Message) -> (String, Paint) {
    if message.is_thought {
        return ("Thought".to_owned(), Paint::Dim);
    }
    match message.role() {
        Role::User => ("You".to_owned(), Paint::Person),
        Role::Assistant => (assistant(conversation), Paint::Assistant),
        Role::System => ("System".to_owned(), Paint::Dim),
        Role::Tool => ("Tool".to_owned(), Paint::Dim),
        Role::Unspecified => ("Unknown".to_owned(), Paint::Dim),
    }
}

fn assistant(conversation: &Conversation) -> String {
    let named = conversation.participants.iter().find(|participant| participant.role() == Role::Assistant);
    let name = text::one_line(named.and_then(|participant| participant.name.as_deref()).unwrap_or_default());
    if !name.is_empty() {
        return name;
    }
    match conversation.platform.as_str() {
        "chatgpt" => "ChatGPT".to_owned(),
        platform => {
            let platform = text::one_line(platform);
            let mut letters = platform.chars();
            letters
                .next()
                .map_or_else(|| "Assistant".to_owned(), |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_proto::v1::{Attachment, AttachmentKind, Citation, ToolCall, tool_call::Input};

    use super::{super::branches::tests as trees, *};
    use crate::cli::time;

    fn conversation() -> Conversation {
        Conversation {
            id: "51d0aa10-0000-5000-8000-000000000001".to_owned(),
            platform: "chatgpt".to_owned(),
            title: Some("Twelve hives\u{202e}".to_owned()),
            model: Some("gpt-5".to_owned()),
            message_count: 7,
            created_at: time::at("2026-03-12T11:20:00Z"),
            ..Conversation::default()
        }
    }

    fn shown(messages: &[Message], branches: &Branches, full: bool) -> String {
        let view = ConversationView {
            calendar: &time::fixed(),
            style: TerminalStyle::plain(72),
            full,
            hidden: false,
        };
        view.branch(&conversation(), messages, branches)
    }

    #[test]
    fn a_branch_is_rendered_with_links_to_other_branches() {
        let tree = trees::forked();
        let branches = Branches::new(&tree);
        let messages = trees::active_messages(tree, &branches);
        let expected = "\
Twelve hives\\u{202e}
chatgpt · gpt-5 · 7 messages · 2026-03-12 11:20
51d0aa10-0000-5000-8000-000000000001

⑂ branch 2 of 2
  `satchel conversations show 51d0aa10 --branch q-old`  How many hives?

You  2026-03-12 11:20
  How many hives fit on
  a balcony?

⑂ branch 2 of 2
  `satchel conversations show 51d0aa10 --branch a-one`  Two.

ChatGPT  2026-03-12 11:20
  Two small ones.
";
        assert_eq!(shown(&messages, &branches, false), expected);
    }

    fn answer() -> Vec<Message> {
        let thought = Message {
            is_thought: true,
            ..trees::message("t1", Some("q1"), "First the wind.\nThen the bees.")
        };
        let call = ToolCall {
            id: None,
            name: "web_search".to_owned(),
            input: Some(Input::InputJson("{\"query\": \"bees \\u001b on balconies\"}".to_owned())),
            output: Some("one\n\u{1b}[2Jtwo\nthree\nfour\nfive\n".to_owned()),
        };
        let answer = Message {
            tool_calls: vec![call],
            model: Some("gpt-5-mini".to_owned()),
            attachments: vec![Attachment {
                kind: AttachmentKind::Image.into(),
                name: Some("hive.png".to_owned()),
                mime_type: Some("image/png".to_owned()),
                size_bytes: Some(120_000),
                ..Attachment::default()
            }],
            citations: vec![Citation {
                title: Some("Bees in town".to_owned()),
                url: Some("https://bees.example/town".to_owned()),
                snippet: None,
            }],
            ..trees::message("a1", Some("t1"), "Two small ones [1].")
        };
        let tool = Message { role: Role::Tool.into(), ..trees::message("tool", Some("a1"), "one\ntwo") };
        vec![
            trees::message("q1", None, "How many?"),
            thought.clone(),
            Message { id: "t2".to_owned(), ..thought },
            answer,
            tool,
        ]
    }

    #[test]
    fn thoughts_and_tools_are_folded() {
        let expected = "\
You  2026-03-12 11:20
  How many?

  ▸ thought, 2 lines: --full shows it
  ▸ thought, 2 lines: --full shows it

ChatGPT  2026-03-12 11:20 · gpt-5-mini
  Two small ones [1].
  ⚙ web_search {\"query\": \"bees \\u001b on balconies\"}
    one
    \\u{1b}[2Jtwo
    three
    … 2 more lines: --full shows all
  [image] hive.png, image/png, 120 kB
  [1] Bees in town — https://bees.example/town

  ▸ tool output, 2 lines: --full shows it
";
        let text = shown(&answer(), &Branches::default(), false);
        assert_eq!(text.split_once("\n\n").unwrap().1, expected);
    }

    #[test]
    fn full_expands_everything() {
        let text = shown(&answer(), &Branches::default(), true);
        for line in ["Thought  2026-03-12 11:20", "  Then the bees.", "    five", "Tool  2026-03-12 11:20"] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} in\n{text}");
        }
        assert!(!text.contains("--full"));
    }

    #[test]
    fn the_tree_shows_every_branch() {
        let tree = trees::forked();
        let view = ConversationView {
            calendar: &time::fixed(),
            style: TerminalStyle::plain(60),
            full: false,
            hidden: false,
        };
        let text = view.tree(&conversation(), &tree, &Branches::new(&tree));
        let expected = "  \
  ○ 1/2 q-old  user       How many hives?
  ○ a-old  assistant  It depends.
  ● 2/2 q-new  user       How many hives fit on a balcony?
    ○ 1/2 a-one  assistant  Two.
    ● 2/2 a-two  assistant  Two small ones.
";
        assert_eq!(text.split_once("\n\n").unwrap().1, expected);
    }

    #[test]
    fn conversations_are_listed() {
        let rows = [
            conversation(),
            Conversation {
                title: None,
                id: "77e0bb21-0000-5000-8000-000000000001".to_owned(),
                ..conversation()
            },
        ];
        let expected = "\
ID        TITLE                 PLATFORM  MESSAGES  CHANGED
51d0aa10  Twelve hives\\u{202e}  chatgpt          7  40 min ago
77e0bb21  (untitled)            chatgpt          7  40 min ago
";
        assert_eq!(table(&rows, &time::fixed()).render(TerminalStyle::plain(80)), expected);
    }
}
