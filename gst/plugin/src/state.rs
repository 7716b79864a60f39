//! What applications hear of a session on the pipeline's bus: element messages named `braidcast-state`.

use gst::prelude::*;
use gstreamer as gst;

/// A change of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State {
    what: &'static str,
    path: Option<String>,
    reason: Option<String>,
}

impl State {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, path: None, reason: None }
    }

    /// Of the path with this name, or from this address.
    pub(crate) fn of_path(what: &'static str, path: &str) -> Self {
        Self { path: Some(path.into()), ..Self::new(what) }
    }

    /// With words for people.
    pub(crate) const fn with_reason(what: &'static str, reason: String) -> Self {
        Self { what, path: None, reason: Some(reason) }
    }

    /// Posts it on the bus.
    pub(crate) fn post(self, element: &(impl IsA<gst::Element> + IsA<gst::Object>)) {
        let words = gst::Structure::builder("braidcast-state")
            .field("state", self.what)
            .field_if_some("path", self.path)
            .field_if_some("reason", self.reason);
        let _ = element.post_message(gst::message::Element::builder(words.build()).src(element).build());
    }
}
