//! The process in the namespace of a machine that passes packets between its network interface and a [`Relay`].

use std::{
    io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use tokio::net::UnixDatagram;
use tokio_tun::Tun;

use crate::{
    home::LONG,
    network::{CABLE, Host},
    relay::{MAX_PACKET_BYTES, Relay, socket_of_machine, socket_of_relay},
};

/// Set in the child: the folder with the sockets, and the address of the machine.
const FOLDER: &str = "SATCHEL_TEST_TUNNEL_FOLDER";
const ADDRESS: &str = "SATCHEL_TEST_TUNNEL_ADDRESS";
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);

/// Not a separate test: it is the process, and runs until it is killed, or the process of the test has ended.
#[test]
fn tunnel_of_the_tests() {
    let (Some(folder), Ok(address)) = (std::env::var_os(FOLDER), std::env::var(ADDRESS)) else { return };
    std::thread::spawn(|| {
        // Nothing is written to it, so this reads until the other end is gone.
        drop(io::copy(&mut io::stdin(), &mut io::sink()));
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(pass_packets(&PathBuf::from(folder), address.parse().unwrap())).unwrap();
}

/// Returns only if an end is gone.
async fn pass_packets(folder: &Path, address: Ipv4Addr) -> Result<(), Box<dyn std::error::Error>> {
    let mtu = i32::try_from(MAX_PACKET_BYTES)?;
    let device = Tun::builder().name(CABLE).address(address).netmask(NETMASK).mtu(mtu).up().build()?;
    let device = device.first().ok_or("no device")?;
    // The test takes this file as the sign that the device is there.
    let socket = UnixDatagram::bind(socket_of_machine(folder, address))?;
    socket.connect(socket_of_relay(folder))?;
    tokio::try_join!(send(device, &socket), receive(device, &socket))?;
    Ok(())
}

async fn send(device: &Tun, socket: &UnixDatagram) -> io::Result<()> {
    let mut packet = [0; MAX_PACKET_BYTES];
    loop {
        let length = device.recv(&mut packet).await?;
        socket.send(&packet[..length]).await?;
    }
}

async fn receive(device: &Tun, socket: &UnixDatagram) -> io::Result<()> {
    let mut packet = [0; MAX_PACKET_BYTES];
    loop {
        let length = socket.recv(&mut packet).await?;
        device.send(&packet[..length]).await?;
    }
}

/// The process. It is killed on drop, and the network interface goes with it.
pub(crate) struct Tunnel(Child);

impl Tunnel {
    /// Gives a machine a network interface with this address, and connects it to the relay.
    pub(crate) fn open(host: &Host, relay: &Relay, address: Ipv4Addr) -> Result<Self, String> {
        let program = std::env::current_exe().unwrap();
        let words = ["--exact", "tunnel::tunnel_of_the_tests", "--test-threads", "1", "--nocapture"];
        let mut command = host.run_program(program.to_str().unwrap(), &words);
        command.env(FOLDER, relay.folder()).env(ADDRESS, address.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut tunnel = Self(command.spawn().unwrap());
        let begun = Instant::now();
        while !socket_of_machine(relay.folder(), address).exists() {
            if tunnel.0.try_wait().unwrap().is_some() {
                return Err(io::read_to_string(tunnel.0.stderr.take().unwrap()).unwrap());
            }
            assert!(begun.elapsed() < LONG, "the network interface of {address} does not come up");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Ok(tunnel)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // It may have ended by itself; in both cases it is gone afterwards.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
