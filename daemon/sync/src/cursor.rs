//! Reads fields from the front of a byte slice.

/// The bytes end within a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truncated;

/// The bytes that are not read yet. It never allocates, so a length that is a lie costs nothing.
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The number of bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Truncated> {
        let (front, rest) = self.0.split_at_checked(length).ok_or(Truncated)?;
        self.0 = rest;
        Ok(front)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Truncated)?;
        self.0 = rest;
        Ok(*front)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_be_bytes)
    }
}

/// A length as the u32 of the format. Every length is bounded by [`crate::limits`] before it is written.
pub(crate) fn length_u32(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}
