//! The examples and notes at the end of each command's help. A test parses every example.

pub(super) mod devices;
pub(in crate::cli::args) mod peers;
pub(super) mod plugins;

pub(super) const SATCHEL: &str = "\
Examples:
  satchel demo
  satchel import ~/Downloads/chatgpt-export.zip
  satchel memories list
  satchel conversations list --since 7d
  satchel export --output ~/backup/memories.zip
  satchel verify ~/backup/memories.zip

Exit codes:
  0 success, or nothing to do           4 failed or refused
  1 check failed (verify, doctor,       5 permission denied
    config check)                       6 the daemon given with --server is not reachable
  2 invalid command line              130 cancelled
  3 files not recognised

Options take precedence over environment variables (SATCHEL_DATA_DIR, SATCHEL_CONFIG, SATCHEL_SERVER, SATCHEL_COLOR,
SATCHEL_LOG), and these over the configuration file. SATCHEL_DATA_PASSPHRASE unlocks an encrypted data directory,
SATCHEL_PASSPHRASE encrypted exports. Results are printed to stdout, everything else to stderr; with --json, an error is a
JSON document with a stable reason. On a terminal, long output of `show` is displayed with PAGER, or less if it is unset.";

pub(super) const SERVE: &str = "\
Examples:
  satchel serve
  satchel serve --watch ~/Downloads
  satchel serve --listen 0.0.0.0:7443
  satchel serve --log-file ~/satchel.log
  satchel serve --data-dir ~/satchel-work -v";

pub(super) const SERVICE: &str = "\
Examples:
  satchel service install --now
  satchel service status";

pub(super) const SERVICE_INSTALL: &str = "\
Examples:
  satchel service install --now
  satchel service install --now --watch ~/Downloads
  satchel service install --data-dir ~/satchel-work";

pub(super) const SERVICE_STATUS: &str = "\
Examples:
  satchel service status
  satchel service status --json";

pub(super) const SERVICE_UNINSTALL: &str = "\
Example:
  satchel service uninstall";

pub(super) const CONFIG: &str = "\
Examples:
  satchel config check
  satchel config show";

pub(super) const CONFIG_CHECK: &str = "\
Examples:
  satchel config check
  satchel config check --config ./satchel.toml";

pub(super) const CONFIG_SHOW: &str = "\
Examples:
  satchel config show
  satchel config show --defaults > ~/.config/satchel/satchel.toml";

pub(super) const SOURCES: &str = "\
Examples:
  satchel sources add ~/Downloads
  satchel sources list";

pub(super) const SOURCES_LIST: &str = "\
Examples:
  satchel sources list
  satchel sources list --unrecognised
  satchel sources list --json | jq '.sources[] | {path, waiting}'";

pub(super) const SOURCES_ADD: &str = "\
Examples:
  satchel sources add ~/Downloads
  satchel sources add --agents
  satchel sources add ~/notes --settle 1m
  satchel sources add ~/agent/sessions --sessions
  satchel sources add ~/open-webui/webui.db";

pub(super) const SOURCES_REMOVE: &str = "\
Example:
  satchel sources remove ~/Downloads";

pub(super) const DEMO: &str = "\
Example:
  satchel demo";

pub(super) const IMPORT: &str = "\
Examples:
  satchel import ~/Downloads/chatgpt-export.zip
  satchel import ~/Downloads/data-2026-03-01.zip ~/Downloads/claude-export
  satchel import --dry-run ~/Downloads/export.zip
  satchel import --plugin example-notes ~/Downloads/notes.json
  satchel import --json export.zip | jq '.imports[].status'";

pub(super) const IMPORTS: &str = "\
Examples:
  satchel imports list
  satchel imports issues 3f2a";

pub(super) const IMPORTS_LIST: &str = "\
Examples:
  satchel imports list
  satchel imports list --all --json";

pub(super) const IMPORTS_SHOW: &str = "\
Example:
  satchel imports show 3f2a";

pub(super) const IMPORTS_ISSUES: &str = "\
Examples:
  satchel imports issues 3f2a
  satchel imports issues 3f2a --all --json";

pub(super) const IMPORTS_CANCEL: &str = "\
Example:
  satchel imports cancel 3f2a";

pub(super) const IMPORTS_AGAIN: &str = "\
Examples:
  satchel imports again --plugin example-notes --dry-run
  satchel imports again --plugin example-notes";

pub(super) const IMPORTS_UNDO: &str = "\
Examples:
  satchel imports undo 3f2a --dry-run
  satchel imports undo 3f2a
  satchel imports undo 3f2a --yes --json";

