//! `status`: how much is stored, and whether there are problems.

use satchel_proto::{
    integers::unsigned,
    v1::{
        EmbeddingStatus, GetStatsRequest, GetStatsResponse, GetStatusRequest, GetStatusResponse, Problem,
        SearchIndexStatus,
    },
};

use super::{
    Context,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json,
    labels::LabelledCount,
    properties::Properties,
    sources,
    style::{Paint, TerminalStyle},
    text,
    time::Calendar,
};

/// Runs the command.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn run(context: &mut Context, client: &DaemonClient) -> Result<Exit, CliError> {
    let mut admin = client.admin();
    let status = admin.get_status(GetStatusRequest {}).await?.into_inner();
    let stored = admin.get_stats(GetStatsRequest {}).await?.into_inner();
    if context.out.json {
        context.out.json(&json::admin::Status::new(&status, &stored, client.is_daemon()))?;
    } else {
        let text = render(&status, &stored, client.is_daemon(), &context.calendar, context.out.style);
        context.out.print(&text)?;
        if !client.is_daemon() {
            context.out.note("`satchel serve` starts the daemon");
        }
    }
    Ok(Exit::Done)
}

fn render(
    status: &GetStatusResponse,
    stored: &GetStatsResponse,
    daemon: bool,
    calendar: &Calendar,
    style: TerminalStyle,
) -> String {
    let mut properties = Properties::new();
    properties.add("satchel", &status.version);
    properties.add("data", &status.data_dir);
    let since = calendar.minute(status.started_at.as_ref());
    let running = format!("process {}, since {since}", status.pid);
    properties.add("daemon", if daemon { &running } else { "not running" });
    if !status.device_addresses.is_empty() || status.devices > 0 {
        properties.add("devices", &devices(status));
    }
    if status.peers > 0 {
        properties.add("peers", &peers(status));
    }
    if status.running_operations > 0 {
        let running = u64::from(unsigned(status.running_operations));
        properties.add("operations", &format!("{} running", text::number(running)));
    }
    properties.add(
        "memories",
        &with_groups(
            unsigned(stored.memories),
            &[join_counts(&stored.memories_by_status), join_counts(&stored.memories_by_platform)],
        ),
    );
    let waiting = unsigned(status.quarantined_memories);
    if waiting > 0 {
        let count = text::count(waiting, "memory", "memories");
        properties.add("to review", &format!("{count} written by agents; use `satchel memories review`"));
    }
    properties.add("types", &join_counts(&stored.memories_by_type));
    properties.add(
        "conversations",
        &with_groups(unsigned(stored.conversations), &[join_counts(&stored.conversations_by_platform)]),
    );
    properties.add("messages", &text::number(unsigned(stored.messages)));
    properties.add("relations", &text::number(unsigned(stored.relations)));
    if let Some(header) = &status.header {
        properties.add("revision", &text::number(unsigned(header.revision)));
    }
    if let Some(index) = status.search_index.as_ref().filter(|index| index.running) {
        let tip = status.header.as_ref().map_or(0, |header| header.revision);
        properties.add("search", &search_index(index, tip));
    }
    if let Some(embeddings) = &status.embeddings {
        properties.add("embeddings", &embedding_endpoint(embeddings));
    }
    let sizes = [
        ("journal", status.journal_bytes),
        ("database", status.database_bytes),
        ("files", status.blob_bytes),
    ];
    let sizes: Vec<String> =
        sizes.iter().map(|(name, size)| format!("{name} {}", text::bytes(unsigned(*size)))).collect();
    properties.add("on disk", &sizes.join(", "));
    let mut out = properties.render(style);
    out.push('\n');
    if !status.sources.is_empty() {
        status.sources.iter().for_each(|source| out.push_str(&sources::render(source, style)));
        out.push('\n');
    }
    if status.problems.is_empty() {
        text::append(&mut out, format_args!("{} no problems\n", style.paint(Paint::Good, "✓")));
    }
    for problem in &status.problems {
        out.push_str(&render_problem(problem, style));
    }
    out
}

/// Returns how many devices are paired, and where they reach the daemon.
fn devices(status: &GetStatusResponse) -> String {
    let paired = text::count(u64::from(unsigned(status.devices)), "device or token", "devices and tokens");
    match status.device_addresses.first() {
        Some(address) => format!("{paired}; listening at {}", text::one_line(address)),
        None => format!("{paired}; not listening"),
    }
}

/// Returns how many peers there are, and how many of them are in step.
fn peers(status: &GetStatusResponse) -> String {
    let (all, in_step) = (u64::from(unsigned(status.peers)), u64::from(unsigned(status.peers_in_step)));
    match all - in_step.min(all) {
        0 => format!("{}, in step", text::number(all)),
        _ => format!(
            "{}, of which {} in step; see `satchel peers list`",
            text::number(all),
            text::number(in_step)
        ),
    }
}

