//! The applier threads: what the server hears from the group, in order.

mod arrival;

use crate::blocking::Mutex;
use crate::fate::trx::{Fate, Handle, Remote, RemoteProgress};
use crate::host::{ApplyCall, HostCtx, HostView, ViewStatus};
use crate::link::Link;
use crate::node::{refused, LocalState, Node, Stop, LEAVE_TIMEOUT};
use crate::order::queue::{Event, Popped, WriteSetEvent};
use crate::session::meta;
use crate::start::isolated::action;
use crate::sync;
use quorate_certify::{flags, WriteSet};
use quorate_live::View;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Flags of a write set that only advances the position.
pub const DUMMY: u32 = flags::TRX_START | flags::TRX_END | flags::ROLLBACK;

/// How an applier thread ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApplierEnd {
    /// The connection was closed, or the server asked this thread to leave.
    Done,
    /// The server refused a callback, or the node may not go on.
    Failed,
    /// As `Failed`, and another start may well succeed.
    FailedForNow,
}

impl Node {
    /// One applier thread's life. The server starts one first and others later.
    pub fn run_applier(&self, ctx: HostCtx) -> ApplierEnd {
        self.counters.applier_threads.fetch_add(1, Ordering::AcqRel);
        let end = self.applier_loop(ctx);
        self.counters.applier_threads.fetch_sub(1, Ordering::AcqRel);
        end
    }

    fn applier_loop(&self, ctx: HostCtx) -> ApplierEnd {
        loop {
            let event = match self.queue.pop() {
                Popped::Event(event) => event,
                Popped::Closed => return ApplierEnd::Done,
            };
            let Some(link) = self.link() else { return ApplierEnd::Failed };
            let exclusive = event.exclusive();
            let outcome = self.handle_event(ctx, &link, event);
            if exclusive {
                self.queue.finish_exclusive();
            } else {
                self.queue.finish_shared();
            }
            match outcome {
                Ok(false) => self.check_synced(&link),
                Ok(true) => {
                    let last = self.counters.applier_threads.load(Ordering::Acquire) <= 1;
                    if !last {
                        return ApplierEnd::Done;
                    }
                }
                Err(Stop { why, for_now }) => {
                    self.error(&why);
                    return if for_now { ApplierEnd::FailedForNow } else { ApplierEnd::Failed };
                }
            }
        }
    }

    /// `Ok(true)`: the server wants this thread to leave the loop.
    fn handle_event(&self, ctx: HostCtx, link: &Link, event: Event) -> Result<bool, Stop> {
        match event {
            Event::Connect => self.introduce(ctx, link)?,
            Event::WriteSet(ws) => return Ok(self.apply_write_set(ctx, link, ws)?),
            Event::View { seqno, view, mine } => {
                self.primary_view(ctx, link, seqno, &view, mine)?
            }
            Event::NonPrimary => self.non_primary_view(ctx, link)?,
            Event::Donate { seqno, request, joiner } => {
                self.donate(ctx, link, seqno, &request, joiner)
            }
            Event::Vote { seqno } => self.vote_due(link, seqno),
            Event::Synced => self.synced()?,
            Event::Final => self.final_view(ctx, link)?,
        }
        Ok(false)
    }

    fn primary_view(
        &self,
        ctx: HostCtx,
        link: &Link,
        seqno: i64,
        view: &View,
        mine: bool,
    ) -> Result<(), String> {
        sync::point("process_primary_configuration");
        sync::point("local_monitor_enter_sync");
        if self.in_order(self.apply.wait(seqno - 1)).is_none() {
            return Ok(()); // withdrawn: its last view is another
        }
        // last_committed is still below the view here, so that the server records its seqno.
        let shown = self.host_view(link, seqno, view);
        self.host.view(ctx, &shown).map_err(|()| refused("a view"))?;
        if mine {
            self.record_view(link, view);
            let incoming: Vec<&str> = shown.members.iter().map(|m| m.incoming.as_str()).collect();
            *self.counters.incoming.lock() = incoming.join(",");
            *self.counters.view_members.lock() = view.members.iter().map(|m| m.id).collect();
            if self.local_state() == LocalState::Undefined {
                self.say_missed(self.counters.cut_off_at(), seqno);
                self.set_local_state(LocalState::Joined);
            }
            self.counters.set_catch_up(seqno);
        }
        self.in_order(self.commit.skip(seqno).and_then(|()| self.apply.leave(seqno)));
        Ok(())
    }

