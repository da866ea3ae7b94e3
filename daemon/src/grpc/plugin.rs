//! `PluginService`: shows the importers.

use satchel_proto::v1::{self, plugin_service_server::PluginService};
use tonic::{Request, Response, Status};

use super::Core;

#[derive(Clone)]
pub(super) struct Plugins(pub(super) Core);

#[tonic::async_trait]
impl PluginService for Plugins {
    async fn list_plugins(
        &self,
        _request: Request<v1::ListPluginsRequest>,
    ) -> Result<Response<v1::ListPluginsResponse>, Status> {
        self.0
            .answer(|core| {
                let mut plugins: Vec<_> = core.plugins.all()?.iter().map(plugin_to_wire).collect();
                plugins.sort_by(|one, other| one.name.cmp(&other.name));
                Ok(v1::ListPluginsResponse { plugins, header: Some(core.header()) })
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
        importer_version,
    }
}
