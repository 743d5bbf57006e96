//! A streaming transaction of this process whose end gets into no log any more, and DDL that has found it open.

use super::*;

const STREAM: u64 = 7;
const DDL: i64 = 3;

#[derive(Clone, Copy, PartialEq)]
enum Ddl {
    /// Begins before the end of the transaction, and runs when that comes.
    Runs,
    RanBefore,
    Follows,
}

/// What the data directory says after all of it: whether the next start goes on from there.
fn goes_on(closes: bool, ends: bool, ddl: Ddl) -> bool {
    goes_on_beside(true, closes, ends, ddl)
}

/// Another server has a state, or not.
fn goes_on_beside(state_elsewhere: bool, closes: bool, ends: bool, ddl: Ddl) -> bool {
    let (node, data_dir) = with_data_dir("severed");
    let mut sequencer = attached(&node, 0);
    let link = node.link().unwrap();
    node.records.note_group(&link).unwrap();
    link.set_state_elsewhere(state_elsewhere);
    let own = Header::transaction(link.node, 1, 1);
    let fragment = Header { flags: flags::TRX_START, trx_id: STREAM, ..own };
    let data = WriteSetBuilder::new().finish(&fragment);
    sequencer.apply(Committed::View { index: 1, view: view_of_two() }).unwrap();
    sequencer.apply(Committed::Data { index: 2, data, primary_term: None, level: LEVEL }).unwrap();
    sequencer.apply(of_the_other(3, flags::ISOLATION)).unwrap();
    assert_eq!(link.progress.seqno(), DDL);
    assert_eq!(link.severed.met(DDL, |_| true).len(), 1);
    let run_ddl = || node.records.isolated_begins(DDL, &[]);
    if ddl != Ddl::Follows {
        run_ddl();
    }
    if ddl == Ddl::RanBefore {
        node.records.isolated_is_done(DDL);
    }
    if closes {
        link.begin_closing();
    }
    if ends {
        link.ends.note(STREAM, false);
        node.records.look_at_ends(&link);
    }
    if ddl == Ddl::Follows {
        run_ddl();
    }
    node.records.note_closed(&link, DDL);
    let saved = Grastate::read(&data_dir).unwrap().unwrap();
    drop(sequencer);
    std::fs::remove_dir_all(data_dir).unwrap();
    saved.position.uuid != 0
}

/// Others may have ended it in the place of the DDL, and written its rows; the server finds it again at its next start.
#[test]
fn a_stream_that_ends_here_while_the_node_closes_is_not_gone_on_with_behind_ddl() {
    for ddl in [Ddl::Runs, Ddl::Follows] {
        assert!(!goes_on(true, true, ddl));
        assert!(goes_on(true, false, ddl), "the next view ends it");
        assert!(goes_on(false, true, ddl), "its end is proposed as soon as there is a majority");
    }
    assert!(goes_on(true, true, Ddl::RanBefore), "it was in nobody's way");
    assert!(goes_on_beside(false, true, true, Ddl::Runs), "there is no other state");
}
