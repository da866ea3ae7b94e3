//! Tests which records are dropped and which values are left out.

use satchel_pam::record::Line;

use super::*;

fn line(json: &str) -> Option<Line> {
    serde_json::from_str(json).ok()
}

fn item_evidence(item: &str) -> Result<Vec<String>, String> {
    let json = format!(
        r#"{{"evidence":{{"id":"e","claim":{{"statement":{item}}},"extraction_method":"api_export","locator":"l"}}}}"#
    );
    let Some(Line::Evidence(mut record)) = line(&json) else { return Err(format!("no evidence: {json}")) };
    let mut notes = RecordNotes::default();
    evidence(&mut record, &mut notes).map_err(|rejection| rejection.0)?;
    Ok(notes.into_messages())
}

#[test]
fn times_outside_the_calendar_are_left_out() {
    let mut record = ConversationRecord {
        id: "c".to_owned(),
        created_at: Some(FIRST_TIME),
        updated_at: Some(LAST_TIME + 1),
        ..ConversationRecord::default()
    };
    let mut notes = RecordNotes::default();
    assert_eq!(conversation(&mut record, &mut notes), Ok(()));
    assert_eq!((record.created_at, record.updated_at), (Some(FIRST_TIME), None));
    assert_eq!(notes.into_messages()[0], "updated_at lies outside the years 1 to 9999; it is left out");
}

#[test]
fn tags_of_other_characters_are_left_out() {
    let tags = ["work", "a_b-1", "Work", "", "-a", "größe"].map(str::to_owned).to_vec();
    let mut record = ConversationRecord { id: "c".to_owned(), tags, ..ConversationRecord::default() };
    let mut notes = RecordNotes::default();
    assert_eq!(conversation(&mut record, &mut notes), Ok(()));
    assert_eq!(record.tags, ["work", "a_b-1"]);
    assert_eq!(notes.into_messages().len(), 4);
}

#[test]
fn tags_beyond_a_thousand_are_left_out_with_one_warning() {
    let tags = (0..1_500).map(|tag| format!("tag{tag}")).collect();
    let mut record = ConversationRecord { id: "c".to_owned(), tags, ..ConversationRecord::default() };
    let mut notes = RecordNotes::default();
    assert_eq!(conversation(&mut record, &mut notes), Ok(()));
    assert_eq!((record.tags.len(), record.tags[999].as_str()), (1_000, "tag999"));
    assert_eq!(
        notes.into_messages(),
        ["the list of tags goes on after the first 1000; the rest is left out"]
    );
}

#[test]
fn a_record_without_a_usable_id_is_dropped() {
    for (id, reason) in
        [(String::new(), "its id is empty"), ("x".repeat(1_025), "its id is longer than 1024 bytes")]
    {
        let mut record = ConversationRecord { id, ..ConversationRecord::default() };
        let dropped = conversation(&mut record, &mut RecordNotes::default()).map_err(|rejection| rejection.0);
        assert_eq!(dropped, Err(reason.to_owned()));
    }
}

#[test]
fn an_item_must_have_content_and_a_type() {
    assert_eq!(item_evidence(r#"{"content":"likes tea","memory_type":"preference"}"#), Ok(Vec::new()));
    assert!(
        item_evidence(r#"{"content":" \n","memory_type":"fact"}"#)
            .is_err_and(|reason| reason.contains("content"))
    );
    assert!(
        item_evidence(r#"{"content":"x","memory_type":"custom"}"#)
            .is_err_and(|reason| reason.contains("custom"))
    );
}

#[test]
fn optional_values_of_items_are_left_out_with_a_warning() {
    let item = r#"{"content":"x","memory_type":"fact","custom_type":"y","confidence":{"initial":1.5,"current":0.5},"valid_until":9223372036854775807}"#;
    let warnings = item_evidence(item).unwrap_or_default();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
}

#[test]
fn a_vector_must_be_as_long_as_it_says() {
    let mut record = EmbeddingRecord {
        memory: "k".to_owned(),
        model: "m".to_owned(),
        dimensions: 2,
        created_at: None,
        vector: Some(vec![1.0, 2.0]),
        storage: None,
    };
    assert_eq!(embedding(&mut record, &mut RecordNotes::default()), Ok(()));
    record.dimensions = 3;
    assert!(embedding(&mut record, &mut RecordNotes::default()).is_err());
    record.vector = Some(vec![0.0, 1.0, f64::NAN]);
    assert!(embedding(&mut record, &mut RecordNotes::default()).is_err());
}
