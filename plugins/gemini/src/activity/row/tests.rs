use super::*;

#[test]
fn conversation_ids_are_read_from_addresses() {
    for address in [
        "https://gemini.google.com/app/0123456789abcdef",
        "https://gemini.google.com/app/c/0123456789abcdef?hl=de#x",
        "https://gemini.google.com/u/1/app/0123456789abcdef",
        "https://gemini.google.com/gem/coding/0123456789abcdef",
        "https://bard.google.com/chat/0123456789abcdef",
    ] {
        assert_eq!(conversation_id(address), Some("0123456789abcdef"), "{address}");
    }
    for address in [
        "https://gemini.google.com/",
        "https://gemini.google.com/app",
        "https://gemini.google.com/gems/view",
        "https://gemini.google.com/share/0123456789ab",
        "https://example.com/app/0123456789abcdef",
    ] {
        assert_eq!(conversation_id(address), None, "{address}");
    }
}

#[test]
fn prompts_are_read_from_json_in_a_text() {
    let arena = Arena::new();
    let text = |given| inner_text(given, &arena).into_owned();
    assert_eq!(text("plain"), "plain");
    assert_eq!(text(r#"{"a":1,"prompt":"tea?"}"#), "tea?");
    assert_eq!(text(r#"{"contents":[{"parts":[{"text":"tea?"}]}]}"#), "tea?");
    assert_eq!(text("{not json"), "{not json");
    assert_eq!(text("[1,2]"), "[1,2]");
}
