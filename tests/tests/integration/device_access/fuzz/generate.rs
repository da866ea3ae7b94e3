//! Random requests, made from the descriptors and written byte by byte, so that they need not be valid.

use anyhow::Result;
use prost_reflect::{
    Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};
use satchel_tests::{generate::Rng, test_daemon::TestDaemon, test_device::TestDevice};

use super::{descriptors, playground};
use crate::device_access::records::Records;

/// Levels of messages in an ordinary request, and in one that nests as deep as it can.
const DEPTH: u32 = 6;
const DEEP: u32 = 130;
/// Bytes after which a request gets no more fields. A single text may be longer.
const ENOUGH_BYTES: usize = 64 << 10;

/// Makes requests.
pub(super) struct Generator {
    pool: DescriptorPool,
    /// Ids of records, of which some are hidden from most callers.
    ids: Vec<String>,
    paths: Vec<String>,
    devices: Vec<String>,
}

/// How a request is made.
struct Style {
    /// Chance that a field is set, in percent.
    set: u64,
    /// Chance that a value is an extreme one, in percent.
    extreme: u64,
    depth: u32,
}

impl Generator {
    pub(super) fn new(daemon: &TestDaemon, records: &Records, spare: &TestDevice) -> Result<Self> {
        let folder = playground(daemon).to_string_lossy().into_owned();
        let mut ids: Vec<String> = records.all_ids().map(str::to_owned).collect();
        ids.extend(["relation-id", "relation-2", "message-1", "chatgpt", "0", "1"].map(str::to_owned));
        // Devices are also found by the beginning of their id, so no text is made up: an owner could revoke itself.
        let devices = [spare.device.id.as_str(), "no-device", "", "\0"].map(str::to_owned).to_vec();
        let paths =
            ["bundle", "bundle/memory-store.json", "nothing", "written", "written.zip", "bundle/../bundle"]
                .map(|name| format!("{folder}/{name}"));
        let refused = ["", "relative", "/nowhere/at/all", "../..", "/nowhere/\0/x"].map(str::to_owned);
        Ok(Self { pool: descriptors()?, ids, paths: paths.into_iter().chain(refused).collect(), devices })
    }

    /// Returns all methods of our services.
    pub(super) fn methods(&self) -> impl Iterator<Item = MethodDescriptor> {
        let services = self.pool.services().filter(|service| service.full_name().starts_with("satchel."));
        services.flat_map(|service| service.methods().collect::<Vec<_>>())
    }

    /// Makes a request. Half of them are plausible; the others have extreme values, and some are no messages at all.
    pub(super) fn request(&self, message: &MessageDescriptor, rng: &mut Rng) -> Vec<u8> {
        let style = match rng.below(10) {
            0..5 => Style { set: 35, extreme: 5, depth: DEPTH },
            5..8 => Style { set: 60, extreme: 40, depth: DEPTH },
            8 => Style { set: 90, extreme: 70, depth: DEPTH },
            _ => Style { set: 25, extreme: 20, depth: DEEP },
        };
        let mut bytes = Vec::new();
        self.message(message, &style, style.depth, rng, &mut bytes);
        damage(bytes, rng)
    }

    fn message(
        &self,
        message: &MessageDescriptor,
        style: &Style,
        depth: u32,
        rng: &mut Rng,
        out: &mut Vec<u8>,
    ) {
        for field in message.fields() {
            // Deep requests go on in the fields that contain themselves.
            let recursive = field.kind().as_message().is_some_and(contains_itself);
            let chance = if recursive && style.depth == DEEP { 95 } else { style.set };
            if out.len() < ENOUGH_BYTES && rng.chance(chance) {
                self.field(&field, style, depth, rng, out);
            }
        }
    }

    fn field(&self, field: &FieldDescriptor, style: &Style, depth: u32, rng: &mut Rng, out: &mut Vec<u8>) {
        let times = match field.cardinality() {
            Cardinality::Repeated if style.depth == DEEP => 1,
            Cardinality::Repeated if rng.chance(style.extreme / 10) => rng.below(1_200),
            Cardinality::Repeated => rng.below(4),
            _ => 1,
        };
        for _ in 0..times {
            if out.len() > ENOUGH_BYTES {
                break;
            }
            let mut value = Vec::new();
            let wire_type = match field.kind() {
                Kind::Message(inner) => {
                    if depth > 0 && out.len() < ENOUGH_BYTES {
                        self.message(&inner, style, depth - 1, rng, &mut value);
                    }
                    length_delimited(&mut value)
                }
                Kind::String => {
                    value.extend(self.text(field, style, rng));
                    length_delimited(&mut value)
                }
                Kind::Bytes => {
                    let limit = if rng.chance(style.extreme) { 5_000 } else { 40 };
                    let length = rng.below(limit);
                    value.extend((0..length).map(|_| random_byte(rng)));
                    length_delimited(&mut value)
                }
                kind => number(&kind, style, rng, &mut value),
            };
            varint(u64::from(field.number()) << 3 | wire_type, out);
            out.extend(value);
        }
    }

