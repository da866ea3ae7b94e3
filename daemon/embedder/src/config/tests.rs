use std::fs;

use super::*;

type Change = fn(&mut EndpointConfig);

fn parse(text: &str) -> Result<EndpointConfig, toml::de::Error> {
    toml::from_str(text)
}

#[test]
fn an_address_and_a_model_are_enough() {
    let config = parse("url = \"http://127.0.0.1:11434/v1\"\nmodel = \"nomic-embed-text\"").unwrap();
    assert_eq!(config, EndpointConfig::new("http://127.0.0.1:11434/v1", "nomic-embed-text").unwrap());
    assert_eq!((config.batch_size, config.timeout_seconds, config.max_text_bytes), (32, 60, 8_192));
    config.check().unwrap();
}

#[test]
fn unknown_keys_are_refused() {
    let error = parse("url = \"http://127.0.0.1\"\nmodel = \"m\"\napi-key = \"secret\"").unwrap_err();
    assert!(error.message().contains("api-key"), "{error}");
}

#[test]
fn plain_http_is_for_this_machine_unless_it_is_allowed() {
    let mut config = EndpointConfig::new("http://192.168.1.5:11434/v1", "m").unwrap();
    assert!(matches!(config.check(), Err(EndpointConfigError::PlainHttp(_))));
    config.allow_plain_http = true;
    config.check().unwrap();
    EndpointConfig::new("https://example.com/v1", "m").unwrap().check().unwrap();
}

#[test]
fn values_out_of_their_range_are_refused() {
    let changes: [(&str, Change); 8] = [
        ("batch-size", |config| config.batch_size = 0),
        ("batch-size", |config| config.batch_size = 257),
        ("timeout-seconds", |config| config.timeout_seconds = 0),
        ("timeout-seconds", |config| config.timeout_seconds = u64::MAX),
        ("max-text-bytes", |config| config.max_text_bytes = 3),
        ("dimensions", |config| config.dimensions = Some(0)),
        ("model", |config| config.model = " ".to_owned()),
        ("model", |config| config.model = "a\nb".to_owned()),
    ];
    for (key, change) in changes {
        let mut config = EndpointConfig::new("http://127.0.0.1", "m").unwrap();
        change(&mut config);
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains(&format!("`{key}`")), "{error}");
    }
}

#[test]
fn it_is_said_what_leaves_the_machine() {
    let local = EndpointConfig::new("http://localhost:11434/v1", "m").unwrap();
    assert!(!local.leaves_the_machine());
    assert!(local.disclosure().contains("http://localhost:11434/v1 on this machine"));
    let remote = EndpointConfig::new("https://api.openai.com/v1", "m").unwrap();
    assert!(remote.leaves_the_machine());
    assert!(remote.disclosure().contains("sent encrypted to https://api.openai.com/v1"));
    let plain = EndpointConfig::new("http://192.168.1.5/v1", "m").unwrap();
    assert!(
        plain.disclosure().contains("leave this machine: they are sent unencrypted to http://192.168.1.5/v1")
    );
}

#[test]
fn a_key_is_one_word_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let mut config = EndpointConfig::new("http://127.0.0.1", "m").unwrap();
    assert!(config.read_key().unwrap().is_none());
    config.api_key_file = Some(path.clone());
    assert!(matches!(config.read_key(), Err(EndpointConfigError::KeyFile { .. })));
    for wrong in ["", "\n", "two words", "two\nlines", "ключ", &"k".repeat(9_000)] {
        fs::write(&path, wrong).unwrap();
        let error = config.read_key().map(drop).unwrap_err();
        assert!(matches!(error, EndpointConfigError::Key { .. }), "{wrong:?}: {error}");
    }
    fs::write(&path, "sk-secret\n").unwrap();
    let key = config.read_key().unwrap().unwrap();
    assert_eq!(key.header.as_bytes(), b"Bearer sk-secret");
    assert!(!format!("{:?}", key.header).contains("secret"));
    assert_eq!(key.redact("wrong key sk-secret"), "wrong key [key]");
}
