//! Looking for one byte in texts of all sizes, at the speed of memory.

/// Whether `text` holds `byte` anywhere.
pub(crate) fn holds(text: &str, byte: u8) -> bool {
    // Whole blocks without an early exit: the compiler turns them into vector code.
    text.as_bytes().chunks(BLOCK).any(|block| block.iter().fold(0, |any, b| any | u8::from(*b == byte)) != 0)
}

/// Bytes; a few vectors.
const BLOCK: usize = 64;
