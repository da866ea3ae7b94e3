//! `plugins …`: the importers, and what the author of one uses.

pub(crate) mod author;
mod install;
mod keys;
mod manage;
mod render;

use satchel_proto::v1::{GetPluginRequest, ListPluginsRequest, ListPluginsResponse, Plugin, PluginState};

use super::{
    Context,
    args::{CompileChildArgs, InstalledCommand, PluginArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json,
    output::Output,
    pagination::{self, ResultPage},
    style::Paint,
    table::{Cell, Column, Table},
    text,
};

/// Runs the command.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &InstalledCommand,
) -> Result<Exit, CliError> {
    match command {
        InstalledCommand::List => list(context, client).await,
        InstalledCommand::Show(args) => show(context, client, args).await,
        InstalledCommand::Install(args) => {
            install::run(context, client, args, install::InstallKind::Install).await
        }
        InstalledCommand::Upgrade(args) => {
            install::run(context, client, args, install::InstallKind::Upgrade).await
        }
        InstalledCommand::Enable(args) => manage::set_enabled(context, client, args, true).await,
        InstalledCommand::Disable(args) => manage::set_enabled(context, client, args, false).await,
        InstalledCommand::Remove(args) => manage::remove(context, client, args).await,
        InstalledCommand::Trust(args) => keys::trust(context, client, &args.key).await,
        InstalledCommand::Untrust(args) => keys::untrust(context, client, &args.key).await,
        InstalledCommand::Keys => keys::list(context, client).await,
    }
}

/// Compiles one package in this process, which the daemon has started for it, and prints the answer.
///
/// # Errors
/// Fails if the output is closed.
pub(crate) fn compile_child(args: &CompileChildArgs, out: &mut Output) -> Result<Exit, CliError> {
    let CompileChildArgs { package, cache_folder, cache_key } = args;
    let cache = cache_folder.clone().zip(cache_key.clone());
    let (answer, accepted) = satchel_registry::compile::child(package, cache);
    out.print(&format!("{answer}\n"))?;
    Ok(if accepted { Exit::Done } else { Exit::Failed })
}

async fn list(context: &mut Context, client: &DaemonClient) -> Result<Exit, CliError> {
    let plugins = pagination::collect_rows(None, async |page_size, page_token| {
        let request = ListPluginsRequest { page_size, page_token };
        let ListPluginsResponse { plugins, next_page_token, .. } =
            client.plugins().list_plugins(request).await?.into_inner();
        Ok(ResultPage { rows: plugins, next: next_page_token })
    });
    let plugins = plugins.await?.rows;
    if context.out.json {
        let plugins = plugins.iter().map(json::plugin::Plugin::new).collect();
        context.out.json(&json::plugin::Plugins { plugins })?;
    } else {
        context.out.print(&table(&plugins).render(context.out.style))?;
    }
    Ok(Exit::Done)
}

async fn show(context: &mut Context, client: &DaemonClient, args: &PluginArgs) -> Result<Exit, CliError> {
    let plugin = get(client, args).await?;
    if context.out.json {
        context.out.json(&json::plugin::PluginDocument { plugin: json::plugin::Plugin::new(&plugin) })?;
    } else {
        context.out.print(&render::plugin(&plugin, &context.calendar, context.out.style))?;
    }
    Ok(Exit::Done)
}

async fn get(client: &DaemonClient, args: &PluginArgs) -> Result<Plugin, CliError> {
    let PluginArgs { name, version } = args;
    let request = GetPluginRequest { name: name.clone(), version: version.clone().unwrap_or_default() };
    Ok(client.plugins().get_plugin(request).await?.into_inner().plugin.unwrap_or_default())
}

fn table(plugins: &[Plugin]) -> Table {
    let mut table = Table::new([
        Column::new("name"),
        Column::new("version"),
        Column::new("platform").optional(2),
        Column::new("state"),
        Column::new("from").shrinks_to(12),
        Column::new("newest format").shrinks_to(16).optional(3),
        Column::right("formats").optional(4),
        Column::new("sha256").optional(5),
    ]);
    for plugin in plugins {
        let (state, paint) = state(plugin);
        table.row([
            Cell::painted(&plugin.name, Paint::Id),
            Cell::new(&plugin.version),
            Cell::new(&plugin.platform),
            Cell::painted(&state, paint),
            origin(plugin),
            Cell::new(&plugin.newest_format),
            Cell::new(&text::number(plugin.formats.len() as u64)),
            Cell::painted(plugin.sha256.get(..12).unwrap_or(&plugin.sha256), Paint::Dim),
        ]);
    }
    table
}

/// Returns who made it: the program, or the key that signed it.
fn origin(plugin: &Plugin) -> Cell {
    if plugin.built_in {
        return Cell::painted("satchel", Paint::Dim);
    }
    if plugin.unsigned {
        return Cell::painted("unsigned", Paint::Warn);
    }
    Cell::new(&plugin.signer)
}

/// Returns whether it reads exports, in words.
fn state(plugin: &Plugin) -> (String, Paint) {
    let (words, paint) = match plugin.state() {
        PluginState::Enabled => ("enabled", Paint::Good),
        PluginState::Disabled => ("disabled", Paint::Dim),
        PluginState::DisabledAfterFailures => ("disabled after failures", Paint::Bad),
        PluginState::KeyNotTrusted => ("key not trusted", Paint::Warn),
        PluginState::Superseded => ("other version in use", Paint::Dim),
        PluginState::Replaced => {
            return (format!("replaced by {}", text::one_line(&plugin.replaced_by)), Paint::Warn);
        }
        PluginState::Unspecified => ("unknown", Paint::Warn),
    };
    (words.to_owned(), paint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::style::TerminalStyle;

    #[test]
    fn importers_are_listed() {
        let plugin = |name: &str, version: &str, state: PluginState| Plugin {
            name: name.to_owned(),
            version: version.to_owned(),
            platform: name.to_owned(),
            sha256: "0123456789abcdef".repeat(4),
            formats: vec!["a".to_owned(), "b".to_owned()],
            newest_format: format!("{name}-importer/2026.07"),
            state: state.into(),
            ..Plugin::default()
        };
        let plugins = [
            Plugin {
                built_in: true,
                replaced_by: "my-chats".to_owned(),
                ..plugin("chatgpt", "1.4.0", PluginState::Replaced)
            },
            Plugin { signer: "z6MkAna".to_owned(), ..plugin("notes", "2.0.0", PluginState::Enabled) },
            Plugin { unsigned: true, ..plugin("notes", "1.0.0\u{1b}[2J", PluginState::Superseded) },
        ];
        let expected = "\
NAME     VERSION         STATE                 FROM
chatgpt  1.4.0           replaced by my-chats  satchel
notes    2.0.0           enabled               z6MkAna
notes    1.0.0\\u{1b}[2J  other version in use  unsigned
";
        assert_eq!(table(&plugins).render(TerminalStyle::plain(60)), expected);
    }
}
