//! `PluginService`: lists the importers.

use satchel_proto::v1::{self, plugin_service_server::PluginService};
use tonic::{Request, Response, Status};

use super::Core;

#[derive(Clone)]
pub(super) struct Plugins(pub(super) Core);

#[tonic::async_trait]
impl PluginService for Plugins {
    async fn list_plugins(
        &self,
        request: Request<v1::ListPluginsRequest>,
    ) -> Result<Response<v1::ListPluginsResponse>, Status> {
        let v1::ListPluginsRequest { page_size, page_token } = request.into_inner();
        self.0
            .answer(move |core| {
                let mut plugins: Vec<_> = core.plugins.all()?.iter().map(plugin_to_wire).collect();
                plugins.sort_by(|one, other| one.name.cmp(&other.name));
                let list = ("ListPlugins", &v1::ListPluginsRequest::default());
                let (plugins, next_page_token) =
                    core.page_of(list, (page_size, &page_token), &plugins, Ok)?;
                Ok(v1::ListPluginsResponse { plugins, header: Some(core.header()), next_page_token })
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
