/// The mean opinion score, 1 to 4.5, of a G.711 call whose packets take `delay_ms` milliseconds one
/// way, coding and decoding included, and of which the share `loss`, 0 to 1, is lost at random: the
/// E-model, as Cole and Rosenbluth reduced it to these two ("Voice over IP performance monitoring",
/// ACM CCR 31(2), 2001), with the map from R to the score of ITU-T G.107 annex B (PATHS eq. 5.1,
/// 5.2).
pub fn mean_opinion_score(delay_ms: f64, loss: f64) -> f64 {
    let late = (delay_ms - 177.3).max(0.0);
    let delay_impairment = 0.024 * delay_ms.max(0.0) + 0.11 * late;
    // G.711 without concealment.
    let loss_impairment = 30.0 * libm::log(1.0 + 15.0 * loss.clamp(0.0, 1.0));
    let rating = (94.2 - delay_impairment - loss_impairment).clamp(0.0, 100.0);
    (1.0 + 0.035 * rating + rating * (rating - 60.0) * (100.0 - rating) * 7e-6).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_with_delay_and_loss() {
        // R of 94.2: 1 + 3.297 + 0.131.
        assert!((mean_opinion_score(0.0, 0.0) - 4.428).abs() < 0.001);
        // R of 94.2 - 4.8 - 2.5 = 86.9.
        assert!((mean_opinion_score(200.0, 0.0) - 4.256).abs() < 0.001);
        assert_eq!(mean_opinion_score(5000.0, 1.0), 1.0);
        let mut last = 5.0;
        for step in 0..100 {
            let score = mean_opinion_score(f64::from(step) * 10.0, 0.01);
            assert!(score <= last && (1.0..=4.5).contains(&score));
            assert!(mean_opinion_score(f64::from(step) * 10.0, 0.05) <= score);
            last = score;
        }
    }
}
