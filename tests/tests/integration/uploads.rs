//! Files that devices send and fetch: uploads in chunks and as a stream, exports and attachments.

mod chunks;
mod client;
mod downloads;
mod fixture;
mod full_disk;
mod imports;
mod kill;
mod limits;
