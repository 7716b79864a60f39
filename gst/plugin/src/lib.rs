//! Braidcast for GStreamer: `braidcastsink` sends an MPEG transport stream over several networks at
//! once, `braidcastsrc` hands one out on time.
//!
//! Each element has a thread, in which a [`Driver`](braidcast_driver::Driver) runs the same session
//! as `braidcast send` and `braidcast receive` do; so an element speaks with an element or a
//! command at the other end. The elements themselves only move bytes between GStreamer's threads
//! and that one ([`sending`], [`receiving`]).
//!
//! GStreamer is C: no panic may leave this library. Those of an element's functions become errors
//! of the pipeline in gstreamer-rs, those of the threads in [`thread`].

mod caller;
mod failure;
#[cfg(test)]
#[path = "../../../crates/testing/src/front_ends.rs"]
pub mod front_ends;
mod hub;
mod paths;
mod places;
mod properties;
mod protection;
mod receiving;
mod sending;
mod sink;
mod source;
mod state;
mod stats;
mod thread;
mod uri;

use gstreamer as gst;
use gstreamer::glib;

fn init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    sink::register(plugin)?;
    source::register(plugin)
}

gst::plugin_define!(
    braidcast,
    "Live MPEG-TS over several bad networks at once, on time",
    init,
    env!("CARGO_PKG_VERSION"),
    // Of GStreamer's words for licences the one that fits; also under Apache-2.0.
    "MIT/X11",
    "braidcast",
    "braidcast",
    env!("CARGO_PKG_REPOSITORY")
);
