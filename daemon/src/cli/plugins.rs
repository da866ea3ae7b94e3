//! `plugins …`

use satchel_proto::v1::{ListPluginsRequest, ListPluginsResponse, Plugin};

use super::{
    Context,
    args::Plugins,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json,
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
    command: &Plugins,
) -> Result<Exit, CliError> {
    match command {
        Plugins::List => list(context, client).await,
    }
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
        let plugins = plugins.iter().map(json::admin::Plugin::new).collect();
        context.out.json(&json::admin::Plugins { plugins })?;
    } else {
        context.out.print(&table(&plugins).render(context.out.style))?;
    }
    Ok(Exit::Done)
}

fn table(plugins: &[Plugin]) -> Table {
    let mut table = Table::new([
        Column::new("name"),
        Column::new("version"),
        Column::new("platform"),
        Column::new("newest format").shrinks_to(16),
        Column::right("formats").optional(1),
        Column::new("from").optional(2),
        Column::new("sha256").optional(3),
    ]);
    for plugin in plugins {
        table.row([
            Cell::painted(&plugin.name, Paint::Id),
            Cell::new(&plugin.version),
            Cell::new(&plugin.platform),
            Cell::new(&plugin.newest_format),
            Cell::new(&text::number(plugin.formats.len() as u64)),
            Cell::new(if plugin.built_in { "built in" } else { "installed" }),
            Cell::painted(plugin.sha256.get(..12).unwrap_or(&plugin.sha256), Paint::Dim),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::style::TerminalStyle;

    #[test]
    fn importers_are_listed() {
        let plugin = Plugin {
            name: "chatgpt-importer".to_owned(),
            version: "1.0.0".to_owned(),
            platform: "chatgpt".to_owned(),
            sha256: "0123456789abcdef".repeat(4),
            built_in: true,
            formats: vec!["a".to_owned(), "b".to_owned()],
            newest_format: "chatgpt-importer/2026.07".to_owned(),
        };
        let expected = "\
NAME              VERSION  PLATFORM  NEWEST FORMAT             FORMATS  FROM      SHA256
chatgpt-importer  1.0.0    chatgpt   chatgpt-importer/2026.07        2  built in  0123456789ab
";
        assert_eq!(table(&[plugin]).render(TerminalStyle::plain(100)), expected);
    }
}
