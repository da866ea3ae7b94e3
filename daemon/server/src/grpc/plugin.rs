//! `PluginService`: lists the importers.

use satchel_proto::v1::{self, plugin_service_server::PluginService};
use tonic::{Request, Response, Status};

use super::ServerState;

#[derive(Clone)]
pub(super) struct PluginHandler(pub(super) ServerState);

#[tonic::async_trait]
impl PluginService for PluginHandler {
    async fn list_plugins(
        &self,
        request: Request<v1::ListPluginsRequest>,
    ) -> Result<Response<v1::ListPluginsResponse>, Status> {
        let v1::ListPluginsRequest { page_size, page_token } = request.into_inner();
        self.0
            .respond(move |state| {
                let mut plugins: Vec<_> = state.plugins.load_all()?.iter().map(plugin_to_wire).collect();
                plugins.sort_by(|one, other| one.name.cmp(&other.name));
                let list = ("ListPlugins", &v1::ListPluginsRequest::default());
                let (plugins, next_page_token) =
                    state.list_page(list, (page_size, &page_token), &plugins, Ok)?;
                Ok(v1::ListPluginsResponse { plugins, header: Some(state.header()), next_page_token })
            })
            .await
    }
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