pub(super) const IMPORTS_REDO: &str = "\
Examples:
  satchel imports redo 3f2a --dry-run
  satchel imports redo 3f2a --yes";

pub(super) const MEMORIES: &str = "\
Examples:
  satchel memories list --type preference
  satchel memories show 9c41
  satchel memories add \"Prefers metric units\" --type preference
  satchel memories status 9c41 archived";

pub(super) const MEMORIES_LIST: &str = "\
Examples:
  satchel memories list
  satchel memories list --type preference,instruction --platform chatgpt
  satchel memories list --status all --since 2w
  satchel memories list --all --json | jq -r '.memories[].content'";

pub(super) const MEMORIES_SHOW: &str = "\
Examples:
  satchel memories show 9c41
  satchel memories show 9c41 --json";

pub(super) const MEMORIES_HISTORY: &str = "\
Example:
  satchel memories history 9c41";

pub(super) const CONVERSATIONS: &str = "\
Examples:
  satchel conversations list --title garden
  satchel conversations show 51d0";

pub(super) const CONVERSATIONS_LIST: &str = "\
Examples:
  satchel conversations list
  satchel conversations list --platform claude --since 2026-03-01 --until 2026-03-31
  satchel conversations list --title \"garden\" --all";

pub(super) const CONVERSATIONS_STATS: &str = "\
Examples:
  satchel conversations stats
  satchel conversations stats --by project --since \"last month\"
  satchel conversations stats --by model --platform claude-code";

pub(super) const CONVERSATIONS_SHOW: &str = "\
Examples:
  satchel conversations show 51d0
  satchel conversations show 51d0 --tree
  satchel conversations show 51d0 --branch 7be2
  satchel conversations show 51d0 --at 7be2
  satchel conversations show 51d0 --full --color always | less -R";

pub(super) const SEARCH: &str = "\
Examples:
  satchel search bees
  satchel search 'bees -wasps platform:claude after:2025'
  satchel search '\"queen bee\"' --in messages --limit 50
  satchel search borrow checker has:code --every --json
  satchel search --similar-to 3f1c --in memories";

pub(super) const CONTEXT: &str = "\
Examples:
  satchel context baking bread
  satchel context 'bread -sourdough platform:claude' --tokens 2000
  satchel context 'bees OR hives' --messages --at 2025-06
  satchel context baking bread | llm 'Plan my week'
  satchel context baking bread --json | jq '.items[].id'";

pub(super) const MCP: &str = "\
Examples:
  satchel mcp install claude-code --role reader
  satchel mcp --as claude-code
  satchel --server desk mcp";

pub(super) const MCP_INSTALL: &str = "\
Examples:
  satchel mcp install claude-code
  satchel mcp install codex --role reader --yes
  satchel mcp install cursor --as work-cursor --file ~/work/.cursor/mcp.json
  satchel --server desk mcp install zed";

pub(super) const MCP_UNINSTALL: &str = "\
Examples:
  satchel mcp uninstall claude-code
  satchel mcp uninstall codex --yes";

pub(super) const BROWSE: &str = "\
Examples:
  satchel browse
  satchel browse bees
  satchel --server home browse 'bees platform:claude'";

pub(super) const ATTACHMENTS: &str = "\
Examples:
  satchel attachments list 51d0
  satchel attachments save 51d0 ~/pictures";

pub(super) const ATTACHMENTS_LIST: &str = "\
Examples:
  satchel attachments list 51d0
  satchel attachments list --last --json | jq '.attachments[] | select(.stored) | .name'";

pub(super) const ATTACHMENTS_SAVE: &str = "\
Examples:
  satchel attachments save 51d0 ~/pictures
  satchel attachments save 51d0 . --only hive.png
  satchel attachments save 51d0 ~/pictures --only 9f86d081";

pub(super) const EXPORT: &str = "\
Examples:
  satchel export --output ~/backup/memories.zip
  satchel export --output ~/backup/2026-03 --attachments
  satchel export --output memories.zip --no-conversations
  satchel export --output for-my-coach --type goal,preference --strip-identifiers
  satchel export --output work.zip --platform claude --tag work --since 2026-01-01
  satchel export --incremental --output ~/backup/2026-03-14.zip
  satchel export --incremental --base a80c --output ~/backup/2026-03-14.zip
  satchel export --output ~/memu-files --format memu
  satchel export --output ~/backup/memories.zip.age --encrypt-to age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
  satchel export --output ~/backup/memories.zip.age --passphrase
  satchel export --output ~/notes/satchel --format markdown --attachments

