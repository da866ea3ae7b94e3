//! Lets a unit test hear of the places that its own thread comes to, whatever other tests of the process do.

use std::cell::RefCell;

type Listener = Box<dyn FnMut(&'static str)>;

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// Tells `listener` of every place that this thread comes to from now on; of those that it comes to itself it does not hear.
pub fn listen_here(listener: impl FnMut(&'static str) + 'static) {
    // The first listener of this process stays, and serves all tests of it.
    super::listen(pass);
    LISTENER.set(Some(Box::new(listener)));
}

fn pass(name: &'static str) {
    let Some(mut listener) = LISTENER.take() else { return };
    listener(name);
    LISTENER.with_borrow_mut(|place| {
        place.get_or_insert(listener);
    });
}
