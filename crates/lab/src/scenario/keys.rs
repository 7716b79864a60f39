//! Tables of keys: what a section of a scenario may say, and what each word of it does.

use super::value::{Settings, Value};
use super::wrong::{Wrong, did_you_mean};
use braidcast_core::Misuse;
use braidcast_sim::link::parse;
use core::fmt::Display;
use core::str::FromStr;
use core::time::Duration;

/// A key of a section: its name, and how its value changes a `T`.
pub(crate) struct Key<T> {
    pub(crate) name: &'static str,
    pub(crate) set: fn(&mut T, &Value) -> Result<(), String>,
}

/// Shorthand for tables.
pub(crate) const fn key<T>(name: &'static str, set: fn(&mut T, &Value) -> Result<(), String>) -> Key<T> {
    Key { name, set }
}

/// Applies `settings`, the section `section` of a scenario, to `target`: in the order of `keys`, so that what is
/// general comes before what is special, wherever it stands in the file.
pub(crate) fn apply<T>(keys: &[Key<T>], target: &mut T, settings: &Settings, section: &str) -> Result<(), Wrong> {
    if let Some(unknown) = settings.0.iter().find(|setting| !keys.iter().any(|key| key.name == setting.key)) {
        let what = format!("unknown key '{}' in [{section}]", unknown.key);
        return Err(Wrong::new(&unknown.place, what, did_you_mean(&unknown.key, keys.iter().map(|key| key.name))));
    }
    for key in keys {
        if let Some(setting) = settings.get(key.name) {
            (key.set)(target, &setting.value)
                .map_err(|why| Wrong::new(&setting.place, format!("{} in [{section}]: {why}", key.name), ""))?;
        }
    }
    Ok(())
}

/// Options that do not work: told of the keys in `tables`, the most special one first, which are
/// called `name` of the options.
pub(crate) fn misused(misuse: &Misuse, tables: [&Settings; 2], name: fn(&'static str) -> &'static str) -> Wrong {
    let setting = |option| tables.into_iter().find_map(|table| table.get(name(option)));
    let blamed = setting(misuse.option()).or_else(|| setting(misuse.against()?));
    let place = blamed.map_or("", |setting| setting.place.as_str());
    Wrong::new(place, misuse.what(name), misuse.fix(name))
}

/// A value given by its word, for example a rate or the name of a scheduler.
pub(crate) fn word<T: FromStr<Err: Display>>(value: &Value) -> Result<T, String> {
    value.to_string().parse().map_err(|e: T::Err| e.to_string())
}

/// A duration, for example `15ms`.
pub(crate) fn time(value: &Value) -> Result<Duration, String> {
    parse::duration(&value.to_string()).map_err(|e| e.to_string())
}

/// A share, for example `5%`, from 0 to 1.
pub(crate) fn share(value: &Value) -> Result<f64, String> {
    parse::share(&value.to_string()).map_err(|e| e.to_string())
}

/// `true` or `false`.
pub(crate) fn flag(value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(format!("`{other}` is not true or false")),
    }
}

/// A whole number from `least` to `most`.
pub(crate) fn whole<T: TryFrom<u64>>(value: &Value, least: u64, most: u64) -> Result<T, String> {
    let number = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    let inside = number.filter(|number| (least..=most).contains(number)).and_then(|number| T::try_from(number).ok());
    inside.ok_or_else(|| format!("`{value}` is not a whole number from {least} to {most}"))
}

/// Puts what was read where it belongs.
pub(crate) fn put<T>(place: &mut T, read: Result<T, String>) -> Result<(), String> {
    *place = read?;
    Ok(())
}

/// Each value of a list, or the one value that stands for a list of one.
pub(crate) fn each(value: &Value) -> &[Value] {
    match value {
        Value::List(values) => values,
        one => core::slice::from_ref(one),
    }
}

/// The names of `keys`, and what each takes: what it answers to a value that is none.
pub(super) fn accepted<T>(keys: &[Key<T>], target: &mut T) -> Vec<(&'static str, String)> {
    let nonsense = Value::Text("?".to_owned());
    keys.iter()
        .map(|key| (key.name, (key.set)(target, &nonsense).map_or_else(|why| wanted(&why), |()| "text".into())))
        .collect()
}

/// The part of an error that says what would have been right.
fn wanted(error: &str) -> String {
    let of = |mark: &str| error.split_once(mark).map(|(_, right)| right.to_owned());
    of("write for example ")
        .map(|example| format!("for example {example}"))
        .or_else(|| of("`?` is not "))
        .or_else(|| of("'?' is neither ").map(|two| two.replace(" nor ", " or ")))
        .or_else(|| of("there are: "))
        .or_else(|| of("; give "))
        .or_else(|| of("; "))
        .unwrap_or_else(|| error.to_owned())
}
