//! The filter and the order of memories.

use satchel_proto::v1;
use satchel_store::{MemoryOrder, MemoryQuery};

use super::{memory_type_from_wire, status_from_wire};
use crate::grpc::wire::{
    WireError,
    scalar::{check_count, optional_time_from_wire, range_from_wire, value_from_wire, values_from_wire},
};

/// Reads an order.
///
/// # Errors
/// An unknown number.
pub fn order_from_wire(wire: i32) -> Result<MemoryOrder, WireError> {
    match v1::MemoryOrder::try_from(wire) {
        Ok(v1::MemoryOrder::Unspecified | v1::MemoryOrder::UpdatedDesc) => Ok(MemoryOrder::UpdatedDescending),
        Ok(v1::MemoryOrder::CreatedAsc) => Ok(MemoryOrder::CreatedAscending),
        Ok(v1::MemoryOrder::IdAsc) => Ok(MemoryOrder::IdAscending),
        Err(_) => Err(WireError::new("order", format!("holds {wire}, which is not a known value"))),
    }
}

/// Reads a filter. No filter, or one without statuses, selects active memories.
///
/// # Errors
/// Unknown values, too many or too long ones, and ranges that end before they begin.
pub fn filter_from_wire(wire: Option<v1::MemoryFilter>) -> Result<MemoryQuery, WireError> {
    let v1::MemoryFilter {
        types,
        statuses,
        platforms,
        tags_any,
        tags_all,
        conversation_id,
        created,
        updated,
        accounts,
        content_hash,
        valid_at,
        expired_at,
        // Only lists leave out what has expired.
        include_expired: _,
    } = wire.unwrap_or_default();
    let statuses = match statuses.as_slice() {
        [] => vec![v1::MemoryStatus::Active.into()],
        _ => statuses,
    };
    Ok(MemoryQuery {
        types: enums("filter.types", types, memory_type_from_wire)?,
        statuses: enums("filter.statuses", statuses, status_from_wire)?,
        platforms: values_from_wire("filter.platforms", platforms)?,
        accounts: values_from_wire("filter.accounts", accounts)?,
        tags_any: values_from_wire("filter.tags_any", tags_any)?,
        tags_all: values_from_wire("filter.tags_all", tags_all)?,
        conversation: value_from_wire("filter.conversation_id", conversation_id)?,
        created: range_from_wire("filter.created", created)?,
        updated: range_from_wire("filter.updated", updated)?,
        content_hash: value_from_wire("filter.content_hash", content_hash)?,
        valid_at: optional_time_from_wire("filter.valid_at", valid_at)?,
        expired_at: optional_time_from_wire("filter.expired_at", expired_at)?,
        unexpired_at: None,
        ids: Vec::new(),
        order: MemoryOrder::default(),
    })
}

fn enums<T>(
    field: &str,
    wire: Vec<i32>,
    read: impl Fn(&str, i32) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    check_count(field, wire.len())?;
    wire.into_iter().map(|number| read(field, number)).collect()
}
