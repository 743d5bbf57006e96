//! The server, as the node sees it.

use super::streams::members_of;
use super::{Server, REPLAYERS};
use crate::calls::Node;
use crate::engine::{decode, Beside, Owner, Writes};
use crate::oracle::{Mark, Tag};
use crate::plant::Plant;
use quorate_certify::flags;
use simulated_node::host::{Answer, Level, ViewStatus};
use simulated_node::host::{ApplyCall, Host, HostCtx, HostView};
use simulated_node::node::LocalState;
use std::sync::atomic::Ordering;
use std::sync::Arc;

pub(super) struct Callbacks(pub(super) Arc<Server>);

impl Callbacks {
    pub(super) fn enter(&self, call: &ApplyCall<'_>) -> Option<Arc<Node>> {
        let node = self.0.node()?;
        let gone = node.local_state() == LocalState::Error;
        let code = node.commit_order_enter(call.handle);
        if gone && code == Answer::Done {
            self.0.oracle.fail(format!("n{} is withdrawn, and passes on", self.0.number));
        }
        if code != Answer::Done {
            self.0.must_be_withdrawn(&format!("commit_order_enter of an applier answers {code:?}"));
            return None;
        }
        Some(node)
    }

    pub(super) fn leave(&self, node: &Node, call: &ApplyCall<'_>) {
        let code = node.commit_order_leave(call.handle, &[]);
        if code != Answer::Done {
            self.0.must_be_withdrawn(&format!("commit_order_leave of an applier answers {code:?}"));
        }
    }

    fn apply_rows(&self, call: &ApplyCall<'_>, writes: &Writes) -> Result<(), ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        for write in writes {
            let abort = |holder| server.abort(seqno, holder, false);
            server.engine.lock_ordered(seqno, Owner::Ordered(seqno), write.key, abort);
        }
        let node = self.enter(call).ok_or(())?;
        if server.cannot_write(writes) {
            server.has_error();
            server.engine.pass_error(seqno);
            let swallowed = server.plant == Some(Plant::ErrorSwallowed);
            let error: &[u8] = if swallowed { b"" } else { b"the row is damaged" };
            let code = node.commit_order_leave(call.handle, error);
            server.engine.unlock(Owner::Ordered(seqno));
            return self.agrees(code, seqno);
        }
        server.engine.commit(seqno, writes, Beside::Keep);
        self.leave(&node, call);
        server.engine.unlock(Owner::Ordered(seqno));
        Ok(())
    }
}

impl Callbacks {
    /// Only the position advances.
    pub(super) fn pass(&self, call: &ApplyCall<'_>) -> Result<(), ()> {
        self.0.oracle.mark(Mark::Dummy);
        let node = self.enter(call).ok_or(())?;
        self.0.engine.commit(call.meta.seqno, &Writes::new(), Beside::Keep);
        self.leave(&node, call);
        Ok(())
    }

    fn apply_ddl(&self, call: &ApplyCall<'_>) -> Result<(), ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        let tag = Tag::from_le_bytes(call.data.try_into().map_err(|_| ())?);
        let node = self.enter(call).ok_or(())?;
        let error = server.run_ddl(seqno, tag);
        server.end_ddl(seqno, error);
        let code = node.commit_order_leave(call.handle, error.as_bytes());
        server.engine.unlock(Owner::Ordered(seqno));
        self.agrees(code, seqno)
    }

    /// What the group says of an error here.
    fn agrees(&self, code: Answer, seqno: i64) -> Result<(), ()> {
        let server = &self.0;
        if code == Answer::Done {
            return Ok(());
        }
        // It could not ask the others before it had to stop, or it is on its way out.
        if !server.is_leaving() && !server.is_harmed() {
            server.oracle.fail(format!("a node is outvoted with the error of all, at {seqno}"));
        }
        Err(())
    }
}

