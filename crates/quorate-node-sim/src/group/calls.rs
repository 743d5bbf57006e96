//! What a node asks of its member.

use super::member::Member;
use super::{id_of, HISTORY};
use crate::group::log::Entry;
use crate::oracle::Mark;
use crate::plant::Plant;
use bytes::Bytes;
use quorate_certify::{Kind, WriteSet};
use quorate_consensus::level::LEVEL;
use quorate_consensus::Index;
use quorate_live::{EventKind, GroupError, GroupStatus, OrderError, Standing, ViewMember};
use simulated_node::blocking::now;
use simulated_node::group::Group;
use std::time::Duration;

impl Group for Member {
    fn group_id(&self) -> u128 {
        HISTORY
    }

    fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError> {
        if self.is_closed() {
            return Err(GroupError::Closed);
        }
        let kin = self.network.plant == Some(Plant::KinOverwrites);
        let data = if kin { without_epoch(&data) } else { data };
        self.mark_parts(&data);
        let ends = WriteSet::peek_kind(&data) == Some(Kind::PARTS_END);
        if ends && self.network.plant == Some(Plant::StreamsNotEnded) {
            return Ok(());
        }
        let mut state = self.network.state.lock();
        // What comes late is more often given up meanwhile, and then followed by what it must not overwrite.
        let comes_late = kin && serial % 2 == 0;
        if state.reaches(self.node) && !comes_late {
            state.fly(data.clone());
        }
        state.places[self.node].pending.insert(serial, (data, now()));
        self.network.changed.notify_all();
        Ok(())
    }

    fn decided(&self, serial: u64) {
        self.network.state.lock().places[self.node].pending.remove(&serial);
    }

    fn barrier(&self, timeout: Duration) -> Result<Index, GroupError> {
        let deadline = now() + timeout;
        let mut state = self.network.state.lock();
        while !state.in_contact(self.node) {
            if self.network.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(no_leader(timeout));
            }
        }
        Ok(state.log.len() as Index)
    }

    fn read(&self, from: Index, bytes: usize) -> Result<Vec<Bytes>, GroupError> {
        self.network.oracle.mark(Mark::ReadBack);
        let mut state = self.network.state.lock();
        let first = from as usize - 1;
        let beyond = first >= state.log.len();
        let place = &mut state.places[self.node];
        if from as usize <= place.own.base || beyond {
            match from as usize <= place.own.replaced {
                // Parts of a transaction that was open when its snapshot was taken.
                true => {
                    place.left_behind = true;
                    self.network.oracle.mark(Mark::PartsGone);
                }
                false => self.network.oracle.fail(format!("entry {from} is needed, and gone")),
            }
            return Err(GroupError::NotWritten { index: from });
        }
        let mut left = bytes;
        let read = state.log[first..].iter().map_while(|logged| {
            let data = match &logged.entry {
                Entry::Data(data) => data.clone(),
                _ => Bytes::new(),
            };
            let data = self.read_part(data);
            let room = left > 0;
            left = left.saturating_sub(data.len().max(1));
            room.then_some(data)
        });
        Ok(read.collect())
    }

    fn stands(&self, standing: Standing) {
        self.set_standing(standing);
    }

    fn await_applied(
        &self,
        seqno: i64,
        at_least: Option<u8>,
        timeout: Duration,
    ) -> Result<(), GroupError> {
        self.wait_applied(seqno, at_least, timeout)
    }

    fn has_log_room(&self) -> bool {
        let full = self.network.state.lock().places[self.node].full;
        if full {
            self.network.oracle.mark(Mark::DiskFull);
        }
        !full
    }

    fn reachable(&self) -> Vec<ViewMember> {
        let state = self.network.state.lock();
        let own = |m: &ViewMember| m.id == id_of(self.node);
        state.view.members.iter().filter(|m| own(m)).cloned().collect()
    }

    fn refresh_view(&self) {
        self.network.state.lock().fresh_view = true;
    }

    fn status(&self) -> GroupStatus {
        let leader = self.network.state.lock().leader();
        GroupStatus { member: id_of(self.node), leader, level: LEVEL, ..GroupStatus::default() }
    }

    /// The group's history is the members' own: quorate-sim has it.
    fn happened(&self, _kind: EventKind, _what: String) {}

    fn leave(&self, timeout: Duration) -> Result<(), GroupError> {
        let deadline = now() + timeout;
        let mut state = self.network.state.lock();
        state.places[self.node].leaving = true;
        while state.view.members.iter().any(|m| m.id == id_of(self.node)) {
            if self.network.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(no_leader(timeout));
            }
        }
        Ok(())
    }

    fn close(&self) {
        self.running.lock().closed = true;
        self.network.process_closed(self.node, self.uuid());
        let mut running = self.running.lock();
        while running.feeding {
            self.stopped.wait(&mut running);
        }
    }
}

impl Member {
    /// An entry that a node reads.
    fn read_part(&self, data: Bytes) -> Bytes {
        if WriteSet::peek_kind(&data) != Some(Kind::PART) {
            return data;
        }
        self.network.oracle.mark(Mark::PartRead);
        match self.network.plant {
            Some(Plant::PartsShifted) => shifted(&data),
            _ => data,
        }
    }

    fn mark_parts(&self, data: &Bytes) {
        let Ok(write_set) = WriteSet::parse(data.clone()) else { return };
        let header = write_set.header();
        if header.packed.is_some() {
            self.network.oracle.mark(Mark::Packed);
        }
        let mark = match header.kind {
            Kind::PART => Mark::PartSent,
            Kind::PARTS_END => Mark::PartsGivenUp,
            _ if header.parts.is_some() => Mark::LargeSent,
            _ => return,
        };
        self.network.oracle.mark(mark);
    }
}

/// A part with its first byte behind its others.
fn shifted(data: &Bytes) -> Bytes {
    let mut bytes = data.to_vec();
    let payload = WriteSet::parse(data.clone()).map_or(0, |part| part.payload().len());
    let from = bytes.len() - payload;
    bytes[from..].rotate_left(1);
    bytes.into()
}

fn no_leader(waited: Duration) -> GroupError {
    OrderError::NoLeader { waited, what: "nobody leads this group".into() }.into()
}

/// A write set as it was before there were epochs (`Header::kin_epoch`).
fn without_epoch(data: &Bytes) -> Bytes {
    let mut bytes = data.to_vec();
    bytes[2..4].fill(0);
    Bytes::from(bytes)
}