/// Returns how far the search index is, with the revision of the store.
fn search_index(index: &SearchIndexStatus, tip: i64) -> String {
    let documents = text::count(unsigned(index.documents), "text", "texts");
    let place = match unsigned(index.bytes) {
        0 => "in memory".to_owned(),
        bytes => text::bytes(bytes),
    };
    let state = match unsigned(tip).saturating_sub(unsigned(index.revision)) {
        _ if !index.error.is_empty() => format!("not updated: {}", text::one_line(&index.error)),
        0 => "up to date".to_owned(),
        behind => format!("{} behind", text::count(behind, "revision", "revisions")),
    };
    format!("{documents}, {place}, {state}")
}

/// Returns how far the vectors are, and what is sent for them.
fn embedding_endpoint(status: &EmbeddingStatus) -> String {
    let made = text::count(unsigned(status.embedded_count), "vector made", "vectors made");
    let state = if !status.running {
        "not running".to_owned()
    } else if !status.last_error.is_empty() {
        format!("{made}; {}", text::one_line(&status.last_error))
    } else if status.idle {
        format!("{made}, nothing left to do")
    } else {
        format!("{made}, at work")
    };
    let failed = match unsigned(status.failed_count) {
        0 => String::new(),
        failed => format!(", {} cannot be embedded", text::count(failed, "text", "texts")),
    };
    format!("{}: {state}{failed}; {}", text::one_line(&status.model), text::one_line(&status.disclosure))
}

/// Returns the lines for one problem, with what to do about it.
pub(super) fn render_problem(problem: &Problem, style: TerminalStyle) -> String {
    let mark = style.paint(Paint::Bad, "✗");
    let mut out = format!("{mark} {}\n", text::one_line(&problem.message));
    if !problem.fix.is_empty() {
        text::append(&mut out, format_args!("  try: {}\n", text::one_line(&problem.fix)));
    }
    out
}

fn with_groups(all: u64, groups: &[String]) -> String {
    let groups: Vec<&str> = groups.iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
    if groups.is_empty() {
        text::number(all)
    } else {
        format!("{} ({})", text::number(all), groups.join("; "))
    }
}

fn join_counts(counts: &[impl LabelledCount]) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(LabelledCount::label_and_count)
        .map(|(word, count)| format!("{} {}", text::number(count), text::one_line(&word)))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{
        MemoryStatus, MemoryStatusCount, MemoryType, MemoryTypeCount, PlatformCount, StoreHeader,
    };

    use super::*;
    use crate::cli::time;

    #[test]
    fn the_status_is_shown_with_its_problems() {
        let of_status = |status: MemoryStatus, count| MemoryStatusCount { status: status.into(), count };
        let status = GetStatusResponse {
            version: "0.1.0".to_owned(),
            header: Some(StoreHeader { store_id: "s".to_owned(), revision: 57 }),
            journal_bytes: 1_200_000,
            data_dir: "/home/ana/.local/share/satchel".to_owned(),
            device_addresses: vec!["192.168.1.7:7443".to_owned(), "127.0.0.1:7443".to_owned()],
            devices: 2,
            peers: 3,
            peers_in_step: 2,
            problems: vec![Problem {
                reason: "JOURNAL_DAMAGED".to_owned(),
                message: "the journal is damaged".to_owned(),
                fix: "restore a backup".to_owned(),
            }],
            ..GetStatusResponse::default()
        };
        let stored = GetStatsResponse {
            memories: 12,
            memories_by_status: vec![
                of_status(MemoryStatus::Active, 10),
                of_status(MemoryStatus::Superseded, 2),
            ],
            memories_by_platform: vec![PlatformCount { platform: "chatgpt".to_owned(), count: 12 }],
            memories_by_type: vec![MemoryTypeCount { r#type: MemoryType::Fact.into(), count: 12 }],
            conversations: 1_204,
            ..GetStatsResponse::default()
        };
        let expected = "\
satchel        0.1.0
data           /home/ana/.local/share/satchel
daemon         not running
devices        2 devices and tokens; listening at 192.168.1.7:7443
peers          3, of which 2 in step; see `satchel peers list`
memories       12 (10 active, 2 superseded; 12 chatgpt)
types          12 fact
conversations  1,204
messages       0
relations      0
revision       57
on disk        journal 1.2 MB, database 0 B, files 0 B

✗ the journal is damaged
  try: restore a backup
";
        assert_eq!(render(&status, &stored, false, &time::fixed(), TerminalStyle::plain(80)), expected);
    }
}
