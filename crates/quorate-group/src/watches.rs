//! What a member watches about itself: whether its disk gets on and has room, and whether its host does.

use crate::disk_watch::DiskWatch;
use crate::host_watch::HostWatch;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::policy;
use crate::room_watch::RoomWatch;
use quorate_consensus::{Event, MemberId, Status};
use quorate_wal::Room;
use std::time::Instant;

pub(crate) struct Watches {
    disk: DiskWatch,
    room: RoomWatch,
    host: HostWatch,
}

impl Watches {
    pub fn new(now: Instant) -> Self {
        let (disk, room, host) = (DiskWatch::new(now), RoomWatch::default(), HostWatch::new(now));
        Self { disk, room, host }
    }

    /// Says what is new. The log has reported so often that its disk gets on.
    pub fn look(
        &mut self,
        member: &Member,
        status: &Status,
        leader: Option<MemberId>,
        reports: u64,
    ) {
        let room = member.wal.room();
        self.look_at_room(member, room, policy::needed(&status.config, leader, member.id));
        // Without room it stands still, too; that was said.
        if room != Room::Blocked {
            self.look_at_disk(member, status, reports);
        }
        self.look_at_host(member);
    }

    /// Whoever has no room for its log says so, and keeps of it only what is needed.
    fn look_at_room(&mut self, member: &Member, room: Room, needed: bool) {
        member.wal.set_needed(needed);
        let warning = if room == Room::Enough { None } else { member.wal.stats().warning };
        if let Some((level, line)) = self.room.look(room, warning, &member.options.dir) {
            member.log(level, line);
            if room != Room::Enough {
                member.snapshots.make_room();
            }
        }
    }

    fn look_at_disk(&mut self, member: &Member, status: &Status, reports: u64) {
        let options = &member.options;
        let log = (status.last.index, status.persisted, reports);
        // Before leadership is handed over: the new term waits for the disk, and this thread then
        // waits for the term.
        let place = (options.dir.as_path(), options.disk_stall_timeout / 2);
        if let Some((level, line)) = self.disk.look(log, place, Instant::now()) {
            member.log(level, line);
        }
    }

    fn look_at_host(&mut self, member: &Member) {
        let pace = member.options.heartbeat_interval() / 2;
        let commit = member.observer.commit_under_way();
        let Some((hangs, line)) = self.host.look(commit, pace, Instant::now()) else { return };
        member.log(if hangs { LogLevel::Warn } else { LogLevel::Info }, line);
        member.with_core(|driver| driver.ignore_refusal(member, Event::HostHangs(hangs)));
    }
}
