//! `PluginService`: lists, installs and manages the importers.

mod earlier;
mod install;
mod upload;

use std::sync::{Arc, Mutex};

use satchel_proto::{
    integers::signed,
    v1::{self, plugin_service_server::PluginService},
};
use satchel_registry::{ImporterRow, Installed, InstalledState, Plugins, package::AuthorKey};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

pub(super) use self::earlier::outdated_imports;
use self::{
    earlier::imports_by,
    install::InstallTurn,
    upload::{STALL_TIMEOUT, UPLOAD_TIMEOUT, Upload},
};
use super::{
    ServerState,
    call_state::CallState,
    request::{check_length, check_required, page_request, service},
    status::{CallError, ResourceKind},
    wire::plugin::{author_to_wire, plugin_to_wire},
};

/// Largest number of packages that are received, or wait to be installed. Each is held in memory.
const MAX_PACKAGES: usize = 4;

/// The service, with the permits for packages in memory, and the turn of the one that is being installed.
#[derive(Clone)]
pub(super) struct PluginHandler(ServerState, Arc<Semaphore>, InstallTurn);

impl PluginHandler {
    pub(super) fn new(state: ServerState) -> Self {
        Self(state, Arc::new(Semaphore::new(MAX_PACKAGES)), Arc::new(Mutex::new(())))
    }
}

service!(PluginService for PluginHandler {
    list_plugins: ListPluginsRequest => ListPluginsResponse = list;
    get_plugin: GetPluginRequest => GetPluginResponse = get;
    set_plugin_enabled: SetPluginEnabledRequest => SetPluginEnabledResponse = set_enabled;
    remove_plugin: RemovePluginRequest => RemovePluginResponse = remove;
    list_plugin_authors: ListPluginAuthorsRequest => ListPluginAuthorsResponse = list_authors;
    trust_plugin_author: TrustPluginAuthorRequest => TrustPluginAuthorResponse = trust;
    untrust_plugin_author: UntrustPluginAuthorRequest => UntrustPluginAuthorResponse = untrust;
    ..
    async fn install_plugin(
        &self,
        request: Request<Streaming<v1::InstallPluginRequest>>,
    ) -> Result<Response<v1::InstallPluginResponse>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let busy = format!(
            "{MAX_PACKAGES} packages are received or wait to be installed; try again when one of them has ended"
        );
        let permit = Arc::clone(&self.1).try_acquire_owned().map_err(|_| CallError::Busy(busy))?;
        let received = upload::receive(request.into_inner(), STALL_TIMEOUT);
        let late = |_| CallError::UploadStalled { seconds: UPLOAD_TIMEOUT.as_secs() };
        let upload: Upload = tokio::time::timeout(UPLOAD_TIMEOUT, received).await.map_err(late)??;
        let turn = Arc::clone(&self.2);
        state.respond(move |state| install::start(state, upload, permit, turn)).await
    }
});

fn list(
    state: &CallState,
    mut request: v1::ListPluginsRequest,
) -> Result<v1::ListPluginsResponse, CallError> {
    let page = page_request!(state, "ListPlugins", request)?;
    let rows = state.plugins.list()?;
    let (plugins, next_page_token) = state.fill_from(&page, &rows, |row| Ok(plugin_to_wire(row)))?;
    Ok(v1::ListPluginsResponse { plugins, header: Some(state.header()), next_page_token })
}

fn get(state: &CallState, request: v1::GetPluginRequest) -> Result<v1::GetPluginResponse, CallError> {
    let v1::GetPluginRequest { name, version } = request;
    let plugin = Some(plugin_to_wire(find(state, &name, &version)?));
    Ok(v1::GetPluginResponse { plugin, header: Some(state.header()) })
}

/// Returns the given version of a plugin; without one the version in use, else the newest.
fn find(state: &CallState, name: &str, version: &str) -> Result<ImporterRow, CallError> {
    let version = check_name(name, version)?;
    let rows = state.plugins.list()?.into_iter().filter(|row| row.name == name);
    let mut rows: Vec<ImporterRow> =
        rows.filter(|row| version.is_none_or(|version| row.version == version)).collect();
    // Stable: of several that are not in use, the newest is first.
    rows.sort_by_key(|row| !in_use(row));
    rows.into_iter().next().ok_or_else(|| missing(name, version))
}

fn in_use(row: &ImporterRow) -> bool {
    match &row.installed {
        Some(installed) => installed.state == InstalledState::Enabled,
        None => row.replaced_by.is_none(),
    }
}

fn missing(name: &str, version: Option<&str>) -> CallError {
    let id = version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"));
    CallError::not_found(ResourceKind::Plugin, id)
}

/// Checks the name and version of a request; an empty version means none.
fn check_name<'a>(name: &str, version: &'a str) -> Result<Option<&'a str>, CallError> {
    check_required("name", name)?;
    check_length("version", version)?;
    Ok((!version.is_empty()).then_some(version))
}

