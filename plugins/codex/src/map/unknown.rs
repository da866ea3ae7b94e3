//! Lines and items of unknown types. Their text becomes a message, so that nothing is lost when Codex adds a type.

use satchel_importer::{Fields, ImportError, Role, json::Value, warnings::shortened};

use super::{Mapped, Origin, UnplacedMessage, Warning, parts::Parts};
use crate::fields::KEPT;
/// Fields that may hold the text.
const TEXTS: [&str; 4] = ["text", "message", "content", "payload"];

/// Maps a line of the unknown type `kind`; it is left out if it holds no natural language.
pub(super) fn unknown<'a>(
    kind: &'a str,
    mut payload: Fields<'a>,
    decode: bool,
) -> Result<Mapped<'a>, ImportError> {
    let kind = if kind.is_empty() { "untyped" } else { kind };
    let text = TEXTS.into_iter().find(|key| payload.get(key) != Value::Null);
    let parts = text.map(|key| Parts::read(payload.take(key), payload.arena(), decode)).transpose()?;
    let mut unplaced = UnplacedMessage { kind, origin: Origin::Event, ..UnplacedMessage::default() };
    unplaced.role = match payload.get("role").text() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => Role::System,
    };
    unplaced.rest = payload.into_rest(&KEPT);
    if let (Some(parts), Some(key)) = (parts, text) {
        parts.move_to(&mut unplaced, key);
        // Without natural language it is not worth a message.
        unplaced.has_unknown_parts = false;
    }
    unplaced.warning =
        Some(Warning::Once(format!("its type {:?} is unknown; it is read as a message", shortened(kind))));
    Ok(unplaced.unless_empty())
}
