//! Files that a message shows without listing them: those that the library says it made, and links into the sandbox.

use std::borrow::Cow;

use satchel_importer::{Arena, Attachment, AttachmentKind, Content, Message, Role, Source};

use super::{attachments::add_known, messages::Messages};
use crate::assets::Assets;

/// What links to files of the sandbox begin with.
const SANDBOX: &str = "sandbox:/";
/// Links of one message that are followed.
const MOST_LINKS: usize = 200;

/// Adds such files to the messages of the conversation `thread`.
pub(crate) fn join<'a>(read: &mut Messages<'a>, thread: &str, assets: &'a Assets<'a>, arena: &'a Arena) {
    if !assets.library.is_empty() {
        for message in &mut read.all {
            let id = message.provider_message_id.as_deref().unwrap_or(&message.id);
            add_known(&mut message.attachments, assets.library.of_message(id), assets);
        }
    }
    for at in std::mem::take(&mut read.linked) {
        if let Some(message) = read.all.get_mut(at) {
            add_links(message, thread, assets, arena);
        }
    }
}

/// Whether an answer links to files of the sandbox.
pub(crate) fn links(message: &Message<'_>) -> bool {
    message.role == Role::Assistant
        && message.content.as_ref().and_then(Content::text).is_some_and(|text| text.contains(SANDBOX))
}

fn add_links<'a>(message: &mut Message<'a>, thread: &str, assets: &'a Assets<'a>, arena: &'a Arena) {
    let Some(text) = message.content.as_ref().and_then(Content::text) else { return };
    let mut seen: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(SANDBOX) {
        let address = address_at(text.get(at..).unwrap_or_default());
        if !seen.contains(&address) && seen.len() < MOST_LINKS {
            seen.push(address);
        }
    }
    let id = message.provider_message_id.as_deref().unwrap_or(&message.id).to_owned();
    for address in seen {
        let name = decoded(address.rsplit('/').next().unwrap_or_default());
        if name.is_empty() {
            continue;
        }
        if let Some(file) = assets.named(&name, &id, thread) {
            add_known(&mut message.attachments, [file], assets);
        } else if !message.attachments.iter().any(|file| file.name.as_deref() == Some(&name)) {
            message.attachments.push(Attachment {
                kind: AttachmentKind::of(None, Some(&name)),
                name: Some(Cow::Borrowed(arena.alloc_str(&name))),
                source: Some(Source::Uri(Cow::Borrowed(arena.alloc_str(address)))),
                ..Attachment::default()
            });
        }
    }
}

/// The address at the head of `text`: to the end of the link, or of the word.
fn address_at(text: &str) -> &str {
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '"' | '<' | '>' | '`'));
    text.get(..end.unwrap_or(text.len())).unwrap_or_default().trim_end_matches(['.', ',', ';'])
}

/// `my%20file.csv` as `my file.csv`.
fn decoded(name: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_end_where_they_do() {
        assert_eq!(address_at("sandbox:/mnt/data/a.csv) and"), "sandbox:/mnt/data/a.csv");
        assert_eq!(address_at("sandbox:/mnt/data/a.csv. Then"), "sandbox:/mnt/data/a.csv");
        assert_eq!(decoded("my%20file%.csv"), "my file%.csv");
        assert_eq!(decoded("%C3%A9"), "\u{e9}");
    }
}
