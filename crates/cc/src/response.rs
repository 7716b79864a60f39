use crate::{Conditions, shows_congestion};
use braidcast_core::named;
use core::time::Duration;

/// What a window does when packets are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossResponse {
    /// Halves (RFC 9260 §7.2.3, RFC 5681).
    #[default]
    Reno,
    /// Halves if packets were standing in a queue, else keeps four fifths: what a radio link loses without a queue says
    /// little about congestion (TCP Veno: Fu and Liew, IEEE JSAC 21(2), 2003, §III-A).
    Veno,
}

impl LossResponse {
    /// The share of the window that is kept.
    ///
    /// `queueing`: how long packets stand in queues of late; `base`: the round trip without that.
    pub fn kept(self, cwnd: usize, mtu: usize, queueing: Duration, base: Duration) -> f64 {
        let path = Conditions { mtu, queueing, base_rtt: base, ..Conditions::default() };
        if self == Self::Veno && !shows_congestion(cwnd, &path) { 0.8 } else { 0.5 }
    }
}

named! {
    /// Every response, by the name that options and scenarios use.
    LossResponse, "loss response" {
        "reno" => Reno,
        "veno" => Veno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaviour() {
        let ms = Duration::from_millis;
        let kept = |response: LossResponse, queueing| response.kept(20_000, 1000, ms(queueing), ms(40));
        let row = |response| [0, 5, 7, 40].map(|queueing| kept(response, queueing));
        assert_eq!(row(LossResponse::Reno), [0.5, 0.5, 0.5, 0.5]);
        assert_eq!(row(LossResponse::Veno), [0.8, 0.8, 0.8, 0.5]);
        for (name, response) in LossResponse::ALL {
            assert_eq!((name.parse(), response.to_string().as_str()), (Ok(response), name));
        }
    }
}
