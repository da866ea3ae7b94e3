//! No file of another importer is claimed, and a growing conversation keeps its ids.

use std::{collections::BTreeSet, fs, path::Path};

use satchel_importer::{
    Bundle, Importer as _,
    testkit::{conversations, produce},
};
use satchel_plugin_librechat::LibreChat;
use serde_json::{Value, json};

#[test]
fn fixtures_of_other_importers_are_not_claimed() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut inputs = 0;
    for plugin in fs::read_dir(&plugins).expect("the folder can be listed").flatten() {
        let Ok(fixtures) = fs::read_dir(plugin.path().join("fixtures")) else { continue };
        if plugin.file_name() == "librechat" {
            continue;
        }
        for input in
            fixtures.flatten().map(|fixture| fixture.path().join("input")).filter(|path| path.is_dir())
        {
            let bundle = Bundle::from_folder(&input).expect("the folder can be listed");
            let found = LibreChat::detect(&bundle).expect("detection answers");
            // Importers that leave such files alone may have one as a fixture.
            let others =
                found.iter().flat_map(|found| &found.files).filter(|file| !file.contains("librechat"));
            assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{}", input.display());
            inputs += 1;
        }
    }
    assert!(inputs > 100, "only {inputs} inputs");
}

/// The ids of the conversations and messages in an export with these messages.
fn ids(messages: &[Value]) -> BTreeSet<String> {
    let file = json!({"conversationId": "c", "exportAt": "10:00:00", "messages": messages}).to_string();
    let produced = produce::<LibreChat>(&Bundle::from_files([("c.json", file)])).expect("detection answers");
    let all = produced.exports.iter().flat_map(|export| conversations(&export.lines));
    all.flat_map(|record| {
        let own = record.messages.iter().map(|message| message.id.clone());
        own.chain([record.id.clone()]).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn messages_keep_their_ids_when_the_conversation_goes_on() {
    let answer = |content: Value| json!({"messageId": "b", "parentMessageId": "a", "isCreatedByUser": false, "content": content});
    let think = json!({"type": "think", "think": "hm"});
    let text = json!({"type": "text", "text": "Yes."});
    // Neither of the last two has an id, and the export lists a branch of the first message before them.
    let first = json!({"messageId": "a", "isCreatedByUser": true, "text": "Is it?"});
    let later = json!({"parentMessageId": "b", "isCreatedByUser": true, "text": "Sure?"});
    let last = json!({"parentMessageId": "b", "isCreatedByUser": false, "text": "Sure."});
    let before = ids(&[first.clone(), answer(json!([think])), later.clone(), last.clone()]);
    let branch = json!({"messageId": "d", "parentMessageId": "a", "isCreatedByUser": false, "text": "No."});
    let after = ids(&[first, branch, answer(json!([think, text, think])), later, last]);
    assert!(before.is_subset(&after), "{before:?} {after:?}");
    assert_eq!((before.len(), after.len()), (6, 8));
}
