//! `plugins enable`, `disable` and `remove`.

use satchel_proto::{
    integers::unsigned,
    v1::{Plugin, RemovePluginRequest, RemovePluginResponse, SetPluginEnabledRequest},
};

use crate::cli::{
    Context, args::PluginArgs, client::DaemonClient, error::CliError, exit::Exit, json::plugin as json,
    style::Paint, text,
};

pub(super) async fn set_enabled(
    context: &mut Context,
    client: &DaemonClient,
    args: &PluginArgs,
    enabled: bool,
) -> Result<Exit, CliError> {
    let PluginArgs { name, version } = args;
    let version = version.clone().unwrap_or_default();
    let request = SetPluginEnabledRequest { name: name.clone(), version, enabled };
    let plugin = client.plugins().set_plugin_enabled(request).await?.into_inner().plugin.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::PluginDocument { plugin: json::Plugin::new(&plugin) })?;
        return Ok(Exit::Done);
    }
    let what = if enabled { "enabled" } else { "disabled" };
    let mark = context.out.style.paint(Paint::Good, "✓");
    context.out.print(&format!("{mark} {what} {}\n", named(&plugin)))?;
    if !enabled {
        context.out.note("what it imported is kept; running imports continue");
    }
    Ok(Exit::Done)
}

pub(super) async fn remove(
    context: &mut Context,
    client: &DaemonClient,
    args: &PluginArgs,
) -> Result<Exit, CliError> {
    let PluginArgs { name, version } = args;
    let request = RemovePluginRequest { name: name.clone(), version: version.clone().unwrap_or_default() };
    let removal = client.plugins().remove_plugin(request).await?.into_inner();
    if context.out.json {
        context.out.json(&json::Removal::new(&removal))?;
        return Ok(Exit::Done);
    }
    let mark = context.out.style.paint(Paint::Good, "✓");
    for plugin in &removal.plugins {
        context.out.print(&format!("{mark} removed {}\n", named(plugin)))?;
    }
    for note in notes(&removal) {
        context.out.note(&note);
    }
    Ok(Exit::Done)
}

/// Returns what stays after a removal, and what is used again.
fn notes(removal: &RemovePluginResponse) -> Vec<String> {
    let RemovePluginResponse { plugins, header: _, imports, conversations, memories } = removal;
    let mut notes = Vec::new();
    if *imports > 0 {
        notes.push(format!(
            "kept: {} with {} and {}; `satchel imports list` shows them, `satchel imports undo ID` takes one back",
            text::count(unsigned(*imports), "import", "imports"),
            text::count(unsigned(*conversations), "conversation", "conversations"),
            text::count(unsigned(*memories), "memory", "memories"),
        ));
    }
    if let Some(plugin) = plugins.iter().find(|plugin| plugin.replaces_built_in) {
        let platform = text::one_line(&plugin.platform);
        notes.push(format!("exports of {platform} are read by satchel's own importer again"));
    }
    notes
}

fn named(plugin: &Plugin) -> String {
    format!("{} {}", text::one_line(&plugin.name), text::one_line(&plugin.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_says_what_stays() {
        let plugin = Plugin { platform: "chatgpt".to_owned(), replaces_built_in: true, ..Plugin::default() };
        let removal = RemovePluginResponse {
            plugins: vec![plugin],
            imports: 1,
            conversations: 1_200,
            memories: 0,
            ..RemovePluginResponse::default()
        };
        let expected = [
            "kept: 1 import with 1,200 conversations and 0 memories; `satchel imports list` shows them, \
             `satchel imports undo ID` takes one back",
            "exports of chatgpt are read by satchel's own importer again",
        ];
        assert_eq!(notes(&removal), expected);
        assert!(notes(&RemovePluginResponse::default()).is_empty());
    }
}
