//! Explains an empty list: what was asked for, and what there is instead.

use satchel_core::{nearest, plugins::Plugins};
use satchel_proto::{
    signed::unsigned,
    v1::{GetStatsRequest, GetStatsResponse, MemoryStatus, PlatformCount},
};

use super::{
    args::{ConversationSelect, MemorySelect, TypeWord},
    error::CliError,
    link::Link,
    text,
};

/// Maximum number of platforms that are named.
const NAMED: usize = 5;

/// The records of one kind that the store has.
struct Stock<'a> {
    /// The singular: `conversation` or `memory`.
    one: &'static str,
    many: &'static str,
    total: u64,
    by_platform: &'a [PlatformCount],
}

/// Returns why no conversation is listed.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn conversations(link: &Link, select: &ConversationSelect) -> Result<String, CliError> {
    let stats = stats(link).await?;
    let ConversationSelect { platforms, accounts, tags, since, until, created_since, created_until, title } =
        select;
    let title = title.as_ref().map(|title| format!("with {title:?} in its title"));
    let begun = (created_since.as_deref(), created_until.as_deref());
    let times = times((since.as_deref(), until.as_deref()), "begun", begun);
    let asked = [from(platforms, accounts), title.into_iter().collect(), tagged(tags), times].concat();
    let stock = Stock {
        one: "conversation",
        many: "conversations",
        total: unsigned(stats.conversations),
        by_platform: &stats.conversations_by_platform,
    };
    Ok(stock.nothing(platforms, "", &asked, None))
}

/// Returns why no memory is listed.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn memories(link: &Link, select: &MemorySelect) -> Result<String, CliError> {
    let stats = stats(link).await?;
    let MemorySelect {
        types,
        statuses,
        platforms,
        accounts,
        tags,
        since,
        until,
        created_since,
        created_until,
        conversation,
        valid,
        expired,
    } = select;
    let kinds = types.iter().map(|word| super::words::memory_type(TypeWord::to_wire(*word).into()));
    let kinds: Vec<String> = kinds.collect();
    let kind = (!kinds.is_empty()).then(|| format!("of type {}", kinds.join(" or ")));
    let of = conversation.as_ref().map(|id| format!("of conversation {id}"));
    let begun = (created_since.as_deref(), created_until.as_deref());
    let times = times((since.as_deref(), until.as_deref()), "stated", begun);
    let validity = [(*valid, "valid now"), (*expired, "expired")];
    let validity = validity.into_iter().filter(|(asked, _)| *asked).map(|(_, words)| words.to_owned());
    let asked = [
        kind.into_iter().collect(),
        from(platforms, accounts),
        tagged(tags),
        of.into_iter().collect(),
        validity.collect(),
        times,
    ]
    .concat();
    let stock = Stock {
        one: "memory",
        many: "memories",
        total: unsigned(stats.memories),
        by_platform: &stats.memories_by_platform,
    };
    // Only active memories are listed, unless another status was requested.
    let active = stats.memories_by_status.iter().find(|count| count.status() == MemoryStatus::Active);
    let active = active.map_or(0, |count| count.count);
    let (adjective, others) = match statuses.as_slice() {
        [] if active < stats.memories => ("active ", Some("--status all lists those of every status")),
        [] => ("", None),
        _ => ("such ", None),
    };
    Ok(stock.nothing(platforms, adjective, &asked, others))
}

async fn stats(link: &Link) -> Result<GetStatsResponse, CliError> {
    Ok(link.admin().get_stats(GetStatsRequest {}).await?.into_inner())
}

