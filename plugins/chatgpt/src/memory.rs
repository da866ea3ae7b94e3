//! What a conversation says about memories: facts that ChatGPT saved, its list of them, and custom instructions.

use satchel_importer::{
    Claim, Evidence, Item,
    pam::{
        memory::{ExtractionMethod, MemoryType, Status},
        record::ConfidenceRecord,
    },
};

use crate::{
    map::{Facts, Mapped},
    memory_text::{self, Side},
    raw, time,
};

/// A saved fact may have been deleted later on the web page, which exports do not show.
const SAVED_CONFIDENCE: f64 = 0.5;

/// Where a conversation stands.
pub(crate) struct Place<'p> {
    pub(crate) conversation: &'p str,
    pub(crate) account: Option<&'p str>,
    pub(crate) locator: &'p str,
}

/// All evidence of one conversation; none if the person asked it not to be remembered.
pub(crate) fn evidence(raw: &raw::Conversation<'_>, mapped: &Mapped<'_>, place: &Place<'_>) -> Vec<Evidence> {
    if raw.forget {
        return Vec::new();
    }
    let maker = Maker { scope: scope(raw, place.conversation), created: raw.created, place };
    let mut found = Vec::new();
    for (at, facts) in mapped.facts.iter().enumerate() {
        if facts.remembered
            && let Some(text) = mapped.asked(at)
        {
            found.extend(maker.saved_facts(facts, text));
        }
        match facts.content.kind {
            Some("model_editable_context") => found.extend(maker.saved_list(facts)),
            Some("user_editable_context") => found.extend(maker.instructions(facts)),
            _ if facts.metadata.user_context.is_some() || facts.metadata.user_system => {
                found.extend(maker.instructions(facts));
            }
            _ => {}
        }
    }
    found
}

/// The custom instructions that held for the conversation, for PAM's `system_instruction`.
pub(crate) fn system_instruction(mapped: &Mapped<'_>) -> Option<String> {
    let first = mapped.facts.iter().map(sides).find(|sides| !sides.is_empty())?;
    Some(first.into_iter().map(|(_, words)| words).collect::<Vec<_>>().join("\n\n"))
}

/// What is said inside a project holds for the project only.
fn scope(raw: &raw::Conversation<'_>, conversation: &str) -> Option<String> {
    let project = [raw.gizmo, raw.template].into_iter().flatten().find(|id| id.starts_with("g-p-"));
    let alone = raw.memory_scope == Some("project_enabled");
    match project {
        Some(project) => Some(format!("project:{project}")),
        // The project is not named: no wider than the conversation.
        None if alone => Some(format!("conversation:{conversation}")),
        None => None,
    }
}

struct Maker<'p> {
    scope: Option<String>,
    created: Option<i64>,
    place: &'p Place<'p>,
}

impl Maker<'_> {
    /// One fact on each line of a confirmed write.
    fn saved_facts(&self, facts: &Facts<'_>, text: &str) -> Vec<Evidence> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let confidence = ConfidenceRecord {
            initial: Some(SAVED_CONFIDENCE),
            current: Some(SAVED_CONFIDENCE),
            ..ConfidenceRecord::default()
        };
        lines
            .map(|(number, line)| {
                let mut item = self.item(line.trim(), MemoryType::Fact);
                item.status = Some(Status::Active);
                item.confidence = Some(confidence.clone());
                let name = format!("bio/{number}");
                self.evidence(facts, &name, facts.time, Claim::Statement(item), ExtractionMethod::ApiExport)
            })
            .collect()
    }

    /// The whole list of saved memories as the model saw it; an empty one says nothing.
    fn saved_list(&self, facts: &Facts<'_>) -> Option<Evidence> {
        let context = facts.content.fields.text("model_set_context")?;
        let items: Vec<Item> = memory_text::saved_items(context)
            .into_iter()
            .map(|saved| {
                let mut item = self.item(&saved.text, MemoryType::Fact);
                item.valid_from = saved.date.as_deref().and_then(time::day);
                item
            })
            .collect();
        if items.is_empty() {
            return None;
        }
        Some(self.snapshot(facts, "model_set_context", items, ExtractionMethod::ApiExport))
    }

    fn instructions(&self, facts: &Facts<'_>) -> Vec<Evidence> {
        sides(facts)
            .into_iter()
            .map(|(side, words)| {
                let (series, kind) = match side {
                    Side::AboutUser => ("about_user_message", MemoryType::Identity),
                    Side::AboutModel => ("about_model_message", MemoryType::Instruction),
                };
                let items = vec![self.item(words, kind)];
                self.snapshot(facts, series, items, ExtractionMethod::ExplicitUserInput)
            })
            .collect()
    }

    fn item(&self, content: &str, memory_type: MemoryType) -> Item {
        Item {
            key: None,
            content: content.to_owned(),
            memory_type,
            custom_type: None,
            status: None,
            scope: self.scope.clone(),
            summary: None,
            tags: Vec::new(),
            confidence: None,
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
            access: None,
            embedding_ref: None,
            metadata: None,
        }
    }

    /// A list of one scope never replaces that of another.
    fn snapshot(
        &self,
        facts: &Facts<'_>,
        series: &str,
        items: Vec<Item>,
        method: ExtractionMethod,
    ) -> Evidence {
        let scoped = self.scope.as_ref().map(|scope| format!("{series}@{scope}"));
        let claim = Claim::Snapshot { series: scoped.unwrap_or_else(|| series.to_owned()), items };
        self.evidence(facts, series, facts.time.or(self.created), claim, method)
    }

    fn evidence(
        &self,
        facts: &Facts<'_>,
        name: &str,
        at: Option<i64>,
        claim: Claim,
        extraction_method: ExtractionMethod,
    ) -> Evidence {
        let Place { conversation, account, locator } = self.place;
        Evidence {
            id: format!("{conversation}/{}/{name}", facts.key),
            claim,
            at: at.or(self.created),
            account: account.map(ToOwned::to_owned),
            conversation: Some((*conversation).to_owned()),
            message: Some(facts.key.to_owned()),
            extraction_method,
            locator: format!("{locator}.mapping.{}", facts.key),
        }
    }
}

/// The two sides of custom instructions in one message: the clean copy, else the words inside the boilerplate.
fn sides<'a>(facts: &Facts<'a>) -> Vec<(Side, &'a str)> {
    if let Some([user, model]) = facts.clean_copy {
        let both = [(Side::AboutUser, user), (Side::AboutModel, model)];
        let sides: Vec<_> = both
            .into_iter()
            .filter_map(|(side, words)| Some((side, words?.trim())))
            .filter(|(_, words)| !words.is_empty())
            .collect();
        if !sides.is_empty() {
            return sides;
        }
    }
    if facts.content.kind == Some("user_editable_context") {
        let fields = &facts.content.fields;
        let both = [(Side::AboutUser, "user_profile"), (Side::AboutModel, "user_instructions")];
        let words = |key| fields.text(key).map(memory_text::unfence).filter(|words| !words.is_empty());
        return both.into_iter().filter_map(|(side, key)| Some((side, words(key)?))).collect();
    }
    if facts.metadata.user_system {
        let texts = facts.content.parts.iter().filter_map(|part| match part {
            raw::Part::Text(text) => Some(*text),
            raw::Part::Nothing | raw::Part::Raw(_) => None,
        });
        return texts.flat_map(memory_text::split_sides).collect();
    }
    Vec::new()
}
