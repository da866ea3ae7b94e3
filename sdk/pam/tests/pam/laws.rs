//! Laws that hold for all values, against simple implementations and other libraries.

use proptest::{collection::vec, option, prelude::*};
use satchel_pam::{
    checksum,
    conversation::ConversationHeader,
    hash::{ContentHash, Sha256Digest},
    jcs,
    memory::{
        Access, AccessGrant, Confidence, DecayModel, Memory, MemoryType, Permission, Status, Temporal,
        Visibility,
    },
    normal::normal_form,
    parse::{self, ChecksumStatus},
    raw::RawObject,
    store::{self, Owner, StoreHeader},
    text,
    time::{MAX_MICROS, MIN_MICROS, Timestamp},
    validate,
};
use serde_json::{Map, Value, value::RawValue};

use crate::full;

fn number() -> impl Strategy<Value = Value> {
    let limit = 1_i64 << 53;
    prop_oneof![
        (1 - limit..limit).prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        (-1e22_f64..1e22).prop_map(Value::from),
        (-1e-5_f64..1e-5).prop_map(Value::from),
        (-100_i32..100).prop_map(|whole| Value::from(f64::from(whole))),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((any::<String>(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((any::<String>(), json()), 0..5).prop_map(|entries| entries.into_iter().collect())
}

/// RFC 8785 in the plainest way.
fn simple_jcs(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => simple_scalar(value),
        Value::Number(number) => simple_number(number.as_f64().unwrap()),
        Value::Array(items) => format!("[{}]", items.iter().map(simple_jcs).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let mut keys: Vec<(Vec<u16>, &String)> =
                map.keys().map(|key| (key.encode_utf16().collect(), key)).collect();
            keys.sort();
            let entries = keys.iter().map(|(_, key)| {
                format!("{}:{}", simple_scalar(&Value::from(key.as_str())), simple_jcs(&map[key.as_str()]))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
    }
}

/// `serde_json` escapes as RFC 8785 asks.
fn simple_scalar(value: &Value) -> String {
    value.to_string()
}

/// ECMAScript's `Number::toString`, from the digits that Rust finds.
fn simple_number(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{:e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let digits = even_digits(number, mantissa.replace('.', ""));
    let count = i32::try_from(digits.len()).unwrap();
    let point: i32 = exponent.parse::<i32>().unwrap() + 1;
    let at = |place: i32| usize::try_from(place).unwrap();
    let body = if (count..=21).contains(&point) {
        digits.clone() + &"0".repeat(at(point - count))
    } else if (1..=21).contains(&point) {
        format!("{}.{}", &digits[..at(point)], &digits[at(point)..])
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", "0".repeat(at(-point)))
    } else {
        let sign = if point > 0 { "+" } else { "-" };
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{sign}{}", &digits[..1], (point - 1).abs())
    };
    if number < 0.0 { format!("-{body}") } else { body }
}

/// Where a number lies just between two texts of the same length, ECMAScript takes the even one, Rust the greater.
fn even_digits(number: f64, digits: String) -> String {
    let exact = format!("{:.60e}", number.abs()).split('e').next().unwrap().replace('.', "");
    let (head, tail) = exact.split_at(digits.len());
    let between = tail.starts_with('5') && tail[1..].bytes().all(|digit| digit == b'0');
    let even = head.bytes().last().is_some_and(|digit| digit % 2 == 0);
    if between && even { head.to_owned() } else { digits }
}

#[test]
fn a_number_between_two_texts_takes_the_even_one() {
    for (quarters, text) in
        [(5_306_013_550_787_061.0, "1326503387696765.2"), (5_306_013_550_787_063.0, "1326503387696765.8")]
    {
        let number: f64 = quarters / 4.0;
        assert_eq!(String::from_utf8(jcs::to_vec(&Value::from(number)).unwrap()).unwrap(), text);
        assert_eq!(simple_number(number), text);
    }
}

/// The same value with the keys of every object written in reverse.
fn reversed(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(" , ")),
        Value::Object(map) => {
            let entries =
                map.iter().map(|(key, value)| format!("{} : {}", Value::from(key.as_str()), reversed(value)));
            let mut entries: Vec<String> = entries.collect();
            entries.reverse();
            format!("{{{}}}", entries.join(",\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

proptest! {
    #[test]
    fn canonical_json_is_what_the_rfc_says(value in json()) {
        prop_assert_eq!(String::from_utf8(jcs::to_vec(&value).unwrap()).unwrap(), simple_jcs(&value));
    }

    #[test]
    fn canonical_json_of_canonical_json_is_itself(value in json()) {
        let once = jcs::to_vec(&value).unwrap();
        let again: Value = serde_json::from_slice(&once).unwrap();
        // A float without fraction comes back as an integer, which has a limit that floats do not have.
        if let Ok(twice) = jcs::to_vec(&again) {
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn key_order_is_lost(map in object()) {
        let value = Value::Object(map);
        let other: Value = serde_json::from_str(&reversed(&value)).unwrap();
        prop_assert_eq!(jcs::to_vec(&value).unwrap(), jcs::to_vec(&other).unwrap());
    }

    #[test]
    fn our_reader_agrees_with_serde_json(map in object(), at in any::<prop::sample::Index>(), byte in any::<u8>(), kind in 0..4) {
        let mut text = reversed(&Value::Object(map)).into_bytes();
        let place = at.index(text.len());
        match kind {
            0 => {}
            1 => text[place] = byte & 0x7f,
            2 => drop(text.remove(place)),
            _ => text.insert(place, *b"{}[]\",:\\u0d8-.eE".get(usize::from(byte % 16)).unwrap()),
        }
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        let theirs = RawValue::from_string(text.clone()).is_ok_and(|value| value.get().starts_with('{'));
        match RawObject::parse(text.clone()) {
            Ok(object) => {
                prop_assert!(theirs, "{}", text);
                let map: Map<String, Value> = serde_json::from_str(object.as_str()).unwrap();
                prop_assert_eq!(object.to_map(), map);
            }
            Err(problem) => prop_assert!(!theirs || problem.to_string().contains("too large"), "{}: {}", text, problem),
        }
    }

    #[test]
    fn a_key_set_in_a_raw_object_is_the_only_change(map in object(), key in any::<String>(), value in json()) {
        let object = RawObject::parse(reversed(&Value::Object(map.clone()))).unwrap();
        let mut expected = map;
        expected.insert(key.clone(), value.clone());
        prop_assert_eq!(object.with(&key, &value).to_map(), expected);
    }

    #[test]
    fn white_space_of_raw_objects_is_ours(map in object()) {
        let value = Value::Object(map);
        let write = |text: String| {
            let raw_metadata = Some(RawObject::parse(text).unwrap());
            let header = ConversationHeader { raw_metadata, ..full::conversation_header() };
            header.into_document(Vec::new()).to_json()
        };
        let compact = write(value.to_string());
        prop_assert_eq!(&compact, &write(serde_json::to_string_pretty(&value).unwrap()));
        prop_assert_eq!(&serde_json::from_slice::<Value>(&compact).unwrap()["raw_metadata"], &value);
        let pretty = serde_json::to_string_pretty(&value).unwrap().replace('\n', "\n  ");
        let text = String::from_utf8(compact).unwrap();
        let expected = format!("\"raw_metadata\": {pretty}");
        prop_assert!(text.contains(&expected), "{}", text);
    }

    #[test]
    fn padding_never_changes_a_hash(content in any::<String>(), pad in "[ \t\n\u{1c}\u{a0}\u{3000}]{0,4}") {
        let padded = format!("{pad}{content}{pad}");
        prop_assert_eq!(ContentHash::of(&padded), ContentHash::of(&content));
    }

    #[test]
    fn a_normalised_text_has_single_spaces_only(content in "[a-zA-ZΣσßİé \t\u{1f}\u{2003}]{0,30}") {
        let words: Vec<String> = content.split([' ', '\t', '\u{1f}', '\u{2003}']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        let normal = text::normalise(&content);
        prop_assert_eq!(normal.split(' ').filter(|word| !word.is_empty()).count(), words.len());
        prop_assert!(!normal.contains("  ") && normal.trim() == normal);
    }

    #[test]
    fn digests_are_read_as_written(bytes in any::<[u8; 32]>()) {
        let digest = Sha256Digest::from_bytes(bytes);
        prop_assert_eq!(digest.to_string().parse(), Ok(digest));
        prop_assert!(Sha256Digest::parse(&digest.to_string().to_uppercase()).is_err());
    }

    #[test]
    fn timestamps_are_read_as_written(time in timestamp()) {
        prop_assert_eq!(Timestamp::parse_noting(&time.to_string()), Ok((time, None)));
    }

    #[test]
    fn timestamps_agree_with_another_library(micros in MIN_MICROS..=MAX_MICROS) {
        let ours = Timestamp::from_micros(micros).unwrap();
        let theirs = jiff::Timestamp::from_microsecond(micros);
        if let Ok(theirs) = theirs {
            prop_assert_eq!(ours.to_string().parse::<jiff::Timestamp>().unwrap(), theirs);
            prop_assert_eq!(Timestamp::parse(&theirs.to_string()).unwrap(), ours);
        }
    }

    #[test]
    fn timestamps_are_ordered_by_instant(one in timestamp(), other in timestamp()) {
        if one.micros() != other.micros() {
            prop_assert_eq!(one < other, one.micros() < other.micros());
        }
    }

    #[test]
    fn epoch_seconds_keep_microseconds(micros in 0_i64..4_102_444_800_000_000) {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let seconds = micros as f64 / 1e6;
        prop_assert_eq!(Timestamp::from_epoch_seconds(seconds).unwrap().micros(), micros);
    }

    #[test]
    fn any_text_is_a_timestamp_or_an_error(text in ".{0,40}", number in any::<f64>()) {
        if let Ok(time) = Timestamp::parse(&text) {
            prop_assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
        prop_assert!(Timestamp::from_epoch_seconds(number).is_ok() || number.is_nan() || number.abs() > 6e10);
    }

    #[test]
    fn a_memory_written_directly_equals_its_tree(memory in memory("m")) {
        let value = serde_json::to_value(&memory).unwrap();
        let direct = checksum::of_memories(std::slice::from_ref(&memory)).unwrap();
        prop_assert_eq!(direct, checksum::of_values(std::slice::from_ref(&value)).unwrap());
        prop_assert_eq!(normal_form(&value), value);
    }

    #[test]
    fn normal_form_of_normal_form_is_itself(map in object(), memory in memory("m")) {
        let mut value = serde_json::to_value(&memory).unwrap();
        value.as_object_mut().unwrap().extend(map);
        let once = normal_form(&value);
        prop_assert_eq!(normal_form(&once), once);
    }

    #[test]
    fn stores_come_back_as_they_were(one in memory("a"), other in memory("b")) {
        let header = StoreHeader::new(Owner { id: "o".to_owned(), ..Owner::default() });
        let mut writer = store::Writer::new(Vec::new(), header).unwrap();
        writer.memory(&one).unwrap();
        writer.memory(&other).unwrap();
        let bytes = writer.finish(None).unwrap().out;
        let reading = parse::store_reading(&bytes);
        prop_assert_eq!(reading.issues, []);
        prop_assert_eq!(reading.checksum, ChecksumStatus::Spec);
        let without_nulls = |mut memory: Memory| {
            memory.metadata.retain(|_, value| !value.is_null());
            memory
        };
        let document = reading.document.unwrap();
        prop_assert_eq!(&document.memories, &[without_nulls(one), without_nulls(other)]);
        prop_assert_eq!(document.to_json().unwrap(), bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn mutated_documents_never_panic(which in 0_usize..5, changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..5), 1..6)) {
        let bytes = mutated(document(which), &changes);
        drop(validate::bundle(&bytes, [("conversations/conv-1.json", bytes.as_slice())], Some(&bytes)));
        drop(parse::memory(&bytes));
        drop(parse::schema_of(&bytes));
        drop(String::from_utf8(bytes).map(RawObject::parse));
    }

    #[test]
    fn a_changed_memory_breaks_the_checksum(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = full::store();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let memories = text.find("\"memories\"").unwrap() + 12..text.find("\"relations\"").unwrap() - 4;
        let place = memories.start + at.index(memories.len());
        bytes[place] = byte;
        let before = parse::memory_store(text.as_bytes()).0.unwrap();
        let reading = parse::store_reading(&bytes);
        if let Some(after) = reading.document {
            let harmless = after.memories == before.memories;
            let noticed = reading.checksum != ChecksumStatus::Spec || !reading.issues.is_empty();
            prop_assert!(harmless || noticed);
        }
    }
}

fn document(which: usize) -> Vec<u8> {
    match which {
        0 => full::store(),
        1 => full::conversation_file(),
        2 => include_bytes!("../../examples/example-memory-store.json").to_vec(),
        3 => include_bytes!("../../examples/example-conversation.json").to_vec(),
        _ => include_bytes!("../../examples/example-embeddings.json").to_vec(),
    }
}

/// Bytes replaced, removed, doubled; tokens put in; the end cut off.
fn mutated(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8, i32)]) -> Vec<u8> {
    const TOKENS: [&str; 12] = [
        "null",
        "\"\"",
        "{}",
        "[]",
        "-1",
        "1e400",
        "\\ud800",
        "true",
        "\"id\":1,",
        "9007199254740993",
        "{{",
        "]",
    ];
    for (at, byte, kind) in changes {
        if bytes.is_empty() {
            break;
        }
        let place = at.index(bytes.len());
        match kind {
            0 => bytes[place] = *byte,
            1 => drop(bytes.remove(place)),
            2 => bytes.truncate(place),
            3 => {
                let token = TOKENS[usize::from(*byte) % TOKENS.len()];
                drop(bytes.splice(place..place, token.bytes()));
            }
            _ => {
                let end = (place + usize::from(*byte)).min(bytes.len());
                let part = bytes[place..end].to_vec();
                drop(bytes.splice(place..place, part));
            }
        }
    }
    bytes
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    let day = 86_400_000_000;
    (MIN_MICROS + day..=MAX_MICROS - day, -1439_i64..1440, any::<bool>()).prop_map(
        |(micros, offset, whole)| {
            let micros = if whole { micros - micros.rem_euclid(1_000_000) } else { micros };
            let local = Timestamp::from_micros(micros).unwrap().to_string();
            let sign = if offset < 0 { '-' } else { '+' };
            let offset = offset.abs();
            let text = format!("{}{sign}{:02}:{:02}", local.trim_end_matches('Z'), offset / 60, offset % 60);
            Timestamp::parse(&text).unwrap()
        },
    )
}

fn one_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn access() -> impl Strategy<Value = Access> {
    let grant = (any::<String>(), vec(one_of(Permission::ALL), 0..3))
        .prop_map(|(entity, permissions)| AccessGrant { entity, permissions });
    (one_of(Visibility::ALL), vec(grant, 0..2)).prop_map(|(visibility, shared_with)| Access {
        visibility,
        exportable: true,
        shared_with,
    })
}

fn confidence() -> impl Strategy<Value = Confidence> {
    let score = || option::of(0.0..=1.0_f64);
    (score(), score(), option::of(one_of(DecayModel::ALL)), option::of(timestamp())).prop_map(
        |(initial, current, decay_model, last_reinforced)| Confidence {
            initial,
            current,
            decay_model,
            last_reinforced,
        },
    )
}

fn memory(id: &'static str) -> impl Strategy<Value = Memory> {
    let text = || option::of(any::<String>());
    let named = (
        one_of(MemoryType::ALL),
        text(),
        one_of(Status::ALL),
        any::<String>(),
        text(),
        vec("[a-z]{1,5}", 0..3),
    );
    let times =
        (timestamp(), option::of(timestamp()), option::of(timestamp()), option::of(timestamp()), text());
    let blocks = (option::of(confidence()), option::of(access()), text(), object(), text());
    (named, times, blocks).prop_map(move |(named, times, blocks)| {
        let (memory_type, custom_type, status, content, summary, tags) = named;
        let (created_at, updated_at, valid_from, valid_until, superseded_by) = times;
        let (confidence, access, embedding_ref, metadata, conversation_ref) = blocks;
        let mut memory = full::small_memory(id, &content);
        memory.provenance.conversation_ref = conversation_ref;
        memory.provenance.extracted_at = updated_at;
        Memory {
            memory_type,
            custom_type,
            status,
            summary,
            tags,
            temporal: Temporal { created_at, updated_at, valid_from, valid_until, superseded_by },
            confidence,
            access,
            embedding_ref,
            metadata,
            ..memory
        }
    })
}
