use super::text;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use serde_json::{Number, Value};

/// Version of the documents' fields: one more whenever a field is renamed, removed or changes its
/// meaning. New fields come without.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    command: &'a str,
    version: &'a str,
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// As [`print()`], with every digit of every number, as results are kept in files.
pub(crate) fn print_exact(command: &str, body: &impl Serialize) -> Outcome {
    document(command, body, |_| ())
}

/// Prints `body`, which must be a struct or map, with the command's name and our version as the one JSON
/// document on stdout.
pub(crate) fn print(command: &str, body: &impl Serialize) -> Outcome {
    document(command, body, tidy)
}

fn document(command: &str, body: &impl Serialize, finish: fn(&mut Value)) -> Outcome {
    let bug = |e| Failure::new(format!("cannot write the report as JSON: {e}"), "please report this as a bug");
    let envelope = Envelope { command, version: env!("CARGO_PKG_VERSION"), schema: SCHEMA, body };
    let mut document = serde_json::to_value(&envelope).map_err(bug)?;
    finish(&mut document);
    let document = serde_json::to_string_pretty(&document).map_err(bug)?;
    text::print(&document)
}

/// Rounds every number to nine significant digits: 10.740008 instead of 10.740008000000001.
fn tidy(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().and_then(|it| format!("{it:.8e}").parse().ok()).and_then(Number::from_f64);
            *number = rounded.unwrap_or_else(|| number.clone());
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        Value::Object(map) => map.values_mut().for_each(tidy),
        _ => {}
    }
}

/// `value` with three digits after the point: reports are for people and diffs, not for bit patterns.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_as_long_as_they_are_true() {
        let mut value =
            json!({"a": [10.740008000000001, 0.1 + 0.2, 1e-12], "b": 18446744073709551615u64, "c": -3, "d": 5.0});
        tidy(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[10.740008,0.3,1e-12],"b":18446744073709551615,"c":-3,"d":5.0}"#);
    }
}
