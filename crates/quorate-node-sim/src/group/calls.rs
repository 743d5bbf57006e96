//! What a node asks of its member.

use super::member::Member;
use super::{id_of, HISTORY};
use crate::group::log::Entry;
use crate::oracle::Mark;
use crate::plant::Plant;
use bytes::Bytes;
use quorate_consensus::Index;
use quorate_live::{GroupError, GroupStatus, OrderError, ViewMember};
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
        let data = match self.network.plant {
            Some(Plant::KinOverwrites) => without_epoch(&data),
            _ => data,
        };
        let mut state = self.network.state.lock();
        if state.reaches(self.node) {
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

    fn read(&self, index: Index) -> Result<Bytes, GroupError> {
        self.network.oracle.mark(Mark::ReadBack);
        let state = self.network.state.lock();
        if index as usize <= state.places[self.node].own.base {
            return Err(GroupError::NotWritten { index });
        }
        match state.log.get(index as usize - 1).map(|logged| &logged.entry) {
            Some(Entry::Data(data)) => Ok(data.clone()),
            _ => Err(GroupError::NotWritten { index }),
        }
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
        GroupStatus { member: id_of(self.node), leader, ..GroupStatus::default() }
    }

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

fn no_leader(waited: Duration) -> GroupError {
    OrderError::NoLeader { waited, what: "nobody leads this group".into() }.into()
}

/// A write set as it was before there were epochs (`Header::kin_epoch`).
fn without_epoch(data: &Bytes) -> Bytes {
    let mut bytes = data.to_vec();
    bytes[2..4].fill(0);
    Bytes::from(bytes)
}
