//! `braidcastsrc`.

mod imp;

use gst::prelude::*;
use gstreamer as gst;
use gstreamer::glib;

glib::wrapper! {
    /// The element.
    pub struct Source(ObjectSubclass<imp::Source>) @extends gstreamer_base::PushSrc, gstreamer_base::BaseSrc, gst::Element, gst::Object,
        @implements gst::URIHandler;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "braidcastsrc", gst::Rank::NONE, Source::static_type())
}
