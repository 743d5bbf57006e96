//! What a joiner waits for: its server's word, its donor's, and the end of transfers to others.

use super::{DONOR_BUSY, DONOR_GONE};
use crate::blocking::{self, Condvar, Mutex};
use crate::link::node_uuid;
use crate::withdraw::Waits;
use quorate_consensus::MemberId;
use quorate_live::View;
use std::time::Duration;

/// A donor's script for a joiner that is gone finds nobody listening and ends, with mariabackup
/// after ten seconds. It is waited for as long as that may take on a busy machine, and for a donor
/// that is away itself only so long that it would have ended before it.
const ORPHAN_LIMIT: Duration = Duration::from_secs(60);
const ORPHAN_LIMIT_AWAY: Duration = Duration::from_secs(20);

/// How long to wait before asking busy donors again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

pub struct Signals {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// What the server received.
    received: Option<Result<i64, i32>>,
    /// What the donor asked last has said.
    donor_code: Option<i32>,
    /// Whom this node asked last.
    asked: Option<u128>,
    /// Who is in the group, at the sequencer's place in the log.
    view: View,
    /// Donors whose joiners are gone, at the same place.
    orphans: Vec<u128>,
    /// Donors to choose from, as the server was told.
    preferred: String,
}

/// How the wait for a transfer ended.
pub enum Waited {
    Received(Result<i64, i32>),
    Refused,
    /// The donor gave up after it had begun.
    Failed(i32),
    Closing,
}

impl Inner {
    fn is_present(&self, node: u128) -> bool {
        self.view.members.iter().any(|m| node_uuid(m.id, m.incarnation) == node)
    }

    /// The donors of joiners that are gone, by name, as far as they are in the view.
    fn orphans_named(&self) -> String {
        let name = |node: &u128| {
            let mut members = self.view.members.iter();
            let member = members.find(|m| node_uuid(m.id, m.incarnation) == *node);
            member.map_or_else(|| MemberId(*node).to_string(), |m| m.name.clone())
        };
        self.orphans.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

impl Signals {
    pub fn new() -> Self {
        Self { inner: Mutex::default(), changed: Condvar::new() }
    }

    pub fn begin_connection(&self, preferred: &str) {
        *self.inner.lock() = Inner { preferred: preferred.to_string(), ..Inner::default() };
    }

    /// The donor that was asked has begun to send, is busy, has finished, or has failed.
    pub fn donor_said(&self, code: i32) {
        self.inner.lock().donor_code = Some(code);
        self.changed.notify_all();
    }

    /// The own request was not opened: nobody is there to hear it.
    pub fn void(&self) {
        self.donor_said(DONOR_BUSY);
    }

    /// The transfers that are under way have changed.
    pub fn set_orphans(&self, orphans: Vec<u128>) {
        self.inner.lock().orphans = orphans;
        self.changed.notify_all();
    }

    /// A view in the log's order. A donor that is gone will not say how it went.
    pub fn view(&self, view: &View) {
        let mut inner = self.inner.lock();
        inner.view = view.clone();
        let gone = inner.asked.is_some_and(|donor| !inner.is_present(donor));
        if gone && inner.donor_code.is_none() {
            inner.donor_code = Some(DONOR_GONE);
            self.changed.notify_all();
        }
    }

    /// What the server received.
    pub fn received(&self, result: Result<i64, i32>) {
        self.inner.lock().received = Some(result);
        self.changed.notify_all();
    }

    /// Whether this process was in the last view.
    pub fn is_present(&self, node: u128) -> bool {
        self.inner.lock().is_present(node)
    }

    /// The donors to choose from, as the server was told, and the last view.
    pub fn candidates(&self) -> (String, View) {
        let inner = self.inner.lock();
        (inner.preferred.clone(), inner.view.clone())
    }

    /// `donor` is about to be asked: what was said before does not count.
    pub fn ask(&self, donor: u128) {
        let mut inner = self.inner.lock();
        inner.donor_code = None;
        inner.asked = Some(donor);
    }

    /// Blocks until the transfer from the one who was asked has ended, or will not begin.
    pub fn wait(&self, give_up: impl Fn() -> bool) -> Waited {
        let mut inner = self.inner.lock();
        loop {
            if let Some(result) = inner.received.take() {
                return Waited::Received(result);
            }
            match inner.donor_code {
                Some(DONOR_BUSY) => return Waited::Refused,
                Some(code) if code < 0 => return Waited::Failed(code),
                _ => {}
            }
            if give_up() {
                return Waited::Closing;
            }
            self.changed.wait(&mut inner);
        }
    }

    /// All donors were busy: gives them a moment. Some: the wait ended for another reason.
    pub fn wait_before_asking_again(&self, give_up: impl Fn() -> bool) -> Option<Waited> {
        let until = blocking::now() + ASK_AGAIN;
        let mut inner = self.inner.lock();
        while blocking::now() < until && !give_up() {
            if let Some(result) = inner.received.take() {
                return Some(Waited::Received(result));
            }
            self.changed.wait_until(&mut inner, until);
        }
        give_up().then_some(Waited::Closing)
    }

    /// The donors that may still send to joiners that are gone, by name; `None`: there are none.
    pub fn orphans(&self) -> Option<String> {
        let inner = self.inner.lock();
        (!inner.orphans.is_empty()).then(|| inner.orphans_named())
    }

    /// Blocks until there are none, `give_up` permitting. An error names those that did not say in time
    /// that they are done.
    pub fn wait_for_orphans(&self, give_up: impl Fn() -> bool) -> Result<(), String> {
        let begin = blocking::now();
        let mut inner = self.inner.lock();
        while !inner.orphans.is_empty() && !give_up() {
            let present = inner.orphans.iter().any(|donor| inner.is_present(*donor));
            let limit = begin + if present { ORPHAN_LIMIT } else { ORPHAN_LIMIT_AWAY };
            if self.changed.wait_until(&mut inner, limit).timed_out() {
                return Err(inner.orphans_named());
            }
        }
        Ok(())
    }
}

impl Waits for Signals {
    fn wake(&self) {
        let _inner = self.inner.lock();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::ViewMember;

    #[test]
    fn a_donor_that_leaves_has_failed_and_one_that_had_left_was_never_asked() {
        let signals = Signals::new();
        let code = || signals.inner.lock().donor_code;
        let view = |ids: &[u128]| {
            let member = |id: &u128| ViewMember { id: MemberId(*id), ..ViewMember::default() };
            signals.view(&View {
                number: 1,
                members: ids.iter().map(member).collect(),
                ..View::default()
            });
        };
        view(&[1, 2, 9]);
        signals.inner.lock().asked = Some(2);
        view(&[1, 2]);
        assert_eq!(code(), None);
        view(&[1, 9]);
        assert_eq!(code(), Some(DONOR_GONE));
        signals.void();
        assert_eq!(code(), Some(DONOR_BUSY), "the next one is asked");
        signals.donor_said(0);
        view(&[9]);
        assert_eq!(code(), Some(0), "it had finished");
    }
}
