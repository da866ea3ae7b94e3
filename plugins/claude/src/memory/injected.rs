//! Memories that the provider put into a conversation for the model to read (`injected_prompt_block`).

use satchel_importer::{
    Claim, Conversation, Evidence, Item, Message,
    pam::memory::{ExtractionMethod, MemoryType, Status},
};

use super::{heading_metadata, prose};

const START: &str = "<userMemories>";
const END: &str = "</userMemories>";

/// A prompt that the provider put into a message.
pub(crate) struct InjectedPrompt<'a> {
    /// The index of its block in the content.
    pub(crate) block: usize,
    pub(crate) prompt: &'a str,
    pub(crate) source: Option<&'a str>,
}

/// A statement for each section. The memories file is newer than a prompt, so these are archived; a memory that the
/// file holds too stays active.
pub(crate) fn evidence(
    injected: &InjectedPrompt<'_>,
    conversation: &Conversation<'_>,
    message: &Message<'_>,
    locator: &str,
) -> Vec<Evidence> {
    let Some(text) = memories(injected) else { return Vec::new() };
    let statement = |section: prose::Section<'_>| {
        let mut item = Item::new(section.text, MemoryType::Context);
        item.status = Some(Status::Archived);
        item.metadata = heading_metadata(section.heading);
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
    let sections = prose::split_sections(text).into_iter();
    sections.filter(|section| section.text.contains(char::is_alphanumeric)).map(statement).collect()
}

/// The memories in a prompt; none if it holds something else.
fn memories<'a>(injected: &InjectedPrompt<'a>) -> Option<&'a str> {
    if let Some((_, rest)) = injected.prompt.split_once(START) {
        return Some(rest.split_once(END).map_or(rest, |(inside, _)| inside));
    }
    let from_memory = injected.source.is_some_and(|source| source.to_ascii_lowercase().contains("memor"));
    from_memory.then_some(injected.prompt)
}
