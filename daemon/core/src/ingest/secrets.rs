//! Keys and tokens in what tools printed: finds them by the formats that their issuers publish, and removes them if the
//! configuration says so.

mod patterns;

use std::collections::BTreeMap;

use satchel_pam::{
    conversation::{Content, Role, ToolCall, ToolInput},
    raw::RawObject,
    record::{ConversationRecord, MessageRecord, Warning},
};
use serde::{Deserialize, Serialize};

use self::patterns::Notation;

/// What an import does with secrets in what tools printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretHandling {
    /// They are stored like everything else, and the receipt says where they are.
    #[default]
    Keep,
    /// A note of what was there takes their place.
    Remove,
}

/// The secrets of one conversation, counted by kind.
#[derive(Debug, Default)]
struct Found {
    kinds: BTreeMap<&'static str, u64>,
    /// The key of the first message with one.
    first: Option<String>,
    messages: u64,
}

/// Looks for secrets in what tools printed and were given, and removes them if `handling` says so. Returns the warning for the
/// receipt, if there are any.
pub(super) fn check(record: &mut ConversationRecord, handling: SecretHandling) -> Option<Warning> {
    let mut found = Found::default();
    for message in &mut record.messages {
        let before = found.total();
        check_message(message, handling, &mut found);
        if found.total() > before {
            found.messages += 1;
            found.first.get_or_insert_with(|| message.id.clone());
        }
    }
    found.warning(&record.locator, handling)
}

fn check_message(message: &mut MessageRecord, handling: SecretHandling, found: &mut Found) {
    let before = found.total();
    for ToolCall { input, output, .. } in &mut message.tool_calls {
        match input {
            Some(ToolInput::Text(input)) => check_text(input, handling, found),
            Some(ToolInput::Object(input)) => check_object(input, handling, found),
            None => {}
        }
        output.iter_mut().for_each(|output| check_text(output, handling, found));
    }
    // Importers keep here what a tool returned, whoever the message is from.
    if let Some(raw) = &mut message.raw_metadata {
        check_object(raw, handling, found);
    }
    // Answers of tools, and what hooks and commands printed. A message of the person that has what a tool returned beside her
    // words has it here too.
    let printed = matches!(message.role, Role::Tool | Role::System) || found.total() > before;
    if let Some(Content { text, parts, .. }) = message.content.as_mut().filter(|_| printed) {
        let texts = text.iter_mut().chain(parts.iter_mut().filter_map(|part| part.text.as_mut()));
        texts.for_each(|text| check_text(text, handling, found));
    }
}

fn check_text(text: &mut String, handling: SecretHandling, found: &mut Found) {
    if let Some(without) = without_secrets(text, Notation::Plain, handling, found) {
        *text = without;
    }
}

/// Does the same for the text of an object. No secret has a quotation mark, so what takes its place is inside the same string.
fn check_object(object: &mut RawObject, handling: SecretHandling, found: &mut Found) {
    let without = without_secrets(object.as_str(), Notation::Json, handling, found);
    if let Some(Ok(without)) = without.map(RawObject::parse) {
        *object = without;
    }
}

/// Counts the secrets in a text. Returns the text without them if it has some and they are to be removed.
fn without_secrets(
    text: &str,
    notation: Notation,
    handling: SecretHandling,
    found: &mut Found,
) -> Option<String> {
    let (mut without, mut end) = (String::new(), 0);
    for (place, kind) in patterns::find(text, notation) {
        *found.kinds.entry(kind).or_default() += 1;
        without += &text[end..place.start];
        without += &format!("[removed: {kind}]");
        end = place.end;
    }
    (end > 0 && handling == SecretHandling::Remove).then(|| without + &text[end..])
}

impl Found {
    fn total(&self) -> u64 {
        self.kinds.values().sum()
    }

    fn warning(self, conversation: &str, handling: SecretHandling) -> Option<Warning> {
        let first = self.first.as_ref()?;
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        let messages = if self.messages == 1 {
            "a message has".to_owned()
        } else {
            format!("{} messages have", self.messages)
        };
        let done = match handling {
            SecretHandling::Keep => {
                "kept; `secrets = \"remove\"` in the section [import] of the configuration leaves them out of later imports"
            }
            SecretHandling::Remove => {
                "left out of this import, as the configuration says; what earlier imports stored stays"
            }
        };
        Some(Warning {
            locator: format!("{conversation}#{first}"),
            message: format!("{messages} what looks like keys or tokens ({}): {done}", kinds.join(", ")),
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
