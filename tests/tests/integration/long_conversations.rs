//! A conversation of 100,000 messages: its layout is computed once for all pages, and every way to read it returns each
//! message once. The tests do not limit the time that this takes, but the time must not grow with the square of the
//! length.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::{
    integers::{signed, unsigned},
    v1::{self, MessageSelection, conversation_service_client::ConversationServiceClient},
};
use satchel_server::grpc::listing_cache::listings_prepared;
use satchel_tests::{operation, test_daemon::TestDaemon};

const MESSAGES: usize = 100_000;
/// After this many messages the last one was requested again, which makes a fork with a branch of one message.
const FORK_EVERY: usize = 1_000;
const PAGE_SIZE: i32 = 1_000;

/// Writes a ChatGPT export of one conversation. Each message answers the previous one; of two answers to a question,
/// the first was abandoned.
fn write_long_export(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut out = BufWriter::new(File::create(folder.join("conversations.json"))?);
    write!(
        out,
        r#"[{{"title": "Long", "create_time": 1746180000, "conversation_id": "long", "current_node": "{}", "mapping": {{"#,
        MESSAGES - 1
    )?;
    let mut above = None;
    for number in 0..MESSAGES {
        let aside = number % FORK_EVERY == FORK_EVERY - 2;
        let parent = above.map_or_else(|| "null".to_owned(), |above: usize| format!("\"{above}\""));
        let mut children = String::new();
        if number + 1 < MESSAGES && !aside {
            write!(children, "\"{}\"", number + 1)?;
            if (number + 1) % FORK_EVERY == FORK_EVERY - 2 {
                write!(children, ", \"{}\"", number + 2)?;
            }
        }
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        write!(
            out,
            r#"{}"{number}": {{"id": "{number}", "parent": {parent}, "children": [{children}], "message": {{"id": "{number}",
            "author": {{"role": "{role}"}}, "create_time": {}, "content": {{"content_type": "text", "parts": ["message {number}."]}},
            "metadata": {{}}, "recipient": "all"}}}}"#,
            if number == 0 { "" } else { "," },
            1_746_180_000 + number
        )?;
        // The abandoned message has no children: its sibling comes next.
        if !aside {
            above = Some(number);
        }
    }
    write!(out, "}}}}]")?;
    Ok(out.flush()?)
}

async fn list_messages(
    daemon: &TestDaemon,
    id: &str,
    selection: MessageSelection,
) -> Result<Vec<v1::Message>> {
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListMessagesRequest {
            conversation_id: id.to_owned(),
            page_size: PAGE_SIZE,
            page_token,
            selection: selection.into(),
            ..v1::ListMessagesRequest::default()
        };
        let answer = client.list_messages(request).await?.into_inner();
        all.extend(answer.messages);
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

fn text(message: &v1::Message) -> &str {
    message.content.as_ref().and_then(|content| content.text.as_deref()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_messages_are_prepared_once_for_all_pages() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let folder = daemon.folder.path().join("export");
    write_long_export(&folder)?;
    let job = daemon.import(&folder).await?;
    ensure!(job.imports().len() == 1, "{job:?}");
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let list = client.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    let id = list.conversations.first().context("the conversation")?.id.clone();
    let shown = client
        .get_conversation(v1::GetConversationRequest { id: id.clone(), as_of_revision: None })
        .await?
        .into_inner();
    let shown = shown.conversation.context("the conversation")?;
    let forks = (MESSAGES / FORK_EVERY) as u64;
    ensure!(shown.message_count >= signed(MESSAGES as u64), "{}", shown.message_count);
    ensure!(
        shown.active_message_count == Some(shown.message_count - signed(forks)),
        "{:?}",
        shown.active_message_count
    );

    for (selection, wanted) in [
        (MessageSelection::Tree, shown.message_count),
        (MessageSelection::ActiveBranch, shown.message_count - signed(forks)),
    ] {
        let before = listings_prepared();
        let messages = list_messages(&daemon, &id, selection).await?;
        ensure!(messages.len() as u64 == unsigned(wanted), "{selection:?}: {}", messages.len());
        let ids: BTreeSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        ensure!(ids.len() == messages.len(), "a message was returned twice");
        ensure!(
            listings_prepared() - before == 1,
            "{selection:?} was prepared {} times",
            listings_prepared() - before
        );
    }

    let output = daemon.folder.path().join("notes");
    let request = v1::CreateExportRequest {
        output: output.to_str().context("UTF-8")?.to_owned(),
        format: v1::ExportFormat::Markdown.into(),
        ..v1::CreateExportRequest::default()
    };
    operation::export(&daemon.channel, request).await?;
    let file = fs::read_dir(output.join("conversations"))?.next().context("a file")??.path();
    let written = fs::read_to_string(file)?;
    for number in (0..MESSAGES).step_by(997).chain([FORK_EVERY - 2, MESSAGES - 1]) {
        ensure!(written.matches(&format!("> message {number}.\n")).count() == 1, "{number}");
    }
    let messages = list_messages(&daemon, &id, MessageSelection::ActiveBranch).await?;
    ensure!(text(messages.last().context("the last")?) == format!("message {}.", MESSAGES - 1));
    daemon.stop().await?;
    Ok(())
}
