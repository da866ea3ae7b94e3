//! Lets a unit test observe the failpoints that its own thread reaches, independent of other tests in the process.

use std::cell::RefCell;

type Listener = Box<dyn FnMut(&'static str)>;

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Calls `listener` at every failpoint that this thread reaches from now on, except those that the listener itself
/// reaches.
pub fn listen_on_thread(listener: impl FnMut(&'static str) + 'static) {
    // The first listener of the process stays installed and serves all its tests.
    super::listen(forward);
    LISTENER.set(Some(Box::new(listener)));
}

fn forward(name: &'static str) {
    let Some(mut listener) = LISTENER.take() else { return };
    listener(name);
    LISTENER.with_borrow_mut(|slot| {
        slot.get_or_insert(listener);
    });
}
