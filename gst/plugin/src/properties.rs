//! How both elements declare properties, and read what is given for one.

use crate::failure::Failure;
use gst::glib;
use gst::prelude::*;
use gstreamer as gst;
use std::ops::RangeInclusive;

/// A text; "" if nothing is set and nothing stands in for it.
pub(crate) fn text(name: &str, blurb: &str, default: &str) -> glib::ParamSpec {
    let default = (!default.is_empty()).then_some(default);
    glib::ParamSpecString::builder(name).nick(name).blurb(blurb).default_value(default).mutable_ready().build()
}

/// A text that is not told to who asks.
pub(crate) fn secret(name: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecString::builder(name).nick(name).blurb(blurb).mutable_ready().write_only().build()
}

pub(crate) fn number(name: &str, blurb: &str, default: u32, limits: RangeInclusive<u32>) -> glib::ParamSpec {
    let it = glib::ParamSpecUInt::builder(name).nick(name).blurb(blurb).default_value(default);
    it.minimum(*limits.start()).maximum(*limits.end()).mutable_ready().build()
}

pub(crate) fn flag(name: &str, blurb: &str, default: bool) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name).nick(name).blurb(blurb).default_value(default).mutable_ready().build()
}

/// A number that can be changed while the pipeline plays.
pub(crate) fn live_number(name: &str, blurb: &str, default: u32, limits: RangeInclusive<u32>) -> glib::ParamSpec {
    let it = glib::ParamSpecUInt::builder(name).nick(name).blurb(blurb).default_value(default);
    it.minimum(*limits.start()).maximum(*limits.end()).mutable_playing().build()
}

/// A text that can be changed while the pipeline plays.
pub(crate) fn live_text(name: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecString::builder(name).nick(name).blurb(blurb).mutable_playing().build()
}

pub(crate) fn live_flag(name: &str, blurb: &str, default: bool) -> glib::ParamSpec {
    let it = glib::ParamSpecBoolean::builder(name).nick(name).blurb(blurb).default_value(default);
    it.mutable_playing().build()
}

/// What to say if a property is set in a running element that takes it only before.
pub(crate) fn refused_while_running(spec: &glib::ParamSpec) -> Option<Failure> {
    let why = "it cannot be changed while the element runs, and stays as it is";
    let live = spec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING);
    (!live).then(|| Failure::property(spec.name(), why, "set it in NULL or READY"))
}

/// A number that the element reports.
pub(crate) fn told(name: &str, blurb: &str, default: u32) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(name).nick(name).blurb(blurb).default_value(default).read_only().build()
}

/// Statistics as this command prints them.
pub(crate) fn stats(command: &str) -> glib::ParamSpec {
    let blurb = format!("Statistics, as `braidcast {command} --json` has them");
    glib::ParamSpecBoxed::builder::<gst::Structure>("stats").nick("stats").blurb(&blurb).read_only().build()
}

/// A text that was set; an empty one is none.
pub(crate) fn given(value: &glib::Value) -> Option<String> {
    value.get::<Option<String>>().ok().flatten().filter(|text| !text.is_empty())
}
