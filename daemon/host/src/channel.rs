//! A channel bounded by bytes: the sender waits while the queue holds more than the bound.
//!
//! A bound in items would not limit memory: a thousand long conversations take far more than a thousand short ones.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// An estimate of the memory that an item takes.
pub trait SizeEstimate {
    /// Returns the size in bytes, on the heap and of the value itself.
    fn size_estimate(&self) -> usize;
}

/// The sending half. Dropping it ends the channel.
#[derive(Debug)]
pub struct Sender<T>(Arc<ChannelState<T>>);

/// The receiving half. Once it is dropped, sending fails.
#[derive(Debug)]
pub struct Receiver<T>(Arc<ChannelState<T>>);

/// The result of a receive with a timeout.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// The next item.
    Item(T),
    /// Nothing arrived before the timeout.
    TimedOut,
    /// The sender was dropped and the queue is empty.
    End,
}

/// The receiver was dropped; the item is returned to the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Creates a channel whose queue holds about `capacity` bytes. A single item may be larger: it is accepted when the
/// queue is empty.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let items = VecDeque::new();
    let queue =
        ByteQueue { items, queued_bytes: 0, waiting: false, sender_gone: false, receiver_gone: false };
    let shared = Arc::new(ChannelState { queue: Mutex::new(queue), changed: Condvar::new(), capacity });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

#[derive(Debug)]
struct ChannelState<T> {
    /// Guards the items and the flags that say whether either half was dropped.
    queue: Mutex<ByteQueue<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct ByteQueue<T> {
    items: VecDeque<(usize, T)>,
    queued_bytes: usize,
    /// Whether the other half sleeps. Both halves never sleep at once: one waits for space, the other for an item.
    waiting: bool,
    sender_gone: bool,
    receiver_gone: bool,
}

impl<T> ByteQueue<T> {
    /// Returns whether the queue is empty and an item may still arrive.
    fn awaiting_item(&self) -> bool {
        self.items.is_empty() && !self.sender_gone
    }
}

impl<T> ChannelState<T> {
    /// Locks the queue. A panic of the other half leaves the queue consistent, because every change to it is only a few
    /// moves.
    fn lock(&self) -> MutexGuard<'_, ByteQueue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, mut queue: MutexGuard<'a, ByteQueue<T>>) -> MutexGuard<'a, ByteQueue<T>> {
        queue.waiting = true;
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Unlocks the queue and wakes the other half if it sleeps. A wake-up costs a system call even if no thread waits.
    fn wake(&self, mut queue: MutexGuard<'_, ByteQueue<T>>) {
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        if waiting {
            self.changed.notify_all();
        }
    }
}

impl<T: SizeEstimate> Sender<T> {
    /// Queues `item`, after waiting for space.
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        let size = item.size_estimate();
        self.send_sized(item, size)
    }
}

impl<T> Sender<T> {
    /// Does the same for an item whose size is already known.
    pub fn send_sized(&self, item: T, size: usize) -> Result<(), SendError<T>> {
        let mut queue = self.0.lock();
        while !queue.receiver_gone
            && !queue.items.is_empty()
            && queue.queued_bytes.saturating_add(size) > self.0.capacity
        {
            queue = self.0.wait(queue);
        }
        if queue.receiver_gone {
            return Err(SendError(item));
        }
        queue.queued_bytes = queue.queued_bytes.saturating_add(size);
        queue.items.push_back((size, item));
        self.0.wake(queue);
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().sender_gone = true;
        self.0.changed.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Waits for the next item. Returns `None` once the sender was dropped and the queue is empty.
    pub fn recv(&self) -> Option<T> {
        let mut queue = self.0.lock();
        while queue.awaiting_item() {
            queue = self.0.wait(queue);
        }
        self.take(queue)
    }

    /// Does the same, but waits at most for `timeout`.
    pub fn recv_timeout(&self, timeout: Duration) -> Received<T> {
        let queue = self.0.lock();
        let idle = |queue: &mut ByteQueue<T>| {
            let idle = queue.awaiting_item();
            queue.waiting |= idle;
            idle
        };
        let waited = self.0.changed.wait_timeout_while(queue, timeout, idle);
        let (queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            Received::TimedOut
        } else {
            self.take(queue).map_or(Received::End, Received::Item)
        }
    }

    fn take(&self, mut queue: MutexGuard<'_, ByteQueue<T>>) -> Option<T> {
        let (size, item) = queue.items.pop_front()?;
        queue.queued_bytes = queue.queued_bytes.saturating_sub(size);
        // Wake a waiting sender only when half of the queue is free, not for each item.
        if queue.queued_bytes <= self.0.capacity / 2 {
            self.0.wake(queue);
        }
        Some(item)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.receiver_gone = true;
        let items = std::mem::take(&mut queue.items);
        drop(queue);
        self.0.changed.notify_all();
        drop(items);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    impl SizeEstimate for Vec<u8> {
        fn size_estimate(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn items_come_in_order_and_then_the_end() {
        let (sender, receiver) = bounded(10);
        assert_eq!(sender.send(vec![1]), Ok(()));
        assert_eq!(sender.send(vec![2]), Ok(()));
        drop(sender);
        assert_eq!(receiver.recv(), Some(vec![1]));
        assert_eq!(receiver.recv(), Some(vec![2]));
        assert_eq!(receiver.recv(), None);
    }

    #[test]
    fn the_queue_never_holds_more_than_the_bound() {
        let (sender, receiver) = bounded(100);
        thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(sender.send(vec![0; 30]), Ok(()));
                }
            });
            let mut items = 0;
            while receiver.recv().is_some() {
                items += 1;
                assert!(receiver.0.lock().queued_bytes <= 100);
            }
            assert_eq!(items, 200);
        });
    }

    #[test]
    fn an_item_larger_than_the_bound_passes_alone() {
        let (sender, receiver) = bounded(10);
        assert_eq!(sender.send(vec![0; 50]), Ok(()));
        assert_eq!(receiver.recv().map(|item| item.len()), Some(50));
    }

    #[test]
    fn a_waiting_sender_wakes_when_the_receiver_goes() {
        let (sender, receiver) = bounded(10);
        assert_eq!(sender.send(vec![0; 10]), Ok(()));
        thread::scope(|scope| {
            let waiting = scope.spawn(move || sender.send(vec![7; 10]));
            drop(receiver);
            assert!(matches!(waiting.join(), Ok(Err(SendError(item))) if item == vec![7; 10]));
        });
    }
}
