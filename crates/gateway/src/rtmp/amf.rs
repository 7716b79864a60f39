//! AMF0, the values of RTMP's commands (Adobe, "Action Message Format – AMF 0").

use braidcast_core::{Reader, Truncated, Writer};

/// Objects in objects, at most: encoders send one in none, metadata one in one.
const DEPTH: usize = 8;
/// Values in a message, at most.
const VALUES: usize = 512;

/// A value; those that no encoder needs are [`Other`](Self::Other).
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A truth value.
    Boolean(bool),
    /// A text; what is not UTF-8 in it is replaced.
    Text(String),
    /// An object or an array with names, in its order.
    Object(Vec<(String, Self)>),
    /// Null.
    Null,
    /// Undefined, a date, or an array without names.
    Other,
}

/// What is wrong with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrongValue {
    /// It ends within a value.
    Truncated,
    /// A kind of value that AMF0 does not have, or that is not read.
    Kind(u8),
    /// Too many values, or too many in each other.
    TooMuch,
}

impl From<Truncated> for WrongValue {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl Value {
    /// All values of a message.
    ///
    /// # Errors
    /// [`WrongValue`]; nothing is kept of the message then.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, WrongValue> {
        let (mut reader, mut left, mut all) = (Reader::new(bytes), VALUES, Vec::new());
        while !reader.is_empty() {
            all.push(Self::read(&mut reader, DEPTH, &mut left)?);
        }
        Ok(all)
    }

    fn read(reader: &mut Reader<'_>, depth: usize, left: &mut usize) -> Result<Self, WrongValue> {
        *left = left.checked_sub(1).ok_or(WrongValue::TooMuch)?;
        let kind = reader.u8()?;
        Ok(match kind {
            0x00 => Self::Number(f64::from_bits(reader.u64()?)),
            0x01 => Self::Boolean(reader.u8()? != 0),
            0x02 => Self::Text(text(reader)?),
            0x03 => Self::Object(members(reader, depth, left)?),
            0x05 => Self::Null,
            0x06 => Self::Other,
            0x08 => {
                // How many there are is said, and is often wrong; an end mark is always there.
                reader.u32()?;
                Self::Object(members(reader, depth, left)?)
            }
            0x0a => {
                let count = reader.u32()?;
                let depth = depth.checked_sub(1).ok_or(WrongValue::TooMuch)?;
                for _ in 0..count {
                    Self::read(reader, depth, left)?;
                }
                Self::Other
            }
            0x0b => {
                reader.take(10)?;
                Self::Other
            }
            0x0c => {
                let length = reader.u32()? as usize;
                Self::Text(String::from_utf8_lossy(reader.take(length)?).into_owned())
            }
            other => return Err(WrongValue::Kind(other)),
        })
    }

    /// Appends it to `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                buf.push(0x00);
                Writer::new(buf).u64(number.to_bits());
            }
            Self::Boolean(value) => buf.extend([0x01, u8::from(*value)]),
            Self::Text(text) => {
                buf.push(0x02);
                write_text(text, buf);
            }
            Self::Object(members) => {
                buf.push(0x03);
                for (name, value) in members {
                    write_text(name, buf);
                    value.write(buf);
                }
                buf.extend([0, 0, 9]);
            }
            Self::Null => buf.push(0x05),
            Self::Other => buf.push(0x06),
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The number, if it is one.
    pub const fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// The member `name` of an object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(it, _)| it == name).map(|(_, value)| value)
    }
}

fn text(reader: &mut Reader<'_>) -> Result<String, WrongValue> {
    let length = usize::from(reader.u16()?);
    Ok(String::from_utf8_lossy(reader.take(length)?).into_owned())
}

fn members(reader: &mut Reader<'_>, depth: usize, left: &mut usize) -> Result<Vec<(String, Value)>, WrongValue> {
    let depth = depth.checked_sub(1).ok_or(WrongValue::TooMuch)?;
    let mut members = Vec::new();
    loop {
        let name = text(reader)?;
        if name.is_empty() {
            return match reader.u8()? {
                0x09 => Ok(members),
                other => Err(WrongValue::Kind(other)),
            };
        }
        members.push((name, Value::read(reader, depth, left)?));
    }
}

/// Texts of ours are short.
fn write_text(text: &str, buf: &mut Vec<u8>) {
    let bytes = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
    Writer::new(buf).u16(bytes.len() as u16);
    buf.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let all = [
            Value::Text("connect".into()),
            Value::Number(1.0),
            Value::Object(vec![("app".into(), Value::Text("live".into())), ("in".into(), Value::Object(vec![]))]),
            Value::Null,
            Value::Boolean(true),
            Value::Other,
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|value| value.write(&mut bytes));
        assert_eq!(Value::read_all(&bytes).unwrap(), all);
        assert_eq!(all[2].member("app").and_then(Value::text), Some("live"));
        for cut in 1..bytes.len() - 10 {
            let _ = Value::read_all(&bytes[..cut]);
        }
    }

    #[test]
    fn bombs_are_refused() {
        // An object in an object, a hundred thousand times.
        let nested: Vec<u8> = (0..100_000).flat_map(|_| [3, 0, 1, b'a']).collect();
        assert_eq!(Value::read_all(&nested), Err(WrongValue::TooMuch));
        let arrays: Vec<u8> = (0..100_000).flat_map(|_| [10, 0xff, 0xff, 0xff, 0xff]).collect();
        assert_eq!(Value::read_all(&arrays), Err(WrongValue::TooMuch));
        assert_eq!(Value::read_all(&[5; 100_000]), Err(WrongValue::TooMuch));
        assert_eq!(Value::read_all(&[12, 0xff, 0xff, 0xff, 0xff, 1]), Err(WrongValue::Truncated));
        assert_eq!(Value::read_all(&[0x11]), Err(WrongValue::Kind(0x11)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Value::read_all(&bytes);
        }
    }
}
