//! A session's DDL.

use crate::calls::Node;
use crate::engine::{table_of, Owner};
use crate::oracle::Tag;
use crate::server::Server;
use quorate_certify::flags;
use simulated_node::host::Answer;
use std::sync::Arc;

/// `enter_toi_local`, the DDL, `leave_toi_local`.
pub(super) fn change_schema(server: &Arc<Server>, node: &Arc<Node>, conn: u64, tag: Tag) {
    let keys: Vec<Vec<&[u8]>> = vec![vec![b"db", table_of(tag).as_bytes()]];
    let whole = flags::TRX_START | flags::TRX_END;
    let (code, ordered) = node.begin_isolated(conn, &keys, &[&tag.to_le_bytes()], whole);
    let seqno = ordered.map_or(-1, |o| o.seqno);
    server.say(|| format!("DDL {tag:x}: {code:?}, seqno {seqno}"));
    if code != Answer::Done {
        if ordered.is_some() {
            server.engine.pass(seqno);
            end_isolation(server, node, conn, "");
        }
        return match code {
            Answer::Failed | Answer::TooLarge => server.oracle.refused(tag),
            Answer::Refused if server.was_refused() => server.oracle.refused(tag),
            _ => server.oracle.unknown(tag),
        };
    }
    let error = server.run_ddl(seqno, tag);
    server.end_ddl(seqno, error);
    end_isolation(server, node, conn, error);
    server.engine.unlock(Owner::Ordered(seqno));
    match error {
        "" => server.oracle.acknowledged(tag),
        // The error was only this server's.
        _ if server.is_withdrawn() => server.oracle.unknown(tag),
        _ => server.oracle.refused(tag),
    }
}

fn end_isolation(server: &Server, node: &Node, conn: u64, error: &str) {
    let code = node.end_isolated(conn, error.as_bytes());
    if code != Answer::Done {
        server.must_be_withdrawn(&format!("the end of DDL answers {code:?}"));
    }
}
