//! What a network leaves of a system's own throughput on `lan`.

use crate::record::{Place, Results};
use std::collections::BTreeMap;

/// The network that others are compared with.
pub(super) const LAN: &str = "lan";
pub(super) const SHARE: &str = "share_of_lan_percent";
const WHOLE: &str = "tps";

/// The same, and in each cell of another network its share of the same system's cell of the same round on `lan`,
/// where there is one.
pub(super) fn added(results: &Results) -> Results {
    let on_lan = |place: &Place| Place { network: LAN.into(), ..place.clone() };
    let whole: BTreeMap<(Place, String, u32), f64> = results
        .cells
        .iter()
        .filter(|cell| cell.place.network == LAN)
        .filter_map(|cell| {
            let tps = *cell.figures.get(WHOLE)?;
            Some(((cell.place.clone(), cell.system.clone(), cell.round), tps))
        })
        .collect();
    let mut results = results.clone();
    for cell in results.cells.iter_mut().filter(|cell| cell.place.network != LAN) {
        let whole = whole.get(&(on_lan(&cell.place), cell.system.clone(), cell.round));
        let whole = whole.filter(|whole| **whole > 0.0);
        if let (Some(whole), Some(here)) = (whole, cell.figures.get(WHOLE)) {
            let share = 100.0 * here / whole;
            cell.figures.insert(SHARE.into(), share);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::super::tests::cell;
    use super::*;

    #[test]
    fn a_share_is_of_the_same_system_and_round() {
        let mut far = cell("quorate", 1, 300.0);
        far.place.network = "two-regions".into();
        let mut second = far.clone();
        second.round = 2;
        let mut peer = far.clone();
        peer.system = "galera".into();
        let cells = vec![cell("quorate", 1, 400.0), far, second, peer];
        let shared = added(&Results { cells, ..Results::default() });
        let shares: Vec<Option<f64>> =
            shared.cells.iter().map(|cell| cell.figures.get(SHARE).copied()).collect();
        assert_eq!(shares, [None, Some(75.0), None, None]);
    }
}
