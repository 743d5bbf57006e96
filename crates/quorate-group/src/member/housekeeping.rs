//! A few times a second, and whenever something changed: what is to be told the host, asked of
//! others, and, where this member leads, kept as it should be.

use super::Member;
use crate::input::LogRoom;
use crate::membership::{is_all, keep_up, needed};
use crate::output::{LogLevel, Notice, Output, Release};
use crate::snapshot::{had_without_loggers, voting_servers};
use crate::watch::Change;
use quorate_consensus::level::STANDINGS;
use quorate_consensus::{placement, Event, Index, MemberId, MemberInfo, MemberRole, Status};
use quorate_wire::Packet;

impl Member {
    pub(super) fn tick(&mut self, out: &mut Output) {
        self.driver.ignore_refusal(Event::Tick, out);
        self.expire_reads(out);
        self.standings.forget_silent(&mut self.driver, out);
        self.standings.look_again();
        self.look_at_orders(out);
        self.driver.miss_leader(out);
        let now_ms = self.driver.now_ms;
        let pace_ms = self.driver.options.heartbeat_interval_ms() / 2;
        self.driver.due |= now_ms.saturating_sub(self.kept_house_ms) >= pace_ms;
        self.ask_for_admission(out);
    }

    /// Once for each input at most: what it changes is looked at with the next one.
    pub(super) fn keep_house(&mut self, out: &mut Output) {
        self.driver.due = false;
        self.kept_house_ms = self.driver.now_ms;
        let status = self.driver.status();
        if !self.driver.failed {
            self.weigh_need(&status, out);
            self.watch_disk(&status, out);
            self.watch_host(out);
        }
        self.watch_contact(&status, out);
        self.ask_for_admission(out);
        let Self { driver, membership, views, .. } = self;
        views.request(driver, out);
        membership.votes.request(driver, out);
        if driver.leads() {
            views.propose(driver, &status, out);
            keep_up(driver, &mut membership.votes, &status, out);
            self.follow_writes(&status, out);
        }
        let Self { driver, membership, alone, noting, .. } = self;
        noting.send(driver, out);
        membership.departures.serve(driver, &status, out);
        driver.retry_deferred(out);
        alone.go_on_if_allowed(driver, out);
        driver.drop_strangers(out);
        self.ping(out);
    }

    /// Whoever has no room for its log says so, and keeps of it only what is needed.
    pub(super) fn see_room(
        &mut self,
        room: LogRoom,
        warning: Option<String>,
        percent: u8,
        out: &mut Output,
    ) {
        self.log_room = room;
        let said = self.room.look(room, warning, &self.driver.options.dir);
        if let Some((level, line)) = said {
            out.log(level, line);
            if room != LogRoom::Enough {
                out.release = self.due_release();
            }
        }
        let percent = if room == LogRoom::Enough { percent } else { 100 };
        if self.room.for_whom.is_due(percent) {
            self.tell_for_whom_it_is_kept(percent, out);
        }
    }

    pub(super) fn due_release(&self) -> Option<Release> {
        let upto = self.releases.due(self.had_elsewhere())?;
        Some(Release { upto, sent: self.driver.had_by_all() })
    }

    /// Of a logger: the end of what it need not keep for the servers.
    fn had_elsewhere(&self) -> Index {
        let Self { driver, standings, .. } = self;
        if driver.options.role != MemberRole::Logger || driver.config.level < STANDINGS {
            return Index::MAX;
        }
        had_without_loggers(&driver.config, |server| standings.logged_by(server))
    }

    /// Servers for which a logger keeps what it could let go of otherwise.
    fn kept_for(&self) -> Vec<&str> {
        let Self { driver, standings, releases, .. } = self;
        let kept = releases.due(Index::MAX).filter(|due| self.had_elsewhere() < *due);
        let Some(due) = kept else { return Vec::new() };
        let lacks = |(id, _): &(&MemberId, &MemberInfo)| standings.passed_by(**id) < due;
        voting_servers(&driver.config).filter(lacks).map(|(_, info)| info.name.as_str()).collect()
    }

    /// A logger says for whom it keeps its log while there is time to do something about that.
    fn tell_for_whom_it_is_kept(&mut self, percent: u8, out: &mut Output) {
        let servers = self.kept_for().join(" and ");
        if servers.is_empty() {
            return;
        }
        self.room.for_whom.told(percent);
        out.log(
            LogLevel::Warn,
            format!(
                "the log of this logger has {percent} % of the room that there may be for it, because it keeps the part \
                 that {servers} did not get yet: it would be lost with the disk of the server that has it. Without room this \
                 logger stands still. Start what is down, or give the log more room. If a server is lost for good: \
                 quorate member remove"
            ),
        );
    }

