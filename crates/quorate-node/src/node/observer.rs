//! What the group tells a node outside of the log.

use super::commit_watch::CommitWatch;
use super::Node;
use crate::blocking::{self, Mutex};
use crate::local::LocalState;
use crate::order::Event;
use crate::start::genesis::Genesis;
use crate::start::resume::Owner;
use bytes::Bytes;
use quorate_certify::{may_propose, Constants};
use quorate_consensus::{Charter, MemberId, Rules};
use quorate_live::{LogLevel, Observer, ServerReport, ServerStanding, Standing};
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// Carries it to the node, as long as there is one.
pub struct NodeObserver {
    node: Weak<Node>,
    /// Why this node's database keeps it from joining the group that it found.
    pub not_ours: Mutex<Option<String>>,
    commits: Mutex<CommitWatch>,
}

impl NodeObserver {
    pub fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::downgrade(node), not_ours: Mutex::default(), commits: Mutex::default() }
    }
}

impl Observer for NodeObserver {
    /// Before it has a vote there: a member that joins only to stop would cost the group its
    /// majority.
    fn may_join(&self, group: u128, charter: Charter) -> Result<(), String> {
        let Some(node) = self.node.upgrade() else { return Ok(()) };
        let constants = Constants::from_words(charter.0);
        if !constants.are_sound() {
            return Err(format!(
                "that group says that it begins at seqno {} with a certification window of {}, which no founder can \
                 have chosen: it is of another kind, or damaged. This node did not join it, and nothing was changed. \
                 Check the addresses of members that this node was given",
                constants.seqno, constants.window
            ));
        }
        let genesis = Genesis::of_group(group, &constants);
        let owner = Owner { group, genesis, fresh: true, founded: false };
        let database = node.database().map_err(|unusable| unusable.to_string());
        let checked = database.and_then(|database| database.check_ours(&owner)).map(|_standing| ());
        *self.not_ours.lock() = checked.clone().err();
        checked
    }

    fn admits(&self, addr: IpAddr) -> bool {
        let Some(node) = self.node.upgrade() else { return true };
        node.local.host.admits(&addr.to_canonical().to_string())
    }

    fn may_propose(&self, member: MemberId, proposal: &Bytes) -> bool {
        let leads_in = || self.node.upgrade().and_then(|node| node.primary.leads()).unwrap_or(0);
        may_propose(member.0, leads_in, proposal)
    }

    fn commit_under_way(&self) -> Option<i64> {
        let node = self.node.upgrade()?;
        let local = &node.local;
        let undone = local.apply.last_left() + 1;
        let last = local.commit.last_under_way();
        let parts = local.part_places.count_upto(last);
        let commit = (undone <= last).then_some(undone);
        self.commits.lock().look(commit, parts, blocking::now())
    }

    fn server(&self) -> Option<ServerReport> {
        let node = self.node.upgrade()?;
        let (state, link) = (node.local_state(), node.link());
        let ready = link.as_ref().is_some_and(|link| link.primary()) && state.serves();
        // A primary that applies its backlog first takes none, nor does one whose operator made it `read_only`.
        let may_write = node.primary.writing_term().is_some();
        let read_only = node.local.host.read_only() == Some(true);
        Some(ServerReport {
            state: state.comment().to_owned(),
            ready,
            writes: Some(ready && may_write && !read_only),
            seqno: node.last_applied(),
            committed: link.as_ref().map_or(-1, |link| link.progress.seqno()),
            queued: node.queued().now as u64,
            lag_ms: node.lag().as_millis() as u64,
            transactions: link.map_or(0, |link| link.open_transactions() as u64),
            commits: Some(node.counters().commits()),
            commit_latency: Some(node.counters().latency.report()),
        })
    }

    fn standing(&self) -> Option<Standing> {
        self.node.upgrade().map(|node| node.local.standing())
    }

    fn standings(&self, all: &[ServerStanding]) {
        let Some(node) = self.node.upgrade() else { return };
        if let Some(link) = node.link() {
            let has_state = |of: &ServerStanding| of.member != link.member && of.standing.synced;
            link.set_state_elsewhere(all.iter().any(has_state));
            link.flow.period(all);
        }
    }

    fn is_awaited(&self, awaited: bool) {
        let Some(node) = self.node.upgrade() else { return };
        node.local.set_awaited(awaited);
    }

    fn start_over(&self, why: &str) -> Result<(), String> {
        let node = self.node.upgrade().ok_or("its server is ending")?;
        match node.local_state() {
            LocalState::Synced | LocalState::Joined => {
                node.withdrawal.start_over(why);
                Ok(())
            }
            other => Err(format!("its server is {}", other.comment())),
        }
    }

    fn rules(&self, rules: Rules) {
        let Some(node) = self.node.upgrade() else { return };
        node.local.set_after(rules.after);
        node.primary.rules_changed(rules);
    }

    fn leader(&self, term: u64, _leader: Option<MemberId>, leads: bool) {
        let Some(node) = self.node.upgrade() else { return };
        node.primary.leader_changed(leads.then_some(term));
    }

    fn primary(&self, primary: bool) {
        let Some(node) = self.node.upgrade() else { return };
        let Some(link) = node.link() else { return };
        link.set_primary(primary);
        node.proposals.send_ends(&link);
        node.exit.contact_changed(primary);
        match primary {
            false => node.local.queue.push(Event::NonPrimary),
            // Shown as cut off, maybe after the view that contact has brought.
            true if node.local_state() == LocalState::Undefined => link.group.refresh_view(),
            true => {}
        }
    }

    fn fatal(&self, message: String) {
        let Some(node) = self.node.upgrade() else { return };
        node.error(&message);
        if let Some(link) = node.link() {
            link.fail();
            node.local.queue.push(Event::NonPrimary);
        }
    }

    fn stuck(&self, message: String) {
        let Some(node) = self.node.upgrade() else { return };
        match node.local_state() {
            // As a member it would have a vote, and might lead, without a server that follows.
            LocalState::Synced | LocalState::Joined | LocalState::Donor => {
                node.withdrawal.cannot_follow(&message);
            }
            _ => self.fatal(message),
        }
    }

    fn log(&self, level: LogLevel, message: String) {
        let Some(node) = self.node.upgrade() else { return };
        match level {
            LogLevel::Error => node.error(&message),
            LogLevel::Warn => node.warn(&message),
            LogLevel::Info => node.info(&message),
            LogLevel::Debug if node.local.settings(|settings| settings.debug) => {
                node.info(&message)
            }
            LogLevel::Debug => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Deaf;
    use crate::local::Local;
    use crate::settings::Settings;

    #[test]
    fn a_large_commit_gives_time_to_those_that_are_under_way_with_it_and_to_no_others() {
        let config = Local::for_tests().config;
        let node = Arc::new(Node::new(Box::<Deaf>::default(), config, Settings::default()));
        let observer = NodeObserver::new(&node);
        let local = &node.local;
        local.commit.set_position(4);
        local.apply.set_position(4);
        assert_eq!(observer.commit_under_way(), None);
        local.part_places.note(6, Box::from([1, 2, 3]));
        local.commit.skip(5).unwrap();
        assert_eq!(observer.commit_under_way(), Some(5), "the large one has not begun");
        local.commit.enter(6, false).unwrap();
        assert_eq!(observer.commit_under_way(), None, "they may wait for the binary log together");
        local.leave(5).unwrap();
        assert_eq!(observer.commit_under_way(), None);
        local.commit.leave(6).unwrap();
        local.commit.skip(7).unwrap();
        local.leave(6).unwrap();
        assert_eq!(observer.commit_under_way(), Some(7));
    }
}
