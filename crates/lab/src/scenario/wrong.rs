use core::fmt;

/// What is wrong with a scenario, where, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Wrong {
    /// `FILE:LINE`, or the file alone.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What would be right; may be empty.
    pub fix: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl Wrong {
    /// Something wrong at `place`.
    pub fn new(place: impl Into<String>, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), fix: fix.into() }
    }
}

/// Places of the keys of a table in its file, for messages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places(Vec<(String, String)>);

impl Places {
    /// The key `key` stands at `place`; the empty key is the table itself.
    pub(super) fn add(&mut self, key: impl Into<String>, place: impl Into<String>) {
        self.0.push((key.into(), place.into()));
    }

    /// `FILE:LINE` of `key`, for example `where.rtt_ms`; if that is not there, of the table around
    /// it.
    pub fn of(&self, key: &str) -> &str {
        match self.0.iter().find(|(known, _)| known == key) {
            Some((_, place)) => place,
            None if key.is_empty() => "",
            None => self.of(key.rsplit_once('.').map_or("", |(table, _)| table)),
        }
    }
}

/// Most names that a message lists.
const MAX_NAMES: usize = 30;

/// `did you mean 'x'?` for the name among `known` that is nearest to `name`; all of them if none is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let near = |other: &str| strsim::jaro_winkler(name, other);
    match known.iter().copied().max_by(|a, b| near(a).total_cmp(&near(b))) {
        Some(nearest) if near(nearest) > 0.7 => format!("did you mean '{nearest}'?"),
        Some(_) if known.len() > MAX_NAMES => format!("there are: {}, …", known[..MAX_NAMES].join(", ")),
        Some(_) => format!("there are: {}", known.join(", ")),
        None => "there are none".to_owned(),
    }
}
