//! A small importer in the native backend: detect, run, compare with the fixtures.

use std::path::Path;

use satchel_importer::{
    Bundle, Claim, Content, Conversation, Detection, ErrorKind, Evidence, ImportError, Importer, Info, Item,
    JsonArray, Leftover, Message, Role, Sink, Summary, export_importer,
    pam::memory::{ExtractionMethod, MemoryType},
    testkit::{self, FixtureError, Unclaimed},
};

struct Notes;

impl Importer for Notes {
    fn describe() -> Info {
        Info {
            name: "notes",
            version: "1.0.0",
            platform: "notes",
            importer_version: "notes-importer/2026.01",
            formats: &["flat"],
        }
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        let mut found = Vec::new();
        for entry in bundle.entries() {
            let mut ours = false;
            JsonArray::new(&entry.path).sample(bundle, 4096, |element| {
                ours |= element.text().contains("\"note_id\"");
                !ours
            })?;
            if ours {
                let files = vec![entry.path.clone()];
                found.push(Detection { format: "flat".into(), confidence: 80, files, account: None });
            }
        }
        Ok(found)
    }

    fn run(_format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        for entry in bundle.entries() {
            JsonArray::new(&entry.path).each(bundle, sink, |element, sink| {
                let mut json = element.parser();
                let (mut id, mut text, mut likes, mut at) = (None, None, None, None);
                let mut rest = Leftover::default();
                if json.enter_object()? {
                    while let Some(key) = json.key()? {
                        match key {
                            "note_id" => id = rest.text(key, &mut json)?,
                            "text" => text = rest.text(key, &mut json)?,
                            "likes" => likes = rest.text(key, &mut json)?,
                            "at" => at = rest.time(key, &mut json)?,
                            _ => rest.keep(key, &mut json)?,
                        }
                    }
                }
                let id = id.ok_or_else(|| ImportError::malformed("it has no note_id"))?;
                let message = Message {
                    id: id.into(),
                    role: Role::User,
                    content: text.map(|text| Content::Text(text.into())),
                    created_at: at,
                    raw_metadata: rest.into_json(),
                    ..Message::default()
                };
                let locator = element.locator();
                let conversation = Conversation {
                    id: id.into(),
                    locator: locator.as_str().into(),
                    ..Conversation::default()
                };
                sink.conversation(&conversation, &[message])?;
                likes.map_or(Ok(()), |likes| sink.evidence(&[liking(id, likes, &locator)]))
            })?;
        }
        Ok(bundle.summary())
    }
}

export_importer!(Notes);

fn liking(id: &str, likes: &str, locator: &str) -> Evidence {
    let item = Item {
        key: None,
        content: format!("Likes {likes}"),
        memory_type: MemoryType::Preference,
        custom_type: None,
        status: None,
        scope: None,
        summary: None,
        tags: Vec::new(),
        confidence: None,
        created_at: None,
        updated_at: None,
        valid_from: None,
        valid_until: None,
        superseded_by: None,
        access: None,
        embedding_ref: None,
        metadata: None,
    };
    Evidence {
        id: format!("{id}/likes"),
        claim: Claim::Statement(item),
        at: None,
        account: None,
        conversation: Some(id.to_owned()),
        message: None,
        extraction_method: ExtractionMethod::ApiExport,
        locator: locator.to_owned(),
    }
}

#[test]
fn fixtures_give_what_is_expected() -> Result<(), FixtureError> {
    testkit::check::<Notes>(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"))
}

#[test]
fn a_difference_has_both_sides() -> Result<(), ImportError> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/two_notes");
    let mut produced = testkit::produce::<Notes>(&Bundle::from_folder(&fixture.join("input"))?)?;
    for export in &mut produced.exports {
        export.lines.pop();
    }
    let difference = testkit::compare(&fixture, &produced);
    let Err(FixtureError::Differs { difference, .. }) = difference else {
        return Err(ImportError::internal(format!("{difference:?}")));
    };
    assert!(difference.starts_with("at /0/lines/evidence\n  expected [{\"claim\""), "{difference}");
    assert!(difference.ends_with("produced nothing"), "{difference}");
    Ok(())
}

#[test]
fn a_folder_without_fixtures_is_an_error() {
    assert!(matches!(testkit::check::<Notes>(env!("CARGO_MANIFEST_DIR")), Err(FixtureError::Empty { .. })));
}

