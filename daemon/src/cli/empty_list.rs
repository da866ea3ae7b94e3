//! Explains an empty list: what was asked for, and what there is instead.

use satchel_core::nearest;
use satchel_proto::{
    integers::unsigned,
    v1::{GetStatsRequest, GetStatsResponse, MemoryStatus, PlatformCount},
};
use satchel_registry::Plugins;

use super::{
    args::{ConversationFilterArgs, MemoryFilterArgs, MemoryTypeArg},
    client::DaemonClient,
    error::CliError,
    text,
};

/// Maximum number of platforms that are named.
const NAMED: usize = 5;

/// The records of one kind that the store has.
struct StoredRecords<'a> {
    /// The plural: `conversations` or `memories`.
    plural: &'static str,
    total: u64,
    by_platform: &'a [PlatformCount],
}

/// Returns why no conversation is listed.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn conversations(
    client: &DaemonClient,
    select: &ConversationFilterArgs,
) -> Result<String, CliError> {
    let stats = stats(client).await?;
    let ConversationFilterArgs {
        platforms,
        accounts,
        tags,
        since,
        until,
        created_since,
        created_until,
        title,
    } = select;
    let title = title.as_ref().map(|title| format!("with {title:?} in its title"));
    let created = (created_since.as_deref(), created_until.as_deref());
    let times = times((since.as_deref(), until.as_deref()), created);
    let criteria = [from(platforms, accounts), title.into_iter().collect(), tagged(tags), times].concat();
    let stock = StoredRecords {
        plural: "conversations",
        total: unsigned(stats.conversations),
        by_platform: &stats.conversations_by_platform,
    };
    Ok(stock.explain(platforms, "", &criteria, None))
}

/// Returns why no memory is listed.
///
/// # Errors
/// Returns the error of the daemon.
pub(super) async fn memories(client: &DaemonClient, select: &MemoryFilterArgs) -> Result<String, CliError> {
    let stats = stats(client).await?;
    let MemoryFilterArgs {
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
        valid_at,
    } = select;
    let kinds = types.iter().map(|word| super::labels::memory_type(MemoryTypeArg::to_wire(*word).into()));
    let kinds: Vec<String> = kinds.collect();
    let kind = (!kinds.is_empty()).then(|| format!("of type {}", kinds.join(" or ")));
    let origin = conversation.as_ref().map(|id| format!("of conversation {id}"));
    let created = (created_since.as_deref(), created_until.as_deref());
    let times = times((since.as_deref(), until.as_deref()), created);
    let validity = [(*valid, "valid now"), (*expired, "expired")];
    let validity = validity.into_iter().filter(|(given, _)| *given).map(|(_, words)| words.to_owned());
    let validity = validity.chain(valid_at.as_ref().map(|time| format!("valid at {time}")));
    let criteria = [
        kind.into_iter().collect(),
        from(platforms, accounts),
        tagged(tags),
        origin.into_iter().collect(),
        validity.collect(),
        times,
    ]
    .concat();
    let stock = StoredRecords {
        plural: "memories",
        total: unsigned(stats.memories),
        by_platform: &stats.memories_by_platform,
    };
    // Only active memories are listed, unless another status was requested.
    let active = stats.memories_by_status.iter().find(|count| count.status() == MemoryStatus::Active);
    let active = active.map_or(0, |count| count.count);
    let (adjective, others) = match statuses.as_slice() {
        [] if active < stats.memories => ("active ", Some("--status all includes every status")),
        [] => ("", None),
        _ => ("such ", None),
    };
    Ok(stock.explain(platforms, adjective, &criteria, others))
}

async fn stats(client: &DaemonClient) -> Result<GetStatsResponse, CliError> {
    Ok(client.admin().get_stats(GetStatsRequest {}).await?.into_inner())
}

impl StoredRecords<'_> {
    fn explain(
        &self,
        platforms: &[String],
        adjective: &str,
        criteria: &[String],
        advice: Option<&str>,
    ) -> String {
        let Self { plural: many, total, .. } = *self;
        if total == 0 {
            return format!("there are no {many} yet; run `satchel import PATH` to import an export");
        }
        if let Some(unknown) = self.unknown_platform(platforms) {
            return text::one_line(&unknown);
        }
        let criteria = if criteria.is_empty() { String::new() } else { format!(" {}", criteria.join(", ")) };
        let total =
            if total == 1 { "1 in total".to_owned() } else { format!("{} in total", text::number(total)) };
        let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        let from = match platforms {
            // If no requested platform has any records, list the platforms that have some.
            [_, ..] if platforms.iter().all(|name| self.count_from(name) == 0) => {
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
        text::one_line(&format!("no {adjective}{many}{criteria}; {total}{from}{advice}"))
    }

    fn count_from(&self, platform: &str) -> u64 {
        let found = self.by_platform.iter().find(|count| count.platform == platform);
        found.map_or(0, |count| unsigned(count.count))
    }

    /// Returns the message for a platform that is neither in the store nor supported.
    fn unknown_platform(&self, platforms: &[String]) -> Option<String> {
        let held = self.by_platform.iter().map(|count| count.platform.as_str());
        let known: Vec<&str> = held.chain(Plugins::built_in_platforms()).collect();
        let unknown = platforms.iter().find(|name| !known.contains(&name.as_str()))?;
        let hint = match nearest(unknown, &known) {
            Some(near) => format!("did you mean {near}?"),
            None => "`satchel plugins list` shows the supported platforms".to_owned(),
        };
        Some(format!("unknown platform {unknown:?}; {hint}"))
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

/// Describes the time ranges.
fn times(changed: (Option<&str>, Option<&str>), created: (Option<&str>, Option<&str>)) -> Vec<String> {
    let span = |lead: &str, span: (Option<&str>, Option<&str>)| match span {
        (None, None) => None,
        (Some(since), None) => Some(format!("{lead}since {since}")),
        (None, Some(until)) => Some(format!("{lead}until {until}")),
        (Some(since), Some(until)) => Some(format!("{lead}from {since} until {until}")),
    };
    span("", changed).into_iter().chain(span("created ", created)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Vec<PlatformCount> {
        [("chatgpt", 2_900), ("claude", 80)]
            .map(|(platform, count)| PlatformCount { platform: platform.to_owned(), count })
            .to_vec()
    }

    fn explained(platforms: &[&str], criteria: &[&str], total: u64) -> String {
        let by_platform = counts();
        let stock = StoredRecords { plural: "conversations", total, by_platform: &by_platform };
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        stock.explain(&owned(platforms), "", &owned(criteria), None)
    }

    #[test]
    fn an_empty_list_is_explained() {
        for (platforms, criteria, total, line) in [
            (&[][..], &["since 2025-03-01"][..], 2_980, "no conversations since 2025-03-01; 2,980 in total"),
            (&["chatpgt"], &[], 2_980, "unknown platform \"chatpgt\"; did you mean chatgpt?"),
            (
                &["zzzzzzzz"],
                &[],
                2_980,
                "unknown platform \"zzzzzzzz\"; `satchel plugins list` shows the supported platforms",
            ),
            (
                &["grok"],
                &["from grok"],
                2_980,
                "no conversations from grok; 2,980 in total; there are conversations from chatgpt, claude",
            ),
            (
                &["claude"],
                &["from claude", "tagged x"],
                2_980,
                "no conversations from claude, tagged x; 2,980 in total",
            ),
            (
                &["chatpgt"],
                &[],
                0,
                "there are no conversations yet; run `satchel import PATH` to import an export",
            ),
        ] {
            assert_eq!(explained(platforms, criteria, total), line);
        }
    }
}
