//! Statistics, and how they become GStreamer's structures, with the members that `--json` has (docs/fields.md).

use braidcast_session::Report;
use gst::glib::SendValue;
use gst::prelude::*;
use gstreamer as gst;
use serde_json::{Map, Value};

const NAME: &str = "application/x-braidcast-stats";

/// Statistics of a session.
#[derive(Clone, Default)]
pub(crate) struct Stats {
    pub(crate) connected: bool,
    pub(crate) report: Report,
    /// What [`Report::paths`] are called, in the same order; nothing at a receiver.
    pub(crate) names: Vec<String>,
}

impl Stats {
    /// As `braidcast send --json` or `receive --json` has them.
    pub(crate) fn to_structure(&self) -> gst::Structure {
        let mut json = serde_json::to_value(&self.report).unwrap_or_default();
        json["connected"] = self.connected.into();
        if let Some(paths) = json["paths"].as_array_mut() {
            paths.iter_mut().zip(&self.names).for_each(|(path, name)| path["name"] = name.as_str().into());
        }
        of(json)
    }
}

/// Members that are not known are left out.
fn of(report: Value) -> gst::Structure {
    let Value::Object(members) = report else { return gst::Structure::new_empty(NAME) };
    from_members(NAME, members)
}

fn from_members(name: &str, members: Map<String, Value>) -> gst::Structure {
    let mut structure = gst::Structure::new_empty(name);
    for (member, value) in members {
        if let Some(value) = to_value(&member, value) {
            structure.set_value(member, value);
        }
    }
    structure
}

fn to_value(member: &str, value: Value) -> Option<SendValue> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(it) => it.to_send_value(),
        Value::Number(it) => match (it.as_u64(), it.as_f64()) {
            (Some(it), _) => it.to_send_value(),
            (None, Some(it)) => it.to_send_value(),
            (None, None) => return None,
        },
        Value::String(it) => it.to_send_value(),
        Value::Array(items) => {
            gst::Array::new(items.into_iter().filter_map(|item| to_value(member, item))).to_send_value()
        }
        Value::Object(members) => from_members(&member.replace('_', "-"), members).to_send_value(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_members_are_kept() {
        gst::init().unwrap();
        let report = serde_json::json!({"seconds": 1.5, "none": null, "up": true, "paths": [{"name": "a", "id": 3}]});
        let it = of(report);
        assert_eq!((it.get::<f64>("seconds").unwrap(), it.get::<bool>("up").unwrap()), (1.5, true));
        assert!(!it.has_field("none"));
        let paths = it.get::<gst::Array>("paths").unwrap();
        let path = paths.as_slice()[0].get::<gst::Structure>().unwrap();
        assert_eq!((path.get::<String>("name").unwrap().as_str(), path.get::<u64>("id").unwrap()), ("a", 3));
    }
}
