use super::*;

const JSON: ConfigFormat = ConfigFormat::Json { key: "mcpServers", typed: true };
const TOML: ConfigFormat = ConfigFormat::Toml { key: "mcp_servers" };

fn entry(device: &str) -> ServerEntry {
    let args = ["mcp", "--as", device].map(str::to_owned);
    ServerEntry { command: "/usr/bin/satchel".to_owned(), args: args.to_vec() }
}

fn place(format: ConfigFormat) -> EntryLocation<'static> {
    EntryLocation { format, name: "satchel", executable: Path::new("/opt/satchel-x86_64") }
}

fn installed(text: &str, format: ConfigFormat) -> String {
    install(text, place(format), &entry("bot")).unwrap().text
}

#[test]
fn a_new_file_has_only_the_entry() {
    let expected = r#"{
  "mcpServers": {
    "satchel": {
      "type": "stdio",
      "command": "/usr/bin/satchel",
      "args": ["mcp", "--as", "bot"]
    }
  }
}
"#;
    for text in ["", "{}\n", " \n"] {
        assert_eq!(installed(text, JSON), expected, "{text:?}");
    }
    let expected =
        "[mcp_servers.satchel]\ncommand = \"/usr/bin/satchel\"\nargs = [\"mcp\", \"--as\", \"bot\"]\n";
    assert_eq!(installed("", TOML), expected);
}

/// Checks that `before` gets the entry once, and is as before when the entry is removed.
fn check_undone(before: &str, format: ConfigFormat) {
    let after = installed(before, format);
    assert!(after.contains("/usr/bin/satchel"), "{after}");
    assert_eq!(installed(&after, format), after, "a second time changes nothing");
    let restored = uninstall(&after, place(format)).unwrap();
    assert_eq!(restored, Edited { text: before.to_owned(), before: Some(entry("bot")) }, "{after}");
}

#[test]
fn everything_else_stays_as_it_is_and_uninstalling_restores_it() {
    for before in [
        r#"{
    // servers of Ana
    "mcpServers": {
        "files": { "command": "npx", "env": {"KEY": "s3cret"} },
    },
    "big": 12345678901234567890.10
}
"#,
        "{\n  \"mcpServers\": {\n    \"satchel-2\": {}\n  },\n  \"projects\": {\"/a\":{\"mcpServers\":{}}}\n}",
        "{\n  \"servers\": [],\n  \"mcpServers\": {}\n}\n",
        "\u{feff}{\r\n\t\"a\": [1, 2],\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {}\r\n\t}\r\n}",
    ] {
        check_undone(before, JSON);
    }
    for before in [
        "model = \"o5\" # mine\n\n[mcp_servers.files]\ncommand = \"npx\"\n\n[tui]\ntheme = 'dark'\n",
        "mcp_servers = { files = { command = \"npx\" } }\n",
        "# nothing yet\n",
        "model = \"x\" # mine\r\n\r\n[mcp_servers.files]\r\ncommand = \"npx\"\r\n",
        "\u{feff}model = \"x\"\n",
    ] {
        check_undone(before, TOML);
    }
}

#[test]
fn a_file_on_one_line_keeps_its_content() {
    let before = r#"{"numStartups":7,"mcpServers":{"other":{"url":"https://x.example"}},"n":1.50}"#;
    let after = installed(before, JSON);
    assert!(after.starts_with(r#"{"numStartups":7,"#) && after.ends_with(r#","n":1.50}"#), "{after}");
    let restored = uninstall(&after, place(JSON)).unwrap().text;
    let squeezed: String = restored.split_whitespace().collect();
    assert_eq!(squeezed, before);
}

#[test]
fn an_entry_of_ours_is_updated_and_keeps_its_other_fields() {
    let old =
        r#"{"mcpServers": {"satchel": {"command": "/old/satchel", "args": ["mcp"], "disabled": true}}}"#;
    let new = r#"{"mcpServers": {"satchel": {"command": "/usr/bin/satchel", "args": ["mcp", "--as", "bot"], "disabled": true}}}"#;
    assert_eq!(installed(old, JSON), new);
    let old = "[mcp_servers.satchel]\ncommand = \"satchel\"\nargs = [\"mcp\"]\nenabled = false\n";
    let new = "[mcp_servers.satchel]\ncommand = \"/usr/bin/satchel\"\nargs = [\"mcp\", \"--as\", \"bot\"]\nenabled = false\n";
    assert_eq!(installed(old, TOML), new);
}

/// Checks that an entry of another program is neither changed nor removed.
fn check_foreign(text: &str, format: ConfigFormat) {
    let foreign = || EditError::Foreign("satchel".to_owned());
    assert_eq!(install(text, place(format), &entry("bot")), Err(foreign()), "{text}");
    assert_eq!(uninstall(text, place(format)), Err(foreign()), "{text}");
    let other = uninstall(text, EntryLocation { name: "other", ..place(format) });
    assert_eq!(other, Ok(Edited { text: text.to_owned(), before: None }), "{text}");
}

#[test]
fn what_is_not_ours_is_never_changed() {
    for foreign in [
        r#"{"command": "npx", "args": ["-y", "satchel", "mcp"]}"#,
        r#"{"command": "/usr/bin/satchel-next", "args": ["mcp"]}"#,
        r#"{"command": "satchel", "args": ["serve"]}"#,
        r#"{"url": "http://127.0.0.1:7444/mcp"}"#,
        r#"{"command": ["satchel"], "args": "mcp"}"#,
    ] {
        check_foreign(&format!(r#"{{"mcpServers": {{"satchel": {foreign}}}}}"#), JSON);
    }
    for foreign in ["command = \"npx\"\nargs = [\"mcp\"]", "url = \"http://127.0.0.1:7444/mcp\"", "args = 5"]
    {
        check_foreign(&format!("[mcp_servers.satchel]\n{foreign}\n"), TOML);
    }
}

#[test]
fn a_file_that_is_not_understood_is_refused() {
    for (text, format) in [
        ("[1]", JSON),
        ("{", JSON),
        ("{\"a\" 1}", JSON),
        ("{'a': 1}", JSON),
        ("{\"mcpServers\": []}", JSON),
        ("{\"mcpServers\": {\"satchel\": \"x\"}}", JSON),
        ("{\"mcpServers\": {}, \"mcpServers\": {}}", JSON),
        ("{\"mcpServers\": {\"satchel\": {}, \"satchel\": {}}}", JSON),
        ("a = ", TOML),
        ("a = 1\r\nb = 2\n[mcp_servers.satchel]\ncommand = \"satchel\"\nargs = [\"mcp\"]\n", TOML),
        ("mcp_servers = 1", TOML),
        ("[mcp_servers]\nsatchel = 1", TOML),
    ] {
        assert!(install(text, place(format), &entry("bot")).is_err(), "{text}");
        assert!(uninstall(text, place(format)).is_err(), "{text}");
    }
}

#[test]
fn an_entry_for_this_program_is_ours_whatever_its_file_is_called() {
    let text = r#"{"mcpServers": {"satchel": {"command": "/home/ana/satchel-x86_64", "args": ["mcp"]}}}"#;
    assert!(install(text, place(JSON), &entry("bot")).unwrap().text.contains("/usr/bin/satchel"));
    assert_eq!(uninstall(text, place(JSON)).unwrap().text, r#"{"mcpServers": {}}"#);
}
