//! `relations …`

use satchel_proto::{
    integers::unsigned,
    v1::{CreateRelationRequest, ListRelationsRequest, Relation, StoreHeader, WithdrawRelationRequest},
};

use super::{
    Context,
    args::{RelationTypeArg, Relations},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json, labels, memories,
    pagination::{self, ResultPage},
    style::Paint,
    table::{Cell, Column, Table},
    text,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches none or several.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Relations,
) -> Result<Exit, CliError> {
    match command {
        Relations::List { memory, types, paging } => {
            let memory_id = match memory {
                Some(given) => memories::resolve(client, given).await?,
                None => String::new(),
            };
            let listing = pagination::collect_rows(paging.max_rows(), async |size, token| {
                fetch(client, &memory_id, types, size, token).await
            })
            .await?;
            list(context, &listing.rows, listing.remaining)
        }
        Relations::Add { from, relation_type, to, confidence, reason } => {
            let relation = Relation {
                from_id: memories::resolve(client, from).await?,
                to_id: memories::resolve(client, to).await?,
                r#type: relation_type.to_wire().into(),
                confidence: *confidence,
                ..Relation::default()
            };
            let request = CreateRelationRequest {
                request_id: context.request_id.clone(),
                relation: Some(relation),
                reason: reason.clone().unwrap_or_default(),
            };
            let answer = client.memories().create_relation(request).await?.into_inner();
            let note = if answer.existed { "this relation already exists" } else { "added" };
            print_change(context, answer.relation, answer.header, &answer.undo_token, (answer.existed, note))
        }
        Relations::Withdraw { id, reason } => {
            let request = WithdrawRelationRequest {
                request_id: context.request_id.clone(),
                id: resolve(client, &id.id).await?,
                reason: reason.clone().unwrap_or_default(),
            };
            let answer = client.memories().withdraw_relation(request).await?.into_inner();
            print_change(context, answer.relation, answer.header, &answer.undo_token, (false, "withdrawn"))
        }
    }
}

async fn fetch(
    client: &DaemonClient,
    memory_id: &str,
    types: &[RelationTypeArg],
    page_size: i32,
    page_token: String,
) -> Result<ResultPage<Relation>, CliError> {
    let request = ListRelationsRequest {
        memory_id: memory_id.to_owned(),
        types: types.iter().map(|word| word.to_wire().into()).collect(),
        page_size,
        page_token,
        ..ListRelationsRequest::default()
    };
    let answer = client.memories().list_relations(request).await?.into_inner();
    Ok(ResultPage { rows: answer.relations, next: answer.next_page_token })
}

fn list(
    context: &mut Context,
    relations: &[Relation],
    remaining: pagination::Remaining,
) -> Result<Exit, CliError> {
    if context.out.json {
        let shown = relations.iter().map(json::change::Relation::new).collect();
        context.out.json(&json::change::Relations { relations: shown, more: remaining.more() })?;
        return Ok(Exit::Done);
    }
    if relations.is_empty() {
        context.out.note("no relations found; `satchel relations add FROM TYPE TO` adds one");
    } else {
        let ids = text::ShortIds::new(relations.iter().map(|relation| relation.id.as_str()));
        let mut table = Table::new([
            Column::new("id"),
            Column::new("from"),
            Column::new("type"),
            Column::new("to"),
            Column::new("created").optional(1),
        ]);
        for relation in relations {
            table.row([
                Cell::painted(&ids.shorten(&relation.id), Paint::Id),
                Cell::painted(&text::short_id(&relation.from_id), Paint::Id),
                Cell::new(&labels::relation_type(relation.r#type)),
                Cell::painted(&text::short_id(&relation.to_id), Paint::Id),
                Cell::painted(&context.calendar.short_or_unknown(relation.created_at.as_ref()), Paint::Dim),
            ]);
        }
        context.out.print(&table.render(context.out.style))?;
    }
    context.note_remaining(remaining);
    Ok(Exit::Done)
}

fn print_change(
    context: &mut Context,
    relation: Option<Relation>,
    header: Option<StoreHeader>,
    undo_token: &str,
    (existed, note): (bool, &str),
) -> Result<Exit, CliError> {
    let relation = relation.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::change::ChangedRelation {
            relation: json::change::Relation::new(&relation),
            existed,
            undo_token: json::non_empty(undo_token),
            revision: unsigned(header.unwrap_or_default().revision),
        })?;
        return Ok(Exit::Done);
    }
    let [id, from, to] = [&relation.id, &relation.from_id, &relation.to_id].map(|id| text::short_id(id));
    context.out.print(&format!("{id}  {from} {} {to}\n", labels::relation_type(relation.r#type)))?;
    context.out.note(note);
    if !undo_token.is_empty() {
        context.out.note(&format!("`satchel memories undo --change {undo_token}` undoes this"));
    }
    Ok(Exit::Done)
}

/// Returns the full id for `given`.
async fn resolve(client: &DaemonClient, given: &str) -> Result<String, CliError> {
    pagination::resolve_id("relation", given, async |page_size, page_token| {
        let page = fetch(client, "", &[], page_size, page_token).await?;
        Ok(ResultPage { rows: page.rows.into_iter().map(|relation| relation.id).collect(), next: page.next })
    })
    .await
}
