//! Options that take effect while the server runs: what has to be told to whom.

use crate::node::Node;
use crate::queue::Event;
use quorate_group::Group;

/// `gmcast.isolate`: as usual. 1 cuts the node off, as a broken network does.
const CONNECTED: i64 = 0;
/// Cut off, and the connection to the group is given up: only a restart brings the node back.
const GIVEN_UP: i64 = 2;

const WEIGHT_DEFAULT: i64 = 1;

impl Node {
    /// Options were set: what depends on them follows.
    pub fn options_changed(&self) {
        let Some(link) = self.link() else { return };
        self.tell_group(&link.group);
        if self.options.lock().integer("gmcast.isolate") == GIVEN_UP && !link.closing() {
            self.info("gmcast.isolate=2: this node gives its connection to the group up; restart it to return");
            link.begin_closing();
            link.nudge_all();
            self.desk.wake();
            self.queue.push(Event::Final);
        }
    }

    /// Hands the group what it has to know of the options.
    pub fn tell_group(&self, group: &Group) {
        let options = self.options.lock();
        // In Galera the heavier one of two keeps the quorum. Should both be made so, no harm is
        // done: to go on alone takes more than to be allowed to.
        let heavier = options.integer("pc.weight") > WEIGHT_DEFAULT;
        group.allow_alone(options.flag("pc.ignore_sb") || heavier);
        group.set_suspect_timeout(options.period("evs.suspect_timeout"));
        group.isolate(options.integer("gmcast.isolate") != CONNECTED);
    }
}
