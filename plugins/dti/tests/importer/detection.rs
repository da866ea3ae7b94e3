//! No file of another importer is claimed.

use std::{fs, path::Path};

use satchel_importer::{Bundle, Importer as _};
use satchel_plugin_dti::Dti;

fn claimed(file: &str) -> bool {
    let bundle = Bundle::from_files([("a.json", file)]);
    !Dti::detect(&bundle).expect("detection answers").is_empty()
}

#[test]
fn fixtures_of_other_importers_are_not_claimed() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut inputs = 0;
    for plugin in fs::read_dir(&plugins).expect("the folder can be listed").flatten() {
        let Ok(fixtures) = fs::read_dir(plugin.path().join("fixtures")) else { continue };
        if plugin.file_name() == "dti" {
            continue;
        }
        for input in
            fixtures.flatten().map(|fixture| fixture.path().join("input")).filter(|path| path.is_dir())
        {
            let bundle = Bundle::from_folder(&input).expect("the folder can be listed");
            let found = Dti::detect(&bundle).expect("detection answers");
            // Importers that leave such files alone may have one as a fixture.
            let others = found.iter().flat_map(|found| &found.files).filter(|file| !file.contains("dti"));
            assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{}", input.display());
            inputs += 1;
        }
    }
    assert!(inputs > 100, "only {inputs} inputs");
}

#[test]
fn a_history_is_known_by_its_details() {
    let message = r#"{"text":"a","sender":"AI","sentAt":"2026-06-01T10:00:00Z"}"#;
    let details = r#"{"createdBy":"x","createdAt":"2026-06-02T10:00:00Z","startTime":"2026-06-01T10:00:00Z","endTime":"2026-06-01T10:00:00Z"}"#;
    let people = r#"[{"name":"Mo","identifier":"mo"}]"#;
    for file in [
        format!(r#"{{"details":{details},"identifiers":{people},"messages":[{message}]}}"#),
        format!(r#"{{"messages":[null,{message}],"identifiers":[],"details":{details}}}"#),
        format!(r#"{{"details":{details},"identifiers":{people}}}"#),
        format!(r#"{{"details":{details},"identifiers":{people},"messages":[{{"te"#),
    ] {
        assert!(claimed(&file), "{file}");
    }
    for file in [
        format!(r#"{{"identifiers":{people},"messages":[{message}]}}"#),
        format!(r#"{{"details":{details},"messages":[]}}"#),
        format!(r#"{{"details":{{"createdBy":"x"}},"identifiers":{people},"messages":[{message}]}}"#),
        format!(
            r#"{{"details":{details},"identifiers":{people},"messages":[{{"role":"user","content":"a"}}]}}"#
        ),
        format!(r#"[{{"details":{details},"identifiers":{people},"messages":[{message}]}}]"#),
        String::new(),
    ] {
        assert!(!claimed(&file), "{file}");
    }
}

#[test]
fn details_behind_many_messages_are_found() {
    let message = r#"{"text":"a","sender":"AI","sentAt":"2026-06-01T10:00:00Z"}"#;
    let messages = vec![message; 50_000].join(",");
    let details = r#"{"createdBy":"x","createdAt":"2026-06-02T10:00:00Z","startTime":"a","endTime":"b"}"#;
    assert!(claimed(&format!(r#"{{"messages":[{messages}],"identifiers":[],"details":{details}}}"#)));
}
