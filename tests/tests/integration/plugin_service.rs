//! `PluginService` from a client's side: installation by upload, consent, receipts, and what is refused.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{
    self, InstallPluginHeader, InstallPluginRequest, PluginInstallation, PluginState,
    admin_service_client::AdminServiceClient, import_service_client::ImportServiceClient,
    install_plugin_request::Part, operation::Result as Reached, plugin_service_client::PluginServiceClient,
};
use satchel_registry::package::{AuthorKey, Package};
use satchel_tests::{
    operation,
    packages::{signed, signing_key, unsigned},
    test_daemon::TestDaemon,
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

const NAME: &str = "journal";

fn client(daemon: &TestDaemon) -> PluginServiceClient<Channel> {
    PluginServiceClient::new(daemon.channel.clone())
}

fn header(package: &Package) -> InstallPluginHeader {
    InstallPluginHeader { sha256: package.sha256_hex(), ..InstallPluginHeader::default() }
}

fn agreed(package: &Package) -> InstallPluginHeader {
    InstallPluginHeader { trust_key: true, ..header(package) }
}

fn messages(header: InstallPluginHeader, bytes: &[u8]) -> Vec<InstallPluginRequest> {
    let chunks = bytes.chunks(1 << 20).map(|chunk| Part::Chunk(chunk.to_vec()));
    let parts = std::iter::once(Part::Header(header)).chain(chunks);
    parts.map(|part| InstallPluginRequest { part: Some(part) }).collect()
}

/// Sends a package and follows the operation to its result.
async fn install(
    daemon: &TestDaemon,
    header: InstallPluginHeader,
    package: &Package,
) -> Result<PluginInstallation, Status> {
    let messages = messages(header, package.bytes());
    let answer = client(daemon).install_plugin(tokio_stream::iter(messages)).await?.into_inner();
    let id = answer.operation.map(|operation| operation.id).unwrap_or_default();
    match operation::wait(&daemon.channel, &id).await?.into_result()? {
        Reached::PluginInstallation(installation) => Ok(installation),
        _ => Err(Status::internal("the result of another kind of operation")),
    }
}

/// Returns the code, the reason, and the consent that is missing.
fn refused<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Result<(Code, String, String)> {
    let status = outcome.err().context("the call is refused")?;
    let details = status.get_error_details();
    let info = details.error_info().context("an ErrorInfo")?;
    let consent = info.metadata.get("consent").cloned().unwrap_or_default();
    Ok((status.code(), info.reason.clone(), consent))
}

fn needs(consent: &str) -> (Code, String, String) {
    (Code::FailedPrecondition, "PLUGIN_CONSENT_NEEDED".to_owned(), consent.to_owned())
}

async fn rows(daemon: &TestDaemon) -> Result<Vec<v1::Plugin>> {
    let request = v1::ListPluginsRequest { page_size: 1_000, page_token: String::new() };
    let plugins = client(daemon).list_plugins(request).await?.into_inner().plugins;
    Ok(plugins.into_iter().filter(|plugin| !plugin.built_in).collect())
}

fn export(daemon: &TestDaemon) -> Result<PathBuf> {
    let folder = daemon.folder.path().join("export");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("a.json"), "[1]")?;
    Ok(folder)
}

