//! A data directory with secrets in every place that can contain words, and the search for them.

use satchel_registry::Plugins;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    clock::SystemClock,
    edits::{Draft, EditContext},
    export::Exports,
    ingest::Imports,
    purge::{self, Plan, Target},
};
use satchel_seal::{DataKey, Seal};
use satchel_source::Limits;
use satchel_store::{ConversationQuery, MemoryQuery, OpenOptions, Store};
use satchel_tests::test_core::{TestCore, code_cache};
use serde_json::{Value, json};

/// Occurs in a message.
pub(crate) const IN_MESSAGE: &str = "zebra-kiln-4471";
/// Occurs in a memory that was derived from that conversation.
pub(crate) const IN_MEMORY: &str = "otter-plum-9902";
/// Occurs in an attached file and in its name.
pub(crate) const IN_ATTACHMENT: &str = "heron-flask-3310";
/// Occurs in the person's edit of the memory and in the reason for it.
pub(crate) const IN_EDIT: &str = "lynx-grove-5527";
/// Occurs in the title.
pub(crate) const IN_TITLE: &str = "marmot-quill-8815";
/// Occurs in the records that stay.
pub(crate) const NOT_ERASED: &str = "tomatoes in June";

/// The magic number at the start of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Upper limit for the unpacked length of a frame in these tests, in bytes.
const MAX_FRAME_BYTES: usize = 4 << 20;

fn node(id: &str, parent: Option<&str>, child: Option<&str>, message: Option<Value>) -> Value {
    let children: Vec<&str> = child.into_iter().collect();
    json!({"id": id, "parent": parent, "children": children, "message": message})
}

fn message(id: &str, role: &str, recipient: &str, at: f64, text: &str, metadata: &Value) -> Value {
    json!({
        "id": id, "author": {"role": role, "name": (role == "tool").then_some("bio"), "metadata": {}}, "create_time": at, "update_time": null,
        "content": {"content_type": "text", "parts": [text]}, "status": "finished_successfully", "end_turn": null,
        "weight": 1.0, "metadata": metadata, "recipient": recipient, "channel": null,
    })
}

pub(crate) fn conversation(
    id: &str,
    title: &str,
    message_text: &str,
    memory_text: &str,
    files: &Value,
) -> Value {
    let key = |name: &str| format!("{id}-{name}");
    let (root, user, bio, done) = (key("root"), key("user"), key("bio"), key("done"));
    let text = |id: &str, role: &str, to: &str, at: f64, text: &str, metadata: &Value| {
        Some(message(id, role, to, at, text, metadata))
    };
    let nothing = json!({});
    let mapping = json!({
        root.clone(): node(&root, None, Some(&user), None),
        user.clone(): node(&user, Some(&root), Some(&bio), text(&user, "user", "all", 1_746_180_001.0, message_text, files)),
        bio.clone(): node(&bio, Some(&user), Some(&done), text(&bio, "assistant", "bio", 1_746_180_002.0, memory_text, &nothing)),
        done.clone(): node(&done, Some(&bio), None, text(&done, "tool", "all", 1_746_180_003.0, "Model set context updated.", &nothing)),
    });
    json!({
        "id": id, "conversation_id": id, "title": title, "create_time": 1_746_180_000.0, "update_time": 1_746_180_060.0,
        "mapping": mapping, "current_node": done,
    })
}

/// Writes the export with the secrets.
pub(crate) fn write_export(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let name = format!("{IN_ATTACHMENT}.txt");
    let files =
        json!({"attachments": [{"id": "file-AbC", "name": name, "size": 60, "mimeType": "text/plain"}]});
    let secret = conversation(
        "6811d5b0-aaaa-8000-8000-00000000000a",
        &format!("About {IN_TITLE}"),
        &format!("the safe opens with {IN_MESSAGE}"),
        &format!("The safe opens with {IN_MEMORY}."),
        &files,
    );
    let garden = conversation(
        "6811d5b0-bbbb-8000-8000-00000000000b",
        "Garden",
        &format!("I grow {NOT_ERASED}"),
        &format!("Grows {NOT_ERASED}."),
        &json!({}),
    );
    fs::write(folder.join("conversations.json"), serde_json::to_vec(&json!([secret, garden]))?)?;
    fs::write(
        folder.join(format!("file-AbC-{name}")),
        format!("a note that says {IN_ATTACHMENT}, and nothing else\n"),
    )?;
    Ok(())
}

pub(crate) fn seal() -> Seal {
    Seal::new(&DataKey::from_bytes(&[42; 32]))
}

pub(crate) fn open_store(dir: &Path, seal: Option<&Seal>) -> Result<Store> {
    let options = OpenOptions { seal: seal.cloned(), ..OpenOptions::default() };
    let mut opened = || Store::open(dir, options.clone(), &mut |_| {});
    let store = opened()?;
    Ok(purge::complete(dir, store, seal, &mut opened)?)
}

