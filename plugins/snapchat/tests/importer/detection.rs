//! No file of another importer is claimed.

use std::{fs, path::Path};

use satchel_importer::{Bundle, Importer as _};
use satchel_plugin_snapchat::Snapchat;

#[test]
fn fixtures_of_other_importers_are_not_claimed() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut inputs = 0;
    for plugin in fs::read_dir(&plugins).expect("the folder can be listed").flatten() {
        let Ok(fixtures) = fs::read_dir(plugin.path().join("fixtures")) else { continue };
        if plugin.file_name() == "snapchat" {
            continue;
        }
        for input in
            fixtures.flatten().map(|fixture| fixture.path().join("input")).filter(|path| path.is_dir())
        {
            let bundle = Bundle::from_folder(&input).expect("the folder can be listed");
            let found = Snapchat::detect(&bundle).expect("detection answers");
            // Importers that leave such files alone may have one as a fixture.
            let others =
                found.iter().flat_map(|found| &found.files).filter(|file| !file.contains("snapchat"));
            assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{}", input.display());
            inputs += 1;
        }
    }
    assert!(inputs > 100, "only {inputs} inputs");
}

/// The files that are claimed among these.
fn claimed(files: &[(&str, &str)]) -> Vec<String> {
    let found = Snapchat::detect(&Bundle::from_files(files.iter().copied())).expect("detection answers");
    found.into_iter().flat_map(|found| found.files).collect()
}

const AI: &str = r#"{"My AI Content":[{"Timestamp":"2025-03-09 10:00:00 UTC","Type":"CHAT","Content":"a"}]}"#;
const CHAT: &str = r#"{"From":"a","Media Type":"TEXT","Created":"2025-03-09 10:00:00 UTC","Content":"a"}"#;

#[test]
fn the_file_of_my_ai_is_known_by_its_lists() {
    for file in [
        AI,
        r#"{"My AI Content":[],"My AI Memory":[]}"#,
        r#"{"My AI Memory":[{"Memory":"a"}]}"#,
        r#"{"My AI Content":[{"Ti"#,
    ] {
        assert_eq!(claimed(&[("renamed.json", file)]).len(), usize::from(!file.ends_with("Ti")), "{file}");
    }
    for file in
        [r#"{"My AI Content":{}}"#, r#"{"My AI Content":[{"x":1}]}"#, r#"[{"My AI Content":[]}]"#, "{}", ""]
    {
        assert_eq!(claimed(&[("snapchat_ai.json", file)]), [""; 0], "{file}");
    }
}

#[test]
fn chats_with_people_are_claimed_beside_my_ai_only() {
    let people = format!(r#"{{"ola":[{CHAT}]}}"#);
    let with_ai = format!(r#"{{"ola":[{CHAT}],"myai":[{CHAT}]}}"#);
    let chats = "x/json/chat_history.json";
    assert_eq!(claimed(&[(chats, &people)]), [""; 0]);
    assert_eq!(claimed(&[("x/json/other.json", &with_ai)]), [""; 0]);
    assert_eq!(claimed(&[(chats, &with_ai)]), [chats]);
    assert_eq!(claimed(&[(chats, &people), ("x/json/snapchat_ai.json", AI)]).len(), 2);
    assert_eq!(claimed(&[(chats, &people), ("y/json/snapchat_ai.json", AI)]), ["y/json/snapchat_ai.json"]);
    assert_eq!(claimed(&[(chats, "[1]"), ("x/json/snapchat_ai.json", AI)]).len(), 1);
}

#[test]
fn exports_of_two_accounts_are_two() {
    let account = |name: &str| format!(r#"{{"Basic Information":{{"Username":"{name}"}}}}"#);
    let (mo, li) = (account("mo"), account("li"));
    let files = [
        ("1/json/snapchat_ai.json", AI),
        ("1/json/account.json", &mo),
        ("2/json/snapchat_ai.json", AI),
        ("2/json/account.json", &li),
    ];
    let found = Snapchat::detect(&Bundle::from_files(files)).expect("detection answers");
    let accounts: Vec<_> = found.iter().filter_map(|found| found.account.as_deref()).collect();
    assert_eq!(accounts, ["mo", "li"]);
}

#[test]
fn a_page_is_claimed_if_there_is_no_file() {
    let page = "<html><body><h1>My AI</h1><h3>My AI Memory</h3><table></table></body></html>";
    assert_eq!(claimed(&[("1/html/snapchat_ai.html", page)]), ["1/html/snapchat_ai.html"]);
    let both = [("1/html/snapchat_ai.html", page), ("1/json/snapchat_ai.json", AI)];
    assert_eq!(claimed(&both), ["1/json/snapchat_ai.json"]);
    let other = "<html><body><h1>Friends</h1><h3>My AI Memory</h3><table></table></body></html>";
    assert_eq!(claimed(&[("1/html/friends.html", other), ("1/html/empty.html", "")]), [""; 0]);
}
