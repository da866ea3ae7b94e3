//! A value that is created by the first caller that needs it, while other callers wait.

use std::sync::{Mutex, OnceLock, PoisonError};

pub(crate) struct RetryOnce<T> {
    value: OnceLock<T>,
    initializing: Mutex<()>,
}

impl<T> Default for RetryOnce<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), initializing: Mutex::default() }
    }
}

impl<T> RetryOnce<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, creating it if needed. A failure is returned to this caller and is not remembered: files,
    /// memory or disk space may be missing at one moment and available at the next.
    pub(crate) fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _guard = self.initializing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = make()?;
        Ok(self.value.get_or_init(|| value))
    }
}

#[cfg(test)]
mod tests {
    use super::RetryOnce;

    #[test]
    fn a_failed_load_is_retried() {
        let once = RetryOnce::<u8>::default();
        assert_eq!(once.get_or_try_init(|| Err("no file may be opened")), Err("no file may be opened"));
        assert_eq!(once.get_or_try_init(|| Ok::<_, &str>(7)), Ok(&7));
        assert_eq!(once.get_or_try_init(|| Err("never asked again")), Ok(&7));
    }
}
