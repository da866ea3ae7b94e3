//! `context`: quotes what the archive knows about a query, for the prompt of a model.

use satchel_proto::{
    integers::unsigned,
    v1::{BuildContextRequest, BuildContextResponse},
};

use super::{
    Context,
    args::ContextArgs,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json::search::{ContextItem, PromptContext},
    search::{by_query, when_indexed},
    text,
};

/// Runs the command.
///
/// # Errors
/// Returns the errors of the daemon, among them that the query cannot be understood.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &ContextArgs,
) -> Result<Exit, CliError> {
    let at = args.at.as_deref().map(|at| context.calendar.parse_instant("--at", at)).transpose()?;
    let request = BuildContextRequest {
        query: args.query.join(" "),
        token_budget: i32::try_from(args.tokens).unwrap_or(i32::MAX),
        include_messages: args.messages,
        include_instructions: true,
        valid_at: at,
        time_zone: context.calendar.zone.iana_name().unwrap_or_default().to_owned(),
        min_revision: None,
        wait_until_current: true,
        meaning: args.meaning.then(by_query),
    };
    let call = || {
        let (mut service, request) = (client.search(), request.clone());
        async move { service.build_context(request).await }
    };
    let built = when_indexed(context, &request.query, call).await?;
    if context.out.json {
        let header = built.header.clone().unwrap_or_default();
        context.out.json(&PromptContext {
            text: &built.text,
            instructions: built.instructions.iter().map(ContextItem::new).collect(),
            items: built.items.iter().map(ContextItem::new).collect(),
            tokens_used: unsigned(built.tokens_used),
            omitted: unsigned(built.omitted),
            revision: unsigned(header.revision),
            store_id: &header.store_id,
        })?;
        return Ok(Exit::Done);
    }
    context.out.print(&built.text)?;
    for line in notes(&built) {
        context.out.note(&line);
    }
    Ok(Exit::Done)
}

/// Returns the lines that are shown beside the text.
fn notes(built: &BuildContextResponse) -> Vec<String> {
    let omitted = unsigned(built.omitted);
    let mut lines = Vec::new();
    if built.text.is_empty() && omitted == 0 {
        lines.push("nothing was found".to_owned());
    } else {
        let quoted = (built.instructions.len() + built.items.len()) as u64;
        let quoted = text::count(quoted, "quotation", "quotations");
        lines
            .push(format!("{quoted}, about {} tokens", text::number(u64::from(unsigned(built.tokens_used)))));
    }
    if omitted > 0 {
        let more = text::count(omitted, "more fits", "more fit");
        lines.push(format!("{more} the query, but not the budget; --tokens raises it"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::ContextItem;

    use super::*;

    #[test]
    fn the_notes_say_what_was_left_out() {
        let nothing = BuildContextResponse::default();
        assert_eq!(notes(&nothing), ["nothing was found"]);
        let some = BuildContextResponse {
            text: "x".to_owned(),
            items: vec![ContextItem::default()],
            tokens_used: 1_234,
            omitted: 2,
            ..BuildContextResponse::default()
        };
        assert_eq!(
            notes(&some),
            [
                "1 quotation, about 1,234 tokens",
                "2 more fit the query, but not the budget; --tokens raises it"
            ]
        );
    }
}
