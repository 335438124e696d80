//! Means and how sure they are.
//!
//! The interval is that of Student's t distribution at 95 %, as driver developers report it for changes of a compiler.
//! Its quantile comes from the finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4), for
//! many degrees from the expansion about the normal distribution (26.7.5).

/// Mean with the ends of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Fewer values say nothing about their spread.
const MIN_VALUES: usize = 3;

/// Mean and interval; `None` for fewer than three values.
pub fn mean(values: &[f64]) -> Option<Mean> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t_quantile(values.len() - 1) * (variance / n).sqrt();
    Some(Mean { mean, low: mean - half, high: mean + half })
}

/// Above this many degrees of freedom the expansion is exact to 1e-9.
const MANY: usize = 500;

/// The t that holds 95 % of the distribution between -t and t.
pub fn t_quantile(degrees: usize) -> f64 {
    if degrees > MANY {
        let z: f64 = 1.959_963_984_540_054;
        let n = degrees as f64;
        let g1 = (z.powi(3) + z) / 4.0;
        let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
        return z + g1 / n + g2 / n.powi(2) + g3 / n.powi(3);
    }
    // 12.7 for one degree is the largest.
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if within(middle, degrees.max(1)) < 0.95 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Probability that a value is between -t and t.
fn within(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let square = cosine * cosine;
    let odd = degrees % 2 == 1;
    // cos + 2/3 cos^3 + 2*4/(3*5) cos^5 … up to the power degrees - 2, or 1 + 1/2 cos^2 + 1*3/(2*4) cos^4 …
    let mut term = if odd { cosine } else { 1.0 };
    let mut power = if odd { 1 } else { 0 };
    let mut sum = 0.0;
    while power + 2 <= degrees {
        sum += term;
        term *= square * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

/// Middle value; the mean of the two middle ones of an even number.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.10.
        for (degrees, t) in [(1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (29, 2.045), (120, 1.980)] {
            assert!((t_quantile(degrees) - t).abs() < 0.0006, "{degrees}: {}", t_quantile(degrees));
        }
    }

    #[test]
    fn the_two_ways_meet() {
        assert!((t_quantile(MANY) - t_quantile(MANY + 1)).abs() < 1e-5);
        assert!(t_quantile(MANY) > t_quantile(MANY + 1));
    }

    #[test]
    fn intervals() {
        assert_eq!(mean(&[1.0, 2.0]), None);
        let m = mean(&[1.0, 2.0, 3.0]).unwrap();
        // s = 1, t(2) = 4.302653, sqrt(3)
        assert!((m.mean - 2.0).abs() < 1e-12 && (m.high - 2.0 - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), 2.5);
    }
}
