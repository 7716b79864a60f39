//! What each side offers in INIT and INIT-ACK, and what follows for the association (RFC 9260 §5.1, RFC 5061 §4.2.7).

use core::fmt;

use crate::api::{CloseReason, Options, SecurityOptions};
use braidcast_core::{Rng, Writer};
use braidcast_secure::{Carrier, Disagreement, Insecure, Offer as KeyOffer, Role, Roles, Transcript};

use crate::wire::{
    BY_RECORD, Cause, Entries, Parameter, Parameters, ParseError, RawTlv, UnknownAction,
    cause::kind as cause,
    chunk::kind::{
        ASCONF, ASCONF_ACK, AUTH, FORWARD_TSN, I_DATA, I_FORWARD_TSN, INIT, INIT_ACK, NR_SACK, RE_CONFIG, REDUNDANCY,
        SHUTDOWN_COMPLETE, SLICE, TIMESTAMP, TIMESTAMP_ECHO,
    },
    padded,
    param::kind,
};

/// HMAC identifier of SHA-1 (RFC 4895 §8.4).
pub(crate) const HMAC_SHA1: u16 = 1;
/// HMAC identifier of SHA-256 (RFC 4895 §8.4).
pub(crate) const HMAC_SHA256: u16 = 3;

/// The extensions that one side can do, and its half of the key material (RFC 4895 §6.1). About 100 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Offer {
    /// FORWARD-TSN, said by its own parameter (RFC 3758 §3.1) or, as some stacks do, as an extension (RFC 5061 §4.2.7).
    pub(crate) forward_tsn: bool,
    /// I-DATA (RFC 8260 §2.2.1).
    pub(crate) i_data: bool,
    /// I-FORWARD-TSN (RFC 8260 §2.3.1).
    pub(crate) i_forward_tsn: bool,
    /// NR-SACK (draft-natarajan-tsvwg-sctp-nrsack-08).
    pub(crate) nr_sack: bool,
    /// REDUNDANCY (decision 14).
    pub(crate) redundancy: bool,
    /// SLICE (decision 17).
    pub(crate) slices: bool,
    /// TIMESTAMP and TIMESTAMP-ECHO (decision 21).
    pub(crate) timestamps: bool,
    /// Messages with a deadline say when they are due (decision 39).
    pub(crate) timed: bool,
    /// ASCONF and ASCONF-ACK (RFC 5061 §4.2.7).
    pub(crate) asconf: bool,
    /// RE-CONFIG (RFC 6525 §5.1.1).
    pub(crate) reconfiguration: bool,
    /// Records need no checksum (RFC 9653).
    pub(crate) zero_checksum: bool,
    /// ECN (RFC 4960 appendix A).
    pub(crate) ecn: bool,
    /// AUTH as an extension (RFC 5061 §4.2.7). RFC 4895 itself goes by the three parameters: see
    /// [`authenticates`](Self::authenticates).
    auth: bool,
    /// How keys may be agreed on; then RFC 4895 is not offered beside it (draft-ietf-tsvwg-sctp-dtls-chunk).
    keys: Option<KeyOffer>,
    random: Option<[u8; Self::RANDOM]>,
    chunks: Option<Short<{ Self::MAX_CHUNKS }>>,
    /// Two bytes each, as on the wire.
    hmacs: Option<Short<{ 2 * Self::MAX_HMACS }>>,
}

impl Offer {
    /// Bytes of a RANDOM parameter's number; any other length ends the handshake (RFC 4895 §6.1).
    const RANDOM: usize = 32;
    /// Chunk types that a CHUNKS parameter may list here; RFC 4895 §3.2 would allow 256, IANA knows fewer than 30.
    const MAX_CHUNKS: usize = 32;
    /// HMAC identifiers that an HMAC-ALGO parameter may list here; IANA knows two.
    const MAX_HMACS: usize = 8;
    /// Most bytes that [`emit`](Self::emit) writes: FORWARD-TSN, ECN, timed messages, twelve extensions, RANDOM,
    /// CHUNKS, HMAC-ALGO, key management and zero checksum.
    pub(crate) const MAX_EMITTED: usize =
        4 + 4 + 4 + 16 + 4 + Self::RANDOM + 4 + Self::MAX_CHUNKS + 4 + 2 * Self::MAX_HMACS + 4 + 16 + 8;