async fn import(daemon: &TestDaemon, plugin: &str) -> Result<v1::Import> {
    let path = export(daemon)?.to_str().context("UTF-8")?.to_owned();
    let request =
        v1::CreateImportRequest { path, plugin: plugin.to_owned(), ..v1::CreateImportRequest::default() };
    let started = ImportServiceClient::new(daemon.channel.clone()).create_import(request).await?.into_inner();
    let id = started.operation.context("an operation")?.id;
    let ended = operation::wait(&daemon.channel, &id).await?;
    ended.imports().first().cloned().context("an import")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_installed_with_consent_used_upgraded_and_removed() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let first = signed("good", NAME, "1.2.3", 1)?;
    let key = AuthorKey::of(&signing_key(1)).to_string();

    let validation = InstallPluginHeader { validate_only: true, ..header(&first) };
    let review = install(&daemon, validation, &first).await?;
    assert_eq!((review.signer.as_str(), review.key_trusted, review.installed), (key.as_str(), false, false));
    assert_eq!(refused(install(&daemon, header(&first), &first).await)?, needs("trust_key"));
    ensure!(rows(&daemon).await?.is_empty(), "nothing is installed without consent");

    let done = install(&daemon, agreed(&first), &first).await?;
    assert!(done.installed && done.key_trusted && !done.already_installed);
    let row = rows(&daemon).await?.pop().context("a plugin")?;
    assert_eq!((row.state(), row.signer.as_str(), row.unsigned), (PluginState::Enabled, key.as_str(), false));
    assert_eq!(row.manifest.context("a manifest")?.memory_bytes, 16 << 20);

    let imported = import(&daemon, NAME).await?;
    assert_eq!((imported.plugin.as_str(), imported.plugin_signer.as_str()), ("journal/1.2.3", key.as_str()));
    assert!(!imported.plugin_unsigned && imported.plugin_sha256 == first.sha256_hex());

    let second = signed("good", NAME, "1.2.4", 1)?;
    let upgraded = install(&daemon, header(&second), &second).await?;
    assert_eq!((upgraded.replaces_version.as_str(), upgraded.reads_differently), ("1.2.3", 1));
    assert_eq!(upgraded.earlier_imports.first().map(|import| &import.id), Some(&imported.id));
    let outdated = v1::ListImportsRequest { outdated_by_plugin: NAME.to_owned(), ..Default::default() };
    let mut imports = ImportServiceClient::new(daemon.channel.clone());
    assert_eq!(imports.list_imports(outdated.clone()).await?.into_inner().imports.len(), 1);
    assert_eq!(import(&daemon, NAME).await?.plugin, "journal/1.2.4");
    assert!(imports.list_imports(outdated).await?.into_inner().imports.is_empty());
    assert_eq!(refused(install(&daemon, header(&first), &first).await)?, needs("allow_downgrade"));

    let request = v1::RemovePluginRequest { name: NAME.to_owned(), version: String::new() };
    let removed = client(&daemon).remove_plugin(request.clone()).await?.into_inner();
    assert_eq!((removed.plugins.len(), removed.conversations), (2, 1));
    let missing = refused(client(&daemon).remove_plugin(request).await)?;
    assert_eq!((missing.0, missing.1.as_str()), (Code::NotFound, "PLUGIN_NOT_FOUND"));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_person_must_agree_to_is_named() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let nobody = unsigned("good", NAME, "1.2.3")?;
    assert_eq!(refused(install(&daemon, agreed(&nobody), &nobody).await)?, needs("allow_unsigned"));
    let consent = InstallPluginHeader { allow_unsigned: true, ..header(&nobody) };
    install(&daemon, consent, &nobody).await?;
    assert!(import(&daemon, NAME).await?.plugin_unsigned);
    let chatgpt = signed("good", "chatgpt", "9.9.9", 1)?;
    assert_eq!(refused(install(&daemon, agreed(&chatgpt), &chatgpt).await)?, needs("replace_built_in"));
    let built_in = v1::SetPluginEnabledRequest { name: "claude".to_owned(), ..Default::default() };
    let state = refused(client(&daemon).set_plugin_enabled(built_in).await)?;
    assert_eq!((state.0, state.1.as_str()), (Code::FailedPrecondition, "PLUGIN_STATE"));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authors_key_is_refused_and_untrusting_a_key_disables() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let first = signed("good", NAME, "1.2.3", 1)?;
    install(&daemon, agreed(&first), &first).await?;
    let forged = signed("good", NAME, "1.2.4", 2)?;
    let everything = InstallPluginHeader {
        allow_unsigned: true,
        replace_built_in: true,
        allow_downgrade: true,
        ..agreed(&forged)
    };
    assert_eq!(refused(install(&daemon, everything, &forged).await)?.1, "PLUGIN_REFUSED");

    let key = AuthorKey::of(&signing_key(1)).to_string();
    let untrust = v1::UntrustPluginAuthorRequest { public_key: key.clone() };
    let untrusted = client(&daemon).untrust_plugin_author(untrust.clone()).await?.into_inner();
    assert_eq!((untrusted.removed, untrusted.disabled_plugins), (true, vec![NAME.to_owned()]));
    assert!(!client(&daemon).untrust_plugin_author(untrust).await?.into_inner().removed);
    let enable = v1::SetPluginEnabledRequest { name: NAME.to_owned(), enabled: true, ..Default::default() };
    assert_eq!(refused(client(&daemon).set_plugin_enabled(enable).await)?.1, "PLUGIN_STATE");
    let trust = v1::TrustPluginAuthorRequest { public_key: key.clone() };
    assert!(client(&daemon).trust_plugin_author(trust).await?.into_inner().added);
    assert_eq!(rows(&daemon).await?.pop().context("a plugin")?.state(), PluginState::Enabled);
    let authors = client(&daemon).list_plugin_authors(v1::ListPluginAuthorsRequest::default()).await?;
    let authors = authors.into_inner().authors;
    assert!(authors.iter().any(|author| author.public_key == key && author.trusted));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_no_package_changes_nothing() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let package = signed("good", NAME, "1.2.3", 1)?;
    let send = async |messages: Vec<InstallPluginRequest>| {
        client(&daemon).install_plugin(tokio_stream::iter(messages)).await
    };
    let mut without_header = messages(agreed(&package), package.bytes());
    without_header.remove(0);
    let cut = &package.bytes()[..package.bytes().len() - 1];
    for sent in [without_header, Vec::new(), messages(agreed(&package), cut)] {
        let (code, reason, _) = refused(send(sent).await)?;
        assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "FIELD_INVALID"));
    }
    let large = vec![0; 36 << 20];
    let sha256 = Sha256Digest::of(&large).to_hex();
    let header = InstallPluginHeader { sha256, ..InstallPluginHeader::default() };
    assert_eq!(refused(send(messages(header, &large)).await)?.0, Code::ResourceExhausted);
    let mut flipped = package.bytes().to_vec();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let sha256 = Sha256Digest::of(&flipped).to_hex();
    let header = InstallPluginHeader { sha256, ..agreed(&package) };
    let started = send(messages(header, &flipped)).await?.into_inner().operation.context("an operation")?;
    let ended = operation::wait(&daemon.channel, &started.id).await?.into_result();
    assert_eq!(refused(ended)?.1, "PLUGIN_REFUSED");
    ensure!(rows(&daemon).await?.is_empty());
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_fails_again_and_again_is_disabled_and_reported() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let broken = signed("panic", NAME, "1.2.3", 1)?;
    install(&daemon, agreed(&broken), &broken).await?;
    for _ in 0..3 {
        assert_eq!(import(&daemon, NAME).await?.status(), v1::ImportStatus::Failed);
    }
    let mut admin = AdminServiceClient::new(daemon.channel.clone());
    let status = admin.get_status(v1::GetStatusRequest {}).await?.into_inner();
    let disabled = status.disabled_plugins.first().context("a disabled plugin")?;
    assert_eq!((disabled.state(), disabled.failures), (PluginState::DisabledAfterFailures, 3));
    let problem = status.problems.iter().find(|problem| problem.reason == "PLUGIN_DISABLED");
    ensure!(
        problem.is_some_and(|problem| problem.fix.contains("satchel plugins enable journal")),
        "{status:?}"
    );
    assert_eq!(refused(import_request(&daemon).await)?.0, Code::InvalidArgument);
    daemon.stop().await?;
    Ok(())
}

async fn import_request(daemon: &TestDaemon) -> Result<v1::CreateImportResponse, Status> {
    let request = v1::CreateImportRequest {
        path: "/nowhere".to_owned(),
        plugin: NAME.to_owned(),
        ..v1::CreateImportRequest::default()
    };
    Ok(ImportServiceClient::new(daemon.channel.clone()).create_import(request).await?.into_inner())
}
