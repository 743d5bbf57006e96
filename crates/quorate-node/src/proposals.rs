//! What a node proposes to its group, whoever asks for it.

use crate::blocking;
use crate::fate::trx::Handle;
use crate::host::Answer;
use crate::link::Link;
use crate::local::Local;
use bytes::Bytes;
use quorate_certify::{flags, Header, Kind, WriteSetBuilder};
use quorate_live::GroupError;
use std::sync::Arc;

pub struct Proposals {
    local: Arc<Local>,
}

impl Proposals {
    pub fn new(local: Arc<Local>) -> Self {
        Self { local }
    }

    pub fn header(
        &self,
        link: &Link,
        kind: Kind,
        ws_flags: u32,
        trx_id: u64,
        conn_id: u64,
    ) -> Header {
        let mut header =
            Header::transaction(link.node, link.next_serial(), self.local.apply.last_left());
        header.kind = kind;
        header.flags = ws_flags;
        header.trx_id = trx_id;
        header.conn_id = conn_id;
        header.kin_epoch = link.kin_epoch.get();
        header.timestamp = blocking::unix_nanos();
        header
    }

    /// Registers the waiter and proposes.
    pub fn send(
        &self,
        link: &Link,
        serial: u64,
        handle: &Arc<Handle>,
        data: Bytes,
    ) -> Result<(), Answer> {
        link.expect(serial, handle.clone());
        if let Err(e) = link.group.propose(serial, data) {
            link.settle(serial);
            self.local.warn(&format!("A write set could not be proposed: {e}; its transaction is rolled back, nothing was committed"));
            return Err(Answer::Refused);
        }
        Ok(())
    }

    /// One part of a large transaction. False: it could not be proposed.
    pub fn part(&self, link: &Link, serial: u64, data: Bytes) -> bool {
        let proposed = link.group.propose(serial, data);
        if let Err(e) = &proposed {
            self.local.warn(&format!("A part of a large transaction could not be proposed: {e}; the transaction is rolled back, nothing was committed"));
        }
        proposed.is_ok()
    }

    /// Tells the group that nobody goes on with a stream of parts.
    pub fn end_parts(&self, link: &Link, stream: u64) {
        let header = Header::parts_end(link.node, link.next_serial(), stream);
        let end = WriteSetBuilder::new().finish(&header);
        if link.group.propose(header.serial, end).is_err() {
            link.parts.note_untold(stream);
        }
    }

    /// Something small that is no transaction, and whose fate nobody waits for.
    pub fn message(&self, link: &Link, kind: Kind, payload: &[u8]) -> Result<(), GroupError> {
        let mut builder = WriteSetBuilder::new();
        builder.append_data(payload);
        let header = self.header(link, kind, 0, u64::MAX, u64::MAX);
        link.group.propose(header.serial, builder.finish(&header))
    }

    /// A fragment passed that its session had given up: its transaction ends on the others, too.
    pub fn end_given_up(&self, link: &Link, trx_id: u64) {
        link.ends.note(trx_id, true);
        self.propose_end(link, trx_id);
    }

    /// Proposes the ends of streaming transactions that could not be proposed when it was time.
    pub fn send_ends(&self, link: &Link) {
        if link.open_for_writes() {
            link.ends.unproposed().into_iter().for_each(|trx_id| self.propose_end(link, trx_id));
            link.parts.take_untold().into_iter().for_each(|stream| self.end_parts(link, stream));
        }
    }

    fn propose_end(&self, link: &Link, trx_id: u64) {
        let (header, data) = self.rollback_write_set(link, trx_id);
        if let Err(e) = link.group.propose(header.serial, data) {
            self.local.info(&format!(
                "The end of the streaming transaction {trx_id}, which was given up, could not be sent ({e}): \
                 the other nodes keep its locks until this node leaves the view"
            ));
        }
    }

    pub fn rollback_write_set(&self, link: &Link, trx_id: u64) -> (Header, Bytes) {
        let ws_flags = flags::ROLLBACK | flags::PA_UNSAFE;
        let header = self.header(link, Kind::WRITE_SET, ws_flags, trx_id, u64::MAX);
        (header, WriteSetBuilder::new().finish(&header))
    }
}
