//! Streams of tasks: asking again whenever something may have changed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// A task's wait for something that is asked for, as `Stream` of futures-core has it.
#[derive(Debug)]
pub struct Waiting {
    changed: Arc<Notify>,
    wait: Option<Pin<Box<OwnedNotified>>>,
}

impl Waiting {
    /// A wait that asks again after each [`notify_waiters`](Notify::notify_waiters) of `changed`.
    pub const fn new(changed: Arc<Notify>) -> Self {
        Self { changed, wait: None }
    }

    /// What `now` returns once that is ready; until then the task of `context` is woken when there is
    /// reason to ask again.
    pub fn poll<T>(&mut self, context: &mut Context<'_>, mut now: impl FnMut() -> Poll<T>) -> Poll<T> {
        self.wait = None;
        let mut answer = now();
        while answer.is_pending() {
            // It begins before the question, so that no change in between is missed.
            let mut wait = Box::pin(Arc::clone(&self.changed).notified_owned());
            answer = now();
            if answer.is_pending() && wait.as_mut().poll(context).is_pending() {
                self.wait = Some(wait);
                break;
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_change_between_the_question_and_the_wait_is_not_missed() {
        let (changed, woken) = (Arc::new(Notify::new()), Arc::new(Woken::default()));
        let (waker, mut asked) = (Waker::from(Arc::clone(&woken)), 0);
        let mut waiting = Waiting::new(Arc::clone(&changed));
        let mut context = Context::from_waker(&waker);
        let answer = waiting.poll(&mut context, || {
            asked += 1;
            if asked == 2 {
                changed.notify_waiters();
            }
            if asked < 3 { Poll::Pending } else { Poll::Ready(asked) }
        });
        assert_eq!((answer, woken.0.load(Relaxed)), (Poll::Ready(3), 0));
        assert_eq!(waiting.poll(&mut context, || Poll::<()>::Pending), Poll::Pending);
        changed.notify_waiters();
        assert_eq!(woken.0.load(Relaxed), 1);
    }
}
