//! `demo`: walks through all steps, from import to export, on invented exports in a temporary folder.

use std::{fs, path::Path};

use clap::Parser;
use satchel_proto::v1::{ListConversationsRequest, ListMemoriesRequest};
use satchel_server::config::Config;

use super::{
    Context,
    args::Cli,
    client::{DaemonClient, DaemonLocation},
    error::CliError,
    exit::Exit,
    style::Paint,
    text,
};

/// Embeds one file of the folder `demo`.
macro_rules! sample {
    ($path:literal) => {
        ($path, include_bytes!(concat!("../../demo/", $path)) as &[u8])
    };
}

/// The exports of an invented beekeeper.
const SAMPLES: [(&str, &[u8]); 7] = [
    sample!("chatgpt-export/conversations.json"),
    sample!("chatgpt-export/user.json"),
    sample!("chatgpt-export/file_hivephoto01-frame 7.png"),
    sample!("claude-export/conversations.json"),
    sample!("claude-export/memories.json"),
    sample!("claude-export/projects.json"),
    sample!("claude-export/users.json"),
];

/// Stands for the id of the longest conversation in a step.
const CONVERSATION: &str = "CONVERSATION";
/// Stands for the id of the newest memory in a step.
const MEMORY: &str = "MEMORY";

/// The steps: what each is for, and its command. A step for a record is left out if there is no such record.
const STEPS: [(&str, &str); 10] = [
    ("Import two exports, one from ChatGPT and one from Claude.", "import chatgpt-export claude-export"),
    (
        "List what they remember about the beekeeper, including what was corrected since.",
        "memories list --status all",
    ),
    ("List the conversations.", "conversations list"),
    (
        "Show one conversation, and the command that shows its other branch.",
        "conversations show CONVERSATION",
    ),
    ("Importing the same export again changes nothing.", "import chatgpt-export"),
    ("Export everything as a signed bundle, in the open PAM 1.0 format.", "export --output memories.zip"),
    ("Anyone can verify it, without Satchel's data.", "verify memories.zip"),
    ("Edit a memory; no import overwrites what you change.", "memories edit MEMORY --add-tag bees"),
    ("Export only what changed since then.", "export --incremental --output changes.zip"),
    ("Verify both: together they contain everything.", "verify changes.zip --base memories.zip"),
];

const NEXT: &str = "\
The temporary folder of this demo has been removed. To import your own exports, as you downloaded them:

  satchel import ~/Downloads/export.zip
  satchel memories list
  satchel conversations list --since 7d
  satchel export --output memories.zip
  satchel help
";

/// Runs all steps, each as a command that a person could type.
///
/// # Errors
/// Fails if a step fails.
pub(crate) async fn run(context: &mut Context) -> Result<Exit, CliError> {
    let folder = tempfile::Builder::new().prefix("satchel-demo-").tempdir();
    let folder = folder.map_err(CliError::file("create a folder in", &std::env::temp_dir()))?;
    unpack(folder.path())?;
    let mut config = Config::new(folder.path().join("data"), folder.path().to_owned());
    if let DaemonLocation::DataDir(given) = &context.location {
        config.code_cache.clone_from(&given.code_cache);
    }
    let location = DaemonLocation::DataDir(Box::new(config));
    // All steps share one daemon, as on a person's machine; the commands find it by its socket.
    let daemon = DaemonClient::open(&location, &mut context.out).await?;
    let (original_location, json) =
        (std::mem::replace(&mut context.location, location.clone()), std::mem::take(&mut context.out.json));
    let outcome = run_steps(context, &daemon, folder.path()).await;
    context.location = original_location;
    context.out.json = json;
    daemon.close(&location).await?;
    folder.close().map_err(CliError::file("remove the folder in", &std::env::temp_dir()))?;
    let exit = outcome?;
    context.out.print(&format!("\n{NEXT}"))?;
    Ok(exit)
}

fn unpack(folder: &Path) -> Result<(), CliError> {
    for (name, bytes) in SAMPLES {
        let path = folder.join(name);
        let failed = CliError::file("write", &path);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(&failed)?;
        fs::write(&path, bytes).map_err(failed)?;
    }
    Ok(())
}

