//! The programs that `mcp install` can configure: where each keeps its list of MCP servers, and in which form.
//!
//! Sources: the documentation of each program.

use std::path::{Path, PathBuf};

use crate::cli::{agent_homes::AgentHomes, args::AgentProgram};

/// The form of a program's configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigFormat {
    /// JSON, with comments and trailing commas if the program allows them. The servers are members of the object `key`.
    Json { key: &'static str, typed: bool },
    /// TOML. The servers are tables below `key`.
    Toml { key: &'static str },
}

/// The configuration file of a program.
pub(super) struct ProgramConfig {
    pub(super) file: PathBuf,
    /// Exists if the program is installed.
    pub(super) folder: PathBuf,
    pub(super) format: ConfigFormat,
    /// What makes the program read the file again.
    pub(super) reload: &'static str,
}

impl AgentProgram {
    /// The name of the program, as its makers write it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Vscode => "Visual Studio Code",
            Self::GeminiCli => "Gemini CLI",
            Self::Zed => "Zed",
        }
    }

    /// Returns where this program keeps its list of servers; `None` if the user has no home folder.
    pub(super) fn config(self, homes: &AgentHomes) -> Option<ProgramConfig> {
        let mcp_servers = ConfigFormat::Json { key: "mcpServers", typed: false };
        let (folder, name, format, reload) = match self {
            Self::ClaudeCode => {
                let format = ConfigFormat::Json { key: "mcpServers", typed: true };
                let reload = "sessions that are started from now on have it; `/mcp` lists it";
                let folder = homes.claude_code()?;
                // Without CLAUDE_CONFIG_DIR, the file is beside the folder.
                let file = homes.claude_code_settings()?;
                return Some(ProgramConfig { file, folder, format, reload });
            }
            Self::ClaudeDesktop => (
                homes.applications()?.join("Claude"),
                "claude_desktop_config.json",
                mcp_servers,
                "quit and start Claude Desktop to load it",
            ),
            Self::Codex => (
                homes.codex()?,
                "config.toml",
                ConfigFormat::Toml { key: "mcp_servers" },
                "sessions that are started from now on have it; `/mcp` lists it",
            ),
            Self::Cursor => (
                homes.home()?.join(".cursor"),
                "mcp.json",
                mcp_servers,
                "Cursor loads it by itself; its settings list it under MCP",
            ),
            Self::Vscode => (
                homes.applications()?.join("Code/User"),
                "mcp.json",
                ConfigFormat::Json { key: "servers", typed: true },
                "start it in VS Code with the command `MCP: List Servers`",
            ),
            Self::GeminiCli => (
                homes.gemini_cli()?,
                "settings.json",
                mcp_servers,
                "sessions that are started from now on have it; `/mcp` lists it",
            ),
            Self::Zed => (
                homes.unix_config()?.join("zed"),
                "settings.json",
                ConfigFormat::Json { key: "context_servers", typed: false },
                "Zed loads it by itself; the settings of its agent panel list it",
            ),
        };
        Some(ProgramConfig { file: folder.join(name), folder, format, reload })
    }
}

impl ProgramConfig {
    /// Replaces the file.
    pub(super) fn at(self, file: &Path) -> Self {
        Self { file: file.to_owned(), ..self }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::cli::Environment;

    #[test]
    fn every_program_has_a_file_below_the_home_folder_or_where_a_variable_says() {
        let mut environment = Environment { home: Some("/home/ana".into()), ..Environment::default() };
        for program in AgentProgram::value_variants() {
            let config = program.config(&AgentHomes::of(&environment)).unwrap();
            assert!(config.file.starts_with("/home/ana"), "{:?}", config.file);
            assert!(program.config(&AgentHomes::default()).is_none(), "{program:?}");
        }
        let file = |environment: &Environment, program: AgentProgram| {
            program.config(&AgentHomes::of(environment)).unwrap().file
        };
        assert_eq!(file(&environment, AgentProgram::ClaudeCode), Path::new("/home/ana/.claude.json"));
        assert_eq!(file(&environment, AgentProgram::Codex), Path::new("/home/ana/.codex/config.toml"));
        environment.claude_config_dir = Some("/c".into());
        environment.codex_home = Some("/x".into());
        environment.config_home = Some("/etc/ana".into());
        assert_eq!(file(&environment, AgentProgram::ClaudeCode), Path::new("/c/.claude.json"));
        assert_eq!(file(&environment, AgentProgram::Codex), Path::new("/x/config.toml"));
        assert_eq!(file(&environment, AgentProgram::Zed), Path::new("/etc/ana/zed/settings.json"));
    }
}