    /// Everything that is implemented here; I-DATA only if `interleaving`, NR-SACK only if `nr_sack`, and
    /// neither ECN nor REDUNDANCY nor SLICE nor TIMESTAMP nor timed messages nor RE-CONFIG. Draws the random number.
    pub(crate) fn new(rng: &mut Rng, interleaving: bool, nr_sack: bool) -> Self {
        let mut random = [0; Self::RANDOM];
        rng.fill(&mut random);
        let [a, b] = HMAC_SHA256.to_be_bytes();
        let [c, d] = HMAC_SHA1.to_be_bytes();
        Self {
            forward_tsn: true,
            i_data: interleaving,
            i_forward_tsn: interleaving,
            nr_sack,
            ecn: false,
            redundancy: false,
            slices: false,
            timestamps: false,
            timed: false,
            asconf: true,
            reconfiguration: false,
            zero_checksum: false,
            auth: true,
            keys: None,
            random: Some(random),
            chunks: Short::new(&[ASCONF, ASCONF_ACK]),
            hmacs: Short::new(&[a, b, c, d]),
        }
    }

    /// What `options` have us offer.
    pub(crate) fn of(rng: &mut Rng, options: &Options) -> Self {
        let (ecn, redundancy) = (options.congestion.ecn, options.takes_redundancy());
        // Trains ask when their packets arrived.
        let trains = options.paths.selection.is_some_and(|by| by.train().is_some());
        let timed = options.timed_messages;
        let (slices, timestamps) = (options.paths.slices, options.paths.forward_delay || trains || timed);
        let offer = Self {
            ecn,
            redundancy,
            slices,
            timestamps,
            timed,
            reconfiguration: options.reconfiguration,
            ..Self::new(rng, options.interleaving, options.papers.nr_sack)
        };
        match &options.security {
            None => offer,
            Some(security) => {
                let keys = Some(KeyOffer::of(rng.u32(), Roles::Both, &*security.method));
                Self {
                    keys,
                    zero_checksum: options.zero_checksum,
                    auth: false,
                    random: None,
                    chunks: None,
                    hmacs: None,
                    ..offer
                }
            }
        }
    }

    /// The same in an INIT ACK: who is called begins the key handshake, so that both are ready one
    /// round trip after the cookie.
    pub(crate) fn answering(self, rng: &mut Rng, security: Option<&SecurityOptions>) -> Self {
        let keys = security.map(|it| KeyOffer::of(rng.u32(), Roles::Only(Role::Client), &*it.method));
        Self { keys, ..self }
    }