    fn text(&self, field: &FieldDescriptor, style: &Style, rng: &mut Rng) -> Vec<u8> {
        let name = field.name();
        // Nothing of the machine outside the folder of the test may be read or written.
        if ["path", "output", "base_path"].contains(&name) {
            return pick(&self.paths, rng).clone().into_bytes();
        }
        if name == "device" {
            return pick(&self.devices, rng).clone().into_bytes();
        }
        if !rng.chance(style.extreme) {
            // Not in other texts: what a caller writes there would come back to it later.
            let id = name == "id" || name == "ids" || name.ends_with("_id");
            if id && name != "request_id" && name != "store_id" && rng.chance(90) {
                return pick(&self.ids, rng).clone().into_bytes();
            }
            return match name {
                "paths" => pick(&MASKS, rng).as_bytes().to_vec(),
                "request_id" => format!("00000000-0000-4000-8000-{:012}", rng.below(50)).into_bytes(),
                _ => pick(&PLAUSIBLE, rng).as_bytes().to_vec(),
            };
        }
        match rng.below(12) {
            0 => Vec::new(),
            // Not UTF-8: a byte alone, a surrogate, an overlong form.
            1 => pick(&[&[0xff_u8][..], &[0xed, 0xa0, 0x80], &[0xc0, 0xaf], b"a\x80b"], rng).to_vec(),
            2 => "x".repeat(usize::try_from(rng.below(3_000)).unwrap_or(0)).into_bytes(),
            3 => "\u{1F469}\u{200D}".repeat(400).into_bytes(),
            // Seldom more than a request may have.
            4 => b"y".repeat(if rng.chance(10) { 5 << 20 } else { 1 << 18 }),
            _ => pick(&EXTREME, rng).as_bytes().to_vec(),
        }
    }
}

/// Texts that mean something in some field.
const PLAUSIBLE: [&str; 14] = [
    "elsewhere",
    "part",
    "memory-p",
    "fact",
    "chatgpt",
    "en",
    "some-tag",
    "agent-a",
    "a few words",
    "{\"a\": 1}",
    "2026-01-02T03:04:05Z",
    "\"1\"",
    "0",
    "reader",
];
/// Texts that break something somewhere.
const EXTREME: [&str; 14] = [
    "\0",
    "\u{202e}abc",
    "\u{feff}",
    "\r\nx: y",
    "../../../etc/passwd",
    "%s%n",
    "'; --",
    "{\"a\":",
    "[[[[[[[[",
    "-1",
    "99999999999999999999",
    "\u{10ffff}",
    "\x1b[31m",
    " ",
];
/// Names of fields in masks.
const MASKS: [&str; 12] = [
    "content",
    "tags",
    "summary",
    "access",
    "confidence",
    "type",
    "status",
    "*",
    "id",
    "policy",
    "name",
    "a.b.c",
];

fn pick<'a, T>(all: &'a [T], rng: &mut Rng) -> &'a T {
    let index = usize::try_from(rng.below(all.len() as u64)).unwrap_or(0);
    &all[index]
}

fn random_byte(rng: &mut Rng) -> u8 {
    rng.next_u64().to_le_bytes()[0]
}

/// Returns whether a message has a field of its own type.
fn contains_itself(message: &MessageDescriptor) -> bool {
    message.fields().any(|field| field.kind().as_message() == Some(message))
}

/// Puts the length before a value; returns its wire type.
fn length_delimited(value: &mut Vec<u8>) -> u64 {
    let mut length = Vec::new();
    varint(value.len() as u64, &mut length);
    value.splice(0..0, length);
    2
}

/// Writes a number; returns its wire type.
fn number(kind: &Kind, style: &Style, rng: &mut Rng, out: &mut Vec<u8>) -> u64 {
    let extreme = rng.chance(style.extreme);
    match kind {
        Kind::Double | Kind::Float => {
            let small = f64::from(u32::try_from(rng.below(100)).unwrap_or(0)) / 100.0;
            let value = if extreme { *pick(&FLOATS, rng) } else { small };
            if matches!(kind, Kind::Double) {
                out.extend(value.to_le_bytes());
                return 1;
            }
            #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
            out.extend((value as f32).to_le_bytes());
            5
        }
        Kind::Fixed64 | Kind::Sfixed64 => {
            out.extend(integer(extreme, rng).to_le_bytes());
            1
        }
        Kind::Fixed32 | Kind::Sfixed32 => {
            out.extend(&integer(extreme, rng).to_le_bytes()[..4]);
            5
        }
        Kind::Bool => {
            varint(rng.below(2), out);
            0
        }
        Kind::Enum(values) if !extreme => {
            let numbers: Vec<i32> = values.values().map(|value| value.number()).collect();
            varint(i64::from(*pick(&numbers, rng)).cast_unsigned(), out);
            0
        }
        _ => {
            varint(integer(extreme, rng), out);
            0
        }
    }
}

const FLOATS: [f64; 8] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MAX, f64::MIN_POSITIVE, -1.0, 1.000_001];

fn integer(extreme: bool, rng: &mut Rng) -> u64 {
    if !extreme {
        return rng.below(40);
    }
    let extremes = [
        -1,
        i64::MAX,
        i64::MIN,
        i32::MAX.into(),
        i32::MIN.into(),
        i64::from(i32::MAX) + 1,
        253_402_300_800,
        -62_135_596_801,
        1_001,
        999_999_999,
        1_000_000_000,
        0,
    ];
    match rng.below(3) {
        0 => rng.next_u64(),
        _ => pick(&extremes, rng).cast_unsigned(),
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Damages one request in six: its end is missing, a byte differs, it has fields that nobody knows, or it is noise.
fn damage(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    let position = usize::try_from(rng.below(bytes.len() as u64 + 1)).unwrap_or(0);
    match rng.below(24) {
        0 => bytes.truncate(position),
        1 => {
            if let Some(byte) = bytes.get_mut(position) {
                *byte ^= random_byte(rng);
            }
        }
        2 => {
            let mut value = b"unknown".to_vec();
            let wire_type = length_delimited(&mut value);
            varint(rng.below(1 << 29).max(100) << 3 | wire_type, &mut bytes);
            bytes.extend(value);
        }
        3 => bytes = (0..rng.below(200)).map(|_| random_byte(rng)).collect(),
        _ => {}
    }
    bytes
}
