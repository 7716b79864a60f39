//! The form of symbols that are made equally long: the length in front, zeros behind.

/// Bytes in front of a symbol: its length, as symbols are made equally long by zeros.
pub const PREFIX: usize = 2;

/// The symbol without its length and the zeros behind it; `None` if it cannot be one.
pub(crate) fn unpadded(symbol: &[u8]) -> Option<&[u8]> {
    let (len, data) = symbol.split_first_chunk::<PREFIX>()?;
    let (data, zeros) = data.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    zeros.iter().all(|&byte| byte == 0).then_some(data)
}
