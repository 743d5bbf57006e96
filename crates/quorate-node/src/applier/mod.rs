//! The applier threads: what the server hears from the group, in order.

mod arrival;
mod repeated;

use crate::blocking::Mutex;
use crate::catch_up::CatchUp;
use crate::fate::trx::{Fate, Handle, Remote};
use crate::host::{ApplyCall, HostCtx, HostView};
use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::order::queue::{Popped, Reading};
use crate::order::{Event, WriteSetEvent, DUMMY};
use crate::records::Records;
use crate::start::isolated::action;
use crate::sync;
use crate::transfer::Transfer;
use crate::views::{self, refused};
use crate::votes::Votes;
use crate::whole_data::{whole_data, Unreadable};
use crate::withdraw::{Stop, Withdrawal, LEAVE_TIMEOUT};
use bytes::Bytes;
use quorate_certify::{flags, WriteSet};
use quorate_live::View;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// What appliers are handed.
pub struct Parts {
    pub local: Arc<Local>,
    pub records: Arc<Records>,
    pub withdrawal: Arc<Withdrawal>,
    pub catch_up: Arc<CatchUp>,
    pub votes: Arc<Votes>,
    pub transfer: Arc<Transfer>,
}

/// No server takes this for events: the first one would have no length.
const NO_EVENT: Bytes = Bytes::from_static(&[0; 32]);

pub struct Appliers {
    local: Arc<Local>,
    records: Arc<Records>,
    withdrawal: Arc<Withdrawal>,
    catch_up: Arc<CatchUp>,
    votes: Arc<Votes>,
    transfer: Arc<Transfer>,
    /// The last primary view that the server was shown.
    shown: Mutex<Option<HostView>>,
}

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

impl Appliers {
    pub fn new(parts: Parts) -> Self {
        let Parts { local, records, withdrawal, catch_up, votes, transfer } = parts;
        Self { local, records, withdrawal, catch_up, votes, transfer, shown: Mutex::new(None) }
    }

    /// One applier thread's life. The server starts one first and others later.
    pub fn run(&self, ctx: HostCtx) -> ApplierEnd {
        self.local.counters.applier_threads.fetch_add(1, Ordering::AcqRel);
        let end = self.take_events(ctx);
        self.local.counters.applier_threads.fetch_sub(1, Ordering::AcqRel);
        end
    }

    fn take_events(&self, ctx: HostCtx) -> ApplierEnd {
        loop {
            let event = match self.local.queue.pop() {
                Popped::Event(event) => event,
                Popped::Read(reading) => match self.read(reading) {
                    Ok(()) => continue,
                    Err(why) => {
                        self.local.queue.leave_only_the_end();
                        self.local.error(&why);
                        return ApplierEnd::Failed;
                    }
                },
                Popped::Closed => return ApplierEnd::Done,
            };
            let Some(link) = self.local.link() else { return ApplierEnd::Failed };
            let exclusive = event.exclusive();
            let outcome = self.handle_event(ctx, &link, event);
            if outcome.is_err() {
                // Nor may others go on with what comes after it.
                self.local.queue.leave_only_the_end();
            }
            if exclusive {
                self.local.queue.finish_exclusive();
            } else {
                self.local.queue.finish_shared();
            }
            match outcome {
                Ok(false) => self.catch_up.check(&link),
                Ok(true) => {
                    let last = self.local.counters.applier_threads.load(Ordering::Acquire) <= 1;
                    if !last {
                        return ApplierEnd::Done;
                    }
                }
                Err(Stop { why, for_now }) => {
                    self.local.error(&why);
                    return if for_now { ApplierEnd::FailedForNow } else { ApplierEnd::Failed };
                }
            }
        }
    }

    /// Brings back what waits in the log only.
    fn read(&self, reading: Reading) -> Result<(), String> {
        let Some(link) = self.local.link() else { return Ok(()) };
        if self.local.state() == LocalState::Error {
            // Nothing is applied any more.
            self.local.queue.leave_only_the_end();
            return Ok(());
        }
        match link.group.read(reading.from, reading.bytes) {
            Ok(entries) => self.local.queue.fill(reading, entries),
            Err(error) if self.local.queue.not_read(reading) => {
                return Err(format!(
                    "log entry {} cannot be read back to apply it: {error}. This server ends rather than pass it over. \
                     Nothing acknowledged is lost: the other members have the entry. If the next start ends in the \
                     same way, empty {} (keep a copy) and start the node again: it rejoins as a new member by state \
                     transfer",
                    reading.from,
                    self.local.settings(|settings| settings.log_dir.clone())
                ));
            }
            Err(_) => {} // a state transfer brought it, or the connection has ended
        }
        Ok(())
    }

