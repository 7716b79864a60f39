//! What events and reports are for C.

use super::*;

/// What a sender said, into `told` and `handed`.
pub(super) fn of_sender(event: SenderEvent, told: &mut BraidcastMediaEvent, handed: &mut Handed) {
    told.kind = match event {
        SenderEvent::Connected => BRAIDCAST_MEDIA_CONNECTED,
        SenderEvent::InLine => BRAIDCAST_MEDIA_IN_LINE,
        SenderEvent::Lost { reason } => {
            because(&reason, told, handed);
            BRAIDCAST_MEDIA_LOST
        }
        SenderEvent::Refused { reason } => {
            because(&reason, told, handed);
            BRAIDCAST_MEDIA_REFUSED
        }
        SenderEvent::PathUp { name, .. } => text(name, handed, BRAIDCAST_MEDIA_PATH_UP),
        SenderEvent::PathDown { name, .. } => text(name, handed, BRAIDCAST_MEDIA_PATH_DOWN),
        SenderEvent::Warning(words) => text(words, handed, BRAIDCAST_MEDIA_WARNING),
        SenderEvent::Ended { complete, reason } => {
            because(&reason, told, handed);
            told.complete = complete.into();
            BRAIDCAST_MEDIA_ENDED
        }
        // A kind that this library does not know yet; nothing is asked of the program.
        _ => 0,
    };
}

/// What a receiver said or handed out.
pub(super) fn of_receiver(event: ReceiverEvent, told: &mut BraidcastMediaEvent, handed: &mut Handed) {
    let (kind, stream) = match event {
        ReceiverEvent::Connected { stream, name, .. } => (text(name, handed, BRAIDCAST_MEDIA_CONNECTED), Some(stream)),
        ReceiverEvent::Bytes { stream, data } => {
            handed.data = data;
            (BRAIDCAST_MEDIA_BYTES, Some(stream))
        }
        ReceiverEvent::Unit { stream, unit } => {
            let mut known = told_unit(&unit);
            handed.data = unit.data;
            (known.data, known.len) = (handed.data.as_ptr(), handed.data.len());
            handed.unit = Some(Box::new(known));
            (BRAIDCAST_MEDIA_UNIT, Some(stream))
        }
        ReceiverEvent::Lost { stream, reason } => {
            because(&reason, told, handed);
            (BRAIDCAST_MEDIA_LOST, Some(stream))
        }
        ReceiverEvent::Back { stream } => (BRAIDCAST_MEDIA_BACK, Some(stream)),
        ReceiverEvent::Restarted { stream } => (BRAIDCAST_MEDIA_RESTARTED, Some(stream)),
        ReceiverEvent::ClockJumped { stream } => (BRAIDCAST_MEDIA_CLOCK_JUMPED, Some(stream)),
        ReceiverEvent::PathUp { name, .. } => (text(name, handed, BRAIDCAST_MEDIA_PATH_UP), None),
        ReceiverEvent::PathDown { name, .. } => (text(name, handed, BRAIDCAST_MEDIA_PATH_DOWN), None),
        ReceiverEvent::Refused { why, .. } => (text(why, handed, BRAIDCAST_MEDIA_REFUSED), None),
        ReceiverEvent::Warning(words) => (text(words, handed, BRAIDCAST_MEDIA_WARNING), None),
        ReceiverEvent::Ended { stream, complete, reason } => {
            because(&reason, told, handed);
            told.complete = complete.into();
            (BRAIDCAST_MEDIA_ENDED, Some(stream))
        }
        _ => (0, None),
    };
    (told.kind, told.stream) = (kind, stream.map_or(0, |stream| stream.0));
}

fn text(words: String, handed: &mut Handed, kind: c_int) -> c_int {
    handed.text = to_c(words);
    kind
}

fn because(reason: &CloseReason, told: &mut BraidcastMediaEvent, handed: &mut Handed) {
    (told.reason, told.code) = numbers(reason);
    handed.text = to_c(reason.to_string());
}

/// All but its bytes.
fn told_unit(unit: &AccessUnit) -> BraidcastMediaUnit {
    let (coding, channels) = match unit.track.coding {
        Coding::H264 => (BRAIDCAST_CODING_H264, 0),
        Coding::H265 => (BRAIDCAST_CODING_H265, 0),
        Coding::Aac => (BRAIDCAST_CODING_AAC, 0),
        Coding::MpegAudio => (BRAIDCAST_CODING_MPEG_AUDIO, 0),
        Coding::Ac3 => (BRAIDCAST_CODING_AC3, 0),
        Coding::Opus { channels } => (BRAIDCAST_CODING_OPUS, channels),
        Coding::Other(stream_type) => (BRAIDCAST_CODING_OTHER | u32::from(stream_type), 0),
        _ => (0, 0),
    };
    BraidcastMediaUnit {
        size: size_of::<BraidcastMediaUnit>(),
        pts_us: unit.pts.as_micros() as u64,
        dts_us: unit.dts.map_or(0, |dts| dts.as_micros() as u64),
        track: unit.track.pid,
        has_dts: unit.dts.is_some().into(),
        key: unit.key.into(),
        layer: unit.layer,
        whole: unit.whole.into(),
        channels,
        coding,
        ..BraidcastMediaUnit::default()
    }
}

pub(super) fn path_report(path: &PathReport) -> BraidcastPathReport {
    BraidcastPathReport {
        size: 0,
        name: chars(&path.remote),
        remote: chars(&path.remote),
        state: match path.state {
            "unconfirmed" => BRAIDCAST_PATH_UNCONFIRMED,
            "active" => BRAIDCAST_PATH_ACTIVE,
            "potentially failed" => BRAIDCAST_PATH_POTENTIALLY_FAILED,
            _ => BRAIDCAST_PATH_INACTIVE,
        },
        rtt_ms: path.rtt_ms.unwrap_or(-1.0),
        capacity: path.capacity.unwrap_or(-1.0),
        sent_bytes: path.sent_bytes,
        received_bytes: path.received_bytes,
        lost_chunks: path.lost_chunks,
    }
}
