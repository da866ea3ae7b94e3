//! Conversions that only the tests of round trips need.

use proptest::{array, prelude::*};
use prost_types::Timestamp as WireTimestamp;
use satchel_pam::{raw::RawObject, time::Timestamp};
use satchel_proto::v1;
use satchel_store::{TimeRange, UNKNOWN_TIME};

use super::{
    WireError,
    memory::timestamp_from_wire,
    scalar::{optional_time_from_wire, time_from_wire, time_to_wire},
};

/// Returns counts that the contract can represent exactly.
pub(super) fn counts<const N: usize>() -> impl Strategy<Value = [u64; N]> {
    array::UniformArrayStrategy::new(0..=i64::MAX.unsigned_abs())
}

pub(super) fn raw_from_wire(field: &str, json: Option<String>) -> Result<Option<RawObject>, WireError> {
    let parsed = json.map(RawObject::parse).transpose();
    parsed.map_err(|error| WireError::new(field, error.to_string()))
}

/// Reads a time that PAM requires; a missing time is unknown.
pub(super) fn known_timestamp_from_wire(
    field: &str,
    wire: Option<WireTimestamp>,
) -> Result<Timestamp, WireError> {
    Ok(timestamp_from_wire(field, wire)?.unwrap_or(Timestamp::EPOCH))
}

/// Reads a required time.
pub(super) fn required_time_from_wire(field: &str, wire: Option<WireTimestamp>) -> Result<i64, WireError> {
    time_from_wire(field, wire.ok_or_else(|| WireError::new(field, "is missing"))?)
}

/// Reads the time of a record; a missing time is unknown.
pub(super) fn known_micros_from_wire(field: &str, wire: Option<WireTimestamp>) -> Result<i64, WireError> {
    Ok(optional_time_from_wire(field, wire)?.unwrap_or(UNKNOWN_TIME))
}

/// Converts a range to the wire; `None` if it is open at both ends.
pub(super) fn range_to_wire(range: TimeRange) -> Option<v1::TimeRange> {
    let TimeRange { from, until } = range;
    (from.is_some() || until.is_some())
        .then(|| v1::TimeRange { start: from.map(time_to_wire), end: until.map(time_to_wire) })
}
