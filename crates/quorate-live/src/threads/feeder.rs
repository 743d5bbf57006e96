//! The thread that feeds committed entries to the layer above, but for those that receivers feed in passing.

use crate::core::Next;
use crate::live::Live;

pub(crate) fn run(live: &Live) {
    let Live { feeding, core, hands, .. } = live;
    let mut goes_on = feeding.with(core, |feeder| {
        feeder.started(core);
        Ok(())
    });
    while goes_on {
        goes_on = match hands.gate.next() {
            Next::Stop => false,
            Next::Install(index) => feeding.with(core, |feeder| feeder.install(core, index)),
            Next::UpTo(index) => feeding.with(core, |feeder| feeder.feed(core, index)),
        };
    }
    feeding.end();
}