    /// Our role in the key handshake and what keys depend on, if the association is to be
    /// protected: both offers and what is [`bound`](wire::binding).
    ///
    /// # Errors
    /// [`Refusal::Plain`] and [`Refusal::Keys`]: it would not be, and must be.
    pub(crate) fn agree_on_keys(
        &self,
        peer: &Self,
        bound: [u8; 16],
    ) -> Result<Option<(Role, Transcript)>, Refusal<'static>> {
        let Some(ours) = self.keys else { return Ok(None) };
        let theirs = peer.keys.ok_or(Refusal::Plain)?;
        let (role, _) = ours.agree(&theirs)?;
        let (client, server) = if role == Role::Client { (ours, theirs) } else { (theirs, ours) };
        Ok(Some((role, Transcript { carrier: Carrier::Sctp, client, server, bound })))
    }

    /// Returns `true` if the sender of this offer encrypts.
    pub(crate) const fn encrypts(&self) -> bool {
        self.keys.is_some()
    }

    /// This offer without what comes to nothing, as `peer` does not offer it.
    pub(crate) fn as_far_as(&self, peer: &Self) -> Self {
        let auth = peer.authenticates();
        Self {
            forward_tsn: self.forward_tsn && peer.forward_tsn,
            i_data: self.i_data && peer.i_data,
            i_forward_tsn: self.i_forward_tsn && peer.i_forward_tsn,
            nr_sack: self.nr_sack && peer.nr_sack,
            redundancy: self.redundancy && peer.redundancy,
            asconf: self.asconf && peer.asconf && (auth || (self.keys.is_some() && peer.keys.is_some())),
            reconfiguration: self.reconfiguration && peer.reconfiguration,
            zero_checksum: self.zero_checksum && peer.zero_checksum,
            ecn: self.ecn && peer.ecn,
            slices: self.slices && peer.slices,
            timestamps: self.timestamps && peer.timestamps,
            timed: self.timed && peer.timed,
            keys: self.keys.filter(|_| peer.keys.is_some()),
            auth: self.auth && auth,
            random: self.random.filter(|_| auth),
            chunks: self.chunks.filter(|_| auth),
            hmacs: self.hmacs.filter(|_| auth),
        }
    }

    /// What the sender of `parameters`, those of an INIT or INIT-ACK, offers. Parameters that say nothing about
    /// capabilities are passed over.
    ///
    /// # Errors
    /// [`Refusal`], upon which no association comes about.
    pub(crate) fn parse(parameters: Parameters<'_>) -> Result<Self, Refusal<'_>> {
        let mut offer = Self::default();
        let mut offer_keys = None;
        let (mut seen_asconf, mut seen_asconf_ack, mut seen_echo) = (false, false, false);
        for parameter in recognized(parameters) {
            match parameter? {
                Parameter::KeyManagement(value) => {
                    let offer = KeyOffer::parse(value).map_err(|_| Refusal::TooLong { kind: kind::KEY_MANAGEMENT })?;
                    once(&mut offer_keys, Some(offer), kind::KEY_MANAGEMENT)?;
                }
                Parameter::ZeroChecksumAcceptable(method) => offer.zero_checksum |= method == BY_RECORD,
                Parameter::ForwardTsnSupported => offer.forward_tsn = true,
                Parameter::EcnCapable => offer.ecn = true,
                Parameter::TimedMessages => offer.timed = true,
                Parameter::SupportedExtensions(kinds) => {
                    offer.forward_tsn |= kinds.contains(&FORWARD_TSN);
                    offer.i_data |= kinds.contains(&I_DATA);
                    offer.i_forward_tsn |= kinds.contains(&I_FORWARD_TSN);
                    offer.nr_sack |= kinds.contains(&NR_SACK);
                    offer.redundancy |= kinds.contains(&REDUNDANCY);
                    offer.slices |= kinds.contains(&SLICE);
                    offer.timestamps |= kinds.contains(&TIMESTAMP);
                    seen_echo |= kinds.contains(&TIMESTAMP_ECHO);
                    offer.reconfiguration |= kinds.contains(&RE_CONFIG);
                    offer.auth |= kinds.contains(&AUTH);
                    seen_asconf |= kinds.contains(&ASCONF);
                    seen_asconf_ack |= kinds.contains(&ASCONF_ACK);
                }
                Parameter::Random(number) => {
                    let number = number.try_into().map_err(|_| Refusal::RandomLength { given: number.len() })?;
                    once(&mut offer.random, Some(number), kind::RANDOM)?;
                }
                Parameter::ChunkList(kinds) => once(&mut offer.chunks, Short::new(kinds), kind::CHUNK_LIST)?,
                Parameter::HmacAlgorithms(ids) => {
                    once(&mut offer.hmacs, Short::new(ids.as_bytes()), kind::HMAC_ALGORITHMS)?;
                }
                Parameter::HostName(_) => return Err(Refusal::HostName { parameters }),
                _ => {}
            }
        }
        offer.keys = offer_keys;
        offer.timestamps &= seen_echo;
        offer.asconf = seen_asconf && seen_asconf_ack;
        // RFC 5061 §6: never go on with one who would change addresses without authentication.
        if (seen_asconf || seen_asconf_ack) && !offer.authenticates() && offer.keys.is_none() {
            return Err(Refusal::AsconfWithoutAuth);
        }
        Ok(offer)
    }

    /// Appends the offer as parameters, [`MAX_EMITTED`](Self::MAX_EMITTED) bytes at most.
    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        if self.forward_tsn {
            Parameter::ForwardTsnSupported.emit(w);
        }
        if self.ecn {
            Parameter::EcnCapable.emit(w);
        }
        if self.timed {
            Parameter::TimedMessages.emit(w);
        }
        let extensions = [
            (self.i_data, I_DATA),
            (self.i_forward_tsn, I_FORWARD_TSN),
            (self.forward_tsn, FORWARD_TSN),
            (self.asconf, ASCONF),
            (self.asconf, ASCONF_ACK),
            (self.auth, AUTH),
            (self.nr_sack, NR_SACK),
            (self.redundancy, REDUNDANCY),
            (self.slices, SLICE),
            (self.timestamps, TIMESTAMP),
            (self.timestamps, TIMESTAMP_ECHO),
            (self.reconfiguration, RE_CONFIG),
        ];
        let mut kinds = [0; 12];
        let offered = extensions.iter().filter(|(offered, _)| *offered);
        let count = kinds.iter_mut().zip(offered).map(|(slot, &(_, kind))| *slot = kind).count();
        // FORWARD-TSN alone has been said.
        if kinds[..count] != [FORWARD_TSN] && count > 0 {
            Parameter::SupportedExtensions(&kinds[..count]).emit(w);
        }
        if let Some(keys) = &self.keys {
            Parameter::KeyManagement(keys.value()).emit(w);
        }
        if self.zero_checksum {
            Parameter::ZeroChecksumAcceptable(BY_RECORD).emit(w);
        }
        self.key_parameters().for_each(|parameter| parameter.emit(w));
    }

    /// RANDOM, CHUNKS and HMAC-ALGO, as far as they are offered, in the order of the key vector (RFC 4895 §6.1).
    pub(crate) fn key_parameters(&self) -> impl Iterator<Item = Parameter<'_>> {
        let random = self.random.as_ref().map(|number| Parameter::Random(number));
        let chunks = self.chunks.as_ref().map(|kinds| Parameter::ChunkList(kinds.as_slice()));
        let hmacs = self.hmacs.as_ref().map(|ids| Parameter::HmacAlgorithms(Entries::new(ids.as_slice())));
        [random, chunks, hmacs].into_iter().flatten()
    }

    /// Returns `true` if this side can take part in RFC 4895: it sent a random number and names a
    /// hash that is known here.
    pub(crate) fn authenticates(&self) -> bool {
        self.random.is_some() && self.hmacs().any(|id| matches!(id, HMAC_SHA1 | HMAC_SHA256))
    }

    /// The HMAC identifiers that this side accepts, best first.
    pub(crate) fn hmacs(&self) -> impl Iterator<Item = u16> + '_ {
        Entries::new(self.hmacs.as_ref().map_or(&[][..], Short::as_slice)).iter()
    }

    /// Returns `true` if this side takes chunks of type `kind` only after an AUTH chunk.
    ///
    /// INIT, INIT-ACK, SHUTDOWN-COMPLETE and AUTH never count, even if listed (RFC 4895 §3.2). ASCONF and ASCONF-ACK
    /// always do, even if not listed (RFC 5061 §4.1.1, §4.1.2).
    pub(crate) fn demands_auth(&self, kind: u8) -> bool {
        match kind {
            INIT | INIT_ACK | SHUTDOWN_COMPLETE | AUTH => false,
            ASCONF | ASCONF_ACK => true,
            _ => self.chunks.is_some_and(|kinds| kinds.as_slice().contains(&kind)),
        }
    }
}

