//! What the queues have in common that are a [`Store`] and a rule: most of them.

use crate::bag::Bag;
use crate::store::Store;
use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag};
use core::fmt;

/// What goes in, and what goes out; see [`SendQueue`] for what is asked of them. Unless a rule says
/// otherwise, it is that of SBPN1 (§3.4).
pub(crate) trait Rule<M: fmt::Debug + Send>: fmt::Debug + Send + Sized {
    /// The order among messages of one priority.
    type Bag: Bag<M>;

    fn push(
        store: &mut Store<M, Self::Bag>,
        _: &Outlook,
        tag: Tag,
        message: M,
        _: &mut Vec<Discard<M>>,
    ) -> Result<(), Refused<M>> {
        store.put_or_refuse(tag.priority, tag, message)
    }

    fn pop(store: &mut Store<M, Self::Bag>, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        store.take_unexpired(outlook, gone)
    }
}

/// A queue by the rule `R`.
#[derive(Debug)]
pub(crate) struct By<M: fmt::Debug + Send, R: Rule<M>>(Store<M, R::Bag>);

impl<M: fmt::Debug + Send, R: Rule<M>> By<M, R> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Store::new(limits))
    }
}

impl<M: fmt::Debug + Send, R: Rule<M>> SendQueue<M> for By<M, R> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        R::push(&mut self.0, outlook, tag, message, gone)
    }

    fn peek(&self) -> Option<&Tag> {
        self.0.head()
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        R::pop(&mut self.0, outlook, gone)
    }

    fn peek_on_time(&self, outlook: &Outlook) -> Option<&Tag> {
        self.0.first_on_time(outlook).map(|(.., tag)| tag)
    }

    fn pop_on_time(&mut self, outlook: &Outlook) -> Option<(Tag, M)> {
        self.0.take_on_time(outlook)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
