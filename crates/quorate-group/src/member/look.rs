//! Looks at a member, for its shell and for operators.

use super::Member;
use crate::driver::Peer;
use crate::order::ForcePlan;
use crate::orders;
use crate::status::{GroupStatus, LogFigures, PeerLook};
use crate::view::ViewMember;
use quorate_consensus::level::LEVEL_MIN;
use quorate_consensus::{Charter, MemberId, MemberInfo, MemberRole, Status};
use quorate_wire::PeerIdentity;

/// Whether somebody may send a long packet: such ones are kept in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtLength {
    /// A member, or who leads, of whose admission this one may not have heard.
    Yes,
    /// This member knows nobody, so it may be anybody who leads.
    OneAtATime,
    No,
}

impl Member {
    pub fn id(&self) -> MemberId {
        self.driver.id
    }

    /// How this member introduces itself.
    pub fn identity(&self) -> PeerIdentity {
        self.driver.identity()
    }

    /// The group this member belongs to, and what that was founded with; 0 as long as it belongs to
    /// none.
    pub fn group(&self) -> (u128, Charter) {
        self.driver.group
    }

    /// Whether the log failed, or a bug was met.
    pub fn has_failed(&self) -> bool {
        self.driver.failed
    }

    /// A panic left this member in the middle of a step: it says nothing any more. Changes as little
    /// as can be, for the panic may still be on its way.
    pub fn mark_broken(&mut self) {
        self.driver.failed = true;
        self.driver.due = true;
    }

    /// Whether `from` may have much to say.
    pub fn hears_at_length(&self, from: MemberId) -> AtLength {
        let driver = &self.driver;
        if driver.is_member(from) || driver.leader() == Some(from) {
            AtLength::Yes
        } else if driver.config.members.is_empty() {
            AtLength::OneAtATime
        } else {
            AtLength::No
        }
    }

    /// Whether `id` is a member, in the configuration in force or, while that changes, in the one before.
    pub fn is_member(&self, id: MemberId) -> bool {
        self.driver.is_member(id)
    }

    pub fn is_isolated(&self) -> bool {
        self.alone.is_isolated()
    }

    /// Whom [`crate::Order::ForceQuorum`] keeps or gives up.
    pub fn who_may_decide(&self) -> Vec<MemberId> {
        self.driver.who_may_decide().map(|(id, _)| id).collect()
    }

    /// What [`crate::Order::ForceQuorum`] would do. Changes nothing.
    pub fn plan_force(&self, keep: &[String]) -> ForcePlan {
        orders::plan(&self.driver, keep)
    }

    /// Members of the newest view that this one hears from, itself included.
    pub fn reachable(&mut self, now_ms: u64) -> Vec<ViewMember> {
        self.at(now_ms);
        let driver = &self.driver;
        // Who lives asks for votes at least this often.
        let silence_max_ms = driver.options.election_timeout_ms * 3;
        let here = |id| {
            let heard = |heard_ms| driver.now_ms.saturating_sub(heard_ms) < silence_max_ms;
            let peer = driver.peers.get(id);
            !self.is_isolated() && peer.is_some_and(|p| p.is_connected() && heard(p.heard_ms))
        };
        let members = driver.applied.view.members.iter();
        members.filter(|member| member.id == driver.id || here(member.id)).cloned().collect()
    }

    pub fn status(&mut self, now_ms: u64, log: LogFigures) -> GroupStatus {
        self.at(now_ms);
        let driver = &self.driver;
        let core = driver.status();
        let those = |which: fn(&MemberInfo) -> bool| {
            let members = core.config.members.iter();
            members.filter(|(_, info)| which(info)).map(|(id, _)| *id).collect()
        };
        let leader = core.leader.filter(|_| !driver.failed);
        GroupStatus {
            member: driver.id,
            leader,
            is_leader: leader == Some(driver.id),
            term: core.term,
            last_index: core.last.index,
            persisted_index: core.persisted,
            commit_index: core.commit,
            applied_index: driver.applied.last.index,
            voters: those(MemberInfo::is_voter),
            learners: those(|info| !info.is_voter()),
            loggers: those(|info| info.role == MemberRole::Logger),
            config: core.config.clone(),
            level: match core.commit >= core.config_index {
                true => core.config.level,
                false => core.config.level.min(LEVEL_MIN),
            },
            peers: self.peers(&core),
            log_bytes: log.bytes,
            log_max: log.max,
            first_index: log.first_index,
            syncs: log.syncs,
            sync_us_avg: log.sync_us_avg,
            sync_us_deviation: log.sync_us_deviation,
            sync_us_min: log.sync_us_min,
            sync_us_max: log.sync_us_max,
            primary: self.contact.is_primary(),
            proposals_pending: driver.pending.count(),
            proposals_pending_max: driver.pending.depth().max(),
            proposals_pending_avg: driver.pending.depth().avg(),
            view_number: driver.applied.view.number,
            rejected: driver.rejections.counts(),
            disputed: driver.disputed.clone(),
            log_warning: log.warning,
        }
    }

    fn peers(&self, core: &Status) -> Vec<PeerLook> {
        let look = |(id, peer): (&MemberId, &Peer)| {
            let (identity, known) = (peer.identity.as_ref(), core.peer(*id));
            PeerLook {
                id: *id,
                connected: peer.is_connected(),
                levels: identity.map(|identity| identity.levels),
                incoming: identity.map(|identity| identity.incoming.clone()).unwrap_or_default(),
                matched: known.map(|known| known.matched),
                snapshotting: known.is_some_and(|known| known.snapshotting),
                standing: self.standings.of(*id),
            }
        };
        self.driver.peers.iter().map(look).collect()
    }

    /// What a status request is answered with.
    pub fn report(&mut self, now_ms: u64, log: LogFigures) -> Vec<(String, String)> {
        let own = self.identity();
        let head = [
            ("name", own.name),
            ("group_name", own.group_name),
            ("group", format!("{:032x}", own.group)),
            ("incarnation", own.incarnation.to_string()),
            ("addr", own.addr),
            ("incoming", own.incoming),
        ];
        let mut lines: Vec<_> =
            head.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        lines.extend(self.status(now_ms, log).lines());
        lines
    }
}