impl Stock<'_> {
    fn nothing(
        &self,
        platforms: &[String],
        adjective: &str,
        asked: &[String],
        advice: Option<&str>,
    ) -> String {
        let Self { one, many, total, .. } = *self;
        if total == 0 {
            return format!("there is no {one} yet; `satchel import PATH` brings an export in");
        }
        if let Some(unknown) = self.unknown(platforms) {
            return text::one_line(&unknown);
        }
        let asked = if asked.is_empty() { String::new() } else { format!(" {}", asked.join(", ")) };
        let total =
            if total == 1 { "1 in all".to_owned() } else { format!("{} in all", text::number(total)) };
        let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        let from = match platforms {
            // If no requested platform has any records, list the platforms that have some.
            [_, ..] if platforms.iter().all(|name| self.of(name) == 0) => {
                let held = self.by_platform.iter().take(NAMED).map(|count| count.platform.as_str());
                let held: Vec<&str> = held.collect();
                if held.is_empty() {
                    String::new()
                } else {
                    format!("; there are {many} from {}", held.join(", "))
                }
            }
            _ => String::new(),
        };
        text::one_line(&format!("no {adjective}{one}{asked}; {total}{from}{advice}"))
    }

    fn of(&self, platform: &str) -> u64 {
        let found = self.by_platform.iter().find(|count| count.platform == platform);
        found.map_or(0, |count| unsigned(count.count))
    }

    /// Returns the message for a platform that is neither in the store nor supported.
    fn unknown(&self, platforms: &[String]) -> Option<String> {
        let held = self.by_platform.iter().map(|count| count.platform.as_str());
        let known: Vec<&str> = held.chain(Plugins::platforms()).collect();
        let unknown = platforms.iter().find(|name| !known.contains(&name.as_str()))?;
        let hint = match nearest(unknown, &known) {
            Some(near) => format!("did you mean {near}?"),
            None => "`satchel plugins list` names those that can be read".to_owned(),
        };
        Some(format!("no platform is called {unknown:?}; {hint}"))
    }
}

fn from(platforms: &[String], accounts: &[String]) -> Vec<String> {
    let named = |word: &str, values: &[String]| {
        (!values.is_empty()).then(|| format!("{word} {}", values.join(" or ")))
    };
    named("from", platforms).into_iter().chain(named("of account", accounts)).collect()
}

fn tagged(tags: &[String]) -> Vec<String> {
    if tags.is_empty() { Vec::new() } else { vec![format!("tagged {}", tags.join(" and "))] }
}

/// Describes the time ranges. `created` is the word for the creation of a record, such as `begun`.
fn times(
    changed: (Option<&str>, Option<&str>),
    created: &str,
    begun: (Option<&str>, Option<&str>),
) -> Vec<String> {
    let span = |lead: &str, span: (Option<&str>, Option<&str>)| match span {
        (None, None) => None,
        (Some(since), None) => Some(format!("{lead}since {since}")),
        (None, Some(until)) => Some(format!("{lead}until {until}")),
        (Some(since), Some(until)) => Some(format!("{lead}from {since} until {until}")),
    };
    span("", changed).into_iter().chain(span(&format!("{created} "), begun)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Vec<PlatformCount> {
        [("chatgpt", 2_900), ("claude", 80)]
            .map(|(platform, count)| PlatformCount { platform: platform.to_owned(), count })
            .to_vec()
    }

    fn said(platforms: &[&str], asked: &[&str], total: u64) -> String {
        let by_platform = counts();
        let stock = Stock { one: "conversation", many: "conversations", total, by_platform: &by_platform };
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        stock.nothing(&owned(platforms), "", &owned(asked), None)
    }

    #[test]
    fn an_empty_list_says_why() {
        for (platforms, asked, total, line) in [
            (&[][..], &["since 2025-03-01"][..], 2_980, "no conversation since 2025-03-01; 2,980 in all"),
            (&["chatpgt"], &[], 2_980, "no platform is called \"chatpgt\"; did you mean chatgpt?"),
            (
                &["zzzzzzzz"],
                &[],
                2_980,
                "no platform is called \"zzzzzzzz\"; `satchel plugins list` names those that can be read",
            ),
            (
                &["grok"],
                &["from grok"],
                2_980,
                "no conversation from grok; 2,980 in all; there are conversations from chatgpt, claude",
            ),
            (
                &["claude"],
                &["from claude", "tagged x"],
                2_980,
                "no conversation from claude, tagged x; 2,980 in all",
            ),
            (&["chatpgt"], &[], 0, "there is no conversation yet; `satchel import PATH` brings an export in"),
        ] {
            assert_eq!(said(platforms, asked, total), line);
        }
    }
}
