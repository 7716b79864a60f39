//! Chunks that no honest peer would send, at numbers that matter.

use super::Hints;
use arbitrary::{Result, Unstructured};
use braidcast_core::Writer;
use braidcast_sctp::wire::chunk::{
    Abort, Asconf, Auth, CookieEcho, Cwr, Data, Ecne, ErrorChunk, ForwardTsn, GapBlock, Heartbeat, HeartbeatAck, IData,
    IForwardTsn, ISkip, Init, ReConfig, Redundancy, Sack, Shutdown, ShutdownAck, ShutdownComplete, Skip, Slice,
};
use braidcast_sctp::wire::param::Reconfiguration;
use braidcast_sctp::wire::{Causes, Chunk, Entries, Entry, Parameter, Parameters, RawChunk};

/// A number near `base`, or seldom any number.
fn near(input: &mut Unstructured<'_>, base: u32) -> Result<u32> {
    let delta: i8 = input.arbitrary()?;
    if delta == i8::MIN { input.arbitrary() } else { Ok(base.wrapping_add_signed(i32::from(delta))) }
}

fn entries<T: Entry>(
    input: &mut Unstructured<'_>,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..input.arbitrary::<u8>()? % 8 {
        one(input)?.emit(&mut Writer::new(&mut bytes));
    }
    Ok(bytes)
}

/// Payload protocol identifier of key messages.
const KEY_MESSAGE: u32 = 4242;

/// One as [`Known`](braidcast_secure::known::Known) has them, at a place where it may be wrong, or a control message.
fn key_message(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let (epoch, step): (u8, u8) = (input.arbitrary()?, input.arbitrary()?);
    let mut message = vec![(epoch % 8) | (epoch & 0x80), if step % 4 == 3 { 1 } else { step % 4 }];
    message.resize(1 + [1500, 1500, 250, 1][usize::from(step % 4)], 0);
    if let Some(word) = message.get_mut(2) {
        *word = 1 + step / 250;
    }
    Ok(message)
}

/// Appends one to three parameters of RE-CONFIG, or any bytes.
fn re_config(input: &mut Unstructured<'_>, hints: Hints, length: usize, out: &mut Vec<u8>) -> Result<()> {
    for _ in 0..1 + input.arbitrary::<u8>()? % 3 {
        let kind: u8 = input.arbitrary()?;
        let request = near(input, hints.peer_tsn)?;
        let streams = entries(input, |input| Ok(u16::from(input.arbitrary::<u8>()? % 6)))?;
        let streams = Entries::new(&streams);
        let parameter = match kind % 8 {
            0 | 1 => {
                let (response, last_tsn) = (near(input, hints.our_tsn)?, near(input, hints.peer_tsn)?);
                Reconfiguration::OutgoingReset { request, response, last_tsn, streams }
            }
            2 => Reconfiguration::IncomingReset { request, streams },
            3 => Reconfiguration::TsnReset { request },
            4 => {
                let (response, result) = (near(input, hints.our_tsn)?, u32::from(kind >> 5));
                Reconfiguration::Response { response, result, next_tsns: None }
            }
            5 => Reconfiguration::AddOutgoing { request, count: u16::from(kind >> 5) },
            6 => Reconfiguration::AddIncoming { request, count: u16::from(kind >> 5) },
            _ => {
                out.extend_from_slice(input.bytes(length.min(input.len()))?);
                continue;
            }
        };
        Parameter::Reconfiguration(parameter).emit(&mut Writer::new(out));
    }
    Ok(())
}

