use braidcast_core::Instant;
use core::time::Duration;

/// Of the last transit time in the smoothed one, and of its deviation in the smoothed deviation.
const GAIN: f64 = 0.125;
/// A step of transit time by more than this and twice the deviation begins a spike, ms.
const SPIKE: f64 = 100.0;
/// A spike is over when its slope has fallen to this, ms.
const FLAT: f64 = 8.0;
/// Deviations that a packet may be late.
const DEVIATIONS: f64 = 4.0;
/// Silence of at least this lies between talk spurts.
const PAUSE: Duration = Duration::from_millis(100);
/// Speech without a pause is stretched or shortened after as much.
const LONGEST: Duration = Duration::from_secs(1);

/// Playout that follows the network: algorithm 4 of Ramjee, Kurose, Towsley and Schulzrinne,
/// "Adaptive playout mechanisms for packetized audio applications in wide-area networks", INFOCOM
/// 1994: transit time and its deviation are smoothed, except in a spike, when the estimate follows
/// the packets at once.
///
/// The paper changes the playout between talk spurts only. Speech without pauses has none, so it
/// changes here each second, too.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    least: f64,
    most: f64,
    /// The first packet's transit time, ns; all others are relative to it.
    base: i64,
    smoothed: f64,
    deviation: f64,
    last: [f64; 2],
    /// Slope of the spike that goes on.
    spike: Option<f64>,
    /// Playout of packets of this spurt, ns after they were sent.
    offset: i64,
    set_at: Instant,
    last_sent: Instant,
}

impl Adaptive {
    /// Upon the first packet. It and the spurt after it are given half the time that any may get.
    pub(super) fn new(least: Duration, most: Duration, sent: Instant, transit: i64) -> Self {
        let (least, most) = (least.as_secs_f64() * 1e3, most.as_secs_f64() * 1e3);
        let most = most.max(least);
        let margin = ((most / 2.0).max(least) * 1e6) as i64;
        Self {
            least,
            most,
            base: transit,
            smoothed: 0.0,
            deviation: 0.0,
            last: [0.0; 2],
            spike: None,
            offset: transit.saturating_add(margin),
            set_at: sent,
            last_sent: sent,
        }
    }

    /// A packet arrived after `transit` ns; when to play it, in ns after it was sent.
    pub(super) fn offset(&mut self, sent: Instant, transit: i64) -> i64 {
        let pause = sent.since(self.last_sent) >= PAUSE;
        if pause || sent.since(self.set_at) >= LONGEST {
            self.set_at = sent;
            let margin = (DEVIATIONS * self.deviation).clamp(self.least, self.most);
            self.offset = self.base.saturating_add(((self.smoothed + margin) * 1e6) as i64);
        }
        self.last_sent = self.last_sent.max(sent);
        self.learn(transit.saturating_sub(self.base) as f64 / 1e6);
        self.offset
    }

    fn learn(&mut self, transit: f64) {
        let [last, before] = self.last;
        self.last = [transit, last];
        if let Some(slope) = self.spike {
            let slope = slope / 2.0 + ((2.0 * transit - last - before) / 8.0).abs();
            self.spike = (slope > FLAT).then_some(slope);
            self.smoothed += transit - last;
        } else if (transit - last).abs() > 2.0 * self.deviation + SPIKE {
            self.spike = Some(0.0);
            self.smoothed += transit - last;
        } else {
            self.smoothed += GAIN * (transit - self.smoothed);
        }
        self.deviation += GAIN * ((transit - self.smoothed).abs() - self.deviation);
    }
}
