//! Where Quorate stands: beside each peer, at how many points of a test's grid it is ahead or behind.

use super::chapter::Chapter;
use crate::record::figure::ADVANTAGE_MAX;
use crate::record::{Place, Spread, Summary};
use serde::Serialize;

pub const QUORATE: &str = "quorate";
/// What is nearer to 1 is level.
const LEVEL: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Ahead,
    /// The rounds do not agree, or it is less than three in a hundred.
    Level,
    Behind,
}

impl Side {
    /// By the advantage over the rounds.
    pub fn of(advantage: &Spread) -> Side {
        match advantage {
            Spread { median, .. } if (median - 1.0).abs() <= LEVEL => Side::Level,
            Spread { low, .. } if *low > 1.0 => Side::Ahead,
            Spread { high, .. } if *high < 1.0 => Side::Behind,
            _ => Side::Level,
        }
    }
}

/// Beside one peer in one test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    pub peer: String,
    pub ahead: usize,
    pub level: usize,
    pub behind: usize,
    /// Of the advantages at all points.
    pub median: f64,
    /// Where Quorate stands worst, and its advantage there.
    pub worst: (Place, f64),
}

/// Beside all peers that have cells at the same points.
pub fn standings(chapter: &Chapter, summary: &Summary, peers: &[String]) -> Vec<Standing> {
    standings_at(|_| true, chapter, summary, peers)
}

/// The same at some of the points.
pub fn standings_at(
    is_meant: impl Fn(&Place) -> bool,
    chapter: &Chapter,
    summary: &Summary,
    peers: &[String],
) -> Vec<Standing> {
    let beside = |peer: &String| {
        let figure = chapter.main()?;
        let places = summary.places(chapter.test).filter(|place| is_meant(place));
        let points: Vec<(&Place, Spread)> = places
            .filter_map(|place| Some((place, summary.advantage(place, QUORATE, peer, figure)?)))
            .collect();
        let (place, worst) =
            points.iter().min_by(|one, other| one.1.median.total_cmp(&other.1.median))?;
        let count = |side| points.iter().filter(|(_, point)| Side::of(point) == side).count();
        Some(Standing {
            peer: peer.clone(),
            ahead: count(Side::Ahead),
            level: count(Side::Level),
            behind: count(Side::Behind),
            median: Spread::of(points.iter().map(|(_, point)| point.median))?.median,
            worst: ((*place).clone(), worst.median),
        })
    };
    peers.iter().filter(|peer| *peer != QUORATE).filter_map(beside).collect()
}

impl Standing {
    pub fn points(&self) -> usize {
        self.ahead + self.level + self.behind
    }

    /// `ahead at 14 of 16 points (median 1.82×); worst 0.83× at lan, write_only, 64 clients`.
    pub fn words(&self) -> String {
        let points = self.points();
        let (place, worst) = &self.worst;
        if points == 1 {
            let side = match (self.ahead, self.behind) {
                (1, _) => "ahead",
                (_, 1) => "behind",
                _ => "level",
            };
            return format!("{side}, {} at {}", times(*worst), place.words());
        }
        let counts = [(self.ahead, "ahead"), (self.level, "level"), (self.behind, "behind")];
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, side)| match *count == points {
                true => format!("{side} at all {points} points"),
                false => format!("{side} at {count} of {points}"),
            })
            .collect();
        let (parts, median) = (parts.join(", "), times(self.median));
        format!("{parts}; median {median}, worst {} at {}", times(*worst), place.words())
    }
}

/// `1.82×`.
pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= ADVANTAGE_MAX => format!("≥ {ADVANTAGE_MAX:.0}×"),
        ratio if ratio >= 100.0 => format!("{ratio:.0}×"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}×"),
        ratio if ratio < 0.01 => "< 0.01×".to_owned(),
        ratio => format!("{ratio:.2}×"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chapter::CHAPTERS;
    use super::super::tests::cell;
    use super::*;

    #[test]
    fn points_are_counted_and_the_worst_is_told() {
        let cells = [
            cell(QUORATE, 1, 200.0),
            cell("galera", 1, 100.0),
            cell(QUORATE, 4, 80.0),
            cell("galera", 4, 100.0),
            cell(QUORATE, 16, 101.0),
            cell("galera", 16, 100.0),
        ];
        let summary = Summary::new(&cells);
        let standings = standings(&CHAPTERS[0], &summary, &["galera".into(), "async".into()]);
        assert_eq!(standings.len(), 1);
        assert_eq!(
            standings[0].words(),
            "ahead at 1 of 3, level at 1 of 3, behind at 1 of 3; median 1.01×, worst 0.80× at lan, \
             write_only, 4 clients"
        );
    }

    #[test]
    fn rounds_that_do_not_agree_are_level() {
        let side = |low, median, high| Side::of(&Spread { low, median, high, rounds: 3 });
        assert_eq!(side(1.05, 1.2, 1.3), Side::Ahead);
        assert_eq!(side(0.9, 1.2, 1.3), Side::Level);
        assert_eq!(side(0.7, 0.8, 0.95), Side::Behind);
        assert_eq!(side(0.98, 0.98, 0.98), Side::Level);
    }
}
