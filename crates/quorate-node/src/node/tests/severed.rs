//! A streaming transaction of this process whose end gets into no log any more, and DDL that has found it open.

use super::*;

const STREAM: u64 = 7;
const DDL: i64 = 3;

/// What the data directory says after all of it: whether the next start goes on from there.
fn goes_on(closes: bool, ends: bool, ddl_first: bool) -> bool {
    let (node, data_dir) = with_data_dir("severed");
    let mut sequencer = attached(&node, 0);
    let link = node.link().unwrap();
    node.records.note_group(&link).unwrap();
    let own = Header::transaction(link.node, 1, 1);
    let fragment = Header { flags: flags::TRX_START, trx_id: STREAM, ..own };
    let data = WriteSetBuilder::new().finish(&fragment);
    sequencer.apply(Committed::View { index: 1, view: view_of_two() }).unwrap();
    sequencer.apply(Committed::Data { index: 2, data, primary_term: None, level: LEVEL }).unwrap();
    sequencer.apply(of_the_other(3, flags::ISOLATION)).unwrap();
    assert_eq!(link.progress.seqno(), DDL);
    assert_eq!(link.severed.met(DDL, |_| true).len(), 1);
    let run_ddl = || node.records.isolated_begins(DDL, &[]);
    if ddl_first {
        run_ddl();
    }
    if closes {
        link.begin_closing();
    }
    if ends {
        link.ends.note(STREAM, false);
        node.records.look_at_ends(&link);
    }
    if !ddl_first {
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
    for ddl_first in [false, true] {
        assert!(!goes_on(true, true, ddl_first));
        assert!(goes_on(true, false, ddl_first), "the next view ends it");
        assert!(
            goes_on(false, true, ddl_first),
            "its end is proposed as soon as there is a majority"
        );
    }
}
