//! The components of the first-party importers, built by this crate's build script.

/// One importer, as a WebAssembly component of the world `satchel:importer/importer`.
#[derive(Clone, Copy)]
pub struct BuiltIn {
    /// The name that its `describe` gives.
    pub name: &'static str,
    /// The component.
    pub wasm: &'static [u8],
}

/// All importers, sorted by name.
pub const BUILT_IN: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

#[cfg(test)]
mod tests {
    use super::BUILT_IN;

    #[test]
    fn every_importer_is_a_component() {
        assert_eq!(
            BUILT_IN.iter().map(|importer| importer.name).collect::<Vec<_>>(),
            [
                "chatgpt",
                "claude",
                "claude-code",
                "codex",
                "copilot",
                "deepseek",
                "dti",
                "gemini",
                "gemini-cli",
                "goose",
                "grok",
                "jan",
                "librechat",
                "lm-studio",
                "memu",
                "mistral",
                "open-webui",
                "opencode",
                "perplexity",
                "snapchat",
                "vscode-copilot"
            ]
        );
        for importer in BUILT_IN {
            // Magic, version 13, layer 1: a component, not a core module.
            assert_eq!(importer.wasm.get(..8), Some(b"\0asm\x0d\0\x01\0".as_slice()), "{}", importer.name);
        }
    }
}
