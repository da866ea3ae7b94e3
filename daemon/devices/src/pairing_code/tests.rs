use proptest::prelude::*;

use super::*;

fn fingerprint() -> Fingerprint {
    Fingerprint::of_public_key(b"key")
}

fn code(token: [u8; 5]) -> PairingCode {
    PairingCode::new(&fingerprint(), PairingToken::new(token))
}

fn uri(addresses: &[&str]) -> PairingUri {
    PairingUri {
        addresses: addresses.iter().map(|&it| it.to_owned()).collect(),
        fingerprint: fingerprint(),
        token: PairingToken::new([1, 2, 3, 4, 5]),
    }
}

#[test]
fn a_code_has_five_groups_of_five() {
    let text = code([1, 2, 3, 4, 5]).to_string();
    assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), [5; 5]);
    let secret = PairingSecret::parse(&text).unwrap();
    assert!(secret.fingerprint.matches(&fingerprint()));
    assert_eq!((secret.token.as_bytes(), secret.addresses.len()), (&[1, 2, 3, 4, 5], 0));
}

#[test]
fn a_link_has_the_whole_fingerprint_the_token_and_addresses() {
    let uri = uri(&["192.168.1.20:7443", "[fe80::1%eth0]:7443", "büro.example:1"]);
    let text = uri.to_string();
    assert!(
        text.starts_with("satchel://pair?v=1&a=192.168.1.20:7443&a=%5Bfe80::1%25eth0%5D:7443&a=b%C3%BC"),
        "{text}"
    );
    let secret = PairingSecret::parse(&format!(" {text}\n")).unwrap();
    assert_eq!(secret, PairingSecret::from(uri));
    assert_eq!(secret.fingerprint, FingerprintPrefix::Full(fingerprint()));
    let reordered = text.replace("v=1&", "").replace("&f=", "&new=7&v=1&f=");
    assert_eq!(PairingSecret::parse(&reordered).unwrap(), secret);
}

#[test]
fn problems_of_a_code_are_named() {
    let good = code([1, 2, 3, 4, 5]).to_string();
    let parse = |text: &str| PairingSecret::parse(text).unwrap_err();
    assert_eq!(parse("  "), PairingCodeError::Empty);
    assert_eq!(parse("---"), PairingCodeError::Empty);
    assert_eq!(parse(&good[..good.len() - 1]), PairingCodeError::Length { found: 24 });
    assert_eq!(parse(&format!("{good}2")), PairingCodeError::Length { found: 26 });
    assert_eq!(parse("ABC-U"), PairingCodeError::Character { character: 'U', position: 4 });
    let mut wrong = good.clone();
    let last = if good.ends_with('7') { "8" } else { "7" };
    wrong.replace_range(good.len() - 1.., last);
    assert_eq!(parse(&wrong), PairingCodeError::Check);
    assert!(matches!(parse(&"A".repeat(10_000)), PairingCodeError::TooLong { .. }));
}

#[test]
fn problems_of_a_link_are_named() {
    let good = uri(&["host:1"]).to_string();
    let parse = |text: &str| PairingSecret::parse(text).unwrap_err();
    let parameter = |text: &str| match parse(text) {
        PairingCodeError::Parameter { name, .. } => name,
        other => panic!("{other}"),
    };
    assert_eq!(parse("https://example.com/"), PairingCodeError::NotPairing);
    assert_eq!(parse(&good.replace("v=1", "v=2")), PairingCodeError::Version { found: "2".to_owned() });
    assert_eq!(parameter(&good.replace("&t=", "&x=")), "t");
    assert_eq!(parameter(&good.replace("&f=", "&f=A")), "f");
    assert_eq!(parameter(&format!("{good}&t=AQIDBAU")), "t");
    for bad in ["host", "host:", ":1", "host:0", "host:70000", "ho%2Fst:1", "a%20b:1", "%zz:1", "%ff:1", "%"]
    {
        assert_eq!(parameter(&good.replace("host:1", bad)), "a", "{bad}");
    }
    assert_eq!(parameter(&uri(&["host:1"; 8]).to_string().replace("v=1", "v=1&a=more:1")), "a");
}

#[test]
fn debug_output_shows_no_token() {
    let token = PairingToken::new([0xab, 0xcd, 0xef, 0x12, 0x34]);
    let code = PairingCode::new(&fingerprint(), token.clone());
    let uri = PairingUri { token, ..uri(&[]) };
    let secret = PairingSecret::from(code.clone());
    for shown in [format!("{code:?}"), format!("{uri:?}"), format!("{secret:?}")] {
        assert!(shown.contains("PairingToken(..)"), "{shown}");
        for part in ["171", "205", "239", "abcdef", "q83vEjQ"] {
            assert!(!shown.contains(&format!(" {part},")) && !shown.contains("q83vEjQ"), "{shown}");
        }
    }
}

proptest! {
    #[test]
    fn a_code_is_read_however_it_is_typed(
        token in any::<[u8; 5]>(),
        lower in any::<bool>(),
        separator in "[- –]{0,2}",
    ) {
        let code = code(token);
        let mut typed = code.to_string().replace('-', &separator).replace('0', "o").replace('1', "l");
        if lower {
            typed = typed.to_lowercase();
        }
        prop_assert_eq!(typed.parse::<PairingCode>().unwrap(), code);
    }

    #[test]
    fn a_wrong_or_swapped_character_is_always_found(
        token in any::<[u8; 5]>(),
        at in 0..25_usize,
        other in "[0-9A-HJKMNP-TV-Z]",
    ) {
        let code: Vec<char> = code(token).to_string().replace('-', "").chars().collect();
        let parse = |text: &[char]| text.iter().collect::<String>().parse::<PairingCode>();
        let mut wrong = code.clone();
        wrong[at] = other.chars().next().unwrap();
        prop_assert_eq!(parse(&wrong).is_ok(), wrong == code);
        let mut swapped = code.clone();
        swapped.swap(at, (at + 1) % 25);
        prop_assert_eq!(parse(&swapped).is_ok(), swapped == code);
    }

    #[test]
    fn a_link_is_read_as_it_is_written(
        token in any::<[u8; 5]>(),
        hosts in prop::collection::vec("[a-z0-9.%\\[\\]-]{1,20}", 0..8),
        port in 1..=u16::MAX,
    ) {
        let addresses = hosts.iter().map(|host| format!("{host}:{port}")).collect();
        let uri = PairingUri { addresses, fingerprint: fingerprint(), token: PairingToken::new(token) };
        prop_assert_eq!(uri.to_string().parse::<PairingUri>().unwrap(), uri);
    }

    #[test]
    fn arbitrary_text_is_refused(text in ".{0,80}") {
        prop_assert!(PairingSecret::parse(&text).is_err());
        let link = format!("satchel://pair?{text}");
        prop_assert!(PairingSecret::parse(&link).is_err());
    }
}