    fn non_primary_view(&self, ctx: HostCtx, link: &Link) -> Result<(), String> {
        if link.primary() || link.closing() {
            return Ok(()); // contact came back before its turn, or it ends anyway
        }
        self.info("No quorum: this node is non-Primary. Reads may be refused, writes are; nothing acknowledged is lost. It continues by itself when a majority can be reached");
        let mut shown = self.host_view(link, self.apply.last_left(), &self.reachable_view(link));
        shown.status = ViewStatus::NonPrimary;
        shown.number = -1;
        self.host.view(ctx, &shown).map_err(|()| refused("a non-primary view"))?;
        self.pause.forget_desync();
        self.counters.cut_off(self.apply.last_left());
        self.set_local_state(LocalState::Undefined);
        Ok(())
    }

    fn final_view(&self, ctx: HostCtx, link: &Link) -> Result<(), String> {
        if self.local_state() == LocalState::Error {
            // Its data is of no use to the group, its vote is missed by nobody: out of the voters,
            // so that the others' majority is one of nodes that work.
            if let Err(e) = link.group.leave(LEAVE_TIMEOUT) {
                self.info(&format!("Could not take leave of the group: {e}"));
            }
        }
        // A transfer may have begun since this end was asked for.
        self.commit.open_isolated_gate();
        // A position below what is in the database would have it applied twice after a restart.
        self.queue.wait_for_others();
        let at = self.apply.last_left();
        let shown = HostView {
            uuid: link.history.to_be_bytes(),
            seqno: at,
            number: -1,
            status: ViewStatus::Disconnected,
            my_index: -1,
            members: Vec::new(),
            proto_ver: self.config.proto_ver,
        };
        let result = self.host.view(ctx, &shown).map_err(|()| refused("the final view"));
        if self.local_state() != LocalState::Error {
            self.set_local_state(LocalState::Undefined);
            self.record_closed(link, at);
        }
        link.group.close();
        link.set_closed();
        self.queue.close();
        result
    }

    fn apply_write_set(
        &self,
        ctx: HostCtx,
        link: &Link,
        event: WriteSetEvent,
    ) -> Result<bool, String> {
        let entry = match event.entry {
            Some(entry) => entry,
            None => link.group.read(event.index).map_err(|e| {
                format!("log entry {} cannot be read back to apply it: {e}", event.index)
            })?,
        };
        let write_set = WriteSet::parse(entry).map_err(|e| e.to_string())?;
        let header = *write_set.header();
        let handle = Arc::new(Handle::Remote(Remote {
            seqno: event.seqno,
            progress: Mutex::new(RemoteProgress::Applying),
        }));
        let isolated = event.certified && event.flags & flags::ISOLATION != 0;
        let (payload, tables) = match action::split(&write_set.payload()) {
            Some(parts) if isolated => parts,
            _ => (write_set.payload(), Vec::new()),
        };
        let fate = Fate {
            seqno: event.seqno,
            depends_on: event.depends_on,
            certified: event.certified,
            flags: event.flags,
            payload: payload.clone(),
        };
        sync::point("local_monitor_slave_enter_sync");
        sync::point("apply_monitor_slave_enter_sync");
        if self.apply.last_left() < event.depends_on {
            self.counters.apply_waits.fetch_add(1, Ordering::Relaxed);
        }
        let waited = self.apply.wait(event.depends_on).and_then(|()| match isolated {
            true => self.commit.await_isolated(event.seqno),
            false => Ok(()),
        });
        if self.in_order(waited).is_none() {
            return Ok(false);
        }
        let repeated = isolated && self.isolated.was_executed(event.seqno, &tables);
        if repeated {
            self.desk.excuse(event.seqno);
            self.info(&format!("The DDL of seqno {} was executed before the restart", event.seqno));
        } else if isolated {
            self.isolated_begins(event.seqno, &tables);
        }
        let call = ApplyCall {
            handle: &handle,
            trx_id: header.trx_id,
            flags: if repeated { DUMMY } else { fate.flags },
            data: if event.certified && !repeated { &payload } else { &[] },
            meta: meta(link, &fate, header.origin, header.trx_id, header.conn_id),
        };
        let applied = if self.local_state() == LocalState::Error {
            Ok(false)
        } else {
            self.host.apply(ctx, &call)
        };
        if isolated && !repeated && applied.is_ok() {
            self.isolated_is_done(event.seqno);
        }
        let Ok(exit) = applied else {
            self.inconsistent(&format!(
                "the write set of seqno {} could not be applied",
                event.seqno
            ));
            return Ok(false);
        };
        if let Handle::Remote(remote) = &*handle {
            let passed = self.enter_remote(remote).and_then(|()| self.leave_remote(remote));
            if passed.is_none() {
                return Ok(false);
            }
        }
        sync::point("after_commit_slave_sync");
        if self.local_state() <= LocalState::Joined {
            sync::point("recv_IST_after_apply_trx");
        }
        self.in_order(self.apply.leave(event.seqno));
        Ok(exit)
    }
}
