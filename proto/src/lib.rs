//! The gRPC contract of Satchel: messages, clients and servers, generated from `satchel/v1/*.proto`.
//!
//! `README.md` says how clients use it: paging, revisions, limits, errors.

mod operation;
mod private;
pub mod signed;

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

/// A method of the package, with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// `/satchel.v1.MemoryService/GetMemory`.
    pub path: &'static str,
    /// A [`v1::Scope`].
    pub required_scope: i32,
    /// It changes what is stored, or starts or stops work.
    pub mutates: bool,
    /// It takes as long as its work takes.
    pub long_running: bool,
}

/// Every method, by service and in the order of its file.
pub const METHODS: &[Method] = include!(concat!(env!("OUT_DIR"), "/methods.rs"));

/// The method at the path of a call.
#[must_use]
pub fn method(path: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.path == path)
}
