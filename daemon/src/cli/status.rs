//! `status`: how much is stored, and whether there are problems.

use satchel_proto::{
    signed::unsigned,
    v1::{GetStatsRequest, GetStatsResponse, GetStatusRequest, GetStatusResponse, Problem},
};

use super::{
    Context,
    error::CliError,
    exit::Exit,
    facts::Facts,
    json,
    link::Link,
    look::{Look, Paint},
    sources, text,
    time::Calendar,
    words::Counted,
};

/// Runs the command.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn run(context: &mut Context, link: &Link) -> Result<Exit, CliError> {
    let mut admin = link.admin();
    let status = admin.get_status(GetStatusRequest {}).await?.into_inner();
    let stored = admin.get_stats(GetStatsRequest {}).await?.into_inner();
    if context.out.json {
        context.out.json(&json::admin::Status::new(&status, &stored, link.is_daemon()))?;
    } else {
        let text = render(&status, &stored, link.is_daemon(), &context.calendar, context.out.look);
        context.out.print(&text)?;
        if !link.is_daemon() {
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
    look: Look,
) -> String {
    let mut facts = Facts::new();
    facts.add("satchel", &status.version);
    facts.add("data", &status.data_dir);
    let since = calendar.minute(status.started_at.as_ref());
    let running = format!("process {}, since {since}", status.pid);
    facts.add("daemon", if daemon { &running } else { "none runs" });
    if status.running_operations > 0 {
        let running = u64::from(unsigned(status.running_operations));
        facts.add("at work", &text::count(running, "operation", "operations"));
    }
    facts.add(
        "memories",
        &total(
            unsigned(stored.memories),
            &[listed(&stored.memories_by_status), listed(&stored.memories_by_platform)],
        ),
    );
    facts.add("types", &listed(&stored.memories_by_type));
    facts.add(
        "conversations",
        &total(unsigned(stored.conversations), &[listed(&stored.conversations_by_platform)]),
    );
    facts.add("messages", &text::number(unsigned(stored.messages)));
    facts.add("relations", &text::number(unsigned(stored.relations)));
    if let Some(header) = &status.header {
        facts.add("revision", &text::number(unsigned(header.revision)));
    }
    let sizes = [
        ("journal", status.journal_bytes),
        ("database", status.database_bytes),
        ("files", status.blob_bytes),
    ];
    let sizes: Vec<String> =
        sizes.iter().map(|(name, size)| format!("{name} {}", text::bytes(unsigned(*size)))).collect();
    facts.add("on disk", &sizes.join(", "));
    let mut out = facts.render(look);
    out.push('\n');
    if !status.sources.is_empty() {
        status.sources.iter().for_each(|source| out.push_str(&sources::render(source, look)));
        out.push('\n');
    }
    if status.problems.is_empty() {
        text::append(&mut out, format_args!("{} all is well\n", look.paint(Paint::Good, "✓")));
    }
    for problem in &status.problems {
        out.push_str(&render_problem(problem, look));
    }
    out
}

/// Returns the lines for one problem, with what to do about it.
pub(super) fn render_problem(problem: &Problem, look: Look) -> String {
    let mark = look.paint(Paint::Bad, "✗");
    let mut out = format!("{mark} {}\n", text::one_line(&problem.message));
    if !problem.fix.is_empty() {
        text::append(&mut out, format_args!("  try: {}\n", text::one_line(&problem.fix)));
    }
    out
}

fn total(all: u64, groups: &[String]) -> String {
    let groups: Vec<&str> = groups.iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
    if groups.is_empty() {
        text::number(all)
    } else {
        format!("{} ({})", text::number(all), groups.join("; "))
    }
}

fn listed(counts: &[impl Counted]) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(Counted::counted)
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
    fn the_state_is_shown_with_its_problems() {
        let of_status = |status: MemoryStatus, count| MemoryStatusCount { status: status.into(), count };
        let status = GetStatusResponse {
            version: "0.1.0".to_owned(),
            header: Some(StoreHeader { store_id: "s".to_owned(), revision: 57 }),
            journal_bytes: 1_200_000,
            data_dir: "/home/ana/.local/share/satchel".to_owned(),
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
daemon         none runs
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
        assert_eq!(render(&status, &stored, false, &time::fixed(), Look::plain(80)), expected);
    }
}
