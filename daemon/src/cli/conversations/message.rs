//! The content of one message: text, parts, tool calls, files and sources.

use satchel_proto::{
    integers::unsigned,
    v1::{Attachment, Citation, Content, ContentPart, Message, PartKind, Role, ToolCall, tool_call::Input},
};

use super::markdown;
use crate::cli::{
    labels,
    style::{Paint, TerminalStyle},
    text,
};

/// Indentation of everything in a message.
pub(super) const INDENT: &str = "  ";
/// Lines of a tool's output that are shown when it is folded.
const OUTPUT_LINES: usize = 3;

/// Returns the first words of a message, for lists.
pub(super) fn first_text(message: &Message) -> String {
    let text = message.content.as_ref().map(|content| {
        let parts = content.parts.iter().filter_map(|part| part.text.as_deref());
        content
            .text
            .as_deref()
            .into_iter()
            .chain(parts)
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default()
    });
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        // Enough for any line; avoids copying a long text.
        return text.trim_start().chars().take(400).collect();
    }
    if let Some(call) = message.tool_calls.first() {
        return format!("[{}]", call.name);
    }
    let file = message.attachments.first().and_then(|attachment| attachment.name.as_deref());
    file.map(|name| format!("[{name}]")).unwrap_or_default()
}

/// Lays out the content of a message.
pub(super) struct MessageBody {
    pub(super) style: TerminalStyle,
    /// True if nothing is folded.
    pub(super) full: bool,
}

impl MessageBody {
    /// Returns the lines below the heading of a message.
    pub(super) fn render(&self, message: &Message) -> String {
        let mut out = match &message.content {
            Some(_) if self.folds(message) => self.folded(message),
            Some(content) => self.content(content),
            None => String::new(),
        };
        for call in &message.tool_calls {
            out.push_str(&self.call(call));
        }
        for attachment in &message.attachments {
            out.push_str(&self.attachment(attachment));
        }
        for (at, citation) in message.citations.iter().enumerate() {
            out.push_str(&self.citation(at + 1, citation));
        }
        if message.abridged {
            out.push_str(&self.dim("… truncated; an export contains the whole message"));
        }
        out
    }

    /// Returns whether a message is folded into one line: thoughts and tool results.
    pub(super) fn folds(&self, message: &Message) -> bool {
        !self.full && (message.is_thought || message.role() == Role::Tool)
    }

    fn folded(&self, message: &Message) -> String {
        let lines = message.content.as_ref().map_or(0, line_count);
        let what = if message.is_thought { "thought" } else { "tool output" };
        self.dim(&format!("▸ {what}, {}: --full shows it", text::count(lines, "line", "lines")))
    }

    fn content(&self, content: &Content) -> String {
        let mut out = String::new();
        if let Some(text) = content.text.as_deref().filter(|text| !text.trim().is_empty()) {
            out.push_str(&markdown::render(text, INDENT, self.style));
        }
        for part in &content.parts {
            out.push_str(&self.part(part));
        }
        out
    }

    fn part(&self, part: &ContentPart) -> String {
        let text = part.text.as_deref().unwrap_or_default();
        match part.kind() {
            PartKind::Text | PartKind::Unspecified => markdown::render(text, INDENT, self.style),
            PartKind::Code => {
                // The fence is longer than any in the code, so that nothing in the code closes the block.
                let marks = text.lines().map(str::trim).filter(|line| line.bytes().all(|byte| byte == b'`'));
                let fence = "`".repeat(marks.map(str::len).max().unwrap_or(0).max(2) + 1);
                let language = text::one_line(part.language.as_deref().unwrap_or_default());
                markdown::render(&format!("{fence}{language}\n{text}\n{fence}"), INDENT, self.style)
            }
            PartKind::Image | PartKind::File | PartKind::Audio | PartKind::Video => {
                let facts = [part.r#ref.as_deref(), part.mime_type.as_deref(), part.text.as_deref()];
                let facts: Vec<&str> = facts.into_iter().flatten().filter(|fact| !fact.is_empty()).collect();
                self.dim(&format!("[{}] {}", labels::part_kind(part.kind), facts.join(", ")))
            }
        }
    }

    fn call(&self, call: &ToolCall) -> String {
        let input = match &call.input {
            Some(Input::InputText(input) | Input::InputJson(input)) => text::one_line(input),
            None => String::new(),
        };
        let room = self.style.text_columns().saturating_sub(INDENT.len());
        let line = format!("⚙ {} {input}", text::one_line(&call.name));
        let mut out = format!(
            "{INDENT}{}\n",
            self.style.paint(Paint::Warn, text::fit(line.trim_end(), room).trim_end())
        );
        let Some(output) = call.output.as_deref().filter(|output| !output.trim().is_empty()) else {
            return out;
        };
        let clean = text::clean(output);
        let most = if self.full { usize::MAX } else { OUTPUT_LINES };
        for line in clean.trim_end().lines().take(most) {
            let line =
                if self.full { line.into() } else { text::fit(line, room.saturating_sub(INDENT.len())) };
            out.push_str(&self.dim(&format!("{INDENT}{line}")));
        }
        let rest = clean.trim_end().lines().count().saturating_sub(most) as u64;
        if rest > 0 {
            out.push_str(&self.dim(&format!(
                "{INDENT}… {}: --full shows all",
                text::count(rest, "more line", "more lines")
            )));
        }
        out
    }

    fn attachment(&self, attachment: &Attachment) -> String {
        let name = attachment.name.as_deref().or(attachment.r#ref.as_deref()).unwrap_or("(unnamed)");
        let mut facts = vec![name.to_owned()];
        facts.extend(attachment.mime_type.clone());
        facts.extend(unsigned(attachment.size_bytes).map(text::bytes));
        self.dim(&format!("[{}] {}", labels::attachment_kind(attachment.kind), facts.join(", ")))
    }

    fn citation(&self, number: usize, citation: &Citation) -> String {
        let facts = [citation.title.as_deref(), citation.url.as_deref()];
        let mut facts: Vec<&str> = facts.into_iter().flatten().filter(|fact| !fact.is_empty()).collect();
        if facts.is_empty() {
            facts.extend(citation.snippet.as_deref());
        }
        self.dim(&format!("[{number}] {}", facts.join(" — ")))
    }

    /// Returns one dim line; cleans the text.
    fn dim(&self, line: &str) -> String {
        let lead = line.len() - line.trim_start().len();
        format!("{INDENT}{}{}\n", " ".repeat(lead), self.style.paint(Paint::Dim, &text::one_line(line)))
    }
}

fn line_count(content: &Content) -> u64 {
    let parts = content.parts.iter().filter_map(|part| part.text.as_deref());
    content.text.as_deref().into_iter().chain(parts).map(|text| text.trim().lines().count() as u64).sum()
}
