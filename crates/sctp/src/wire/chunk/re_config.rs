use core::fmt;

use braidcast_core::Writer;

use super::{emit, kind};
use crate::wire::{Parameter, Parameters, ParseError, RawChunk};

/// Requests to number streams anew or to have more of them, and what became of such (RFC 6525 §3.1).
///
/// ```text
/// | type 0x82      8 | flags 0    8 | length          16 |
/// | one or two parameters …                             |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReConfig<'a> {
    /// Of the kind [`Parameter::Reconfiguration`].
    pub parameters: Parameters<'a>,
}

impl<'a> ReConfig<'a> {
    /// The chunk type.
    pub const KIND: u8 = kind::RE_CONFIG;

    /// Reads the chunk.
    ///
    /// # Errors
    /// None: what its parameters hold is looked at only when they are iterated.
    pub const fn parse(raw: RawChunk<'a>) -> Result<Self, ParseError> {
        Ok(Self { parameters: Parameters::new(raw.value) })
    }

    /// Appends the chunk.
    pub fn emit(&self, w: &mut Writer<'_>) {
        emit(w, Self::KIND, 0, |w| w.bytes(self.parameters.as_bytes()));
    }
}

impl fmt::Display for ReConfig<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RE-CONFIG")?;
        for raw in self.parameters.iter() {
            match raw.and_then(Parameter::parse) {
                Ok(Parameter::Reconfiguration(it)) => write!(f, " {it}")?,
                Ok(other) => write!(f, " {:#06x}", other.kind())?,
                Err(_) => f.write_str(" malformed")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::chunk::*;
    use crate::wire::param::Reconfiguration;
    use crate::wire::{Entries, Place};

    fn emitted(parameters: &[Reconfiguration<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        parameters.iter().for_each(|&it| Parameter::Reconfiguration(it).emit(&mut Writer::new(&mut bytes)));
        bytes
    }

    #[test]
    fn re_config_is_laid_out_as_rfc_6525_3_1_and_4_draw_it() {
        let streams = [0, 1, 0, 2, 0, 3];
        let reset = Reconfiguration::OutgoingReset {
            request: 0x0102_0304,
            response: 0x0506_0708,
            last_tsn: 0x090a_0b0c,
            streams: Entries::new(&streams),
        };
        let answer = Reconfiguration::Response { response: 7, result: 6, next_tsns: None };
        let parameters = emitted(&[answer, reset]);
        #[rustfmt::skip]
        let bytes = [
            0x82, 0, 0, 38,
            0, 16, 0, 12, 0, 0, 0, 7, 0, 0, 0, 6,
            0, 13, 0, 22, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 0, 2, 0, 3, 0, 0,
        ];
        let line = "RE-CONFIG response=7 result=6 out-reset=16909060 response=84281096 last_tsn=151653132 streams=3";
        check(&bytes, Chunk::ReConfig(ReConfig { parameters: Parameters::new(&parameters) }), line);
        for (parameter, bytes) in [
            (
                Reconfiguration::IncomingReset { request: 1, streams: Entries::new(&streams[..2]) },
                &[0, 14, 0, 10, 0, 0, 0, 1, 0, 1, 0, 0][..],
            ),
            (Reconfiguration::TsnReset { request: 1 }, &[0, 15, 0, 8, 0, 0, 0, 1]),
            (Reconfiguration::AddOutgoing { request: 1, count: 258 }, &[0, 17, 0, 12, 0, 0, 0, 1, 1, 2, 0, 0]),
            (Reconfiguration::AddIncoming { request: 1, count: 2 }, &[0, 18, 0, 12, 0, 0, 0, 1, 0, 2, 0, 0]),
            (
                Reconfiguration::Response { response: 1, result: 1, next_tsns: Some((2, 3)) },
                &[0, 16, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
            ),
        ] {
            assert_eq!(emitted(&[parameter]), bytes);
            let raw = Parameters::new(bytes).iter().next().unwrap().unwrap();
            assert_eq!(Parameter::parse(raw), Ok(Parameter::Reconfiguration(parameter)));
        }
    }

    #[test]
    fn parameters_of_a_length_that_is_none_of_theirs_are_refused() {
        // One byte of a stream number; one TSN of two; a request without its number.
        for bytes in [
            &[0, 14, 0, 9, 0, 0, 0, 1, 0][..],
            &[0, 16, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2],
            &[0, 15, 0, 4],
            &[0, 17, 0, 10, 0, 0, 0, 1, 0, 1],
        ] {
            let raw = Parameters::new(bytes).iter().next().unwrap().unwrap();
            let place = Place::Parameter(raw.kind);
            let refused = Parameter::parse(raw);
            assert!(matches!(refused, Err(ParseError::Length { place: at, .. }) if at == place), "{refused:?}");
        }
    }
}
