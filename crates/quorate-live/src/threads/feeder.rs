//! The thread that feeds committed entries to the layer above, but for those that receivers feed in passing.

use crate::core::Next;
use crate::live::Live;

pub(crate) fn run(live: &Live) {
    let Live { feeding, hands, .. } = live;
    let mut goes_on = feeding.with(live, |feeder| {
        feeder.started(live);
        Ok(())
    });
    while goes_on {
        goes_on = match hands.gate.next() {
            Next::Stop => false,
            Next::Install(index) => feeding.with(live, |feeder| feeder.install(live, index)),
            Next::UpTo(index) => feeding.with(live, |feeder| feeder.feed(live, index)),
        };
    }
    feeding.end();
}
