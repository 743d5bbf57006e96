//! When the next view is due: the leader proposes it, one at a time, from where its own state machine
//! stands; a member that was cut off, or starts from a state that has it in the view already, asks for
//! one.

use crate::driver::Driver;
use crate::note::EventKind;
use crate::output::Output;
use crate::paced::Pace;
use crate::view::{next_view, Presence};
use quorate_consensus::{EntryKind, Event, MemberId, Proposal, Status, Term};
use quorate_wire::Packet;
use std::time::Duration;

/// So many views ahead of this member's state machine is a wish taken for what it says.
const AHEAD_MAX: u64 = 16;

/// Views that change nothing, for members that want to see one, at once; later ones are a second apart. Each is
/// a change of the cluster to all servers.
const REFRESHES_AT_ONCE: u64 = 8;

pub(crate) struct Views {
    /// Somebody was cut off since the view of this number, and wants a fresh one.
    fresh: Option<u64>,
    /// The state machine of this member has to see a view after this one.
    own: Option<u64>,
    asked_ms: u64,
    /// Number of the view this leader has proposed, until it is seen; and the term it did so in.
    proposed: Option<(u64, Term)>,
    refreshes: Pace,
}

impl Default for Views {
    fn default() -> Self {
        let refreshes = Pace::new(REFRESHES_AT_ONCE);
        Self { fresh: None, own: None, asked_ms: 0, proposed: None, refreshes }
    }
}

impl Views {
    /// A member asks this one, as the leader it is or was, for a view after this one. It may have seen views
    /// that this one's state machine has yet to see: a few. It asks again until it sees its own; a wish for
    /// one far beyond would be met by views without end.
    pub fn ask(&mut self, number: u64, driver: &Driver) {
        let number = number.min(driver.applied.view.number.saturating_add(AHEAD_MAX));
        self.fresh = self.fresh.max(Some(number));
    }

    /// The state machine of this member is to see a view after this one.
    pub fn want_after(&mut self, number: u64) {
        self.own = self.own.max(Some(number));
    }

    /// The state machine starts from the present view. One that has this process in it already (it
    /// had joined before the snapshot was taken) is followed by a view for the state machine to see.
    pub fn started(&mut self, driver: &Driver) {
        let own = (driver.id, driver.incarnation);
        let view = &driver.applied.view;
        if view.members.iter().any(|each| (each.id, each.incarnation) == own) {
            self.want_after(view.number);
        }
    }

    /// Asks the leader for the view that this member has to see.
    pub fn request(&mut self, driver: &Driver, out: &mut Output) {
        self.own = self.own.filter(|number| *number >= driver.applied.view.number);
        let Some(number) = self.own.filter(|_| driver.started) else { return };
        let interval = driver.options.heartbeat_interval_ms();
        let due = driver.now_ms.saturating_sub(self.asked_ms) >= interval;
        let Some(leader) = driver.leader().filter(|_| due) else { return };
        self.asked_ms = driver.now_ms;
        if leader == driver.id {
            self.ask(number, driver);
        } else {
            out.send(leader, Packet::ViewRefresh { number });
        }
    }

    /// Where this member leads: proposes the next view, if one is due.
    pub fn propose(&mut self, driver: &mut Driver, status: &Status, out: &mut Output) {
        let current = &driver.applied.view;
        let in_flight = self
            .proposed
            .is_some_and(|(number, term)| term == status.term && number > current.number);
        // What former leaders proposed is seen once an entry of the own term is.
        if !driver.started || driver.applied.last.term != status.term || in_flight {
            return;
        }
        // Older wishes are met.
        self.fresh = self.fresh.filter(|wanted| *wanted >= current.number);
        let members = status.config.members.keys();
        let presence = members.map(|id| (*id, presence(*id, driver, status))).collect();
        let next = |refresh| next_view(current, &status.config, driver.id, &presence, refresh);
        let changed = next(false);
        let refreshes = changed.is_none();
        let may_refresh = self.fresh.is_some() && self.refreshes.is_ready(driver.now_ms);
        let next = changed.or_else(|| if may_refresh { next(true) } else { None });
        let Some(view) = next else { return };
        let proposal = Proposal::new(EntryKind::View, view.encode());
        let words = view.in_words(current, |id| why_gone(id, driver, status));
        if driver.step(Event::Propose(vec![proposal]), out).is_ok() {
            self.proposed = Some((view.number, status.term));
            if refreshes {
                self.refreshes.spend(driver.now_ms);
            }
            driver.saw(EventKind::View, words, Some(driver.last()));
        }
    }
}

/// Of a member that is in no view any more.
fn why_gone(id: MemberId, driver: &Driver, status: &Status) -> String {
    let Some(peer) = driver.peers.get(id).filter(|_| status.config.members.contains_key(&id))
    else {
        return "it is no member any more".to_owned();
    };
    if peer.absent.is_some() {
        return "its process has ended".to_owned();
    }
    let silence = Duration::from_millis(driver.now_ms.saturating_sub(peer.heard_ms));
    format!("nothing was heard from it for {silence:?}")
}

fn presence(id: MemberId, driver: &Driver, status: &Status) -> Presence {
    if id == driver.id {
        return Presence::Here(driver.view_member());
    }
    let Some(peer) = driver.peers.get(id) else { return Presence::Unclear };
    let leading = driver.led_ms();
    if !peer.is_connected() {
        let silent = driver.now_ms.saturating_sub(peer.last_contact_ms).min(leading);
        return match peer.absent.is_some() || silent >= driver.suspect_ms {
            true => Presence::Gone,
            false => Presence::Unclear,
        };
    }
    let silent = status.peers.iter().find(|peer| peer.id == id).map(|peer| peer.silent_ms);
    if silent.map_or(leading, |ms| ms.min(leading)) >= driver.suspect_ms {
        return Presence::Gone;
    }
    match &peer.identity {
        Some(identity) => Presence::Here(identity.clone().into()),
        None => Presence::Unclear,
    }
}
