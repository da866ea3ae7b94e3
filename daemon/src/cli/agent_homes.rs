//! The folders in which coding agents and other programs with a language model keep their files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{Environment, location, text};

/// Where the programs that are known keep their files.
#[derive(Debug, Default)]
pub(crate) struct AgentHomes {
    home: Option<PathBuf>,
    config_home: Option<PathBuf>,
    claude_code: Option<PathBuf>,
    claude_code_settings: Option<PathBuf>,
    codex: Option<PathBuf>,
    gemini_cli: Option<PathBuf>,
    opencode: Option<PathBuf>,
    goose: Option<PathBuf>,
}

/// A folder with sessions, or a database of them.
pub(super) struct AgentFolder {
    program: &'static str,
    pub(super) path: PathBuf,
    pub(super) files: AgentFiles,
    /// Names of files in it that are no sessions.
    pub(super) ignore: &'static [&'static str],
}

/// The prompts of Gemini CLI without the answers, and copies of chats without ids and times.
const NO_CHATS: &[&str] = &["logs.json", "checkpoint*.json"];

/// How a program writes its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentFiles {
    /// Each session is a file to which the program appends, or all of them are in a database in the folder.
    Appended,
    /// All sessions are in one database.
    Database,
}

impl AgentHomes {
    pub(crate) fn of(environment: &Environment) -> Self {
        let place = |variable: &Option<PathBuf>, name: &str| {
            variable.clone().or_else(|| environment.home.as_deref().map(|home| home.join(name)))
        };
        let settings = environment.claude_config_dir.as_ref().or(environment.home.as_ref());
        Self {
            home: environment.home.clone(),
            config_home: location::config_home(environment),
            claude_code: place(&environment.claude_config_dir, ".claude"),
            claude_code_settings: settings.map(|folder| folder.join(".claude.json")),
            codex: place(&environment.codex_home, ".codex"),
            gemini_cli: environment
                .gemini_cli_home
                .as_ref()
                .or(environment.home.as_ref())
                .map(|home| home.join(".gemini")),
            opencode: place(&environment.data_home, ".local/share").map(|data| data.join("opencode")),
            goose: place(&environment.data_home, ".local/share").map(|data| data.join("goose")),
        }
    }

    /// The user's home folder.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }

    /// The folder of the user's configuration files, for programs that use the same one on macOS.
    pub(super) fn unix_config(&self) -> Option<PathBuf> {
        if cfg!(target_os = "macos") {
            self.home.as_ref().map(|home| home.join(".config"))
        } else {
            self.config_home.clone()
        }
    }

    /// The folder in which desktop applications keep their files.
    pub(super) fn applications(&self) -> Option<PathBuf> {
        if cfg!(target_os = "macos") {
            self.home.as_ref().map(|home| home.join("Library/Application Support"))
        } else {
            self.config_home.clone()
        }
    }

    /// The folder of Claude Code.
    pub(super) fn claude_code(&self) -> Option<PathBuf> {
        self.claude_code.clone()
    }

    /// The file with the user's settings and MCP servers of Claude Code.
    pub(super) fn claude_code_settings(&self) -> Option<PathBuf> {
        self.claude_code_settings.clone()
    }

    /// The folder of Codex.
    pub(super) fn codex(&self) -> Option<PathBuf> {
        self.codex.clone()
    }

    /// The folder of Gemini CLI.
    pub(super) fn gemini_cli(&self) -> Option<PathBuf> {
        self.gemini_cli.clone()
    }

    /// Returns the folders and databases that exist.
    pub(super) fn existing_folders(&self) -> Vec<AgentFolder> {
        let exists = |folder: &AgentFolder| match folder.files {
            AgentFiles::Appended => folder.path.is_dir(),
            AgentFiles::Database => folder.path.is_file(),
        };
        self.folders().filter(exists).collect()
    }

    fn folders(&self) -> impl Iterator<Item = AgentFolder> {
        // Beside this one, Claude Code keeps its credentials and settings.
        let claude_code = self.claude_code.iter().map(|home| ("Claude Code", home.join("projects")));
        // Beside these, Codex keeps its credentials and databases.
        let codex = self
            .codex
            .iter()
            .flat_map(|home| ["sessions", "archived_sessions"].map(|folder| ("Codex", home.join(folder))));
        // Beside this one, Gemini CLI keeps its credentials and settings.
        let gemini_cli = self.gemini_cli.iter().map(|home| ("Gemini CLI", home.join("tmp")));
        // It has files with lines of old versions, and the database of newer ones.
        let goose = self.goose.iter().map(|home| ("Goose", home.join("sessions")));
        // Beside this one, OpenCode keeps its credentials, snapshots of files, and a folder of versions before the database.
        let databases = self.opencode.iter().map(|home| ("OpenCode", home.join("opencode.db")));
        let with = |files, ignore| move |(program, path)| AgentFolder { program, path, files, ignore };
        let appended = claude_code.chain(codex).chain(goose).map(with(AgentFiles::Appended, &[]));
        let gemini_cli = gemini_cli.map(with(AgentFiles::Appended, NO_CHATS));
        appended.chain(gemini_cli).chain(databases.map(with(AgentFiles::Database, &[])))
    }
}

/// The folders that are looked for.
impl fmt::Display for AgentHomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folders: Vec<String> = self.folders().map(|folder| folder.to_string()).collect();
        f.write_str(&folders.join(", "))
    }
}

impl fmt::Display for AgentFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", shown(&self.path), self.program)
    }
}

fn shown(path: &Path) -> String {
    text::one_line(&path.to_string_lossy())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_folders_that_exist_are_found_and_variables_replace_the_home() {
        let home = tempfile::tempdir().unwrap();
        let mut environment = Environment { home: Some(home.path().to_owned()), ..Environment::default() };
        let found = |environment: &Environment| -> Vec<String> {
            let found = AgentHomes::of(environment).existing_folders();
            found
                .iter()
                .map(|folder| folder.to_string().replace(home.path().to_str().unwrap(), "~"))
                .collect()
        };
        assert!(found(&environment).is_empty());
        let looked_for = AgentHomes::of(&environment).to_string();
        assert!(looked_for.contains(".codex/archived_sessions (Codex)"), "{looked_for}");
        for folder in [
            ".claude/projects",
            ".codex/sessions",
            ".gemini/tmp",
            ".local/share/opencode/storage",
            "data/opencode",
            "elsewhere/sessions",
            ".local/share/goose/sessions",
        ] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        for data in [".local/share", "data"] {
            fs::write(home.path().join(data).join("opencode/opencode.db"), "").unwrap();
        }
        let all = [
            "~/.claude/projects (Claude Code)",
            "~/.codex/sessions (Codex)",
            "~/.local/share/goose/sessions (Goose)",
            "~/.gemini/tmp (Gemini CLI)",
            "~/.local/share/opencode/opencode.db (OpenCode)",
        ];
        assert_eq!(found(&environment), all);
        environment.codex_home = Some(home.path().join("elsewhere"));
        environment.claude_config_dir = Some(home.path().join("nothing"));
        environment.gemini_cli_home = Some(home.path().join("nothing"));
        environment.data_home = Some(home.path().join("data"));
        let moved = ["~/elsewhere/sessions (Codex)", "~/data/opencode/opencode.db (OpenCode)"];
        assert_eq!(found(&environment), moved);
        environment = Environment::default();
        assert!(found(&environment).is_empty(), "without a home folder");
    }
}
