//! Tests of settings that are accepted or refused, and of the messages.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::new("/d".into(), "/r".into()).with_text(text, Path::new("satchel.toml"))
}

#[test]
fn settings_that_are_not_set_keep_their_defaults() {
    let config = parse("[import]\nmax-total-mib = 5\n").unwrap();
    assert_eq!(
        (config.import_limits.total_bytes, config.import_limits.entry_bytes),
        (5 << 20, Limits::default().entry_bytes)
    );
}

#[test]
fn secrets_are_kept_unless_the_file_says_otherwise() {
    assert_eq!(parse("").unwrap().secrets, SecretHandling::Keep);
    let config = parse("[import]\nsecrets = \"remove\"\n").unwrap();
    assert_eq!(config.secrets, SecretHandling::Remove);
    assert_eq!(Config::new("/d".into(), "/r".into()).changes(&config).immediate, ["[import]"]);
    let error = parse("[import]\nsecrets = \"hide\"\n").unwrap_err().to_string();
    assert!(error.contains("remove") && error.contains("keep"), "{error}");
}

#[test]
fn the_type_registry_is_a_web_address() {
    let config = parse("[export]\ntype-registry = \"https://example.org/types\"\n").unwrap();
    assert_eq!(config.type_registry.as_deref(), Some("https://example.org/types"));
    let text = toml::to_string_pretty(&config.to_file()).unwrap();
    assert_eq!(parse(&text).unwrap().type_registry, config.type_registry);
    for invalid in ["types", "https://", "https:///x", "https://example.org/ my types"] {
        let error = parse(&format!("[export]\ntype-registry = {invalid:?}\n")).unwrap_err().to_string();
        assert!(error.contains("type-registry") && error.contains(invalid), "{error}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_a_suggestion() {
    for (text, ending) in [
        (
            "[import]\nmax-totl-mib = 5\n",
            "the unknown key \"max-totl-mib\" in line 2; did you mean \"max-total-mib\"?",
        ),
        ("\n\n[strore]\n", "the unknown key \"strore\" in line 3; did you mean \"store\"?"),
        ("[store]\ncachemib = 1\n", "\"cachemib\" in line 2; did you mean \"cache-mib\"?"),
        ("[store]\nx = 1\n", "the unknown key \"x\" in line 2; valid names: \"cache-mib\""),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.ends_with(ending), "{error}");
    }
}

#[test]
fn a_log_file_has_a_size_limit() {
    let log = parse("[log]\nlevel = \"debug\"\nfile = \"/l\"\nmax-mib = 1\nkeep = 2\n").unwrap().log;
    let expected =
        LogConfig { level: Some(LogLevel::Debug), file: Some("/l".into()), max_bytes: 1 << 20, keep: 2 };
    assert_eq!(log, expected);
    let error = parse("[log]\nfile = \"satchel.log\"\n").unwrap_err().to_string();
    assert_eq!(error, "[log] file in the configuration must be an absolute path, not \"satchel.log\"");
    assert!(parse("[log]\nlevel = \"loud\"\n").is_err() && parse("[log]\nkeep = 0\n").is_err());
}

#[test]
fn the_file_form_of_a_configuration_is_read_back() {
    let config = parse("[import]\nmax-files = 7\n[log]\nlevel = \"warn\"\nkeep = 3\n").unwrap();
    let text = toml::to_string_pretty(&config.to_file()).unwrap();
    let again = parse(&text).unwrap();
    assert_eq!(config.changes(&again), ConfigChanges::default(), "{text}");
    assert!(text.contains("max-files = 7") && text.contains("keep = 3"), "{text}");
}

#[test]
fn changes_are_split_into_immediate_ones_and_those_on_restart() {
    let old = parse("").unwrap();
    let new = parse("[import]\nmax-files = 7\n[store]\ncache-mib = 1\n[log]\nlevel = \"debug\"\nkeep = 1\n");
    let changes = old.changes(&new.unwrap());
    assert_eq!(changes.immediate, ["[import]", "[log] level"]);
    assert_eq!(changes.on_restart, ["[store] cache-mib", "[log] keep"]);
}

#[test]
fn watched_folders_are_read_with_their_settings() {
    let text = "[[watch]]\npath = \"/a/Downloads/\"\n\n[[watch]]\npath = \"/b\"\nrecursive = false\n\
                poll = true\nproviders = [\"claude\"]\nignore = [\"*.txt\"]\nsessions = true\nsettle-ms = 5000\n";
    let folders = parse(text).unwrap().watching.folders;
    assert_eq!(folders[0], WatchSpec::with_defaults("/a/Downloads".into()));
    assert_eq!(folders[0].path.to_str(), Some("/a/Downloads"));
    let expected = WatchSpec {
        recursive: false,
        poll: true,
        providers: vec!["claude".into()],
        ignore: vec!["*.txt".into()],
        sessions: true,
        settle: Some(Duration::from_secs(5)),
        ..WatchSpec::with_defaults("/b".into())
    };
    assert_eq!(folders[1..], [expected]);
}

#[test]
fn a_tilde_in_a_watched_path_means_the_home_folder() {
    let mut config = Config::new("/d".into(), "/r".into());
    config.home = Some("/home/ana".into());
    let config = config.with_text("[[watch]]\npath = \"~/Downloads\"\n", Path::new("s")).unwrap();
    assert_eq!(config.watching.folders, [WatchSpec::with_defaults("/home/ana/Downloads".into())]);
}

#[test]
fn a_tilde_means_the_home_folder_in_every_path() {
    let mut config = Config::new("/d".into(), "/r".into());
    config.home = Some("/home/ana".into());
    let text = "[security]\nkey-file = \"~/data.key\"\npassphrase-file = \"~/pass\"\n\
                [export]\nschedule = \"daily 03:00\"\nfolder = \"~/exports\"\n[log]\nfile = \"~/satchel.log\"\n";
    let config = config.with_text(text, Path::new("s")).unwrap();
    assert_eq!(config.unlock.key_file.as_deref(), Some(Path::new("/home/ana/data.key")));
    assert_eq!(config.unlock.passphrase_file.as_deref(), Some(Path::new("/home/ana/pass")));
    assert_eq!(config.export_schedule.unwrap().folder, Path::new("/home/ana/exports"));
    assert_eq!(config.log.file.as_deref(), Some(Path::new("/home/ana/satchel.log")));
}

#[test]
fn an_invalid_watch_section_is_refused() {
    for (lines, problem) in [
        ("path = \"Downloads\"", "not an absolute path"),
        ("path = \"/a\"\nignore = [\"[\"]", "is not valid"),
        ("path = \"/a\"\nsettle-ms = 1", "settle-ms"),
        ("path = \"/a\"\nrecursiv = true", "recursiv"),
        ("recursive = true", "path"),
    ] {
        let error = satchel_source::chain(&parse(&format!("[[watch]]\n{lines}\n")).unwrap_err());
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_schedule_needs_a_folder() {
    let config =
        parse("[export]\nschedule = \"daily 03:00\"\nfolder = \"/backup\"\nfull-after-days = 7\n").unwrap();
    let regular = config.export_schedule.unwrap();
    assert_eq!((regular.schedule.to_string().as_str(), regular.keep), ("daily 03:00", DEFAULT_KEEP));
    assert_eq!(config.renewal, RenewalPolicy { days: 7, ..RenewalPolicy::default() });
    for (text, problem) in [
        ("schedule = \"daily\"", "needs a folder"),
        ("schedule = \"daily\"\nfolder = \"backup\"", "needs a folder"),
        ("schedule = \"often\"\nfolder = \"/backup\"", "is not a schedule"),
        ("keep = 0", "[export] keep"),
        ("folder = \"/backup\"", "[export] folder in the configuration does nothing without a schedule"),
        ("keep = 2", "[export] keep in the configuration does nothing"),
        ("encrypt-to = [\"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\"]", "does nothing"),
        (
            "encrypt-to = [\"age1nobody\"]",
            "[export] encrypt-to in the configuration: \"age1nobody\" is no age recipient",
        ),
        ("full-after-percent = 101", "full-after-percent"),
    ] {
        let error = parse(&format!("[export]\n{text}\n")).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn the_owner_may_have_a_did_other_than_that_of_the_key() {
    let config = parse("[owner]\ndid = \"did:web:example.org\"\n").unwrap();
    assert_eq!(config.owner_did.as_deref(), Some("did:web:example.org"));
    for did in ["did:key:z6Mkabc", "example.org", "did:WEB:a", "did:web:", "did:web:a b", "did:web:a#key-1"] {
        let error = parse(&format!("[owner]\ndid = {did:?}\n")).unwrap_err().to_string();
        assert!(error.contains("is not a usable DID") && error.contains(did), "{error}");
    }
}

#[test]
fn unlock_files_have_absolute_paths_and_flags_override_them() {
    let config = parse("[security]\nkey-file = \"/k\"\npassphrase-file = \"/p\"\n").unwrap();
    assert_eq!(config.unlock.key_file, Some("/k".into()));
    assert_eq!(config.unlock.passphrase_file, Some("/p".into()));
    assert!(parse("[security]\nkey-file = \"data.key\"\n").is_err());
    let mut config = Config::new("/d".into(), "/r".into());
    config.unlock.passphrase_file = Some("/flag".into());
    let config = config.with_text("[security]\npassphrase-file = \"/p\"\n", Path::new("s")).unwrap();
    assert_eq!(config.unlock.passphrase_file, Some("/flag".into()));
}

#[test]
fn a_value_out_of_range_is_refused() {
    for value in ["0", "4097"] {
        let error = parse(&format!("[store]\ncache-mib = {value}\n")).unwrap_err().to_string();
        assert_eq!(error, format!("[store] cache-mib in the configuration must be 1 to 4096, not {value}"));
    }
}