    /// `Ok(true)`: the server wants this thread to leave the loop.
    fn handle_event(&self, ctx: HostCtx, link: &Link, event: Event) -> Result<bool, Stop> {
        match event {
            Event::Connect => {
                if !self.introduce(ctx, link)? {
                    // What follows goes by a state that is not there: it would be waited for for ever.
                    self.local.queue.leave_only_the_end();
                }
            }
            Event::WriteSet(ws) => return Ok(self.apply_write_set(ctx, link, ws)?),
            Event::View { seqno, view, mine } => {
                self.primary_view(ctx, link, seqno, &view, mine)?
            }
            Event::NonPrimary => self.non_primary_view(ctx, link)?,
            Event::Donate { seqno, request, joiner } => {
                self.transfer.donate(ctx, link, seqno, &request, joiner)
            }
            Event::Vote { seqno } => self.votes.due(link, seqno),
            Event::Synced => self.catch_up.synced().map_err(|()| refused("being synced"))?,
            Event::Final => {
                self.final_view(ctx, link)?;
                if self.withdrawal.starts_again() {
                    let why = "This node has given up what it had not applied".into();
                    return Err(Stop { why, for_now: true });
                }
            }
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
        if self.withdrawal.in_order(self.local.apply.wait(seqno - 1)).is_none() {
            return Ok(()); // withdrawn: its last view is another
        }
        // last_committed is still below the view here, so that the server records its seqno.
        let shown = views::host_view(&self.local.config, link, seqno, view);
        self.show(ctx, &shown, "a view")?;
        if mine {
            self.records.note_view(link, view);
            let incoming: Vec<&str> = shown.members.iter().map(|m| m.incoming.as_str()).collect();
            *self.local.counters.incoming.lock() = incoming.join(",");
            *self.local.counters.view_members.lock() = view.members.iter().map(|m| m.id).collect();
            if self.local.state() == LocalState::Undefined {
                self.catch_up.say_missed_since_cut_off(seqno);
                self.local.set_state(LocalState::Joined);
            }
            self.catch_up.set_target(seqno);
        }
        self.withdrawal
            .in_order(self.local.commit.skip(seqno).and_then(|()| self.local.leave(seqno)));
        Ok(())
    }

    /// Shows the server a primary view.
    fn show(&self, ctx: HostCtx, view: &HostView, what: &str) -> Result<(), String> {
        self.local.host.view(ctx, view).map_err(|()| refused(what))?;
        *self.shown.lock() = Some(view.clone());
        Ok(())
    }

    fn non_primary_view(&self, ctx: HostCtx, link: &Link) -> Result<(), String> {
        if link.primary() || link.closing() {
            return Ok(()); // contact came back before its turn, or it ends anyway
        }
        self.local.info(match link.has_failed() {
            true => "This node is out of service until it is restarted, because of the error above. Reads may be refused, writes are; nothing acknowledged is lost",
            false => "No quorum: this node is non-Primary. Reads may be refused, writes are; nothing acknowledged is lost. It continues by itself when a majority can be reached",
        });
        let at = self.local.apply.last_left();
        let shown = views::non_primary_view(&self.local.config, link, at);
        self.local.host.view(ctx, &shown).map_err(|()| refused("a non-primary view"))?;
        self.catch_up.cut_off(self.local.apply.last_left());
        self.local.set_state(LocalState::Undefined);
        if link.primary() {
            // Contact is back, and the view that would say so may have been before this one.
            link.group.refresh_view();
        }
        Ok(())
    }

    fn final_view(&self, ctx: HostCtx, link: &Link) -> Result<(), String> {
        if self.local.state() == LocalState::Error {
            // Its data is of no use to the group, its vote is missed by nobody: out of the voters,
            // so that the others' majority is one of nodes that work.
            if let Err(e) = link.group.leave(LEAVE_TIMEOUT) {
                self.local.info(&format!("Could not take leave of the group: {e}"));
            }
        }
        // A transfer may have begun since this end was asked for. It ends with the server.
        if !link.server_stays() {
            self.local.commit.open_isolated_gate();
        }
        // A position below what is in the database would have it applied twice after a restart.
        self.local.queue.wait_for_others();
        let at = self.local.apply.last_left();
        let shown = views::final_view(&self.local.config, link, at);
        let result = self.local.host.view(ctx, &shown).map_err(|()| refused("the final view"));
        link.group.close();
        // From here on sessions note where they end; what has ended before is seen below.
        link.set_closed();
        if self.local.state() != LocalState::Error {
            self.local.set_state(LocalState::Undefined);
            self.records.note_closed(link, self.local.apply.last_left());
        }
        self.local.queue.close();
        result
    }

    fn apply_write_set(
        &self,
        ctx: HostCtx,
        link: &Link,
        event: WriteSetEvent,
    ) -> Result<bool, String> {
        let WriteSetEvent { place: event, entry } = event;
        let write_set = WriteSet::parse(entry).map_err(|e| e.to_string())?;
        let header = *write_set.header();
        let isolated = event.certified && event.flags & flags::ISOLATION != 0;
        let ends = event.flags & flags::TRX_END != 0 && event.flags & flags::ROLLBACK == 0;
        let committed = ends && !isolated && header.origin != link.node;
        let (payload, tables) = match action::split(&write_set.payload()) {
            Some(parts) if isolated => parts,
            _ => (write_set.payload(), Vec::new()),
        };
        let fate = Fate {
            seqno: event.seqno,
            depends_on: event.depends_on,
            certified: event.certified,
            flags: event.flags,
            payload,
            parts: header.parts,
            packed: header.packed,
        };
        sync::point("local_monitor_slave_enter_sync");
        sync::point("apply_monitor_slave_enter_sync");
        if self.local.apply.last_left() < event.depends_on {
            self.local.counters.apply_waits.fetch_add(1, Ordering::Relaxed);
        }
        let waited = self.local.apply.wait(event.depends_on).and_then(|()| match isolated {
            true => self.local.commit.await_isolated(event.seqno),
            false => Ok(()),
        });
        if self.withdrawal.in_order(waited).is_none() {
            return Ok(false);
        }
        let mut remote = Remote::new(event.seqno, committed);
        let data = match event.certified {
            true => whole_data(&self.local, link, header.origin, &fate),
            false => Ok(Bytes::new()),
        };
        let data = match data {
            Ok(data) => data,
            Err(Unreadable::Everywhere(why)) => {
                // The server finds an error, rolls back what there is, and asks the group as with any other.
                remote.unreadable = Some(why);
                NO_EVENT
            }
            Err(Unreadable::Here(why)) => {
                self.withdrawal.cannot_read(event.seqno, &why);
                return Ok(false);
            }
        };
        let handle = Arc::new(Handle::Remote(remote));
        let repeated = isolated && self.records.was_executed(event.seqno, &tables);
        if repeated {
            self.pass_over_ddl(ctx, link, event.seqno)?;
        } else if isolated {
            self.records.isolated_begins(event.seqno, &tables);
        }
        let call = ApplyCall {
            handle: &handle,
            trx_id: header.trx_id,
            flags: if repeated { DUMMY } else { fate.flags },
            data: if repeated { &[] } else { &data },
            meta: link.meta(&fate, header.origin, header.trx_id, header.conn_id),
        };
        let runs = self.local.state() != LocalState::Error;
        let applied = if runs { self.local.host.apply(ctx, &call) } else { Ok(false) };
        if runs && isolated && !repeated && applied.is_ok() {
            self.records.isolated_is_done(event.seqno);
        }
        let Ok(exit) = applied else {
            self.withdrawal.inconsistent(&format!(
                "the write set of seqno {} could not be applied",
                event.seqno
            ));
            return Ok(false);
        };
        if let Some(remote) = handle.remote() {
            let order = &self.local.commit;
            let passed = remote.enter_commit(order).and_then(|()| remote.leave_commit(order));
            if self.withdrawal.in_order(passed).is_none() {
                return Ok(false);
            }
        }
        sync::point("after_commit_slave_sync");
        if self.local.state() <= LocalState::Joined {
            sync::point("recv_IST_after_apply_trx");
        }
        self.withdrawal.in_order(self.local.leave(event.seqno));
        Ok(exit)
    }
}
