use super::chunk::kind;
use super::{ParseError, Place};
use braidcast_core::Writer;

/// When a message was given to its sender, and by when it is due (our own layout, decision 39). Both
/// stand behind the last byte of a message whose last fragment has the T bit.
///
/// ```text
/// | given, microseconds of the sender's clock      32 |
/// | due, microseconds of the sender's clock        32 |
/// ```
///
/// The clock is that of [`Timestamp`](super::chunk::Timestamp): of any beginning, and it wraps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// When the application gave it to the sender.
    pub given: u32,
    /// When it is to be at the receiver.
    pub due: u32,
}

impl Times {
    /// Bytes that they take.
    pub const LEN: usize = 8;

    /// Reads them behind a message. Returns the message without them, too.
    ///
    /// # Errors
    /// [`ParseError::Length`] if nothing is left of the message.
    pub fn split(message: &[u8]) -> Result<(&[u8], Self), ParseError> {
        match message.split_last_chunk::<{ Self::LEN }>() {
            Some((payload, &[a, b, c, d, e, f, g, h])) if !payload.is_empty() => {
                let (given, due) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                Ok((payload, Self { given, due }))
            }
            _ => {
                Err(ParseError::Length { place: Place::Chunk(kind::DATA), given: message.len(), needed: Self::LEN + 1 })
            }
        }
    }

    /// Appends them.
    pub fn emit(&self, w: &mut Writer<'_>) {
        w.u32(self.given);
        w.u32(self.due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_laid_out_as_decision_39_draws_them() {
        let mut message = b"ab".to_vec();
        Times { given: 0x0102_0304, due: 0x0506_0708 }.emit(&mut Writer::new(&mut message));
        assert_eq!(message, [b'a', b'b', 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    proptest! {
        #[test]
        fn times_come_back_and_leave_the_message_as_it_was(
            payload in prop::collection::vec(any::<u8>(), 0..40),
            (given, due) in any::<(u32, u32)>(),
        ) {
            let times = Times { given, due };
            let mut message = payload.clone();
            times.emit(&mut Writer::new(&mut message));
            let read = Times::split(&message);
            prop_assert_eq!(read.ok(), (!payload.is_empty()).then_some((&payload[..], times)));
            for short in 0..=Times::LEN {
                prop_assert!(Times::split(&message[message.len() - short..]).is_err());
            }
        }
    }
}
