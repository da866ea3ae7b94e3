//! Shows devices and their calls.

use satchel_proto::v1::{AuditEvent, Device, DevicePolicy, DeviceRole, DeviceSelection, TimeRange};
use tonic::Code;

use crate::cli::{
    labels,
    properties::Properties,
    style::Paint,
    table::{Cell, Column, Table},
    time::Calendar,
};

/// Returns the table of `devices list`.
pub(super) fn table(devices: &[Device], calendar: &Calendar) -> Table {
    let mut table = Table::new([
        Column::new("name").shrinks_to(12),
        Column::new("id").shrinks_to(11).optional(3),
        Column::new("role"),
        Column::new("kind").optional(2),
        Column::new("state"),
        Column::new("last call"),
        Column::new("from").shrinks_to(15).optional(4),
        Column::new("expires").optional(1),
    ]);
    for device in devices {
        let role = device.policy.as_ref().map_or(0, |policy| policy.role);
        let (state, paint) = state(device, calendar);
        table.row([
            Cell::painted(&device.name, Paint::Strong),
            Cell::painted(&device.id, Paint::Id),
            Cell::new(&labels::device_role(role)),
            Cell::new(&labels::device_kind(device.kind)),
            Cell::painted(state, paint),
            Cell::new(&calendar.short(device.last_seen_at.as_ref())),
            Cell::new(&device.last_address),
            Cell::new(&calendar.minute(device.expire_time.as_ref())),
        ]);
    }
    table
}

fn state(device: &Device, calendar: &Calendar) -> (&'static str, Paint) {
    if device.revoked_at.is_some() {
        ("revoked", Paint::Bad)
    } else if calendar.is_past(device.expire_time.as_ref()) {
        ("expired", Paint::Warn)
    } else {
        ("active", Paint::Good)
    }
}

/// Returns the properties of one device.
pub(super) fn properties(device: &Device, calendar: &Calendar) -> Properties {
    let mut properties = Properties::new();
    properties.add_painted("name", &device.name, Paint::Strong);
    properties.add_painted("id", &device.id, Paint::Id);
    let (state, paint) = state(device, calendar);
    properties.add_painted("state", state, paint);
    properties.add("kind", &labels::device_kind(device.kind));
    add_policy(&mut properties, device.policy.as_ref().unwrap_or(&DevicePolicy::default()), calendar);
    let by = format!("{} by {}", calendar.minute(device.paired_at.as_ref()), device.paired_by);
    properties.add("paired", &by);
    properties.add("expires", &calendar.minute(device.expire_time.as_ref()));
    let seen = calendar.minute(device.last_seen_at.as_ref());
    properties.add("last call", &if seen.is_empty() { "never".to_owned() } else { seen });
    properties.add("from", &device.last_address);
    properties.add("revoked", &calendar.minute(device.revoked_at.as_ref()));
    properties.add("reason", &device.revoke_reason);
    properties
}

fn add_policy(properties: &mut Properties, policy: &DevicePolicy, calendar: &Calendar) {
    let DevicePolicy { role, scopes, entity, selection, trusted_writes } = policy;
    properties.add("role", &labels::device_role(*role));
    properties.add("may", &labels(scopes, labels::scope));
    if *role == i32::from(DeviceRole::Agent) {
        properties.add("called", entity);
        properties
            .add("memories", if *trusted_writes { "stored at once" } else { "wait for `memories review`" });
    }
    add_selection(properties, selection.as_ref(), calendar);
}

fn labels(values: &[i32], label: fn(i32) -> String) -> String {
    values.iter().map(|value| label(*value)).collect::<Vec<_>>().join(", ")
}

/// Adds what a device sees, or a peer gets. What is not restricted is left out.
pub(in crate::cli) fn add_selection(
    properties: &mut Properties,
    selection: Option<&DeviceSelection>,
    calendar: &Calendar,
) {
    let Some(selection) = selection else { return };
    let DeviceSelection { platforms, tags, types, denied_tags, created, exportable_only } = selection;
    properties.add("platforms", &platforms.join(", "));
    properties.add("tags", &tags.join(", "));
    properties.add("types", &labels(types, labels::memory_type));
    properties.add("denied tags", &denied_tags.join(", "));
    if let Some(TimeRange { start, end }) = created {
        properties.add("created since", &calendar.minute(start.as_ref()));
        properties.add("created before", &calendar.minute(end.as_ref()));
    }
    if *exportable_only {
        properties.add("access", "only what exports may contain");
    }
}