/// Appends a chunk.
pub(crate) fn forge(input: &mut Unstructured<'_>, hints: Hints, out: &mut Vec<u8>) -> Result<()> {
    let (kind, flags): (u8, u8) = (input.arbitrary()?, input.arbitrary()?);
    let length = usize::from(input.arbitrary::<u8>()?).min(input.len());
    let (mut list, mut more) = (Vec::new(), Vec::new());
    let (first, last, unordered, immediate) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, flags & 8 != 0);
    let timed = flags & 16 != 0;
    let stream = |input: &mut Unstructured<'_>| Ok(u16::from(input.arbitrary::<u8>()? % 6));
    let chunk = match kind % 20 {
        _ if kind >= 240 => {
            more = key_message(input)?;
            let (tsn, mid) = (near(input, hints.peer_tsn)?, input.arbitrary::<u8>()?);
            let (ppid, payload) = (KEY_MESSAGE, &more[..]);
            if flags & 0x40 != 0 {
                let (stream, ssn) = (0, mid.into());
                let (first, last) = (true, true);
                Chunk::Data(Data { tsn, stream, ssn, ppid, unordered, first, last, immediate, timed, payload })
            } else {
                let (stream, mid, fsn) = (0, mid.into(), 0);
                Chunk::IData(IData {
                    tsn,
                    stream,
                    mid,
                    unordered,
                    first: true,
                    last: true,
                    immediate,
                    timed,
                    ppid,
                    fsn,
                    payload,
                })
            }
        }
        1 if flags & 0x80 != 0 => {
            let tsn = near(input, hints.peer_tsn)?;
            let (total, offset) = (u16::from(input.arbitrary::<u8>()?), u16::from(flags & 0x7f));
            let bytes = input.bytes(length.min(input.len()).max(1).min(input.len()))?;
            Chunk::Slice(Slice { tsn, total, offset, bytes })
        }
        0 if flags & 0x80 != 0 => {
            re_config(input, hints, length, &mut more)?;
            Chunk::ReConfig(ReConfig { parameters: Parameters::new(&more) })
        }
        0 | 1 => {
            let (tsn, stream, ssn) = (near(input, hints.peer_tsn)?, stream(input)?, input.arbitrary::<u8>()?.into());
            let payload = input.bytes(length.min(input.len()))?;
            Chunk::Data(Data { tsn, stream, ssn, ppid: 0, unordered, first, last, immediate, timed, payload })
        }
        2..=4 => {
            let (tsn, stream) = (near(input, hints.peer_tsn)?, stream(input)?);
            let (mid, fsn) = (input.arbitrary::<u8>()?.into(), input.arbitrary::<u8>()?.into());
            let payload = input.bytes(length.min(input.len()))?;
            Chunk::IData(IData { tsn, stream, mid, unordered, first, last, immediate, timed, ppid: 0, fsn, payload })
        }
        5..=8 => {
            list = entries(input, |input| {
                Ok(GapBlock { start: input.arbitrary::<u8>()?.into(), end: input.arbitrary::<u8>()?.into() })
            })?;
            more = entries(input, |input| near(input, hints.our_tsn))?;
            let (cumulative_tsn, a_rwnd) = (near(input, hints.our_tsn)?, input.arbitrary()?);
            let (gaps, duplicates) = (Entries::new(&list), Entries::new(&more));
            Chunk::Sack(Sack { cumulative_tsn, a_rwnd, flags, gaps, duplicates })
        }
        9 => {
            list = entries(input, |input| Ok(Skip { stream: stream(input)?, ssn: input.arbitrary::<u8>()?.into() }))?;
            let new_cumulative_tsn = near(input, hints.peer_tsn)?;
            Chunk::ForwardTsn(ForwardTsn { new_cumulative_tsn, skips: Entries::new(&list) })
        }
        10 => {
            list = entries(input, |input| {
                Ok(ISkip { stream: stream(input)?, unordered, mid: input.arbitrary::<u8>()?.into() })
            })?;
            let new_cumulative_tsn = near(input, hints.peer_tsn)?;
            Chunk::IForwardTsn(IForwardTsn { new_cumulative_tsn, skips: Entries::new(&list) })
        }
        11 => Chunk::Heartbeat(Heartbeat { info: input.bytes(length)? }),
        12 => Chunk::HeartbeatAck(HeartbeatAck { info: input.bytes(length)? }),
        13 => Chunk::Error(ErrorChunk { causes: Causes::new(input.bytes(length)?) }),
        14 => Chunk::Asconf(Asconf {
            serial: near(input, hints.peer_tsn)?,
            address: [10, 0, 0, 1].into(),
            parameters: Parameters::new(input.bytes(length.min(input.len()))?),
        }),
        15 => Chunk::Auth(Auth { key_id: 0, hmac_id: flags.into(), hmac: input.bytes(length)? }),
        16 => {
            let (tag, initial_tsn, (outbound_streams, inbound_streams)) =
                (input.arbitrary()?, input.arbitrary()?, input.arbitrary()?);
            let parameters = Parameters::new(input.bytes(length.min(input.len()))?);
            let init =
                Init { initiate_tag: tag, a_rwnd: 1500, outbound_streams, inbound_streams, initial_tsn, parameters };
            if first { Chunk::Init(init) } else { Chunk::InitAck(init) }
        }
        17 => match flags % 8 {
            0..=3 => Chunk::Shutdown(Shutdown { cumulative_tsn: near(input, hints.our_tsn)? }),
            4 => Chunk::ShutdownAck(ShutdownAck),
            5 => Chunk::ShutdownComplete(ShutdownComplete { reflected: last }),
            _ => Chunk::Abort(Abort { reflected: last, causes: Causes::new(input.bytes(length)?) }),
        },
        18 if first => Chunk::Ecne(Ecne { lowest_tsn: near(input, hints.our_tsn)?, marked: last.then_some(1) }),
        18 if last => {
            let lowest_tsn = near(input, hints.peer_tsn)?;
            Chunk::Cwr(Cwr { lowest_tsn, all_paths: unordered, same_window: immediate })
        }
        18 => Chunk::CookieEcho(CookieEcho { cookie: input.bytes(length)? }),
        _ if first => {
            let (first_tsn, key) = (near(input, hints.peer_tsn)?, input.arbitrary::<u8>()?.into());
            let count = u16::from(input.arbitrary::<u8>()? % 40);
            let covered = input.bytes(usize::from(count.div_ceil(8)).min(input.len()))?;
            let coded = input.bytes(length.min(input.len()))?;
            Chunk::Redundancy(Redundancy { rule: flags >> 1 & 1, first_tsn, count, key, covered, coded })
        }
        _ => Chunk::Unknown(RawChunk { kind: flags, flags: kind, value: input.bytes(length)?, bytes: &[], offset: 0 }),
    };
    chunk.emit(&mut Writer::new(out));
    drop((list, more));
    Ok(())
}