#[test]
fn a_stop_reaches_the_caller() {
    let bundle = Bundle::from_files([("n.json", r#"[{"note_id":"a"},{"note_id":"b"}]"#)]);
    let mut sink = Sink::stopping_after(1);
    let stopped = Notes::run("flat", &bundle, &mut sink).map_err(|error| error.kind);
    assert_eq!(stopped, Err(ErrorKind::Cancelled));
}

#[test]
fn a_large_conversation_is_split_and_collected_whole() -> Result<(), ImportError> {
    let text = "x".repeat(3 * 1024 * 1024);
    let messages: Vec<Message> = (0..5)
        .map(|index| Message {
            id: index.to_string().into(),
            content: Some(Content::Text(text.as_str().into())),
            ..Message::default()
        })
        .collect();
    // Five messages of 3 MiB in batches of at most 4 MiB make five calls, so the fourth answer stops.
    let mut sink = Sink::stopping_after(4);
    let stopped = sink.conversation(&Conversation::default(), &messages).map_err(|error| error.kind);
    assert_eq!(stopped, Err(ErrorKind::Cancelled));
    let mut sink = Sink::collecting();
    sink.conversation(&Conversation::default(), &messages)?;
    let lines = sink.into_lines();
    assert!(
        matches!(lines.as_slice(), [satchel_importer::Line::Conversation(one)] if one.messages.len() == 5)
    );
    Ok(())
}

#[test]
fn metadata_that_is_not_an_object_is_an_internal_error() {
    let message = Message { id: "m".into(), raw_metadata: Some("[1]".into()), ..Message::default() };
    let error = Sink::collecting().conversation(&Conversation::default(), &[message]).err();
    assert_eq!(
        error.map(|error| (error.kind, error.locator)),
        Some((ErrorKind::Internal, Some("m".to_owned())))
    );
}

/// Reads only the field `text` and drops all others.
struct TextOnly;

impl Importer for TextOnly {
    fn describe() -> Info {
        Notes::describe()
    }

    fn detect(bundle: &Bundle) -> Result<Vec<Detection>, ImportError> {
        Notes::detect(bundle)
    }

    fn run(_format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
        for entry in bundle.entries() {
            JsonArray::new(&entry.path).each(bundle, sink, |element, sink| {
                let (mut json, mut text, mut rest) = (element.parser(), None, Leftover::default());
                if json.enter_object()? {
                    while let Some(key) = json.key()? {
                        if key == "text" {
                            text = rest.text(key, &mut json)?;
                        }
                    }
                }
                let locator = element.locator();
                let content = text.map(|text| Content::Text(text.into()));
                let message = Message { id: "m".into(), role: Role::User, content, ..Message::default() };
                let id = locator.as_str().into();
                let conversation =
                    Conversation { id, locator: locator.as_str().into(), ..Conversation::default() };
                sink.conversation(&conversation, &[message])
            })?;
        }
        Ok(bundle.summary())
    }
}

#[test]
fn a_text_that_is_lost_with_the_name_of_its_field_is_found() -> Result<(), FixtureError> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    testkit::check_renamed_fields::<Notes>(&fixtures)?;
    let fault = testkit::check_renamed_fields::<TextOnly>(&fixtures).err().map(|error| error.to_string());
    assert!(fault.is_some_and(|error| error.contains("Key(\"text\")")), "it drops unknown fields");
    Ok(())
}

#[test]
fn a_claimed_file_is_read_and_a_stopped_run_ends() {
    let note = r#"[{"note_id":"a","text":"tea"}]"#;
    let lines = testkit::run_file::<Notes>("flat", "notes.json", note).checked_lines(Unclaimed::Refused);
    assert_eq!(testkit::conversation_ids(&lines), ["a"]);
    assert!(testkit::cancelled_run::<Notes>("flat", "notes.json", note, 0).len() < 2);
}

#[test]
#[should_panic(expected = "an unclaimed file is read")]
fn a_run_that_reads_an_unclaimed_file_fails_the_check() {
    testkit::run_file::<Notes>("flat", "notes.json", "[]").checked_lines(Unclaimed::Refused);
}

#[test]
fn an_emitted_secret_is_named() -> Result<(), FixtureError> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let check = |secret| testkit::check_secrets::<Notes>(&fixtures, &["two_notes"], "Tea", &[secret]);
    check("coffee")?;
    let found = check("green tea").err().map(|error| error.to_string());
    assert_eq!(found.as_deref(), Some("1 faults\ntwo_notes: \"green tea\" is emitted"));
    Ok(())
}
