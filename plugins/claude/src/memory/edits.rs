//! Calls of `memory_user_edits`, the tool by which the model edits its memory.

use satchel_importer::{
    Arena, Claim, Conversation, Edit, Evidence, Item, Message,
    json::{Object, Value},
    pam::memory::ExtractionMethod,
};

use super::wording;

/// The name of the tool, and of the log that all edits of an account belong to.
pub(crate) const TOOL: &str = "memory_user_edits";

/// A call of the tool.
pub(crate) struct EditCall<'s> {
    pub(crate) conversation: &'s Conversation<'s>,
    pub(crate) message: &'s Message<'s>,
    /// The index of the message in the export's list.
    pub(crate) index: usize,
    /// The index of the block in the message's content.
    pub(crate) block: usize,
    pub(crate) locator: &'s str,
    /// JSON text.
    pub(crate) input: Option<&'s str>,
    pub(crate) output: Option<&'s str>,
    pub(crate) failed: bool,
}

/// The fields of a call's input.
#[derive(Default)]
struct Input<'a> {
    command: Option<&'a str>,
    control: Option<&'a str>,
    replacement: Option<&'a str>,
    line: Option<u32>,
}

/// The edit that a call made; none if it only viewed the memory. An error says why the call counts as no edit.
pub(crate) fn evidence(call: &EditCall<'_>, arena: &Arena) -> Result<Option<Evidence>, &'static str> {
    let input = call.input.map(|raw| Input::of(&Object::parse(raw, arena))).unwrap_or_default();
    if input.command == Some("view") {
        return Ok(None);
    }
    match call.output {
        None => return Err("the export does not say whether this edit of a memory was made"),
        Some(output) if call.failed || reports_error(output) => return Err("this edit of a memory failed"),
        Some(_) => {}
    }
    let edit = input.edit()?;
    let (message, conversation) = (call.message, call.conversation);
    Ok(Some(Evidence {
        id: format!("{TOOL}/{}/{}", message.id, call.block),
        claim: Claim::Edit { log: TOOL.to_owned(), sequence: sequence(call.index, call.block), edit },
        at: message.created_at.or(conversation.created_at),
        account: conversation.account.as_deref().map(ToOwned::to_owned),
        conversation: Some(conversation.id.as_ref().to_owned()),
        message: Some(message.id.as_ref().to_owned()),
        extraction_method: ExtractionMethod::ApiExport,
        locator: call.locator.to_owned(),
    }))
}

/// Orders edits of the same time by message, then by block.
fn sequence(message: usize, block: usize) -> u64 {
    const BLOCKS: u64 = 1 << 20;
    (message as u64).saturating_mul(BLOCKS).saturating_add((block as u64).min(BLOCKS - 1))
}

/// Some failures come without `is_error`.
fn reports_error(output: &str) -> bool {
    let start = output.trim_start().get(..5).unwrap_or_default();
    start.eq_ignore_ascii_case("error")
}

impl<'a> Input<'a> {
    fn of(input: &Object<'a>) -> Self {
        let trimmed = |key| input.get(key).text().map(str::trim).filter(|text| !text.is_empty());
        // A line's number from 1, as a number or in quotes.
        let line = match input.get("line_number") {
            Value::Text(text) => text.trim().parse().ok(),
            value => value.as_u64(),
        };
        Self {
            command: input.get("command").text(),
            control: trimmed("control"),
            replacement: trimmed("replacement"),
            line: line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0),
        }
    }

    fn edit(&self) -> Result<Edit, &'static str> {
        let item = |text| Item::new(text, wording::memory_type(text));
        let target = || self.control.map(ToOwned::to_owned);
        match self.command {
            Some("add") => {
                self.control.map(|text| Edit::Add(item(text))).ok_or("this edit of a memory adds no text")
            }
            Some("remove") if self.line.is_none() && self.control.is_none() => {
                Err("this edit of a memory does not say what it removes")
            }
            Some("remove") => Ok(Edit::Remove { line: self.line, target: target() }),
            Some("replace") => {
                let (text, target) = match (self.replacement, self.control) {
                    (Some(text), _) => (text, target()),
                    (None, Some(text)) => (text, None),
                    (None, None) => return Err("this edit of a memory gives no new text"),
                };
                if self.line.is_none() && target.is_none() {
                    return Err("this edit of a memory does not say what it replaces");
                }
                Ok(Edit::Replace { line: self.line, target, item: item(text) })
            }
            _ => Err("this edit of a memory is of no known kind"),
        }
    }
}