    fn weigh_need(&mut self, status: &Status, out: &mut Output) {
        let log = (status.last.index, status.commit);
        let needed = needed(&status.config, self.driver.leader(), self.driver.id)
            | self.stand_still.look(self.log_room, log, self.driver.now_ms);
        if self.needed.replace(needed) != Some(needed) {
            out.needed = Some(needed);
        }
    }

    fn watch_disk(&mut self, status: &Status, out: &mut Output) {
        // Without room it stands still, too; that was said.
        if self.log_room == LogRoom::Blocked {
            return;
        }
        let options = &self.driver.options;
        let log = (status.last.index, status.persisted);
        // Before leadership is handed over: the new term waits for the disk.
        let place = (options.dir.as_str(), options.disk_stall_ms / 2);
        if let Some((level, line)) = self.disk.look(log, place, self.driver.now_ms) {
            out.log(level, line);
        }
    }

    fn watch_host(&mut self, out: &mut Output) {
        let driver = &mut self.driver;
        let pace_ms = driver.options.heartbeat_interval_ms() / 2;
        let change = self.host.look(self.host_commit, pace_ms, driver.now_ms);
        let Some((hangs, line)) = change else { return };
        out.log(if hangs { LogLevel::Warn } else { LogLevel::Info }, line);
        driver.ignore_refusal(Event::HostHangs(hangs), out);
    }

    /// Tells the host whether there is contact with a quorum.
    fn watch_contact(&mut self, status: &Status, out: &mut Output) {
        let driver = &self.driver;
        let cut_off = self.alone.is_isolated() && !status.config.is_quorum(|id| id == driver.id);
        let has_leader = driver.leader().is_some();
        let patience_ms = driver.options.primary_ms;
        let change = self.contact.look(has_leader, cut_off, driver.now_ms, patience_ms);
        match change {
            Some(Change::Regained) => self.views.want_after(driver.applied.view.number),
            Some(Change::Gained | Change::Lost) => {}
            None => return,
        }
        out.notices.push(Notice::Primary(change != Some(Change::Lost)));
    }

    /// A member without a leader for long, or of no group, asks around.
    fn ask_for_admission(&mut self, out: &mut Output) {
        let Self { driver, membership, contact, alone, .. } = self;
        // In the middle of a change to that, the others are still needed, and may have gone on.
        let alone_there = is_all(&driver.config, driver.id);
        let belongs = driver.config.members.contains_key(&driver.id);
        let lost = contact.leaderless_for(driver.now_ms) >= driver.options.election_timeout_ms * 2;
        let needed = !belongs || (lost && driver.leader().is_none() && !alone_there);
        let may = !driver.leaving && !driver.failed && !driver.closed && !alone.is_isolated();
        membership.joining.look(needed && may, driver, out);
    }

    /// Hands leadership to whom all writes come from, where the rules want that.
    fn follow_writes(&mut self, status: &Status, out: &mut Output) {
        let driver = &mut self.driver;
        if !status.config.rules.moves_with_writes() {
            return;
        }
        let (own, led_ms, now_ms) = (driver.id, driver.led_ms(), driver.now_ms);
        let peers = &driver.peers;
        let may = |id| peers.is_connected(id) && placement::may_follow(status, id);
        let Some(to) = driver.writes.follow(own, led_ms, now_ms, may) else { return };
        let line = format!("all writes come from member {to}: leadership follows them");
        out.log(LogLevel::Info, line);
        driver.ignore_refusal(Event::TransferLeadership(to), out);
    }

    /// Followers have nothing to say to each other until they elect a leader; then a connection
    /// that is dead already would cost a try.
    fn ping(&mut self, out: &mut Output) {
        let Self { driver, standings, .. } = self;
        // Those that hear of that need no ping.
        let tells = standings.keep_telling(driver, out);
        let since_ms = driver.now_ms.saturating_sub(self.pinged_ms);
        if since_ms < driver.options.election_timeout_ms {
            return;
        }
        self.pinged_ms = driver.now_ms;
        let rest = driver.peers.ids().into_iter().filter(|id| !tells || !driver.is_member(*id));
        rest.for_each(|id| out.send(id, Packet::Ping));
    }
}
