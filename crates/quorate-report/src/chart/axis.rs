//! Scales, and the numbers along them.

/// Of the ends of an axis of orders of magnitude.
const LOG_ROOM: f64 = 1.2;

/// An axis: what it counts and in which unit, and how far it goes.
#[derive(Clone, Debug)]
pub struct Axis {
    /// With the unit: `time, s`.
    pub title: String,
    pub scale: Scale,
    /// Where numbers stand; empty: where they are round.
    pub ticks: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0, or from the least if that is below.
    Linear,
    /// What is not above 0 is left out.
    Log,
}

impl Axis {
    pub fn linear(title: &str) -> Axis {
        Axis { title: title.to_owned(), scale: Scale::Linear, ticks: Vec::new() }
    }

    pub fn log(title: &str) -> Axis {
        Axis { title: title.to_owned(), scale: Scale::Log, ticks: Vec::new() }
    }

    pub fn with_ticks(self, ticks: Vec<f64>) -> Axis {
        Axis { ticks, ..self }
    }

    /// Fits the values; has at most `ticks_max` numbers, but for those that were asked for.
    pub(crate) fn fit(&self, values: impl Iterator<Item = f64>, ticks_max: usize) -> Fitted {
        let log = self.scale == Scale::Log;
        let usable = |value: &f64| value.is_finite() && (!log || *value > 0.0);
        let (mut low, mut high) = values
            .chain(self.ticks.iter().copied())
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if !log {
            low = low.min(0.0);
        }
        if high <= low {
            high = if log { low * 10.0 } else { low + 1.0 };
        }
        let asked = !self.ticks.is_empty();
        let ticks = match self.scale {
            _ if asked => self.ticks.clone(),
            Scale::Linear => round_ticks(low, high, ticks_max),
            Scale::Log => log_ticks(low, high, ticks_max),
        };
        if log {
            // A little room, so that nothing lies on the edge.
            (low, high) = (low / LOG_ROOM, high * LOG_ROOM);
        } else if let (false, Some(first), Some(last)) = (asked, ticks.first(), ticks.last()) {
            (low, high) = (low.min(*first), high.max(*last));
        }
        Fitted { low, high, log, ticks }
    }
}

/// An axis with its ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitted {
    low: f64,
    high: f64,
    log: bool,
    pub(crate) ticks: Vec<f64>,
}

impl Fitted {
    /// How far along the axis, from 0 to 1; none of what has no place on it.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        let scaled = |value: f64| if self.log { value.ln() } else { value };
        let (low, high, value) = (scaled(self.low), scaled(self.high), scaled(value));
        value.is_finite().then(|| ((value - low) / (high - low)).clamp(0.0, 1.0))
    }
}

/// Multiples of 1, 2 or 5 times a power of ten that enclose both ends.
fn round_ticks(low: f64, high: f64, ticks_max: usize) -> Vec<f64> {
    let rough = (high - low) / ticks_max.max(2) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0].map(|factor| factor * power);
    let count = |step: f64| ((high / step).ceil() - (low / step).floor()) as usize + 1;
    let fits = steps.into_iter().find(|step| count(*step) <= ticks_max.max(3));
    let step = fits.unwrap_or(steps[4]);
    let first = (low / step).floor() as i64;
    (0..count(step)).map(|number| (first + number as i64) as f64 * step).collect()
}

/// 1, 2, 5 of each decade between the ends if they are few enough, else powers of ten.
fn log_ticks(low: f64, high: f64, ticks_max: usize) -> Vec<f64> {
    let all = |factors: &[f64]| -> Vec<f64> {
        let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
        decades
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .filter(|tick| (low / LOG_ROOM..=high * LOG_ROOM).contains(tick))
            .collect()
    };
    let fine = all(&[1.0, 2.0, 5.0]);
    if fine.len() <= ticks_max {
        return fine;
    }
    all(&[1.0])
}

/// `0.25`, `8,000`, `16k`, `1.2M`.
pub(crate) fn number(value: f64) -> String {
    let trimmed = |value: f64, digits: usize| {
        let text = format!("{value:.digits$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    };
    match value.abs() {
        size if size >= 1e6 => trimmed(value / 1e6, 2) + "M",
        size if size >= 1e4 => trimmed(value / 1e3, 1) + "k",
        size if size >= 1e3 => {
            let text = trimmed(value, 0);
            let (thousands, rest) = text.split_at(text.len() - 3);
            format!("{thousands},{rest}")
        }
        size if size >= 10.0 => trimmed(value, 1),
        size if size >= 0.1 => trimmed(value, 2),
        _ => trimmed(value, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.25, 5.0, 64.0, 8000.0, 16_000.0, 1_250_000.0].map(number);
        assert_eq!(shown, ["0", "0.25", "5", "64", "8,000", "16k", "1.25M"]);
    }

    #[test]
    fn ticks_are_round_and_enclose_everything() {
        assert_eq!(round_ticks(0.0, 95.0, 6), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(log_ticks(30.0, 900.0, 8), [50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(log_ticks(30.0, 80_000.0, 8), [100.0, 1000.0, 10_000.0]);
        let empty = Axis::linear("").fit(std::iter::empty(), 5);
        assert_eq!(empty.at(0.5), Some(0.5));
    }

    proptest! {
        #[test]
        fn every_value_has_its_place(values in prop::collection::vec(1e-3..1e7f64, 1..20), log: bool) {
            let axis = if log { Axis::log("") } else { Axis::linear("") };
            let fitted = axis.fit(values.iter().copied(), 7);
            prop_assert!(fitted.ticks.len() <= 12, "{:?}", fitted.ticks);
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let places: Vec<f64> = sorted.iter().map(|value| fitted.at(*value).unwrap()).collect();
            prop_assert!(places.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
