//! What clients and operators have a server do, beside transactions.

use super::Server;
use crate::baton::installed;
use crate::calls::Node;
use crate::engine::{table_of, Beside, Owner, Writes, SCHEMA, TABLE};
use crate::group::HISTORY;
use crate::oracle::{Mark, Tag};
use simulated_node::host::Answer;
use simulated_node::start::Position;

impl Server {
    /// Runs DDL in its turn; its error, if it gives one (the same on all servers). Transactions that
    /// use the table are aborted.
    pub fn run_ddl(&self, seqno: i64, tag: Tag) -> &'static str {
        if table_of(tag) == TABLE {
            for key in 0..self.load.rows {
                let abort = |holder| self.abort(seqno, holder, true);
                self.engine.lock_ordered(seqno, Owner::Ordered(seqno), key, abort);
            }
            self.end_own_by_ddl();
        }
        if tag % 4 == 0 {
            self.oracle.mark(Mark::DdlFails);
            self.oracle.fails_alike(self.number, seqno);
            return "there is no such column";
        }
        if self.corrupt.lock().contains(&SCHEMA) {
            self.has_error();
            return "the table is damaged";
        }
        self.oracle.mark(Mark::Ddl);
        if let Err(error) = self.engine.execute(seqno, tag, self.load.rows) {
            self.oracle.fail(error.to_string());
        }
        ""
    }

    /// The position of DDL is stored, whether it gave an error or not.
    pub fn end_ddl(&self, seqno: i64, error: &str) {
        self.forget_ended_by_ddl();
        match error {
            "" => self.engine.commit(seqno, &Writes::new(), Beside::Keep),
            _ => self.engine.pass_error(seqno),
        }
    }

    /// Whether a row is damaged here; sessions find theirs before that.
    pub fn cannot_write(&self, writes: &Writes) -> bool {
        let corrupt = self.corrupt.lock();
        writes.iter().any(|write| corrupt.contains(&write.key))
    }

    pub fn kill_somebody(&self) {
        let ids: Vec<u64> = self.clients.lock().keys().copied().collect();
        if !ids.is_empty() {
            self.oracle.mark(Mark::Killed);
            let id = installed().random(|rng| ids[rng.index(ids.len())]);
            self.abort_session(0, id, false);
        }
    }

    /// As long as the session is not aborted itself.
    pub fn wait_for_replayers(&self, aborted: impl Fn() -> bool) {
        let mut replaying = self.replaying.lock();
        while *replaying > 0 && !aborted() {
            self.replayed.wait(&mut replaying);
        }
    }

    /// Whoever waits in this server looks again whether it still should.
    pub fn wake_waiting(&self) {
        self.engine.wake();
        self.replayed.notify_all();
    }

    pub fn begins_to_replay(&self) {
        *self.replaying.lock() += 1;
    }

    pub fn has_replayed(&self) {
        *self.replaying.lock() -= 1;
        self.replayed.notify_all();
    }

    pub fn causal_read(&self, node: &Node) {
        match installed().random(|rng| rng.index(12)) {
            0 => return self.wait_for(node, Some(Position { uuid: HISTORY + 1, seqno: 1 })),
            1 => return self.wait_for(node, node.last_committed()),
            _ => {}
        }
        let before = self.oracle.last_acknowledged();
        if node.sync_wait(None, 2) == Answer::Done {
            self.oracle.mark(Mark::CausalRead);
            let rows = self.engine.rows();
            self.oracle.check_read(self.number, before, &rows);
        }
    }

    /// `WSREP_SYNC_WAIT_UPTO_GTID`, for what is there already, or never will be.
    fn wait_for(&self, node: &Node, upto: Option<Position>) {
        let of_this_group = upto.is_none_or(|position| position.uuid == HISTORY);
        let answer = node.sync_wait(upto, 2);
        if answer == Answer::Done && !of_this_group {
            self.oracle.fail(format!("n{} has waited for another group's seqno", self.number));
        }
    }

    /// `FLUSH TABLES WITH READ LOCK`, as a backup takes it.
    pub fn pause_for_a_while(&self, node: &Node) {
        // One at a time: the tables are locked.
        let _lock = self.backup.lock();
        self.oracle.mark(Mark::Desynced);
        node.desync();
        self.oracle.mark(Mark::Paused);
        let at = node.pause();
        if at < 0 {
            self.must_be_withdrawn("a pause failed");
            return node.resync();
        }
        let before = self.engine.position_upto(at);
        let time = installed().random(|rng| rng.millis(1, 200));
        installed().sleep(time);
        let after = self.engine.position_upto(at);
        if before != at || after != at {
            self.oracle.fail(format!(
                "n{} was paused at {at}, and its position went from {before} to {after}",
                self.number
            ));
        }
        node.resume();
        node.resync();
    }
}
