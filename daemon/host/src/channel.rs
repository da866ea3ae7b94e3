//! A channel bounded by bytes: its sender waits while more than the bound lies in the queue.
//!
//! A bound in items would let a thousand long conversations take the memory that a thousand short ones do not need.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How much memory an item takes, roughly.
pub trait Weight {
    /// Bytes on the heap and in itself.
    fn weight(&self) -> usize;
}

/// The sending end. The channel ends when it is dropped.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The receiving end. Once it is dropped, sending fails.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// What a receiver that does not wait for ever gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// The next item.
    Item(T),
    /// Nothing came in time.
    Idle,
    /// The sender is gone and the queue is empty.
    End,
}

/// The receiver is gone; the item comes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed<T>(pub T);

/// A channel whose queue holds about `bytes`. One item alone may be larger: it is let in when the queue is empty.
pub fn bounded<T>(bytes: usize) -> (Sender<T>, Receiver<T>) {
    let items = VecDeque::new();
    let queue = Queue { items, weight: 0, waiting: false, sender_gone: false, receiver_gone: false };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new(), bytes });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

#[derive(Debug)]
struct Shared<T> {
    /// Guards the items and the word of either end that it is gone.
    queue: Mutex<Queue<T>>,
    changed: Condvar,
    bytes: usize,
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<(usize, T)>,
    weight: usize,
    /// Whether the other end sleeps. Both never do: one waits for room, the other for an item.
    waiting: bool,
    sender_gone: bool,
    receiver_gone: bool,
}

impl<T> Queue<T> {
    /// Whether nothing is there, and something may come.
    fn idle(&self) -> bool {
        self.items.is_empty() && !self.sender_gone
    }
}

impl<T> Shared<T> {
    /// A panic of the other end leaves the queue whole, as every change of it is a few moves.
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, mut queue: MutexGuard<'a, Queue<T>>) -> MutexGuard<'a, Queue<T>> {
        queue.waiting = true;
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the queue go, and wakes the other end if it sleeps: to wake nobody costs a system call too.
    fn wake(&self, mut queue: MutexGuard<'_, Queue<T>>) {
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        if waiting {
            self.changed.notify_all();
        }
    }
}

impl<T: Weight> Sender<T> {
    /// Queues `item`, waiting for room first.
    pub fn send(&self, item: T) -> Result<(), Closed<T>> {
        let weight = item.weight();
        self.send_weighed(item, weight)
    }
}

impl<T> Sender<T> {
    /// The same for an item whose weight is known already.
    pub fn send_weighed(&self, item: T, weight: usize) -> Result<(), Closed<T>> {
        let mut queue = self.0.lock();
        while !queue.receiver_gone
            && !queue.items.is_empty()
            && queue.weight.saturating_add(weight) > self.0.bytes
        {
            queue = self.0.wait(queue);
        }
        if queue.receiver_gone {
            return Err(Closed(item));
        }
        queue.weight = queue.weight.saturating_add(weight);
        queue.items.push_back((weight, item));
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
    /// The next item, waiting for it; none once the sender is gone and the queue is empty.
    pub fn recv(&self) -> Option<T> {
        let mut queue = self.0.lock();
        while queue.idle() {
            queue = self.0.wait(queue);
        }
        self.take(queue)
    }

    /// The same, waiting for it so long at most.
    pub fn recv_within(&self, most: Duration) -> Next<T> {
        let queue = self.0.lock();
        let idle = |queue: &mut Queue<T>| {
            let idle = queue.idle();
            queue.waiting |= idle;
            idle
        };
        let waited = self.0.changed.wait_timeout_while(queue, most, idle);
        let (queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() { Next::Idle } else { self.take(queue).map_or(Next::End, Next::Item) }
    }

    fn take(&self, mut queue: MutexGuard<'_, Queue<T>>) -> Option<T> {
        let (weight, item) = queue.items.pop_front()?;
        queue.weight = queue.weight.saturating_sub(weight);
        // A sender that waits is woken for a good deal of room, not for each item.
        if queue.weight <= self.0.bytes / 2 {
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

    impl Weight for Vec<u8> {
        fn weight(&self) -> usize {
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
                assert!(receiver.0.lock().weight <= 100);
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
            assert!(matches!(waiting.join(), Ok(Err(Closed(item))) if item == vec![7; 10]));
        });
    }
}
