//! `PluginService`: lists the importers.

use satchel_proto::v1::{self, plugin_service_server::PluginService};

use super::{
    ServerState,
    request::{page_request, service},
    status::CallError,
};

#[derive(Clone)]
pub(super) struct PluginHandler(pub(super) ServerState);

service!(PluginService for PluginHandler {
    list_plugins: ListPluginsRequest => ListPluginsResponse = list;
});

fn list(
    state: &ServerState,
    mut request: v1::ListPluginsRequest,
) -> Result<v1::ListPluginsResponse, CallError> {
    let page = page_request!(state, "ListPlugins", request)?;
    let mut plugins: Vec<_> = state.plugins.load_all()?.iter().map(plugin_to_wire).collect();
    plugins.sort_by(|one, other| one.name.cmp(&other.name));
    let (plugins, next_page_token) = state.fill_from(&page, &plugins, Ok)?;
    Ok(v1::ListPluginsResponse { plugins, header: Some(state.header()), next_page_token })
}

fn plugin_to_wire(plugin: &satchel_host::Plugin) -> v1::Plugin {
    let satchel_host::PluginInfo { name, version, platform, importer_version, formats } =
        plugin.info().clone();
    v1::Plugin {
        name,
        version,
        platform,
        sha256: plugin.sha256_hex(),
        built_in: true,
        formats,
        newest_format: importer_version,
    }
}