/// What both sides offer, and hence use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Agreed {
    /// All user data goes as I-DATA instead of DATA (RFC 8260 §2.2.1).
    pub(crate) interleaving: bool,
    /// Data may be abandoned: by I-FORWARD-TSN with interleaving, by FORWARD-TSN without (RFC 8260 §2.3.1).
    pub(crate) forward_tsn: bool,
    /// SACKs go as NR-SACK (draft-natarajan-tsvwg-sctp-nrsack-08).
    pub(crate) nr_sack: bool,
    /// Packets with data may be marked (RFC 4960 appendix A).
    pub(crate) ecn: bool,
    /// REDUNDANCY may be sent (decision 14).
    pub(crate) redundancy: bool,
    /// SLICE may be sent (decision 17).
    pub(crate) slices: bool,
    /// TIMESTAMP may be sent (decision 21).
    pub(crate) timestamps: bool,
    /// Messages with a deadline say when they are due (decision 39).
    pub(crate) timed: bool,
    /// Addresses may come and go (RFC 5061).
    pub(crate) asconf: bool,
    /// Streams may be numbered anew and added (RFC 6525).
    pub(crate) reconfiguration: bool,
    /// Chunks can be authenticated (RFC 4895).
    pub(crate) auth: bool,
}

impl Agreed {
    /// The intersection of two offers, the same whichever side is which.
    pub(crate) fn new(a: &Offer, b: &Offer) -> Self {
        let interleaving = a.i_data && b.i_data;
        let auth = a.authenticates() && b.authenticates();
        Self {
            interleaving,
            forward_tsn: if interleaving { a.i_forward_tsn && b.i_forward_tsn } else { a.forward_tsn && b.forward_tsn },
            nr_sack: a.nr_sack && b.nr_sack,
            ecn: a.ecn && b.ecn,
            redundancy: a.redundancy && b.redundancy,
            slices: a.slices && b.slices,
            timestamps: a.timestamps && b.timestamps,
            timed: a.timed && b.timed && a.timestamps && b.timestamps,
            reconfiguration: a.reconfiguration && b.reconfiguration,
            asconf: (auth || (a.keys.is_some() && b.keys.is_some())) && a.asconf && b.asconf,
            auth,
        }
    }
}