async fn run_steps(context: &mut Context, daemon: &DaemonClient, folder: &Path) -> Result<Exit, CliError> {
    for (why, command) in STEPS {
        let id = if command.contains(CONVERSATION) {
            longest_conversation_id(daemon).await?
        } else if command.contains(MEMORY) {
            newest_memory_id(daemon).await?
        } else {
            Some(String::new())
        };
        let Some(id) = id.map(|id| text::short_id(&id)) else { continue };
        let words =
            command.split(' ').map(|word| if [CONVERSATION, MEMORY].contains(&word) { &id } else { word });
        run_step(context, folder, why, &words.collect::<Vec<_>>()).await?;
    }
    Ok(Exit::Done)
}

async fn newest_memory_id(daemon: &DaemonClient) -> Result<Option<String>, CliError> {
    let request = ListMemoriesRequest { page_size: 1, ..ListMemoriesRequest::default() };
    let rows = daemon.memories().list_memories(request).await?.into_inner().memories;
    Ok(rows.into_iter().next().map(|row| row.id))
}

async fn longest_conversation_id(daemon: &DaemonClient) -> Result<Option<String>, CliError> {
    let answer = daemon.conversations().list_conversations(ListConversationsRequest::default()).await?;
    let rows = answer.into_inner().conversations;
    Ok(rows.into_iter().max_by_key(|row| row.message_count).map(|row| row.id))
}

/// Prints the command line of a step and runs it.
async fn run_step(context: &mut Context, folder: &Path, why: &str, words: &[&str]) -> Result<(), CliError> {
    let typed: Vec<String> = words.iter().map(|word| text::shell_quoted(word)).collect();
    let style = context.out.style;
    let prompt = style.paint(Paint::Dim, "$");
    let line = style.paint(Paint::Strong, &format!("satchel {}", typed.join(" ")));
    let why = style.paint(Paint::Dim, &format!("# {why}"));
    context.out.print(&format!("\n{why}\n{prompt} {line}\n\n"))?;
    let words = words.iter().map(|word| full_path(folder, word));
    let cli = Cli::try_parse_from(std::iter::once("satchel".to_owned()).chain(words));
    let cli = cli.map_err(|error| CliError::step("a step of the demo cannot be parsed", error))?;
    match super::execute(context, &cli.command).await? {
        Exit::Done => Ok(()),
        exit => Err(CliError::Usage(format!(
            "a step of the demo exited with code {}; please report this",
            exit.code()
        ))),
    }
}

/// Returns the full path for the name of a file of the demo; any other word is returned unchanged.
fn full_path(folder: &Path, word: &str) -> String {
    let named =
        word.ends_with("-export") || Path::new(word).extension().is_some_and(|extension| extension == "zip");
    if named { folder.join(word).to_string_lossy().into_owned() } else { word.to_owned() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use satchel_server::log::Log;

    use super::*;
    use crate::cli::{agent_homes::AgentHomes, output::Output, time};

    #[tokio::test(flavor = "multi_thread")]
    async fn the_demo_runs_every_step() {
        let (out, results, _) = Output::in_memory(false);
        let config = Config::new("/nowhere".into(), "/nowhere".into());
        let location = DaemonLocation::DataDir(Box::new(config));
        let mut context = Context {
            out,
            calendar: time::fixed(),
            location,
            log: Log::default(),
            passphrase: None,
            agent_homes: AgentHomes::default(),
            request_id: String::new(),
        };
        assert_eq!(run(&mut context).await.unwrap(), Exit::Done);
        let text = results.text();
        let steps = [
            "$ satchel import chatgpt-export claude-export\n",
            "✓ claude-export/",
            "  completed",
            "$ satchel memories list --status all\n",
            "b131a722  fact",
            "$ satchel conversations show ",
            "⑂ branch 2 of 2",
            "✓ chatgpt-export/",
            "  unchanged",
            "✓ exported ",
            "✓ valid: ",
            "$ satchel memories edit ",
            "$ satchel export --incremental --output changes.zip\n",
            "✓ exported ",
            "$ satchel verify changes.zip --base memories.zip\n",
            "✓ valid: ",
            "satchel import ~/Downloads/export.zip",
        ];
        let mut rest = text.as_str();
        for step in steps {
            let at = rest.find(step);
            assert!(at.is_some(), "{step:?} is not, or not in its place, in\n{text}");
            rest = &rest[at.unwrap()..];
        }
    }
}
