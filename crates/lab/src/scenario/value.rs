//! Values and settings as a scenario file has them, before they mean anything.

use super::wrong::{Wrong, did_you_mean};
use core::fmt;
use serde::Deserialize;

/// Longest text that parameters may make.
const MAX_TEXT: usize = 1 << 16;

/// A value of a scenario file.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::List(values) => {
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                f.write_str(&values.join(","))
            }
        }
    }
}

impl Value {
    /// The number that it is or begins with: 20 for `20ms`.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(text) => leading_number(text),
            Self::Bool(_) | Self::List(_) => None,
        }
    }

    /// Returns `true` if `other` says the same: as text, or as a number, with the same unit if both have one.
    pub fn says(&self, other: &str) -> bool {
        let (own, other) = (self.to_string(), other.trim());
        let same_unit = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs() && same_unit(unit(&own), unit(other));
        own == other || self.number().zip(leading_number(other)).is_some_and(|(a, b)| same(a, b))
    }

    /// As results have it.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(value) => value.as_str().into(),
            Self::List(values) => values.iter().map(Self::json).collect(),
        }
    }

    /// Bytes of its texts, and some for each value.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + size_of::<Self>(),
            Self::List(values) => values.iter().map(Self::size).sum::<usize>() + size_of::<Self>(),
            _ => size_of::<Self>(),
        }
    }

    /// The same with each `$name` or `${name}` replaced by the value of that parameter. A text that is nothing but
    /// a name becomes the value itself. An error is what is wrong and what would be right.
    fn filled(&self, params: &[(String, Self)]) -> Result<Self, (String, String)> {
        match self {
            Self::Text(text) if text.contains('$') => fill(text, params),
            Self::List(values) => Ok(Self::List(values.iter().map(|v| v.filled(params)).collect::<Result<_, _>>()?)),
            _ => Ok(self.clone()),
        }
    }
}

/// Number and unit, which may be empty.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len()))
}

fn leading_number(text: &str) -> Option<f64> {
    split(text).0.parse().ok()
}

fn unit(text: &str) -> &str {
    split(text).1.trim()
}

fn fill(text: &str, params: &[(String, Value)]) -> Result<Value, (String, String)> {
    let find = |name: &str| {
        params.iter().find(|(known, _)| known == name).map(|(_, value)| value).ok_or_else(|| {
            let known = params.iter().map(|(known, _)| known.as_str());
            (format!("${name} is not a parameter of [sweep] or [[case]]"), did_you_mean(name, known))
        })
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, tail) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(found) => found,
            None => after.split_at(after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len())),
        };
        let value = find(name)?;
        if out.is_empty() && tail.is_empty() {
            return Ok(value.clone());
        }
        out += &value.to_string();
        if out.len() > MAX_TEXT {
            let what = format!("with its parameters the text is longer than {MAX_TEXT} bytes");
            return Err((what, "use fewer or shorter parameters in it".to_owned()));
        }
        rest = tail;
    }
    Ok(Value::Text(out + rest))
}

/// One setting: where its key stands among the tables, its value, and its line.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The key, with the names of its tables before it: `link.wifi.rate`.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// `FILE:LINE`.
    pub place: String,
}

/// Settings in the order of the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings(pub Vec<Setting>);

impl Settings {
    /// Those in the table `name`, without its name before their keys.
    pub fn table(&self, name: &str) -> Self {
        let inside = |setting: &Setting| {
            let key = setting.key.strip_prefix(name)?.strip_prefix('.')?.to_owned();
            Some(Setting { key, ..setting.clone() })
        };
        Self(self.0.iter().filter_map(inside).collect())
    }

    /// The names of the tables directly inside, in the order of the file.
    pub fn tables(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for setting in &self.0 {
            if let Some((name, _)) = setting.key.split_once('.')
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The setting of this key.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.key == key)
    }

    /// Adds those of `over`, which replace what has the same key.
    pub fn overlay(&mut self, over: &Self) {
        for setting in &over.0 {
            match self.0.iter_mut().find(|known| known.key == setting.key) {
                Some(known) => known.clone_from(setting),
                None => self.0.push(setting.clone()),
            }
        }
    }

    /// Bytes of all keys and values, about.
    pub(super) fn size(&self) -> usize {
        self.0.iter().map(|it| it.key.len() + it.place.len() + it.value.size() + size_of::<Setting>()).sum()
    }

    /// The same with parameters filled in.
    pub fn filled(&self, params: &[(String, Value)]) -> Result<Self, Wrong> {
        let fill = |setting: &Setting| match setting.value.filled(params) {
            Ok(value) => Ok(Setting { value, ..setting.clone() }),
            Err((what, fix)) => Err(Wrong::new(&setting.place, what, fix)),
        };
        Ok(Self(self.0.iter().map(fill).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_what_a_cell_says_unless_both_have_units_that_differ() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (value, cell, same) in [
            (text("20ms"), "20", true),
            (Value::Integer(20), "20.0", true),
            (text("1000B-packet"), "1000B-packet", true),
            (text("1000B-packet"), "1000B-payload", false),
            (text("20ms"), "20 ms", true),
            (text("20ms"), "21", false),
            (text("sack"), "dac", false),
        ] {
            assert_eq!(value.says(cell), same, "{value} {cell}");
        }
    }
}