impl Host for Callbacks {
    fn log(&self, level: Level, message: &str) {
        // A server that is stopped while others are away may have to say that it could not ask them, and
        // one without a state that it cannot have it.
        let joins = self.0.node().is_some_and(|node| node.local_state() == LocalState::Joiner);
        let leaves = self.0.is_leaving() || message.starts_with("quorate.exit_action");
        if message.starts_with("DDL ran right before this node stopped") {
            self.0.oracle.mark(Mark::FetchesForStreams);
        }
        let is_justified = leaves || joins || self.0.is_harmed();
        if level == Level::Error && !is_justified {
            self.0.oracle.fail(format!("n{} logs an error: {message}", self.0.number));
        }
        self.0.say(|| format!("log: {message}"));
        if message.starts_with("quorate.exit_action") {
            self.0.acts_on_its_loss();
        }
        if message.contains("The node leaves the group") {
            self.0.is_withdrawn_once();
        }
    }

    fn connected(&self, view: &HostView) -> Result<(), ()> {
        self.0.oracle.mark(Mark::Connected);
        if view.my_index < 0 {
            self.0.oracle.fail("the server is connected by a view without itself");
        }
        Ok(())
    }

    fn view(&self, _ctx: HostCtx, view: &HostView) -> Result<(), ()> {
        let server = &self.0;
        server.say(|| {
            let members: Vec<&str> = view.members.iter().map(|m| m.name.as_str()).collect();
            format!("view at {}, status {:?}: {members:?}", view.seqno, view.status)
        });
        match view.status {
            ViewStatus::Primary => {
                server.oracle.mark(Mark::ViewSeen);
                server.non_primary.store(false, Ordering::Release);
                self.settle_streams(view);
                server.engine.store_view(view.seqno, members_of(view));
            }
            ViewStatus::NonPrimary => {
                server.oracle.mark(Mark::NonPrimarySeen);
                server.non_primary.store(true, Ordering::Release);
            }
            ViewStatus::Disconnected => {
                server.is_disconnected();
                self.close_streams();
            }
        }
        server.streams.seen(view);
        Ok(())
    }

    fn state_request(&self) -> Result<Vec<u8>, ()> {
        self.0.begin_reception()
    }

    fn donate(&self, _: HostCtx, request: &[u8], _: [u8; 16], _: i64, _: bool) -> Result<(), ()> {
        self.0.begin_donation(request)
    }

    fn synced(&self) -> Result<(), ()> {
        self.0.oracle.mark(Mark::Synced);
        self.0.send_ends();
        Ok(())
    }

    fn apply(&self, ctx: HostCtx, call: &ApplyCall<'_>) -> Result<bool, ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        server.say(|| {
            let who = if ctx.0 >= REPLAYERS { "a session replays" } else { "applies" };
            format!("{who} {seqno}, flags {:x}, depends on {}", call.flags, call.meta.depends_on)
        });
        if call.flags & flags::ISOLATION != 0 {
            return self.apply_ddl(call).map(|()| false);
        }
        let is = |flag| call.flags & flag != 0;
        match (is(flags::ROLLBACK), is(flags::TRX_START), is(flags::TRX_END)) {
            (true, true, _) => self.pass(call)?,
            (true, false, _) => self.roll_back_stream(call)?,
            (false, true, true) => {
                server.oracle.mark(Mark::Applied);
                let writes = decode(call.data).ok_or(())?;
                self.apply_rows(call, &writes)?;
            }
            (false, first, false) => self.apply_fragment(call, first)?,
            (false, false, true) => self.commit_stream(call, ctx.0 >= REPLAYERS)?,
        }
        Ok(false)
    }

    fn refuse(&self, text: &str) {
        self.0.is_refused(text);
    }

    fn shut_down(&self) {
        self.0.shall_stop();
    }

    fn read_only(&self) -> Option<bool> {
        Some(self.0.is_read_only())
    }

    fn set_read_only(&self, on: bool) {
        self.0.set_read_only(on);
    }

    fn wake_waiters(&self) {
        self.0.streams.wake();
    }
}
