//! `relations …`

use satchel_proto::{
    signed::unsigned,
    v1::{CreateRelationRequest, ListRelationsRequest, Relation, StoreHeader, WithdrawRelationRequest},
};

use super::{
    Context,
    args::{RelationWord, Relations},
    error::CliError,
    exit::Exit,
    json,
    link::Link,
    look::Paint,
    memories,
    page::{self, Page},
    table::{Cell, Column, Table},
    text, words,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches none or several.
pub(crate) async fn run(context: &mut Context, link: &Link, command: &Relations) -> Result<Exit, CliError> {
    match command {
        Relations::List { memory, types, paging } => {
            let memory_id = match memory {
                Some(given) => memories::resolve(link, given).await?,
                None => String::new(),
            };
            let listing = page::collect(paging.want(), async |size, token| {
                fetch(link, &memory_id, types, size, token).await
            })
            .await?;
            list(context, &listing.rows, listing.left)
        }
        Relations::Add { from, relation_type, to, confidence, reason } => {
            let relation = Relation {
                from_id: memories::resolve(link, from).await?,
                to_id: memories::resolve(link, to).await?,
                r#type: relation_type.to_wire().into(),
                confidence: *confidence,
                ..Relation::default()
            };
            let request = CreateRelationRequest {
                request_id: context.request_id.clone(),
                relation: Some(relation),
                reason: reason.clone().unwrap_or_default(),
            };
            let answer = link.memories().create_relation(request).await?.into_inner();
            let note = if answer.existed { "it stood already" } else { "drawn" };
            told(context, answer.relation, answer.header, &answer.undo_token, (answer.existed, note))
        }
        Relations::Withdraw { id, reason } => {
            let request = WithdrawRelationRequest {
                request_id: context.request_id.clone(),
                id: resolve(link, &id.id).await?,
                reason: reason.clone().unwrap_or_default(),
            };
            let answer = link.memories().withdraw_relation(request).await?.into_inner();
            told(context, answer.relation, answer.header, &answer.undo_token, (false, "withdrawn"))
        }
    }
}

async fn fetch(
    link: &Link,
    memory_id: &str,
    types: &[RelationWord],
    page_size: i32,
    page_token: String,
) -> Result<Page<Relation>, CliError> {
    let request = ListRelationsRequest {
        memory_id: memory_id.to_owned(),
        types: types.iter().map(|word| word.to_wire().into()).collect(),
        page_size,
        page_token,
        ..ListRelationsRequest::default()
    };
    let answer = link.memories().list_relations(request).await?.into_inner();
    Ok(Page { rows: answer.relations, next: answer.next_page_token })
}

fn list(context: &mut Context, relations: &[Relation], left: page::Left) -> Result<Exit, CliError> {
    if context.out.json {
        let shown = relations.iter().map(json::change::Relation::new).collect();
        context.out.json(&json::change::Relations { relations: shown, more: left.more() })?;
        return Ok(Exit::Done);
    }
    if relations.is_empty() {
        context.out.note("no relation fits; `satchel relations add FROM TYPE TO` draws one");
    } else {
        let ids = text::ShortIds::new(relations.iter().map(|relation| relation.id.as_str()));
        let mut table = Table::new([
            Column::new("id"),
            Column::new("from"),
            Column::new("type"),
            Column::new("to"),
            Column::new("drawn").spare(1),
        ]);
        for relation in relations {
            table.row([
                Cell::painted(&ids.of(&relation.id), Paint::Id),
                Cell::painted(&text::short_id(&relation.from_id), Paint::Id),
                Cell::new(&words::relation_type(relation.r#type)),
                Cell::painted(&text::short_id(&relation.to_id), Paint::Id),
                Cell::painted(&context.calendar.short_or_unknown(relation.created_at.as_ref()), Paint::Dim),
            ]);
        }
        context.out.print(&table.render(context.out.look))?;
    }
    context.hint(left);
    Ok(Exit::Done)
}

fn told(
    context: &mut Context,
    relation: Option<Relation>,
    header: Option<StoreHeader>,
    undo_token: &str,
    (existed, note): (bool, &str),
) -> Result<Exit, CliError> {
    let relation = relation.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::change::Drawn {
            relation: json::change::Relation::new(&relation),
            existed,
            undo_token: json::filled(undo_token),
            revision: unsigned(header.unwrap_or_default().revision),
        })?;
        return Ok(Exit::Done);
    }
    let [id, from, to] = [&relation.id, &relation.from_id, &relation.to_id].map(|id| text::short_id(id));
    context.out.print(&format!("{id}  {from} {} {to}\n", words::relation_type(relation.r#type)))?;
    context.out.note(note);
    if !undo_token.is_empty() {
        context.out.note(&format!("`satchel memories undo --change {undo_token}` takes it back"));
    }
    Ok(Exit::Done)
}

/// Returns the full id for `given`.
async fn resolve(link: &Link, given: &str) -> Result<String, CliError> {
    page::resolve("relation", given, async |page_size, page_token| {
        let page = fetch(link, "", &[], page_size, page_token).await?;
        Ok(Page { rows: page.rows.into_iter().map(|relation| relation.id).collect(), next: page.next })
    })
    .await
}