/// The bytes by which the other end knows it.
fn told(insecure: Insecure) -> Vec<u8> {
    insecure.reason().emit(CloseReason::MAX_TEXT)
}

/// Why an INIT or INIT-ACK cannot lead to an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal<'a> {
    /// A parameter does not hold what its type needs.
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// A Host Name Address (RFC 9260 §3.3.2.1.4).
    #[error("peer sent a host name where addresses are needed")]
    HostName {
        /// All parameters of the chunk, the host name among them.
        parameters: Parameters<'a>,
    },
    /// A RANDOM parameter of the wrong length (RFC 4895 §6.1).
    #[error("RANDOM of {given} bytes instead of 32")]
    RandomLength {
        /// Bytes in the parameter.
        given: usize,
    },
    /// A list of more than 32 chunk types or 8 HMAC identifiers.
    #[error("parameter of type {kind:#06x} lists more than is taken here")]
    TooLong {
        /// The parameter's type.
        kind: u16,
    },
    /// A parameter that may stand once only (RFC 4895 §3) stands twice.
    #[error("parameter of type {kind:#06x} comes twice")]
    Twice {
        /// The parameter's type.
        kind: u16,
    },
    /// The peer does not encrypt, or somebody in between took out that it does.
    #[error("{}", Insecure::plain_there())]
    Plain,
    /// The peer encrypts in a way that does not go with ours.
    #[error(transparent)]
    Keys(#[from] Disagreement),
    /// The peer knows ASCONF but cannot authenticate it (RFC 5061 §6).
    #[error("peer offers ASCONF without authentication")]
    AsconfWithoutAuth,
}

impl Refusal<'_> {
    /// Why there would be no protection, if it is about that.
    pub(crate) fn insecure(&self) -> Option<Insecure> {
        match self {
            Self::Plain => Some(Insecure::plain_there()),
            Self::Keys(disagreement) => Some((*disagreement).into()),
            _ => None,
        }
    }

    /// Appends the error causes for the ABORT that answers an INIT or INIT-ACK like this. Where it
    /// is about protection, the second one is the sentence that the other end shows to its user.
    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        if let Self::Plain = self {
            Cause::NoProtection { kind: cause::NO_PROTECTION }.emit(w);
            Cause::UserInitiatedAbort(&told(Insecure::plain_here())).emit(w);
        } else if let Self::Keys(disagreement) = self {
            Cause::NoProtection { kind: disagreement.cause() }.emit(w);
            Cause::UserInitiatedAbort(&told(disagreement.mirrored().into())).emit(w);
        } else if let Self::HostName { parameters } = self {
            let name = parameters.iter().map_while(Result::ok).find(|raw| raw.kind == kind::HOST_NAME);
            Cause::UnresolvableAddress(name.map_or(&[], |raw| raw.bytes)).emit(w);
        } else {
            Cause::ProtocolViolation(self.to_string().as_bytes()).emit(w);
        }
    }
}

/// The parameters to be reported to the peer as not understood (RFC 9260 §3.2.1, §3.2.2), left where they are in the
/// packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unrecognized<'a>(Parameters<'a>);

