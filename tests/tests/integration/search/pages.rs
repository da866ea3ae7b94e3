//! Pages and groups of hits.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1;
use satchel_tests::test_daemon::TestDaemon;
use serde_json::Value;
use tonic_types::StatusExt as _;

use crate::search::{chat, import, query, search};

/// Conversations with two messages about bees each; some have the word more often.
fn chats(range: std::ops::Range<usize>) -> Vec<Value> {
    range
        .map(|number| {
            let (question, answer) = (format!("q{number}"), format!("a{number}"));
            let text = "bees ".repeat(number % 4 + 1);
            let messages = [
                (question.as_str(), "", "user", text.as_str()),
                (answer.as_str(), question.as_str(), "assistant", "bees, of course"),
            ];
            chat(&format!("chat-{number}"), &format!("Chat {number}"), &answer, &messages)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_the_index_of_the_first_page() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &chats(0..20)).await?;
    let whole = search(&daemon.channel, v1::SearchRequest { page_size: 1_000, ..query("bees") }).await?;
    ensure!(whole.total == 40 && whole.hits.len() == 40 && whole.next_page_token.is_empty(), "{whole:?}");
    let mut request = v1::SearchRequest { page_size: 7, ..query("bees") };
    let mut ids = Vec::new();
    loop {
        let page = search(&daemon.channel, request.clone()).await?;
        ensure!(page.total == 40 && page.header == whole.header, "{page:?}");
        ids.extend(page.hits.into_iter().map(|hit| hit.id));
        if page.next_page_token.is_empty() {
            break;
        }
        if ids.len() == 7 {
            // What arrives between two pages is in neither of them.
            import(&daemon, "more", &chats(20..40)).await?;
            let now = search(&daemon.channel, query("bees")).await?;
            ensure!(now.total == 80, "{now:?}");
        }
        request.page_token = page.next_page_token;
    }
    let expected: Vec<String> = whole.hits.into_iter().map(|hit| hit.id).collect();
    ensure!(ids == expected, "{ids:?} {expected:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hits_of_a_conversation_are_grouped() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &chats(0..9)).await?;
    let mut request = v1::SearchRequest { page_size: 4, group_by_conversation: true, ..query("bees") };
    let mut conversations = Vec::new();
    loop {
        let page = search(&daemon.channel, request.clone()).await?;
        ensure!(page.total == 18, "{page:?}");
        for hit in page.hits {
            ensure!(hit.more_in_conversation == 1, "{hit:?}");
            conversations.push(hit.conversation_id);
        }
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    ensure!(conversations.len() == 9, "{conversations:?}");
    conversations.sort();
    conversations.dedup();
    ensure!(conversations.len() == 9, "a conversation is on two pages");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_is_for_one_query() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &chats(0..5)).await?;
    let first = search(&daemon.channel, v1::SearchRequest { page_size: 2, ..query("bees") }).await?;
    let other = v1::SearchRequest { page_token: first.next_page_token, ..query("wasps") };
    let status = search(&daemon.channel, other).await.err().context("an error")?;
    let info = status.get_details_error_info().context("a reason")?;
    ensure!(info.reason == "PAGE_TOKEN_INVALID", "{status:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_explanation_has_each_word_and_the_weights() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &chats(0..3)).await?;
    let found = search(&daemon.channel, v1::SearchRequest { explain: true, ..query("bees course") }).await?;
    let hit = found.hits.first().context("a hit")?;
    for part in ["bees", "course", "confidence", "time"] {
        ensure!(hit.explanation.contains(part), "{hit:?}");
    }
    Ok(())
}
