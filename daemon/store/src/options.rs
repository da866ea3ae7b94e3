//! The options for opening a store.

use std::fs;

use satchel_seal::Seal;

/// The options for opening a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Bytes of the engine's page cache.
    pub cache_bytes: u64,
    /// An id that changes when the machine reboots, by default the kernel's boot id. After a store was not closed, it tells a
    /// killed process, whose writes are still in the page cache, from a power loss. `None`: a store that was not closed is
    /// rebuilt.
    pub boot_id: Option<String>,
    /// Whether to set the engine aside and rebuild it from the journal, whatever its state.
    pub rebuild: bool,
    /// The seal of an encrypted store.
    pub seal: Option<Seal>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            cache_bytes: 64 << 20,
            boot_id: boot_id.map(|id| id.trim().to_owned()),
            rebuild: false,
            seal: None,
        }
    }
}
