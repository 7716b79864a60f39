//! The other end, as applications hear of it by signals with the names that `srtsink` has for them.

use gst::glib::{self, prelude::*, subclass::Signal};
use gstreamer as gst;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Who is at the other end.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    /// Its addresses with ports, with commas between.
    pub(crate) address: String,
    /// What the stream is called; may be empty.
    pub(crate) name: String,
    /// Of the key that it showed; empty without one.
    pub(crate) fingerprint: String,
}

impl Caller {
    pub(crate) fn new(remotes: &[SocketAddr], name: String, fingerprint: Option<String>) -> Self {
        let address = remotes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Self { address, name, fingerprint: fingerprint.unwrap_or_default() }
    }

    /// Emits a signal of it, whose last text is `last`.
    pub(crate) fn signal(&self, element: &impl IsA<glib::Object>, name: &str, last: &str) {
        element.emit_by_name::<()>(name, &[&self.address, &self.name, &last]);
    }

    /// Asks the application if it may come in.
    pub(crate) fn asks(&self, element: &impl IsA<glib::Object>) -> bool {
        element.emit_by_name("caller-connecting", &[&self.address, &self.name, &self.fingerprint])
    }
}

/// Who is asked in the thread if another end may come in.
pub(crate) type Ask = Arc<dyn Fn(&Caller) -> bool + Send + Sync>;

/// The signals of both elements. Each has the other end's addresses, the stream's name, and the
/// fingerprint of the other end's key, or why it was turned away. They are emitted in the element's own thread.
pub(crate) fn signals() -> Vec<Signal> {
    let text = String::static_type();
    let told = |name: &str| Signal::builder(name).param_types([text, text, text]);
    let asked = told("caller-connecting").return_type::<bool>().run_last();
    vec![
        told("caller-added").build(),
        told("caller-removed").build(),
        told("caller-rejected").build(),
        // One `false` is enough; without a handler everybody comes in.
        asked
            .class_handler(|_| Some(true.to_value()))
            .accumulator(|_, _, value| match value.get() {
                Ok(false) => ControlFlow::Break(value.clone()),
                _ => ControlFlow::Continue(value.clone()),
            })
            .build(),
    ]
}