pub(crate) fn open_core(dir: &Path, seal: Option<&Seal>) -> Result<TestCore> {
    let store = open_store(dir, seal)?;
    let plugins = Arc::new(Plugins::built_in(Some(code_cache())));
    let limits = satchel_host::PluginLimits::default();
    let imports = Imports::new(store.clone(), plugins, Arc::new(SystemClock), Limits::default(), limits)?;
    let exports = Exports::new(store.clone(), Arc::new(SystemClock), dir.join("keys"));
    Ok(TestCore { store, imports, exports })
}

/// The ids of the secret memory and the secret conversation.
pub(crate) struct SecretIds {
    pub(crate) memory: String,
    pub(crate) conversation: String,
}

/// Creates the data directory: the export is imported, and the secret memory is edited by hand.
pub(crate) fn create_with_secrets(folder: &Path, seal: Option<&Seal>) -> Result<SecretIds> {
    write_export(&folder.join("export"))?;
    let core = open_core(&folder.join("data"), seal)?;
    core.import(&folder.join("export"))?;
    let ids = find_secret_ids(&core)?;
    let call =
        EditContext { actor: "owner".to_owned(), reason: format!("it is {IN_EDIT} now"), request: None };
    let draft = Draft { content: Some(format!("The safe opens with {IN_EDIT}.")), ..Draft::default() };
    core.imports.edits().edit_memory(&call, &ids.memory, "", &draft)?;
    core.close()?;
    Ok(ids)
}

pub(crate) fn find_secret_ids(core: &TestCore) -> Result<SecretIds> {
    let at = core.store.revision();
    let memories = core.store.memories(&MemoryQuery::default(), None, 50, at)?.items;
    let conversations = core.store.conversations(&ConversationQuery::default(), None, 50, at)?.items;
    let memory = memories.iter().find(|one| one.memory.content.contains("safe")).context("the memory")?;
    let titled = |title: &Option<String>| title.as_ref().is_some_and(|title| title.contains(IN_TITLE));
    let conversation = conversations.iter().find(|one| titled(&one.title)).context("the conversation")?;
    Ok(SecretIds { memory: memory.memory.id.clone(), conversation: conversation.id.clone() })
}

/// Erases the target; the data directory is closed afterwards.
pub(crate) fn erase(dir: &Path, seal: Option<&Seal>, target: &Target) -> Result<Plan> {
    let store = open_store(dir, seal)?;
    let plan =
        purge::planned(&store, target, 1_800_000_000_000_000)?.context("there is something to erase")?;
    purge::record_purge(&store, &plan.record)?;
    purge::erase_recorded(dir, store, seal, &mut |_| {})?;
    Ok(plan)
}

/// Returns the files below a folder that contain a word, verbatim or compressed with zstd.
pub(crate) fn files_containing(folder: &Path, word: &str) -> Result<Vec<PathBuf>> {
    files_containing_bytes(folder, word.as_bytes())
}

/// Like [`files_containing`], for any bytes.
pub(crate) fn files_containing_bytes(folder: &Path, word: &[u8]) -> Result<Vec<PathBuf>> {
    let text = String::from_utf8_lossy(word);
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file()
                && (contains_bytes(&fs::read(&path)?, word) || path.to_string_lossy().contains(text.as_ref()))
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn contains_bytes(bytes: &[u8], word: &[u8]) -> bool {
    let has = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    let packed = bytes.windows(ZSTD_MAGIC.len()).enumerate().filter(|(_, window)| *window == ZSTD_MAGIC);
    has(bytes)
        || packed.into_iter().any(|(at, _)| decompress_frame(&bytes[at..]).is_some_and(|bytes| has(&bytes)))
}

fn decompress_frame(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = zstd::zstd_safe::find_frame_compressed_size(bytes).ok()?;
    zstd::bulk::decompress(&bytes[..length], MAX_FRAME_BYTES).ok()
}

/// Checks that none of the words occurs anywhere in the data directory.
pub(crate) fn assert_erased(dir: &Path, words: &[&str], what: &str) -> Result<()> {
    for word in words {
        let found = files_containing(dir, word)?;
        ensure!(found.is_empty(), "{what}: {word} is in {found:?}");
    }
    for left in ["purging", "purging.new"] {
        ensure!(!dir.join(left).exists(), "{what}: {left} was left behind");
    }
    Ok(())
}

/// Checks that the store is intact and that a rebuild gives the same state.
pub(crate) fn assert_store_intact(dir: &Path, seal: Option<&Seal>) -> Result<()> {
    let options = |rebuild| OpenOptions { seal: seal.cloned(), rebuild, ..OpenOptions::default() };
    let opened = Store::open(dir, options(false), &mut |_| {})?;
    let report = opened.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    let (revision, digest) = (opened.revision(), opened.state_digest());
    opened.close()?;
    assert_rebuild_matches(dir, options(true), (revision, digest))
}

fn assert_rebuild_matches(
    dir: &Path,
    options: OpenOptions,
    (revision, digest): (satchel_store::Revision, satchel_store::StateDigest),
) -> Result<()> {
    let rebuilt = Store::open(dir, options, &mut |_| {})?;
    ensure!((rebuilt.revision(), rebuilt.state_digest()) == (revision, digest), "the rebuilt state differs");
    Ok(rebuilt.close()?)
}
