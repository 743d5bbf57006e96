//! Snapshots that a peer sends, and the disk that they are written to.

use super::{words, World};
use crate::source::Source;
use bytes::Bytes;
use quorate_group::{Input, Output, Parcel, Received};

impl World {
    pub(super) fn snapshot(&mut self, source: &mut Source<'_>) {
        let (from, known) = (words::member(source), self.known());
        let term = words::term(source, &known);
        let (meta, content) = words::snapshot(source, &known);
        Parcel::new(term, meta, content).for_each(|packet| self.receive(from, packet));
    }

    pub(super) fn arrive(&mut self, received: Received, content: Bytes) {
        let mut out = Output::default();
        let wanted = self.victim.arrived(&received, &mut out);
        self.carry_out(out);
        let superseded = wanted.then(|| self.arrived.replace((received, content))).flatten();
        if let Some((superseded, _)) = superseded {
            self.step(Input::SnapshotNotStored(superseded));
        }
    }

    /// The snapshot that has arrived is written, if there is room.
    pub(super) fn store(&mut self, room: bool) {
        let Some((received, content)) = self.arrived.take() else { return };
        if room && !self.disk.snapshots.contains_key(&received.meta.last.index) {
            self.disk.store(&received, content);
            let mut out = Output::default();
            let stays = self.victim.stored(self.now_ms, &received, &mut out);
            self.carry_out(out);
            if stays {
                return;
            }
            self.disk.snapshots.remove(&received.meta.last.index);
        }
        self.step(Input::SnapshotNotStored(received));
    }
}