An export with filters or --strip-identifiers is a selection to share, not a copy of the store: no incremental export can be
based on it, and applying it never replaces more complete records. Its manifest, `satchel verify` and `satchel exports` mark
it as a selection. Filters select conversations too; only --type leaves them out, as conversations have no type. Memories that
must not be exported (access.exportable) are never included, but a conversation that mentions one is exported as it is.";

pub(super) const EXPORTS: &str = "\
Example:
  satchel exports list";

pub(super) const EXPORTS_LIST: &str = "\
Examples:
  satchel exports list
  satchel exports list --json";

pub(super) const EXPORTS_SHOW: &str = "\
Example:
  satchel exports show a80c";

pub(super) const VERIFY: &str = "\
Examples:
  satchel verify ~/backup/memories.zip
  satchel verify ~/backup/2026-03-14.zip --base ~/backup/memories.zip
  satchel verify --strict --signer z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK bundle/
  satchel verify --json memory-store.json | jq .valid
  satchel verify ~/backup/memories.zip.age --identity ~/age-key.txt";

pub(super) const APPLY: &str = "\
Examples:
  satchel apply ~/backup/memories.zip
  satchel apply --dry-run ~/backup/2026-03-14.zip
  satchel apply --trust z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK laptop.zip
  satchel apply --any-owner memory-store.json
  satchel apply ~/backup/memories.zip.age --passphrase";

pub(super) const KEYS_LIST: &str = "\
Examples:
  satchel keys list
  satchel keys list --json | jq -r .keys[0].public_key";

pub(super) const KEYS_ROTATE: &str = "\
Example:
  satchel keys rotate";

pub(super) const KEYS_TRUST: &str = "\
Example:
  satchel keys trust z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

pub(super) const KEYS_UNTRUST: &str = "\
Example:
  satchel keys untrust z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

pub(super) const KEYS_EXPORT_PUBLIC: &str = "\
Example:
  satchel keys export-public > my-satchel-keys.json";

pub(super) const STATUS: &str = "\
Examples:
  satchel status
  satchel status --json";

pub(super) const DOCTOR: &str = "\
Examples:
  satchel doctor
  satchel doctor --repair";

pub(super) const BACKUP: &str = "\
Examples:
  satchel backup ~/backup/satchel-2026-03.zip
  satchel backup --json /mnt/disk/satchel.zip | jq .revision";

pub(super) const RESTORE: &str = "\
Examples:
  satchel restore ~/backup/satchel-2026-03.zip
  satchel restore --replace ~/backup/satchel-2026-03.zip
  satchel restore --recovery ~/backup/satchel-2026-03.zip
  satchel restore --data-dir /tmp/look ~/backup/satchel-2026-03.zip";

pub(super) const REBUILD: &str = "\
Examples:
  satchel rebuild
  satchel rebuild --accept-loss
  satchel rebuild --put-back";

pub(super) const KEYS: &str = "\
Examples:
  satchel keys list
  satchel keys rotate
  satchel keys status
  satchel keys encrypt --key-file ~/.config/satchel/data.key
  satchel keys encrypt --passphrase

The passphrase of an encrypted data directory is read from SATCHEL_DATA_PASSPHRASE or from the file given with
--data-passphrase-file; otherwise it is prompted for.";

pub(super) const KEYS_STATUS: &str = "\
Examples:
  satchel keys status
  satchel keys status --json";

pub(super) const KEYS_ENCRYPT: &str = "\
Examples:
  satchel keys encrypt --key-file ~/.config/satchel/data.key
  satchel keys encrypt --passphrase
  satchel keys encrypt --passphrase --data-passphrase-file ~/.config/satchel/passphrase
  satchel keys encrypt --key-store";

pub(super) const KEYS_CHANGE: &str = "\
Examples:
  satchel keys change --passphrase
  satchel keys change --key-file /media/usb/satchel.key
  satchel keys change --recovery --key-file ~/.config/satchel/new.key";

pub(super) const KEYS_RECOVERY: &str = "\
Example:
  satchel keys recovery";

pub(super) const COMPLETIONS: &str = "\
Examples:
  satchel completions bash > ~/.local/share/bash-completion/completions/satchel
  satchel completions zsh > ~/.zfunc/_satchel
  satchel completions fish > ~/.config/fish/completions/satchel.fish";

pub(super) const MAN: &str = "\
Examples:
  satchel man | man -l -
  satchel man --output ~/.local/share/man/man1";
