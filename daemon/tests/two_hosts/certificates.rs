//! Clocks that differ, and certificates that end.

use std::{path::PathBuf, time::Duration};

use satchel_core::clock::{Clock as _, SystemClock};
use satchel_devices::{CertificateAuthority, Credentials, HandshakeError, PairingSecret};
use satchel_proto::v1::{GetCallerIdentityRequest, device_service_client::DeviceServiceClient};
use satchel_tests::test_device::{TestDevice, WrongClock};

use crate::{
    home::{code, stderr},
    network::Network,
};

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
const DAY_SECONDS: i64 = 86_400;
/// The exit code if the daemon refuses the device.
const NO_PERMISSION: Option<i32> = Some(5);

/// Set in the child: the file for the result, the link of a pairing, and the seconds by which the clock is wrong.
const FILE: &str = "SATCHEL_TEST_CLOCK_FILE";
const LINK: &str = "SATCHEL_TEST_CLOCK_LINK";
const SECONDS: &str = "SATCHEL_TEST_CLOCK_SECONDS";

/// Not a separate test: it is a client with a wrong clock, in a process of its own on the laptop.
#[test]
fn client_with_a_wrong_clock() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let (link, seconds) = (std::env::var(LINK).unwrap(), std::env::var(SECONDS).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(Box::pin(pair_and_call(&link, seconds.parse().unwrap())));
    let outcome = match outcome {
        Ok(name) => format!("paired as {name}"),
        Err(error) => {
            let handshake = HandshakeError::find(error.as_ref());
            handshake.map_or_else(|| format!("{error:#}"), |handshake| handshake.to_string())
        }
    };
    std::fs::write(file, outcome).unwrap();
}

async fn pair_and_call(link: &str, seconds: i64) -> anyhow::Result<String> {
    let secret = PairingSecret::parse(link)?;
    let device = TestDevice::pair_with_clock(&secret, "laptop", WrongClock(seconds)).await?;
    let mut client = DeviceServiceClient::new(device.channel);
    let called = client.get_caller_identity(GetCallerIdentityRequest {}).await?;
    Ok(called.into_inner().device.unwrap_or_default().name)
}

/// Pairs from a laptop whose clock is wrong, and returns what came of it.
fn pair_with_wrong_clock(network: &Network, name: &str, days: i64) -> String {
    let Network { desk, laptop } = network;
    let opened = desk.json(&["devices", "pair", "--as", name]);
    let (program, file) = (std::env::current_exe().unwrap(), laptop.home.path().join("outcome"));
    let words = ["--exact", "certificates::client_with_a_wrong_clock", "--test-threads", "1"];
    let output = laptop
        .run_program(program.to_str().unwrap(), &words)
        .env(FILE, &file)
        .env(LINK, opened["uri"].as_str().unwrap())
        .env(SECONDS, (days * DAY_SECONDS).to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn a_clock_that_is_wrong_by_a_day_does_no_harm() {
    let Some(network) = Network::create() else { return };
    let daemon = network.desk.serve();
    for (name, days) in [("behind", -1), ("ahead", 1)] {
        let outcome = pair_with_wrong_clock(&network, name, days);
        assert_eq!(outcome, format!("paired as {name}"), "{days} days");
    }
    for (name, days, said) in [("far-behind", -10, "valid from"), ("far-ahead", 400, "valid until")] {
        let outcome = pair_with_wrong_clock(&network, name, days);
        assert!(outcome.contains(said) && outcome.contains("clock"), "{days} days: {outcome}");
    }
    daemon.stop();
}

fn now() -> i64 {
    SystemClock.now_micros()
}

/// Gives the paired laptop the certificate that the daemon would have issued so many days ago.
fn issue_days_ago(network: &Network, days: i64) {
    let devices = network.desk.data().join("devices");
    let authority = CertificateAuthority::load_or_create(&devices, now()).unwrap();
    let data = network.laptop.data();
    let Credentials { name, addresses, authority: certificate, key, .. } =
        Credentials::load(&data, "desk").unwrap();
    let issued = authority.issue(&key.certificate_request().unwrap(), now() - days * DAY).unwrap();
    Credentials::new(&name, addresses, certificate, issued.der, key).unwrap().save(&data).unwrap();
}

/// Returns in how many days the certificate of the laptop ends.
fn days_left(network: &Network) -> i64 {
    let credentials = Credentials::load(&network.laptop.data(), "desk").unwrap();
    (credentials.expires_at().unwrap() - now()) / DAY
}

#[test]
fn a_command_renews_a_certificate_of_which_a_third_is_left() {
    let Some(network) = Network::create() else { return };
    let daemon = network.desk.serve();
    network.pair(&[]);
    let status = ["--server", "desk", "status"];
    issue_days_ago(&network, 50);
    let left = days_left(&network);
    network.laptop.ok(&status);
    assert_eq!(days_left(&network), left, "it is not renewed too early");
    issue_days_ago(&network, 61);
    assert!(days_left(&network) < 30);
    network.laptop.ok(&status);
    assert!(days_left(&network) > 85, "{} days are left", days_left(&network));
    // The new certificate is accepted, and the device is still the same.
    network.laptop.ok(&status);
    assert_eq!(network.desk.json(&["devices", "list"])["devices"].as_array().map(Vec::len), Some(1));
    daemon.stop();
}

#[test]
fn a_machine_with_an_expired_certificate_is_told_to_pair_again() {
    let Some(network) = Network::create() else { return };
    let Network { desk, laptop } = &network;
    let daemon = desk.serve();
    network.pair(&[]);
    issue_days_ago(&network, 100);
    let status = ["--server", "desk", "status"];
    let begun = std::time::Instant::now();
    let refused = laptop.run(&status);
    assert_eq!(code(&refused), NO_PERMISSION, "{}", stderr(&refused));
    assert!(begun.elapsed() < Duration::from_secs(15));
    let said = stderr(&refused);
    assert!(said.contains("has expired") && said.contains("satchel pair CODE --as desk"), "{said}");
    desk.ok(&["devices", "revoke", "laptop"]);
    network.pair(&[]);
    assert!(laptop.ok(&status).contains("memories"));
    daemon.stop();
}
