//! What happens to a world.

use super::World;
use crate::baton::installed;
use crate::oracle::Mark;
use std::time::Duration;

impl World {
    pub(super) fn harm(&mut self) {
        let count = self.homes.len();
        let (what, number) = installed().random(|rng| (rng.index(18), rng.index(count)));
        match what {
            0 | 1 => self.crash(number),
            2 => {
                self.oracle().mark(Mark::CrashOfAll);
                (0..count).for_each(|number| self.crash(number));
            }
            3 => self.stop(number),
            4..=6 => {
                self.oracle().mark(Mark::Cut);
                self.oracle().tell(|| format!("n{number} is cut off"));
                self.network().cut(number, true);
            }
            7 => {
                self.oracle().mark(Mark::CutMajority);
                self.oracle().tell(|| "all are cut off".into());
                (0..count).for_each(|number| self.network().cut(number, true));
            }
            8 => {
                // Its disk is slow, as one is that has hardly any room.
                self.network().fill_disk(number, true);
                let lag = installed().random(|rng| rng.millis(1, 400));
                self.network().set_lag(number, lag);
            }
            9 => self.homes[number].server.iter().for_each(|server| server.kill_somebody()),
            10 | 11 => self.lose_data(number),
            12 => {
                let mut servers = self.servers();
                servers.retain(|server| server.is_dependable());
                self.network().purge(servers.iter().map(|server| server.number));
            }
            13 => self.corrupt(number),
            14 => self.homes[number].server.iter().for_each(|server| server.give_up()),
            _ => self.repair(),
        }
    }

    /// What is down starts, what is cut off is connected again. Who hears late may go on to.
    pub(super) fn repair(&mut self) {
        self.oracle().tell(|| "repair".into());
        for number in 0..self.homes.len() {
            self.network().cut(number, false);
            self.network().fill_disk(number, false);
            if installed().random(|rng| rng.chance(500)) {
                self.network().set_lag(number, Duration::ZERO);
            }
        }
        self.start_all();
    }
}
