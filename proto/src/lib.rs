//! The gRPC contract of Satchel: messages, clients and servers, generated from `satchel/v1/*.proto`.
//!
//! `README.md` says how clients use it: paging, revisions, limits, errors.

mod private;

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
