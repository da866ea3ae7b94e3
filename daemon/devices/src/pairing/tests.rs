use std::sync::Barrier;

use super::*;
use crate::{identity::KeyHash, policy::Role};

const NOW: i64 = 1_800_000_000_000_000;
const TTL: Duration = Duration::from_mins(5);
const SECOND: i64 = 1_000_000;

fn policy() -> Policy {
    Policy::for_role(Role::Reader, "")
}

fn owner() -> Opener {
    Opener { name: "owner".to_owned(), device: None }
}

fn open(windows: &PairingWindows) -> OpenWindow {
    windows.open(policy(), Some("phone".to_owned()), owner(), TTL, NOW).unwrap()
}

fn wrong(window: &OpenWindow) -> [u8; 5] {
    window.token.as_bytes().map(|byte| byte ^ 1)
}

#[test]
fn a_window_is_redeemed_once() {
    let windows = PairingWindows::default();
    let window = open(&windows);
    assert_eq!(
        windows.state(window.id, NOW),
        Some(WindowState::Open { expires_at: NOW + 300 * SECOND, tries_left: 5 })
    );
    assert!(windows.any_open(NOW));
    let grant = windows.redeem(window.token.as_bytes(), NOW + SECOND).unwrap();
    assert_eq!(
        grant,
        Grant { id: window.id, policy: policy(), name: Some("phone".to_owned()), opener: owner() }
    );
    assert_eq!(windows.redeem(window.token.as_bytes(), NOW + SECOND), Err(PairingRefused));
    assert!(!windows.any_open(NOW));
    assert_eq!(windows.state(window.id, NOW), Some(WindowState::Redeemed { device: None }));
    let device = DeviceId::of(&KeyHash::of_public_key(b"key"));
    windows.record_device(window.id, device.clone());
    assert_eq!(windows.state(window.id, NOW), Some(WindowState::Redeemed { device: Some(device) }));
}

#[test]
fn the_fifth_wrong_token_closes_the_window() {
    let windows = PairingWindows::default();
    let window = open(&windows);
    for left in (1..5).rev() {
        assert_eq!(windows.redeem(&wrong(&window), NOW), Err(PairingRefused));
        assert!(
            matches!(windows.state(window.id, NOW), Some(WindowState::Open { tries_left, .. }) if tries_left == left)
        );
    }
    // Text of another length counts as well.
    assert_eq!(windows.redeem(b"", NOW), Err(PairingRefused));
    assert_eq!(windows.state(window.id, NOW), Some(WindowState::TooManyTries));
    assert_eq!(windows.redeem(window.token.as_bytes(), NOW), Err(PairingRefused));
}

#[test]
fn four_wrong_tokens_leave_the_window_open() {
    let windows = PairingWindows::default();
    let window = open(&windows);
    for _ in 0..4 {
        windows.redeem(&wrong(&window), NOW).unwrap_err();
    }
    assert!(windows.redeem(window.token.as_bytes(), NOW).is_ok());
}