fn set_enabled(
    state: &CallState,
    request: v1::SetPluginEnabledRequest,
) -> Result<v1::SetPluginEnabledResponse, CallError> {
    let v1::SetPluginEnabledRequest { name, version, enabled } = request;
    let version = check_name(&name, &version)?;
    let installed = state.plugins.set_enabled(&name, version, enabled)?;
    if enabled && installed.state != InstalledState::Enabled {
        return Err(CallError::PluginState { problem: not_enabled(&installed), name });
    }
    let plugin = Some(plugin_to_wire(installed_row(installed)));
    Ok(v1::SetPluginEnabledResponse { plugin, header: Some(state.header()) })
}

/// Returns why an importer that was to be enabled is not.
fn not_enabled(installed: &Installed) -> String {
    let name = &installed.manifest.name;
    match installed.signer {
        Some(key) if installed.state == InstalledState::KeyNotTrusted => {
            format!(
                "{name:?} is signed by {key}, which is not trusted; `satchel plugins trust {key}` trusts it"
            )
        }
        _ => format!("{name:?} cannot be enabled; remove it and install it again"),
    }
}

fn installed_row(installed: Installed) -> ImporterRow {
    ImporterRow {
        name: installed.manifest.name.clone(),
        version: installed.manifest.version.clone(),
        platform: installed.manifest.platform.clone(),
        newest_format: installed.manifest.importer_version.clone(),
        formats: installed.manifest.formats.clone(),
        sha256: installed.sha256.clone(),
        installed: Some(installed),
        replaced_by: None,
    }
}

fn remove(
    state: &CallState,
    request: v1::RemovePluginRequest,
) -> Result<v1::RemovePluginResponse, CallError> {
    let v1::RemovePluginRequest { name, version } = request;
    let version = check_name(&name, &version)?;
    let removed = state.plugins.remove(&name, version)?;
    let made = imports_by(state, &removed)?;
    Ok(v1::RemovePluginResponse {
        plugins: removed.into_iter().map(installed_row).map(plugin_to_wire).collect(),
        header: Some(state.header()),
        imports: signed(made.imports),
        conversations: signed(made.conversations),
        memories: signed(made.memories),
    })
}

fn list_authors(
    state: &CallState,
    mut request: v1::ListPluginAuthorsRequest,
) -> Result<v1::ListPluginAuthorsResponse, CallError> {
    let page = page_request!(state, "ListPluginAuthors", request)?;
    let all = state.plugins.authors();
    let (authors, next_page_token) = state.fill_from(&page, &all, |author| Ok(author_to_wire(author)))?;
    Ok(v1::ListPluginAuthorsResponse { authors, header: Some(state.header()), next_page_token })
}

fn trust(
    state: &CallState,
    request: v1::TrustPluginAuthorRequest,
) -> Result<v1::TrustPluginAuthorResponse, CallError> {
    let key = author_key_from_wire(&request.public_key)?;
    let added = state.plugins.trust(&key, state.clock.now_micros())?;
    Ok(v1::TrustPluginAuthorResponse { added, header: Some(state.header()) })
}

fn untrust(
    state: &CallState,
    request: v1::UntrustPluginAuthorRequest,
) -> Result<v1::UntrustPluginAuthorResponse, CallError> {
    let key = author_key_from_wire(&request.public_key)?;
    let trusted = state.plugins.authors().iter().any(|author| author.key == key && author.trusted);
    let disabled_plugins = if trusted { state.plugins.untrust(&key)? } else { Vec::new() };
    Ok(v1::UntrustPluginAuthorResponse { removed: trusted, header: Some(state.header()), disabled_plugins })
}

fn author_key_from_wire(text: &str) -> Result<AuthorKey, CallError> {
    check_required("public_key", text)?;
    text.parse().map_err(|error| CallError::invalid_field("public_key", format!("cannot be used: {error}")))
}

/// Returns the importers that were disabled after failures.
pub(super) fn disabled_after_failures(plugins: &Plugins) -> Vec<v1::Plugin> {
    let disabled = |one: &Installed| one.state == InstalledState::DisabledAfterFailures;
    let disabled = plugins.installed().into_iter().filter(disabled);
    disabled.map(installed_row).map(plugin_to_wire).collect()
}

/// Returns the problems of installed importers that the person should look at.
pub(super) fn problems(plugins: &Plugins) -> Vec<v1::Problem> {
    let disabled = disabled_after_failures(plugins).into_iter().map(|plugin| disabled_problem(&plugin));
    let unreadable = plugins.registry_error().map(|error| v1::Problem {
        reason: "PLUGINS_UNREADABLE".to_owned(),
        message: "the list of installed importers cannot be read; only the built-in ones are used".to_owned(),
        fix: satchel_source::chain(error),
    });
    disabled.chain(unreadable).collect()
}

fn disabled_problem(plugin: &v1::Plugin) -> v1::Problem {
    let v1::Plugin { name, version, failures, last_failure, .. } = plugin;
    v1::Problem {
        reason: "PLUGIN_DISABLED".to_owned(),
        message: format!(
            "the importer {name} {version} was disabled, because it broke off {failures} imports in a row: {last_failure}"
        ),
        fix: format!(
            "ask its author for a new version and install it with `satchel plugins upgrade FILE`, or try again with \
             `satchel plugins enable {name}`"
        ),
    }
}
