//! `plugins trust`, `untrust` and `keys`: the keys of authors.

use satchel_proto::v1::{
    ListPluginAuthorsRequest, ListPluginAuthorsResponse, PluginAuthor, TrustPluginAuthorRequest,
    UntrustPluginAuthorRequest,
};

use crate::cli::{
    Context,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json::plugin as json,
    pagination::{self, ResultPage},
    style::Paint,
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

pub(super) async fn trust(context: &mut Context, client: &DaemonClient, key: &str) -> Result<Exit, CliError> {
    let request = TrustPluginAuthorRequest { public_key: key.to_owned() };
    let added = client.plugins().trust_plugin_author(request).await?.into_inner().added;
    if context.out.json {
        context.out.json(&json::TrustedAuthor { public_key: key, added })?;
    } else if added {
        context.out.note("trusted; the installation of an importer no longer asks about this key");
    } else {
        context.out.note("this key is already trusted");
    }
    Ok(Exit::Done)
}

pub(super) async fn untrust(
    context: &mut Context,
    client: &DaemonClient,
    key: &str,
) -> Result<Exit, CliError> {
    let request = UntrustPluginAuthorRequest { public_key: key.to_owned() };
    let answer = client.plugins().untrust_plugin_author(request).await?.into_inner();
    if !answer.removed {
        return Err(CliError::Declined(format!(
            "{key} is not a trusted key; `satchel plugins keys` shows the trusted keys"
        )));
    }
    if context.out.json {
        let disabled_plugins = &answer.disabled_plugins;
        context.out.json(&json::UntrustedAuthor { public_key: key, disabled_plugins })?;
        return Ok(Exit::Done);
    }
    let names: Vec<String> = answer.disabled_plugins.iter().map(|name| text::one_line(name)).collect();
    context.out.note(&if names.is_empty() {
        "no longer trusted; no importer that it signed was in use".to_owned()
    } else {
        format!("no longer trusted; disabled: {}; what they imported is kept", names.join(", "))
    });
    Ok(Exit::Done)
}

pub(super) async fn list(context: &mut Context, client: &DaemonClient) -> Result<Exit, CliError> {
    let authors = pagination::collect_rows(None, async |page_size, page_token| {
        let request = ListPluginAuthorsRequest { page_size, page_token };
        let ListPluginAuthorsResponse { authors, next_page_token, .. } =
            client.plugins().list_plugin_authors(request).await?.into_inner();
        Ok(ResultPage { rows: authors, next: next_page_token })
    });
    let authors = authors.await?.rows;
    if context.out.json {
        context.out.json(&json::Authors { authors: authors.iter().map(json::Author::new).collect() })?;
    } else if authors.is_empty() {
        context
            .out
            .note("no keys yet; the first installation of a signed importer asks whether you trust its key");
    } else {
        context.out.print(&table(&authors, &context.calendar).render(context.out.style))?;
    }
    Ok(Exit::Done)
}

fn table(authors: &[PluginAuthor], calendar: &Calendar) -> Table {
    let mut table = Table::new([
        Column::new("key"),
        Column::new("state"),
        Column::new("since"),
        Column::new("importers").shrinks_to(12),
    ]);
    for author in authors {
        let (state, paint) =
            if author.trusted { ("trusted", Paint::Good) } else { ("not trusted", Paint::Warn) };
        table.row([
            Cell::painted(&author.public_key, Paint::Id),
            Cell::painted(state, paint),
            Cell::new(&calendar.minute(author.trusted_at.as_ref())),
            Cell::new(&author.plugin_names.join(", ")),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{style::TerminalStyle, time};

    #[test]
    fn keys_are_listed_with_the_importers_that_they_signed() {
        let author = |key: &str, trusted| PluginAuthor {
            public_key: key.to_owned(),
            trusted,
            trusted_at: if trusted { time::at("2026-03-11T10:00:00Z") } else { None },
            plugin_names: vec!["notes".to_owned(), "letters".to_owned()],
        };
        let authors = [author("z6MkAna", true), author("z6MkBruno", false)];
        let expected = "\
KEY        STATE        SINCE             IMPORTERS
z6MkAna    trusted      2026-03-11 10:00  notes, letters
z6MkBruno  not trusted                    notes, letters
";
        assert_eq!(table(&authors, &time::fixed()).render(TerminalStyle::plain(80)), expected);
    }
}
