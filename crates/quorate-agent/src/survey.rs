//! The thread that asks all members once a second, and makes samples of what they say.

use crate::memory::{Known, Memory};
use crate::samples::{Sample, Samples};
use crate::watch::{Asks, Watch};
use quorate_live::port::Operating;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);
/// A member that is asked once a second, and may take a while, is known for so long.
const STALE: Duration = Duration::from_millis(2500);

/// Starts it. It ends with the process.
pub fn start(own: Arc<Memory>, operating: Arc<Operating>, samples: Arc<Samples>) -> io::Result<()> {
    let survey = Survey { own, operating, samples, others: BTreeMap::new() };
    thread::Builder::new().name("survey".to_owned()).spawn(move || survey.run()).map(drop)
}

struct Survey {
    own: Arc<Memory>,
    operating: Arc<Operating>,
    samples: Arc<Samples>,
    /// By address, as long as they are members.
    others: BTreeMap<String, (Watch, Arc<Memory>)>,
}

impl Survey {
    fn run(mut self) {
        loop {
            let began = Instant::now();
            let own = self.own.known();
            // However old: it says who the members are, each of which is asked itself.
            if let Some((report, _)) = &own.last {
                let (id, members) = (&report.own.id, &report.members);
                let others = members.iter().filter(|member| member.id != *id);
                self.watch(others.map(|member| member.address.as_str()));
                let mut known: BTreeMap<String, Known> = self
                    .others
                    .iter()
                    .map(|(at, (_, memory))| (at.clone(), memory.known()))
                    .collect();
                if let Some(here) = members.iter().find(|member| member.id == *id) {
                    known.insert(here.address.clone(), own.clone());
                }
                self.samples.add(Sample::of(report, &known));
            }
            thread::sleep(INTERVAL.saturating_sub(began.elapsed()));
        }
    }

    /// Asks these from now on, and no others.
    fn watch<'a>(&mut self, addresses: impl Iterator<Item = &'a str> + Clone) {
        self.others.retain(|known, _| addresses.clone().any(|address| address == known));
        for address in addresses {
            if self.others.contains_key(address) {
                continue;
            }
            let memory = Arc::new(Memory::new(STALE));
            let started = Watch::start(
                address,
                INTERVAL,
                self.operating.clone(),
                memory.clone(),
                Asks::Status,
            );
            // Without a thread for it, it is not known, and the next second tries again.
            if let Ok(watch) = started {
                self.others.insert(address.to_owned(), (watch, memory));
            }
        }
    }
}
