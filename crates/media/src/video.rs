//! How a video call looks: the video part of ITU-T G.1070, from bit rate, frame rate and packet loss.

use braidcast_core::named;

/// Codec, frame size and screen size for which G.1070, Appendix I, has coefficients; key frames
/// each second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Screen {
    /// MPEG-4, 320 x 240 on 4.2 inches. THESIS uses it in §5.3 (where it says H.264, of which
    /// G.1070 has no such set) and §8.2.2.
    Mpeg4Qvga,
    /// H.264, 640 x 480 on 9.2 inches.
    H264Vga,
}

/// v1 to v12 of G.1070.
struct Coefficients {
    /// The best frame rate for a bit rate: v1 + v2 b.
    best_rate: [f64; 2],
    /// Quality at the best frame rate: v3, v4, v5.
    coding: [f64; 3],
    /// How much another frame rate hurts: v6 + v7 b.
    spread: [f64; 2],
    /// How much loss hurts: v8 to v12.
    loss: [f64; 5],
}

impl Screen {
    const fn coefficients(self) -> Coefficients {
        match self {
            Self::Mpeg4Qvga => Coefficients {
                best_rate: [1.431, 2.228e-2],
                coding: [3.759, 184.1, 1.161],
                spread: [1.446, 3.881e-4],
                loss: [2.116, 467.4, 2.736, 15.28, 4.170],
            },
            Self::H264Vga => Coefficients {
                best_rate: [5.517, 1.29e-2],
                coding: [3.459, 178.53, 1.02],
                spread: [1.15, 3.55e-4],
                loss: [0.114, 513.77, 0.736, -6.451, 13.684],
            },
        }
    }

    /// Mean opinion score, 1 to 5 (V_q, G.1070 §11.2), of video of `kbit` kbit/s and `fps` frames a
    /// second (1 to 30) of which the share `loss` of the packets is missing, 0 to 1.
    ///
    /// V_q = 1 + I_coding · exp(−P_plV / D_PplV). THESIS §5.3, eq. 8.3 and ECMT eq. 3 print it
    /// without the minus, which would make lossy video better.
    pub fn mos(self, kbit: f64, fps: f64, loss: f64) -> f64 {
        let Coefficients { best_rate, coding: [v3, v4, v5], spread, loss: [v8, v9, v10, v11, v12] } =
            self.coefficients();
        let (kbit, fps) = (kbit.max(0.0), fps.clamp(1.0, 30.0));
        let best = (best_rate[0] + best_rate[1] * kbit).clamp(1.0, 30.0);
        let at_best = v3 - v3 / (1.0 + (kbit / v4).powf(v5));
        let spread = spread[0] + spread[1] * kbit;
        let coding = at_best * (-(fps.ln() - best.ln()).powi(2) / (2.0 * spread * spread)).exp();
        let robustness = v10 + v11 * (-fps / v8).exp() + v12 * (-kbit / v9).exp();
        (1.0 + coding * (-100.0 * loss.clamp(0.0, 1.0) / robustness).exp()).clamp(1.0, 5.0)
    }
}

named! {
    /// Every one, by its name.
    Screen, "screen" {
        "mpeg4-qvga" => Mpeg4Qvga,
        "h264-vga" => H264Vga,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thesis_table_5_3_comes_out() {
        // 30 frames a second, nothing lost: what the table's two rates give to the last digit.
        for (kbit, printed) in [(898.0, 4.19), (314.0, 2.76)] {
            let mos = Screen::Mpeg4Qvga.mos(kbit, 30.0, 0.0);
            assert!((mos - printed).abs() < 0.005, "{kbit} kbit/s: {mos}");
        }
    }

    #[test]
    fn a_low_rate_is_better_used_for_fewer_frames() {
        assert!(Screen::Mpeg4Qvga.mos(314.0, 8.0, 0.0) > Screen::Mpeg4Qvga.mos(314.0, 30.0, 0.0) + 0.5);
        assert!(Screen::Mpeg4Qvga.mos(898.0, 30.0, 0.05) < 2.0, "5 % of loss ruin it");
    }

    #[test]
    fn names_are_read_and_written() {
        for (name, screen) in Screen::ALL {
            assert_eq!((name.parse(), screen.to_string().as_str()), (Ok(screen), name));
        }
        assert!("qvga".parse::<Screen>().unwrap_err().to_string().contains("mpeg4-qvga, h264-vga"));
    }

    proptest! {
        #[test]
        fn more_loss_never_raises_the_score(
            screen in 0..Screen::ALL.len(), kbit in 0.0..5000.0, fps in 1.0..60.0,
            loss in prop::array::uniform2(0.0_f64..1.0),
        ) {
            let mos = |loss| Screen::ALL[screen].1.mos(kbit, fps, loss);
            let (better, worse) = (mos(loss[0].min(loss[1])), mos(loss[0].max(loss[1])));
            prop_assert!(worse <= better && (1.0..=5.0).contains(&worse) && (1.0..=5.0).contains(&better));
        }
    }
}
