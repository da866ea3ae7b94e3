//! Floods of frames, frames that HTTP/2 does not allow, and messages that are too large.

use std::net::Ipv4Addr;

use anyhow::{Result, ensure};
use satchel_proto::v1::DeviceRole;

use crate::{
    daemon_with_devices,
    frames::{
        CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, RawConnection,
        SETTINGS, WINDOW_UPDATE, call, call_headers, frame, grpc_message,
    },
};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const GET_MEMORY: &str = "/satchel.v1.MemoryService/GetMemory";
/// Frames of a flood.
const FLOOD: u32 = 20_000;
/// Frames that are sent in one write.
const BATCH: u32 = 100;
/// Memory that the allocator may keep after a load, in MiB.
const KEPT_MIB: usize = 64;
/// Largest frame that is allowed unless the server says otherwise, in bytes.
const MAX_FRAME_BYTES: usize = 16_384;
/// Largest message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Makes frame `number` of a flood.
type Flood = fn(u32) -> Vec<u8>;

fn floods() -> Vec<(&'static str, Flood)> {
    vec![
        ("rapid resets", |number| {
            let mut bytes = call(2 * number + 1, GET_MEMORY, &[]);
            bytes.extend(frame(RST_STREAM, 0, 2 * number + 1, &CANCEL));
            bytes
        }),
        ("resets before the message", |number| {
            let mut bytes = frame(HEADERS, END_HEADERS, 2 * number + 1, &call_headers(GET_MEMORY, None));
            bytes.extend(frame(RST_STREAM, 0, 2 * number + 1, &CANCEL));
            bytes
        }),
        ("calls beyond the limit of streams", |number| {
            frame(HEADERS, END_HEADERS, 2 * number + 1, &call_headers(GET_MEMORY, None))
        }),
        ("pings", |_| frame(PING, 0, 0, &[1; 8])),
        ("settings", |_| frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])),
        ("empty data", |number| match number {
            0 => frame(HEADERS, END_HEADERS, 1, &call_headers(GET_MEMORY, None)),
            _ => frame(DATA, 0, 1, &[]),
        }),
        ("headers without an end", |number| match number {
            0 => frame(HEADERS, 0, 1, &call_headers(GET_MEMORY, None)),
            // A header of 8 KiB each.
            _ => frame(CONTINUATION, 0, 1, &[&[0, 1, b'x', 127, 129, 63][..], &[b'y'; 8_192]].concat()),
        }),
        ("window updates", |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_frames_cost_only_the_sender() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    for (name, flood) in floods() {
        let config = device.credentials.client_config()?;
        let mut connection = RawConnection::open(&device, config, ADDRESS, 0).await?;
        for batch in 0..FLOOD / BATCH {
            let frames: Vec<u8> = (batch * BATCH..(batch + 1) * BATCH).flat_map(flood).collect();
            // The daemon may close the connection, or stop to read it.
            if connection.send(&frames).await.is_err() {
                break;
            }
        }
        let during = daemon.usage()?;
        ensure!(during.memory_mib < before.memory_mib + 2 * KEPT_MIB, "{name}: {before:?} became {during:?}");
    }
    others.all_succeeded().await?;
    daemon.at_rest_as(before, KEPT_MIB).await
}

/// Frames after which HTTP/2 ends the connection.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let headers = call_headers(GET_MEMORY, None);
    vec![
        ("a frame that is too large", frame(DATA, 0, 1, &vec![0; MAX_FRAME_BYTES + 1])),
        ("data of no stream", frame(DATA, 0, 0, &[1])),
        ("an even stream", frame(HEADERS, END_HEADERS, 2, &headers)),
        ("padding that is too long", frame(HEADERS, END_HEADERS | 8, 1, &[200, 1, 2])),
        ("a window update by nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
        ("a window beyond the largest", frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]).repeat(2)),
        ("a ping of the wrong length", frame(PING, 0, 0, &[1; 7])),
        ("settings of the wrong length", frame(SETTINGS, 0, 0, &[0; 5])),
        ("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &headers)),
        ("headers that cannot be decoded", frame(HEADERS, END_HEADERS, 1, &[0xff; 64])),
        ("a reset of an idle stream", frame(RST_STREAM, 0, 9, &CANCEL)),
        ("not HTTP/2", vec![0x16; 64]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_frames_end_the_connection() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    for (name, bytes) in malformed() {
        let config = device.credentials.client_config()?;
        let mut connection = RawConnection::open(&device, config, ADDRESS, 0).await?;
        // The daemon may close the connection before all was sent.
        drop(connection.send(&bytes).await);
        ensure!(connection.read_to_end().await.is_ok(), "{name}: the connection stays open");
    }
    others.all_succeeded().await?;
    daemon.at_rest_as(before, KEPT_MIB).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_is_refused() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    let config = device.credentials.client_config()?;
    let mut connection = RawConnection::open(&device, config, ADDRESS, 1 << 20).await?;
    let message = grpc_message(&vec![0; MAX_MESSAGE_BYTES + 1]);
    for stream in [1, 3, 5] {
        let mut bytes = frame(HEADERS, END_HEADERS, stream, &call_headers(GET_MEMORY, None));
        // Its length alone is enough to be refused, so the rest is not waited for.
        bytes.extend(frame(DATA, 0, stream, &message[..1_000]));
        connection.send(&bytes).await?;
        connection.read_headers(vec![stream]).await?;
    }
    // The connection can still be used.
    connection.send(&call(7, GET_MEMORY, &[])).await?;
    connection.read_headers(vec![7]).await?;
    connection.send(&frame(DATA, END_STREAM, 0, &[])).await?;
    connection.read_to_end().await?;
    others.all_succeeded().await?;
    daemon.at_rest_as(before, KEPT_MIB).await
}