/// Returns the table of `devices log`.
pub(super) fn calls(events: &[AuditEvent], calendar: &Calendar) -> Table {
    let mut table = Table::new([
        Column::new("time"),
        Column::new("device").shrinks_to(12),
        Column::new("from").shrinks_to(15).optional(1),
        Column::new("call").shrinks_to(20),
        Column::new("result"),
    ]);
    for event in events {
        let method = event.method.strip_prefix("satchel.v1.").unwrap_or(&event.method);
        let name = if event.device_name.is_empty() { "not paired" } else { &event.device_name };
        let (result, paint) = result(event.code);
        table.row([
            Cell::new(&calendar.minute(event.called_at.as_ref())),
            Cell::new(name),
            Cell::new(&event.address),
            Cell::new(method),
            Cell::painted(&result, paint),
        ]);
    }
    table
}

fn result(code: i32) -> (String, Paint) {
    match Code::from_i32(code) {
        Code::Ok => ("ok".to_owned(), Paint::Good),
        Code::PermissionDenied | Code::Unauthenticated => ("refused".to_owned(), Paint::Bad),
        Code::NotFound => ("not found".to_owned(), Paint::Plain),
        other => (format!("{other:?}").to_lowercase(), Paint::Warn),
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{DeviceKind, Scope};

    use super::*;
    use crate::cli::{style::TerminalStyle, time};

    fn device(name: &str) -> Device {
        Device {
            id: "ABCDE-FGHJK".to_owned(),
            name: name.to_owned(),
            kind: DeviceKind::Certificate.into(),
            policy: Some(DevicePolicy {
                role: DeviceRole::Agent.into(),
                scopes: vec![Scope::MemoriesRead.into()],
                entity: "notes".to_owned(),
                selection: Some(DeviceSelection {
                    tags: vec!["work".to_owned()],
                    ..DeviceSelection::default()
                }),
                trusted_writes: false,
            }),
            paired_at: time::at("2026-03-01T10:00:00Z"),
            paired_by: "owner".to_owned(),
            last_address: "192.168.1.7:50000".to_owned(),
            last_seen_at: time::at("2026-03-12T11:30:00Z"),
            expire_time: time::at("2026-05-30T10:00:00Z"),
            ..Device::default()
        }
    }

    #[test]
    fn devices_are_listed_with_their_state() {
        let revoked = Device { revoked_at: time::at("2026-03-02T10:00:00Z"), ..device("a\u{1b}[2J") };
        let expired = Device { expire_time: time::at("2026-03-02T10:00:00Z"), ..device("old") };
        let shown =
            table(&[device("notes"), revoked, expired], &time::fixed()).render(TerminalStyle::plain(120));
        let expected = "\
NAME        ID           ROLE   KIND         STATE    LAST CALL   FROM               EXPIRES
notes       ABCDE-FGHJK  agent  certificate  active   30 min ago  192.168.1.7:50000  2026-05-30 10:00
a\\u{1b}[2J  ABCDE-FGHJK  agent  certificate  revoked  30 min ago  192.168.1.7:50000  2026-05-30 10:00
old         ABCDE-FGHJK  agent  certificate  expired  30 min ago  192.168.1.7:50000  2026-03-02 10:00
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_device_is_shown_with_its_policy() {
        let expected = "\
name       notes
id         ABCDE-FGHJK
state      active
kind       certificate
role       agent
may        memories-read
called     notes
memories   wait for `memories review`
tags       work
paired     2026-03-01 10:00 by owner
expires    2026-05-30 10:00
last call  2026-03-12 11:30
from       192.168.1.7:50000
";
        assert_eq!(properties(&device("notes"), &time::fixed()).render(TerminalStyle::plain(80)), expected);
    }

    #[test]
    fn calls_are_listed_with_their_result() {
        let call = |name: &str, code: Code| AuditEvent {
            called_at: time::at("2026-03-12T11:30:00Z"),
            device_id: String::new(),
            device_name: name.to_owned(),
            address: "[::1]:50000".to_owned(),
            method: "satchel.v1.MemoryService/GetMemory".to_owned(),
            code: code.into(),
        };
        let events = [call("laptop", Code::Ok), call("", Code::Unauthenticated), call("a", Code::NotFound)];
        let expected = "\
TIME              DEVICE      FROM         CALL                     RESULT
2026-03-12 11:30  laptop      [::1]:50000  MemoryService/GetMemory  ok
2026-03-12 11:30  not paired  [::1]:50000  MemoryService/GetMemory  refused
2026-03-12 11:30  a           [::1]:50000  MemoryService/GetMemory  not found
";
        assert_eq!(calls(&events, &time::fixed()).render(TerminalStyle::plain(100)), expected);
    }
}
