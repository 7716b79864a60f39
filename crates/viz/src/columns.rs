//! Rows as columns of numbers, little-endian, each aligned to eight bytes, in base64.

use serde_json::{Value, json};

/// Columns one behind the other, and where each is.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    bytes: Vec<u8>,
    places: Vec<Value>,
}

macro_rules! column {
    ($name:ident, $of:ty, $word:literal) => {
        pub(crate) fn $name(&mut self, name: &str, values: impl Iterator<Item = $of>) {
            let start = self.begin();
            values.for_each(|value| self.bytes.extend_from_slice(&value.to_le_bytes()));
            self.end(name, $word, start, size_of::<$of>());
        }
    };
}

impl Columns {
    column!(f64, f64, "f64");
    column!(f32, f32, "f32");
    column!(u32, u32, "u32");
    column!(u8, u8, "u8");

    fn begin(&mut self) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes.len()
    }

    fn end(&mut self, name: &str, of: &str, start: usize, size: usize) {
        let count = (self.bytes.len() - start) / size;
        self.places.push(json!({ "name": name, "of": of, "at": start, "count": count }));
    }

    /// Where each column is.
    pub(crate) fn places(&self) -> &[Value] {
        &self.places
    }

    /// All of them (RFC 4648 §4).
    pub(crate) fn base64(&self) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::with_capacity(self.bytes.len().div_ceil(3) * 4);
        for group in self.bytes.chunks(3) {
            let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                let letter = char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]);
                text.push(if place <= group.len() { letter } else { '=' });
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_base64_is_as_the_rfc_has_it() {
        let mut it = Columns::default();
        it.u8("a", [102, 111, 111].into_iter());
        assert_eq!(it.base64(), "Zm9v");
        it.f64("b", [1.5].into_iter());
        assert_eq!(it.places()[1], json!({ "name": "b", "of": "f64", "at": 8, "count": 1 }));
        let mut it = Columns::default();
        it.u8("a", b"fooba".iter().copied());
        assert_eq!(it.base64(), "Zm9vYmE=");
    }
}
