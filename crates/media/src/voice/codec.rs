use braidcast_core::named;
use core::time::Duration;

/// Coders of speech that the E-model has parameters for. Opus has none for narrowband: G.113 tabulates no Ie for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// G.711, lost packets are silence.
    G711,
    /// G.711 with the packet loss concealment of its Appendix I. THESIS §5.3 calculates with this one (table 5.2).
    G711Plc,
    /// G.729. G.113 has its Ie; its Bpl is that of [`Codec::G729aVad`], the only G.729 with one.
    G729,
    /// G.729 Annex A with voice activity detection. THESIS §5.3 calculates "G.729" with this one (table 5.2).
    G729aVad,
    /// Speex, which the ITU has no values for: those of [`Codec::G729aVad`] (THESIS §4.6.2).
    Speex,
}

/// How much a coder and lost packets impair speech, in units of R.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Impairment {
    /// Ie, without loss.
    pub(super) ie: f64,
    /// Bpl, robustness to loss in per cent.
    pub(super) bpl: f64,
    /// λ1, λ2, λ3 of the logarithmic fit (SBPN eq. 4.4).
    pub(super) lambda: [f64; 3],
}

impl Codec {
    /// Ie and Bpl of G.113, Appendix I (tables I.1 and I.4); λ of Cole and Rosenbluth, "Voice over
    /// IP performance monitoring", ACM CCR 31(2), 2001, who have G.711 (SBPN §4.6.2 uses it) and
    /// G.729A under random loss.
    pub(super) const fn impairment(self) -> Impairment {
        const G711: [f64; 3] = [0.0, 30.0, 15.0];
        const G729: [f64; 3] = [11.0, 40.0, 10.0];
        match self {
            Self::G711 => Impairment { ie: 0.0, bpl: 4.3, lambda: G711 },
            Self::G711Plc => Impairment { ie: 0.0, bpl: 25.1, lambda: G711 },
            Self::G729 => Impairment { ie: 10.0, bpl: 19.0, lambda: G729 },
            Self::G729aVad | Self::Speex => Impairment { ie: 11.0, bpl: 19.0, lambda: G729 },
        }
    }

    /// What the coder adds to the delay from mouth to ear: `packet`, the speech that a packet
    /// holds, and how far it looks ahead.
    pub fn delay(self, packet: Duration) -> Duration {
        packet
            + match self {
                Self::G711 => Duration::ZERO,
                // G.711 Appendix I delays its output.
                Self::G711Plc => Duration::from_micros(3750),
                Self::G729 | Self::G729aVad => Duration::from_millis(5),
                // Narrowband (RFC 5574 §2).
                Self::Speex => Duration::from_millis(10),
            }
    }
}

named! {
    /// Every codec, by its name.
    Codec, "codec" {
        "g711" => G711,
        "g711-plc" => G711Plc,
        "g729" => G729,
        "g729a-vad" => G729aVad,
        "speex" => Speex,
    }
}
