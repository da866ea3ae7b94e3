//! Appending one message to conversations of different lengths.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use satchel_proto::v1::{
    self, AppendMessagesRequest, NewMessage, RecordConversationRequest,
    conversation_service_client::ConversationServiceClient,
};
use satchel_server::connect::connect;
use tonic::transport::Channel;

use super::{
    call_times::{CallTimes, median},
    client_runtime,
    filled_store::FilledStore,
    show,
};
use crate::{RUNS, print_line};

/// Messages of the conversations before the measured calls.
const LENGTHS: [usize; 3] = [10, 1_000, 20_000];
/// Messages of one call while a conversation is filled: as many as the daemon allows.
const MESSAGES_PER_CALL: usize = 1_000;
/// Measured calls of one run, each with one message.
const CALLS: usize = 20;

type Conversations = ConversationServiceClient<Channel>;

pub(super) fn measure(store: &FilledStore) -> Result<()> {
    client_runtime()?.block_on(Box::pin(measure_lengths(store)))
}

async fn measure_lengths(store: &FilledStore) -> Result<()> {
    let mut client = ConversationServiceClient::new(connect(&store.data).await?);
    let mut conversations = Vec::new();
    for length in LENGTHS {
        conversations.push((record(&mut client, length).await, length, Vec::new(), Vec::new()));
    }
    for _ in 0..RUNS {
        // Each run measures all lengths, so that they share what else the machine does.
        for (id, _, times, bytes) in &mut conversations {
            let Ok(id) = id else { continue };
            let before = journal_bytes(&store.data)?;
            times.push(appends(&mut client, id).await?.p50());
            bytes.push((journal_bytes(&store.data)? - before) / CALLS as u64);
        }
    }
    for (id, length, times, mut bytes) in conversations {
        if let Err(error) = id {
            print_line(&format!("no conversation of {length} messages: {error:#}"));
            continue;
        }
        bytes.sort_unstable();
        print_line(&format!(
            "appending a message to a conversation of {length}: {}, {} bytes of journal",
            show(median(times)),
            bytes[bytes.len() / 2]
        ));
    }
    Ok(())
}

/// Records a conversation of this length; returns its id.
async fn record(client: &mut Conversations, length: usize) -> Result<String> {
    let request = RecordConversationRequest {
        agent_id: "agent".to_owned(),
        user_id: "user".to_owned(),
        messages: messages(length.min(MESSAGES_PER_CALL)),
        ..Default::default()
    };
    let id = client.record_conversation(request).await?.into_inner().conversation_id;
    let mut recorded = MESSAGES_PER_CALL;
    while recorded < length {
        let more = MESSAGES_PER_CALL.min(length - recorded);
        append(client, &id, more).await.with_context(|| format!("after {recorded} messages"))?;
        recorded += more;
    }
    Ok(id)
}

async fn append(client: &mut Conversations, id: &str, count: usize) -> Result<()> {
    let request = AppendMessagesRequest {
        conversation_id: id.to_owned(),
        messages: messages(count),
        ..Default::default()
    };
    client.append_messages(request).await?;
    Ok(())
}

async fn appends(client: &mut Conversations, id: &str) -> Result<CallTimes> {
    CallTimes::of(CALLS, async |_| append(client, id, 1).await).await
}

fn messages(count: usize) -> Vec<NewMessage> {
    let text = "The beans need water every second day, and more of it in summer than in spring.";
    let one = NewMessage { role: v1::Role::User.into(), text: text.to_owned(), ..Default::default() };
    vec![one; count]
}

/// Returns the size of the journal.
fn journal_bytes(data: &Path) -> Result<u64> {
    let sizes = fs::read_dir(data.join("journal"))?.map(|file| Ok(file?.metadata()?.len()));
    sizes.sum()
}
