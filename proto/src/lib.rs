//! The gRPC contract of Satchel: messages, clients and servers, generated from `satchel/v1/*.proto`.
//!
//! `README.md` describes how clients use it: paging, revisions, limits, errors.

pub mod integers;
mod operation;
mod redacted;

/// Package `satchel.v1`.
#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    reason = "generated code"
)]
pub mod v1 {
    tonic::include_proto!("satchel.v1");
}

/// The encoded `FileDescriptorSet` of the package and its imports, with comments and method options; for
/// `grpc.reflection`.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor_set.bin"));

/// The header with which the owner, on the Unix socket, makes a call as one of the registered devices. Its value is the
/// id or the name of the device. The call may do what the device may do, and is recorded as
/// its call. A call over TLS or gRPC-Web has the credentials of its device; there the header has no effect.
pub const DEVICE_HEADER: &str = "x-satchel-device";

/// A method of the package, with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The path, such as `/satchel.v1.MemoryService/GetMemory`.
    pub path: &'static str,
    /// The number of a [`v1::Scope`].
    pub required_scope: i32,
    /// Whether it changes the store, or starts or stops an operation.
    pub mutates: bool,
    /// Whether it may take as long as its work takes.
    pub long_running: bool,
}

/// All methods, by service, in the order of their files.
pub const METHODS: &[Method] = include!(concat!(env!("OUT_DIR"), "/methods.rs"));

/// Returns the method with this path.
#[must_use]
pub fn method(path: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.path == path)
}
