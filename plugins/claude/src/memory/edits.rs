//! Calls of the tool by which the model edits what it remembers (`memory_user_edits`).

use satchel_importer::{
    Arena, Claim, Conversation, Edit, Evidence, Item, JsonError, Leftover, Message, Parser, json::Kind,
    pam::memory::ExtractionMethod,
};

use super::wording;
use crate::map::{Answer, MemoryCall};

/// The log that all edits of an account belong to.
const LOG: &str = "memory_user_edits";

/// Where a call stands.
pub(crate) struct Scene<'s> {
    pub(crate) conversation: &'s Conversation<'s>,
    pub(crate) message: &'s Message<'s>,
    /// The place of the message in its conversation.
    pub(crate) index: usize,
    pub(crate) locator: &'s str,
}

/// The fields of a call's input.
#[derive(Default)]
struct Input<'a> {
    command: Option<&'a str>,
    control: Option<&'a str>,
    replacement: Option<&'a str>,
    line: Option<u32>,
}

/// The edit that a call made; none if it only looked, a reason if it made none that can be understood.
pub(crate) fn evidence(
    call: &MemoryCall<'_>,
    scene: &Scene<'_>,
    arena: &Arena,
) -> Result<Option<Evidence>, &'static str> {
    let input = call.input.map(|raw| Input::read(&mut Parser::new(raw, arena)));
    let input = input.and_then(Result::ok).unwrap_or_default();
    if input.command == Some("view") {
        return Ok(None);
    }
    match &call.answer {
        Answer::None => return Err("the export does not say whether this edit of a memory was made"),
        Answer::Error => return Err("this edit of a memory failed"),
        Answer::Good(text) if failed(text) => return Err("this edit of a memory failed"),
        Answer::Good(_) => {}
    }
    let edit = input.edit()?;
    let (message, conversation) = (scene.message, scene.conversation);
    Ok(Some(Evidence {
        id: format!("{LOG}/{}/{}", message.id, call.block),
        claim: Claim::Edit { log: LOG.to_owned(), sequence: sequence(scene.index, call.block), edit },
        at: message.created_at.or(conversation.created_at),
        account: conversation.account.as_deref().map(ToOwned::to_owned),
        conversation: Some(conversation.id.as_ref().to_owned()),
        message: Some(message.id.as_ref().to_owned()),
        extraction_method: ExtractionMethod::ApiExport,
        locator: scene.locator.to_owned(),
    }))
}

/// Order among edits of the same time: by message, then by block.
fn sequence(message: usize, block: usize) -> u64 {
    const BLOCKS: u64 = 1 << 20;
    (message as u64).saturating_mul(BLOCKS).saturating_add((block as u64).min(BLOCKS - 1))
}

/// Some failures come without the flag that says so.
fn failed(answer: &str) -> bool {
    let start = answer.trim_start().get(..5).unwrap_or_default();
    start.eq_ignore_ascii_case("error")
}

impl<'a> Input<'a> {
    fn read(json: &mut Parser<'a>) -> Result<Self, JsonError> {
        let (mut it, mut rest) = (Self::default(), Leftover::default());
        if !json.enter_object()? {
            return Ok(it);
        }
        while let Some(key) = json.key()? {
            match key {
                "command" => it.command = rest.text(key, json)?,
                "control" => it.control = words(json)?,
                "replacement" => it.replacement = words(json)?,
                "line_number" => it.line = line(json)?,
                _ => {}
            }
        }
        Ok(it)
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

fn words<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    if json.kind()? != Kind::String {
        return Ok(None);
    }
    json.string().map(|text| Some(text.trim()).filter(|text| !text.is_empty()))
}

/// A line's number from 1, as a number or in quotes.
fn line(json: &mut Parser<'_>) -> Result<Option<u32>, JsonError> {
    let line = match json.kind()? {
        Kind::Number => json.number()?.as_u64(),
        Kind::String => json.string()?.trim().parse().ok(),
        Kind::Null | Kind::Bool | Kind::Array | Kind::Object => None,
    };
    Ok(line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0))
}
