//! The server, as the node sees it.

use super::{Server, REPLAYERS};
use crate::engine::{decode, Owner, Writes};
use crate::oracle::{Mark, Tag};
use quorate_certify::flags;
use simulated_node::host::{Answer, Level, ViewStatus};
use simulated_node::host::{ApplyCall, Host, HostCtx, HostView};
use simulated_node::node::{LocalState, Node};
use std::sync::atomic::Ordering;
use std::sync::Arc;

pub(super) struct Callbacks(pub(super) Arc<Server>);

impl Callbacks {
    fn enter(&self, call: &ApplyCall<'_>) -> Option<Arc<Node>> {
        let node = self.0.node()?;
        let code = node.commit_order_enter(call.handle);
        if code != Answer::Done {
            self.0.must_be_withdrawn(&format!("commit_order_enter of an applier answers {code:?}"));
            return None;
        }
        Some(node)
    }

    fn leave(&self, node: &Node, call: &ApplyCall<'_>) {
        let code = node.commit_order_leave(call.handle, &[]);
        if code != Answer::Done {
            self.0.must_be_withdrawn(&format!("commit_order_leave of an applier answers {code:?}"));
        }
    }

    fn apply_rows(&self, call: &ApplyCall<'_>, writes: &Writes) -> Result<(), ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        for write in writes {
            server.engine.lock_ordered(seqno, write.key, |id| server.abort(seqno, id));
        }
        let node = self.enter(call).ok_or(())?;
        server.engine.commit(seqno, writes);
        self.leave(&node, call);
        server.engine.unlock(Owner::Ordered(seqno));
        Ok(())
    }
}

impl Callbacks {
    fn apply_ddl(&self, call: &ApplyCall<'_>) -> Result<(), ()> {
        let server = &self.0;
        let seqno = call.meta.seqno;
        let tag = Tag::from_le_bytes(call.data.try_into().map_err(|_| ())?);
        let node = self.enter(call).ok_or(())?;
        let error = server.run_ddl(seqno, tag);
        server.engine.commit(seqno, &Writes::new());
        let code = node.commit_order_leave(call.handle, error.as_bytes());
        server.engine.unlock(Owner::Ordered(seqno));
        if code == Answer::Done {
            return Ok(());
        }
        // It could not ask the others before it had to stop, or it is on its way out.
        if !server.is_shutting_down() && !server.is_harmed() {
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
        let is_justified = self.0.is_shutting_down() || joins || self.0.is_harmed();
        if level == Level::Error && !is_justified {
            self.0.oracle.fail(format!("n{} logs an error: {message}", self.0.number));
        }
        self.0.say(|| format!("log: {message}"));
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
                if view.seqno > server.engine.position() {
                    server.engine.commit(view.seqno, &Writes::new());
                }
            }
            ViewStatus::NonPrimary => {
                server.oracle.mark(Mark::NonPrimarySeen);
                server.non_primary.store(true, Ordering::Release);
            }
            _ => {}
        }
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
        if call.flags & flags::ROLLBACK != 0 {
            server.oracle.mark(Mark::Dummy);
            let node = self.enter(call).ok_or(())?;
            server.engine.commit(seqno, &Writes::new());
            self.leave(&node, call);
            return Ok(false);
        }
        server.oracle.mark(Mark::Applied);
        let writes = decode(call.data).ok_or(())?;
        self.apply_rows(call, &writes)?;
        Ok(false)
    }
}
