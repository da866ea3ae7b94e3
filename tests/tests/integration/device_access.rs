//! What devices see: for each method and each kind of caller, no byte of an answer tells of a record that the caller
//! does not see.

mod callers;
mod fuzz;
mod named_device;
mod probes;
mod raw;
mod records;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use satchel_proto::{
    METHODS,
    v1::{self, memory_service_client::MemoryServiceClient},
};
use satchel_tests::test_device::listening_daemon;
use tonic::Code;

use callers::{Caller, CallerKind};
use probes::probes;
use raw::answer_bytes;
use records::Records;

/// Every method with every caller. A method without a row in [`probes`] fails.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_reveals_a_hidden_record() -> Result<()> {
    let daemon = listening_daemon().await?;
    let mut records = Records::create(&daemon).await?;
    let callers = Caller::all(&daemon).await?;
    let agent = callers.iter().find(|caller| caller.kind == CallerKind::AgentA).context("an agent")?;
    records.add_quarantined(&agent.channel).await?;
    let mut revealed: BTreeSet<(&str, CallerKind)> = BTreeSet::new();
    for method in METHODS {
        for probe in probes(method.path, &records).with_context(|| format!("no probe of {}", method.path))? {
            for caller in &callers {
                let answer = answer_bytes(&caller.channel, method.path, &probe).await?;
                let seen = records.canaries_in(&answer.bytes, &probe.request);
                for canary in &seen {
                    ensure!(
                        Records::visible_to(canary, caller.kind),
                        "{} tells {:?} of {canary:?}: {}",
                        method.path,
                        caller.kind,
                        String::from_utf8_lossy(&answer.bytes)
                    );
                }
                if !seen.is_empty() {
                    revealed.insert((method.path, caller.kind));
                }
                check_code(caller.kind, method, answer.code)?;
            }
        }
    }
    // The test would pass without any answers; so callers must have seen what they may see.
    for (path, kind) in probes::REVEALING {
        ensure!(revealed.contains(&(*path, *kind)), "{path} showed nothing to {kind:?}");
    }
    Ok(())
}

/// Callers without credentials or permission get an error that says so, whatever they ask for.
fn check_code(kind: CallerKind, method: &satchel_proto::Method, code: Code) -> Result<()> {
    let scope = v1::Scope::try_from(method.required_scope)?;
    let expected = match kind {
        // Its certificate request is checked first, and is none.
        CallerKind::Nobody if method.path.ends_with("/CompletePairing") => Some(Code::InvalidArgument),
        CallerKind::Nobody => Some(Code::Unauthenticated),
        CallerKind::Revoked => Some(Code::PermissionDenied),
        kind if !callers::has_scope(kind, scope) => Some(Code::PermissionDenied),
        _ => None,
    };
    ensure!(expected.is_none_or(|expected| expected == code), "{}: {kind:?} got {code:?}", method.path);
    Ok(())
}

/// A hidden record and a missing one get the same answer, byte by byte but for the id.
#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_record_looks_like_a_missing_one() -> Result<()> {
    let daemon = listening_daemon().await?;
    let records = Records::create(&daemon).await?;
    let callers = Caller::all(&daemon).await?;
    let agent = callers.iter().find(|caller| caller.kind == CallerKind::AgentA).context("an agent")?;
    let mut client = MemoryServiceClient::new(agent.channel.clone());
    let hidden = records.id("private");
    let missing: String = hidden.chars().rev().collect();
    let mut answers = Vec::new();
    for id in [hidden, &missing] {
        let get = client
            .get_memory(v1::GetMemoryRequest { id: id.to_owned(), view: 0, as_of_revision: None })
            .await;
        let status = get.err().context("the memory is not shown")?;
        let relations = client
            .list_relations(v1::ListRelationsRequest { memory_id: id.to_owned(), ..Default::default() });
        let versions =
            v1::ListMemoryVersionsRequest { id: id.to_owned(), ..v1::ListMemoryVersionsRequest::default() };
        let relations = relations.await.err().context("no relations are shown")?;
        let versions = client.list_memory_versions(versions).await.err().context("no versions are shown")?;
        let neutral = |status: &tonic::Status| {
            let details = String::from_utf8_lossy(status.details()).replace(id, "ID");
            (status.code(), status.message().replace(id, "ID"), details)
        };
        answers.push([neutral(&status), neutral(&relations), neutral(&versions)]);
    }
    ensure!(answers.first() == answers.last(), "{answers:?}");
    Ok(())
}

/// A change of the policy applies at the next call, and access that the owner withdraws hides earlier versions.
#[tokio::test(flavor = "multi_thread")]
async fn access_is_judged_by_what_holds_now() -> Result<()> {
    let daemon = listening_daemon().await?;
    let records = Records::create(&daemon).await?;
    let callers = Caller::all(&daemon).await?;
    let agent = callers.iter().find(|caller| caller.kind == CallerKind::AgentA).context("an agent")?;
    let mut client = MemoryServiceClient::new(agent.channel.clone());
    let id = records.id("public").to_owned();
    let first_page = v1::ListMemoriesRequest { page_size: 1, ..v1::ListMemoriesRequest::default() };
    let page = client.list_memories(first_page.clone()).await?.into_inner();
    ensure!(!page.next_page_token.is_empty(), "there is another page");
    let public_at = page.header.as_ref().context("a header")?.revision;
    records::set_visibility(&daemon, &id, v1::Visibility::Private).await?;
    // The next page shows the revision of the first one, in which the memory was public.
    let next = v1::ListMemoriesRequest { page_token: page.next_page_token, ..first_page };
    let mut listed = page.memories;
    let mut request = next;
    loop {
        let page = client.list_memories(request.clone()).await?.into_inner();
        ensure!(page.memories.iter().all(|memory| memory.id != id), "a withdrawn memory is listed");
        listed.extend(page.memories);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    ensure!(listed.len() > 1, "the page tokens work");
    let then = v1::GetMemoryRequest { id: id.clone(), view: 0, as_of_revision: Some(public_at) };
    let then = client.get_memory(then).await;
    ensure!(then.is_err_and(|status| status.code() == Code::NotFound), "shown as of an earlier revision");
    let then = v1::ListMemoriesRequest { as_of_revision: Some(public_at), ..Default::default() };
    let then = client.list_memories(then).await?.into_inner().memories;
    ensure!(
        !then.is_empty() && then.iter().all(|memory| memory.id != id),
        "listed as of an earlier revision"
    );
    let versions =
        client.list_memory_versions(v1::ListMemoryVersionsRequest { id, ..Default::default() }).await;
    ensure!(versions.is_err_and(|status| status.code() == Code::NotFound));
    Ok(())
}
