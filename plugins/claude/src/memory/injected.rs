//! Memories that the provider put into a conversation for the model to read (`injected_prompt_block`).

use satchel_importer::{
    Claim, Conversation, Evidence, Item, Leftover, Message,
    pam::memory::{ExtractionMethod, MemoryType, Status},
};

use super::{metadata, prose};
use crate::map::Injected;

const START: &str = "<userMemories>";
const END: &str = "</userMemories>";

/// A statement for each section. What the memories file says is newer, so that these are archived; where it says the same,
/// the memory stands.
pub(crate) fn evidence(
    injected: &Injected<'_>,
    conversation: &Conversation<'_>,
    message: &Message<'_>,
    locator: &str,
) -> Vec<Evidence> {
    let Some(text) = memories(injected) else { return Vec::new() };
    let statement = |section: prose::Section<'_>| {
        let mut item = Item::new(section.text, MemoryType::Context);
        item.status = Some(Status::Archived);
        let mut kept = Leftover::default();
        if let Some(heading) = section.heading {
            kept.add_text("heading", heading);
        }
        item.metadata = metadata(kept);
        let heading = section.heading.unwrap_or_default();
        Evidence {
            id: format!("injected_memory/{}/{}/{heading}", message.id, injected.block),
            claim: Claim::Statement(item),
            at: message.created_at.or(conversation.created_at),
            account: conversation.account.as_deref().map(ToOwned::to_owned),
            conversation: Some(conversation.id.as_ref().to_owned()),
            message: Some(message.id.as_ref().to_owned()),
            extraction_method: ExtractionMethod::ApiExport,
            locator: locator.to_owned(),
        }
    };
    let sections = prose::sections(text).into_iter();
    sections.filter(|section| section.text.contains(char::is_alphanumeric)).map(statement).collect()
}

/// The memories in a prompt; none if it holds other things.
fn memories<'a>(injected: &Injected<'a>) -> Option<&'a str> {
    if let Some((_, rest)) = injected.prompt.split_once(START) {
        return Some(rest.split_once(END).map_or(rest, |(inside, _)| inside));
    }
    let told = injected.source.is_some_and(|source| source.to_ascii_lowercase().contains("memor"));
    told.then_some(injected.prompt)
}
