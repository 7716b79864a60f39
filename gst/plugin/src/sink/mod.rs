//! `braidcastsink`.

mod imp;

use gst::prelude::*;
use gstreamer as gst;
use gstreamer::glib;

glib::wrapper! {
    /// The element.
    pub struct Sink(ObjectSubclass<imp::Sink>) @extends gstreamer_base::BaseSink, gst::Element, gst::Object,
        @implements gst::URIHandler;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "braidcastsink", gst::Rank::NONE, Sink::static_type())
}
