//! `conversations stats`.

use satchel_proto::{
    integers::unsigned,
    v1::{ConversationGroup, ConversationTotals, GetConversationStatsRequest, GetConversationStatsResponse},
};

use super::filter;
use crate::cli::{
    Context,
    args::{ConversationFilterArgs, GroupingArg, Paging},
    client::DaemonClient,
    empty_list,
    error::CliError,
    exit::Exit,
    json,
    style::Paint,
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

/// Most groups that the daemon lists.
const MAX_GROUPS: usize = 1_000;

/// Shows how many conversations, messages and tokens each group has.
pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    by: GroupingArg,
    select: &ConversationFilterArgs,
    paging: Paging,
) -> Result<Exit, CliError> {
    let max_groups = paging.max_rows().unwrap_or(MAX_GROUPS).min(MAX_GROUPS);
    let request = GetConversationStatsRequest {
        filter: Some(filter(select, &context.calendar)?),
        group_by: by.to_wire().into(),
        max_groups: i32::try_from(max_groups).unwrap_or(i32::MAX),
    };
    let spinner = context.out.spinner("counting messages");
    let answer = client.conversations().get_conversation_stats(request).await;
    spinner.finish_and_clear();
    let answer = answer?.into_inner();
    if context.out.json {
        context.out.json(&json::conversation::Statistics::new(by.name(), &answer))?;
        return Ok(Exit::Done);
    }
    if answer.groups.is_empty() {
        let why = empty_list::conversations(client, select).await?;
        context.out.note(&why);
    } else {
        context.out.print(&table(by, &answer, &context.calendar).render(context.out.style))?;
    }
    if answer.other_groups > 0 && !paging.all {
        context.out.note("use --all to show all groups, up to 1,000");
    }
    Ok(Exit::Done)
}

fn table(by: GroupingArg, answer: &GetConversationStatsResponse, calendar: &Calendar) -> Table {
    let mut table = Table::new([
        Column::new(by.name()).shrinks_to(24),
        Column::right("conversations").optional(3),
        Column::right("messages"),
        Column::right("tokens").optional(1),
        Column::right("cost").optional(3),
        Column::new("first").optional(4),
        Column::new("last").optional(2),
    ]);
    for ConversationGroup { name, totals } in &answer.groups {
        let name = if name.is_empty() { Cell::painted("(unknown)", Paint::Dim) } else { Cell::new(name) };
        table.row(row(name, totals.unwrap_or_default(), calendar));
    }
    if let Some(others) = answer.others {
        let others_label = format!("({} more)", text::number(unsigned(answer.other_groups)));
        table.row(row(Cell::painted(&others_label, Paint::Dim), others, calendar));
    }
    if answer.groups.len() > 1 {
        table.row(row(Cell::painted("all", Paint::Dim), answer.total.unwrap_or_default(), calendar));
    }
    table
}

fn row(name: Cell, totals: ConversationTotals, calendar: &Calendar) -> [Cell; 7] {
    let ConversationTotals {
        conversations,
        messages,
        tokens,
        first_message_at,
        last_message_at,
        cost_micros,
    } = totals;
    let number = |count: i64| Cell::new(&text::number(unsigned(count)));
    let time = |time: Option<&prost_types::Timestamp>| Cell::painted(&calendar.short(time), Paint::Dim);
    [
        name,
        number(conversations),
        number(messages),
        // Most exports do not say it.
        if tokens == 0 { Cell::new("") } else { number(tokens) },
        Cell::new(&dollars(unsigned(cost_micros))),
        time(first_message_at.as_ref()),
        time(last_message_at.as_ref()),
    ]
}

/// Returns an amount in millionths of a US dollar as text; an empty one if it is zero.
fn dollars(micros: u64) -> String {
    match micros.saturating_add(5_000) / 10_000 {
        0 if micros == 0 => String::new(),
        0 => "<$0.01".to_owned(),
        cents => format!("${}.{:02}", text::number(cents / 100), cents % 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_to_cents() {
        for (micros, expected) in [
            (0, ""),
            (1, "<$0.01"),
            (4_999, "<$0.01"),
            (5_000, "$0.01"),
            (994_999, "$0.99"),
            (995_000, "$1.00"),
            (1_234_567_890_000, "$1,234,567.89"),
        ] {
            assert_eq!(dollars(micros), expected, "{micros}");
        }
    }
}