impl<'a> Unrecognized<'a> {
    /// Most bytes that a report takes, framing included; what is beyond is left out, so that an INIT-ACK with a cookie
    /// still fits the smallest path MTU.
    pub(crate) const MAX: usize = 256;

    /// Those in `parameters`, of an INIT or INIT-ACK.
    pub(crate) const fn new(parameters: Parameters<'a>) -> Self {
        Self(parameters)
    }

    /// Each of them whole, without padding.
    fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let reported = walk(self.0).filter_map(|item| match item {
            Ok(Item::Unknown { action, bytes }) if action.reports() => Some(bytes),
            _ => None,
        });
        let mut room = Self::MAX;
        reported.take_while(move |bytes| {
            let needed = 4 + padded(bytes.len());
            let fits = needed <= room;
            room = room.saturating_sub(needed);
            fits
        })
    }

    /// Returns `true` if there is nothing to report.
    pub(crate) fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// Appends them as the parameters of an INIT-ACK.
    pub(crate) fn emit_parameters(self, w: &mut Writer<'_>) {
        self.iter().for_each(|bytes| Parameter::UnrecognizedParameter(bytes).emit(w));
    }

    /// Appends them as the error cause of an ERROR chunk, which answers an INIT-ACK; nothing if there are none.
    pub(crate) fn emit_cause(self, w: &mut Writer<'_>) {
        if self.is_empty() {
            return;
        }
        let mut list = Vec::with_capacity(Self::MAX);
        for bytes in self.iter() {
            list.extend_from_slice(bytes);
            list.resize(padded(list.len()), 0);
        }
        Cause::UnrecognizedParameters(Parameters::new(&list)).emit(w);
    }
}

/// The parameters of an INIT or INIT-ACK that are known here, up to the first whose type says to stop (RFC 9260
/// §3.2.1); ends after the first error.
pub(crate) fn recognized(parameters: Parameters<'_>) -> impl Iterator<Item = Result<Parameter<'_>, ParseError>> {
    walk(parameters).filter_map(|item| match item {
        Ok(Item::Known(parameter)) => Some(Ok(parameter)),
        Ok(Item::Unknown { .. }) => None,
        Err(error) => Some(Err(error)),
    })
}

/// A parameter, and if it is not known, what its type says to do.
enum Item<'a> {
    Known(Parameter<'a>),
    Unknown { action: UnknownAction, bytes: &'a [u8] },
}

/// All parameters; ends after the first error and the first unknown type that says to stop.
fn walk(parameters: Parameters<'_>) -> impl Iterator<Item = Result<Item<'_>, ParseError>> {
    let mut over = false;
    parameters.iter().map_while(move |raw| {
        if over {
            return None;
        }
        let item = raw.and_then(read);
        over = match &item {
            Ok(Item::Known(_)) => false,
            Ok(Item::Unknown { action, .. }) => !action.skips(),
            Err(_) => true,
        };
        Some(item)
    })
}

fn read(raw: RawTlv<'_>) -> Result<Item<'_>, ParseError> {
    Ok(match Parameter::parse(raw)? {
        Parameter::Unknown { kind, .. } => {
            Item::Unknown { action: UnknownAction::for_parameter(kind), bytes: raw.bytes }
        }
        known => Item::Known(known),
    })
}

/// Sets `slot` for the parameter of type `kind`; `value` is `None` where it was too long to keep.
fn once<'a, T>(slot: &mut Option<T>, value: Option<T>, kind: u16) -> Result<(), Refusal<'a>> {
    let value = value.ok_or(Refusal::TooLong { kind })?;
    if slot.replace(value).is_some() { Err(Refusal::Twice { kind }) } else { Ok(()) }
}

/// Up to `N` bytes, in place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Short<const N: usize> {
    len: u8,
    /// Zeros beyond `len`, so that equality can be derived.
    bytes: [u8; N],
}

impl<const N: usize> Short<N> {
    /// A copy of `bytes`, or `None` if they are too many.
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut short = Self { len: u8::try_from(bytes.len()).ok()?, bytes: [0; N] };
        short.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(short)
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl<const N: usize> fmt::Debug for Short<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests;