#[test]
fn a_window_closes_when_its_time_is_over() {
    let windows = PairingWindows::default();
    let window = open(&windows);
    assert_eq!(windows.redeem(window.token.as_bytes(), window.expires_at), Err(PairingRefused));
    assert_eq!(windows.state(window.id, NOW), Some(WindowState::Expired));
    // Setting the clock back does not open it again.
    assert_eq!(windows.redeem(window.token.as_bytes(), NOW), Err(PairingRefused));
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_a_window() {
    let windows = PairingWindows::default();
    let start = Instant::now();
    let window = windows.open_at(policy(), None, owner(), TTL, NOW, start).unwrap();
    let token = window.token.as_bytes();
    assert_eq!(windows.redeem_at(token, NOW - 1_000 * SECOND, start + TTL), Err(PairingRefused));
    assert_eq!(windows.state(window.id, NOW), Some(WindowState::Expired));
    let window = windows.open_at(policy(), None, owner(), TTL, NOW, start).unwrap();
    let late = start + Duration::from_millis(299_999);
    assert!(windows.redeem_at(window.token.as_bytes(), NOW - 1_000 * SECOND, late).is_ok());
}

#[test]
fn a_window_is_cancelled_or_replaced_by_the_next() {
    let windows = PairingWindows::default();
    let first = open(&windows);
    let second = open(&windows);
    assert_eq!(windows.state(first.id, NOW), Some(WindowState::Replaced));
    assert_eq!(windows.redeem(first.token.as_bytes(), NOW), Err(PairingRefused));
    assert!(!windows.cancel(first.id, NOW));
    assert!(windows.cancel(second.id, NOW) && !windows.cancel(second.id, NOW));
    assert_eq!(windows.state(second.id, NOW), Some(WindowState::Cancelled));
    assert_eq!(windows.redeem(second.token.as_bytes(), NOW), Err(PairingRefused));
}

#[test]
fn only_the_last_windows_are_remembered() {
    let windows = PairingWindows::default();
    let first = open(&windows);
    let ids: Vec<PairingId> = (0..REMEMBERED).map(|_| open(&windows).id).collect();
    assert_eq!(windows.state(first.id, NOW), None);
    assert!(ids.iter().all(|id| windows.state(*id, NOW).is_some()));
    assert_eq!(ids[0].to_string().parse::<PairingId>().unwrap(), ids[0]);
}

#[test]
fn of_many_threads_exactly_one_redeems_a_window() {
    for _ in 0..50 {
        let windows = PairingWindows::default();
        let window = open(&windows);
        let start = Barrier::new(4);
        let redeem = || {
            start.wait();
            windows.redeem(window.token.as_bytes(), NOW).is_ok()
        };
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(redeem)).collect();
            threads.into_iter().map(|it| usize::from(it.join().unwrap())).sum::<usize>()
        });
        assert_eq!(won, 1);
    }
}

#[test]
fn times_names_and_policies_that_cannot_be_used_are_refused() {
    let windows = PairingWindows::default();
    let open = |policy, name: &str, ttl| windows.open(policy, Some(name.to_owned()), owner(), ttl, NOW);
    for ttl in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(901)] {
        assert!(matches!(open(policy(), "phone", ttl), Err(PairingError::Ttl)));
    }
    assert!(matches!(open(policy(), "a\nb", TTL), Err(PairingError::Devices(DevicesError::Name { .. }))));
    let nobody = Policy::for_role(Role::Agent, "");
    assert!(matches!(open(nobody, "phone", TTL), Err(PairingError::Devices(DevicesError::Policy { .. }))));
    assert!(!windows.any_open(NOW));
}

#[test]
fn debug_output_shows_no_token() {
    let windows = PairingWindows::default();
    let window = open(&windows);
    let shown = format!("{window:?} {windows:?}");
    assert!(shown.contains("PairingToken(..)") && !shown.contains("token_hash"), "{shown}");
}

#[test]
fn a_window_is_closed_with_the_device_that_opened_it() {
    let windows = PairingWindows::default();
    let ids = [b"one", b"two"].map(|key| DeviceId::of(&KeyHash::of_public_key(key)));
    let opener = Opener { name: "laptop".to_owned(), device: Some(ids[0].clone()) };
    let window = windows.open(policy(), None, opener.clone(), TTL, NOW).unwrap();
    windows.cancel_opened_by(&ids[1], NOW);
    assert!(windows.any_open(NOW));
    windows.cancel_opened_by(&ids[0], NOW);
    assert_eq!(windows.state(window.id, NOW), Some(WindowState::Cancelled));
    assert_eq!(windows.redeem(window.token.as_bytes(), NOW), Err(PairingRefused));
    let window = windows.open(policy(), None, opener.clone(), TTL, NOW).unwrap();
    assert_eq!(windows.redeem(window.token.as_bytes(), NOW).unwrap().opener, opener);
}
