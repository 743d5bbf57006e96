//! Which history a group continues, and which databases are part of it.
//!
//! A group is founded on a database. Where that database stands (uuid and seqno, as Galera or an
//! earlier group left it) is the group's *genesis*: the uuid stays, and the group's first seqno is
//! the next one. So a cluster goes over from Galera, and back, as one history, and members whose
//! database stands at the genesis need no state transfer.
//!
//! Invariants:
//! - the genesis is a constant of the group (its charter: saved together with the group's id, and
//!   taken over by whoever joins), so all members give out the same seqnos;
//! - a database counts as part of the group's history only if everything up to its seqno is. The
//!   uuid alone does not say so: after a way back to another provider the same uuid and seqno may
//!   name other transactions. So each member marks `grastate.dat` with the group's id before its
//!   database takes in anything of the group; any other provider rewrites that file without the
//!   mark. A database with this group's mark is of this group. One without can be so only up to
//!   the genesis, and only if it bears the mark that the founder's database bore then.

use crate::start::grastate::{Grastate, MARK};
use crate::start::Position;
use quorate_certify::Constants;
use quorate_consensus::MemberId;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Genesis {
    pub history: u128,
    /// The last seqno before the group.
    pub seqno: i64,
    /// The mark of the founder's database, shortened; 0: none, it came from another provider.
    lineage: u64,
    /// How many of the seqnos up to `seqno` are known to be views, which change no data.
    views: i64,
}

/// What a node knows of its database when it connects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Everything up to here is the group's.
    At(i64),
    /// Nobody can tell, for this reason: the state has to come from a member.
    Unknown(String),
    /// Of the history of this uuid.
    OtherHistory(u128),
    /// The uuid is right, but what wrote it last was not this group.
    WrittenByOthers(i64),
}

impl Genesis {
    /// Of a group that is to be founded on the database of this node. None: on one without a
    /// known position; that begins a history of its own.
    pub fn of_founder(
        saved: Option<&Grastate>,
        recovered: Option<Position>,
        views: impl FnOnce(Position) -> i64,
    ) -> Option<Genesis> {
        let saved = saved.filter(|s| s.position.uuid != 0)?;
        let at = position(saved, recovered)?;
        let views = if saved.group == 0 { views(at) } else { 0 };
        Some(Genesis { history: at.uuid, seqno: at.seqno, lineage: saved.group as u64, views })
    }

    /// For the group's charter; the size of the window is not the genesis' business.
    pub fn constants(&self) -> Constants {
        let Genesis { history, seqno, lineage, .. } = *self;
        let views = u32::try_from(self.views).unwrap_or(0);
        Constants { history, seqno, lineage, views, window: 0 }
    }

    /// Of the group with this id.
    pub fn of_group(group: u128, constants: &Constants) -> Genesis {
        let Constants { history, seqno, lineage, views, .. } = *constants;
        if history == 0 {
            return Genesis { history: group, seqno: 0, lineage: 0, views: 0 };
        }
        Genesis { history, seqno, lineage, views: views.into() }
    }

    /// Where a database stands in the history of `group`, by its `grastate.dat` and what the
    /// server recovered from it.
    pub fn standing(
        &self,
        group: u128,
        saved: Option<&Grastate>,
        recovered: Option<Position>,
        start_position: &str,
    ) -> Standing {
        let Some(saved) = saved else {
            return match recovered {
                // A copy of the empty database that the group began with.
                Some(r) if r.uuid == self.history && r.seqno == 0 && self.seqno == 0 => {
                    Standing::At(0)
                }
                Some(r) if r.uuid == self.history => Standing::Unknown(format!(
                    "there is no grastate.dat, which asks for a state transfer (InnoDB itself is \
                     at seqno {}). Should it be gone on all nodes, stop them, and write it on the \
                     one with the highest seqno: four lines, 'uuid: {}', 'seqno: -1', \
                     'safe_to_bootstrap: 0', '{MARK} {group:032x}'",
                    r.seqno,
                    MemberId(self.history)
                )),
                Some(r) if r.uuid != 0 => Standing::OtherHistory(r.uuid),
                _ => Standing::Unknown("there is no grastate.dat".into()),
            };
        };
        if saved.position.uuid == 0 {
            return Standing::Unknown(
                "grastate.dat has no uuid: a state transfer or a DDL was interrupted".into(),
            );
        }
        let mut uuids = [Some(saved.position), recovered].into_iter().flatten().map(|p| p.uuid);
        if let Some(other) = uuids.find(|uuid| *uuid != 0 && *uuid != self.history) {
            return Standing::OtherHistory(other);
        }
        let Some(Position { seqno, .. }) = position(saved, recovered) else {
            return Standing::Unknown(format!(
                "the server did not stop cleanly, and was started without {start_position}"
            ));
        };
        let from_before = seqno <= self.seqno && saved.group as u64 == self.lineage;
        if saved.group != group && !from_before {
            return Standing::WrittenByOthers(seqno);
        }
        let only_views_missing = seqno.saturating_add(self.views) >= self.seqno;
        Standing::At(if only_views_missing { seqno.max(self.seqno) } else { seqno })
    }
}

impl fmt::Display for Genesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", MemberId(self.history), self.seqno)?;
        match self.views {
            0 => Ok(()),
            views => write!(f, " (the last {views} seqnos are views)"),
        }
    }
}

/// InnoDB knows best where it stands; after a clean stop the file says the same. Only together
/// with a file of the same history, as everywhere where people delete it to force a transfer: a file
/// beside a database of another history (one of the two was swapped) says nothing of it.
fn position(saved: &Grastate, recovered: Option<Position>) -> Option<Position> {
    let recovered = recovered.filter(|r| r.uuid != 0);
    if recovered.is_some_and(|r| r.uuid != saved.position.uuid) {
        return None;
    }
    recovered.into_iter().chain([saved.position]).find(|p| p.seqno >= 0)
}

impl Standing {
    /// For the line in the server's log.
    pub fn describe(&self) -> String {
        match self {
            Standing::At(seqno) => format!("This node's database is at seqno {seqno}"),
            Standing::Unknown(why) => {
                format!("This node's position in the group's history is not known: {why}")
            }
            Standing::OtherHistory(uuid) => format!(
                "This node's database is of another history ({}), not of the group's",
                MemberId(*uuid)
            ),
            Standing::WrittenByOthers(seqno) => format!(
                "This node's database is at seqno {seqno}, but was not written by this group: \
                 the same seqno may stand for something else in it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: u128 = 7 << 100;
    const GROUP: u128 = 9 << 90 | 5;

    fn saved(seqno: i64, group: u128) -> Grastate {
        let position = Position { uuid: HISTORY, seqno };
        Grastate { position, safe_to_bootstrap: true, group, gtid_domain: None }
    }

    fn founded(seqno: i64, mark: u128, views: i64) -> Genesis {
        Genesis::of_founder(Some(&saved(seqno, mark)), None, |_| views).unwrap()
    }

    #[test]
    fn a_charter_carries_it() {
        for genesis in [founded(12, 0, 2), founded(1 << 40, GROUP, 0)] {
            assert_eq!(Genesis::of_group(GROUP, &genesis.constants()), genesis);
        }
        let new = Genesis::of_group(GROUP, &Constants::default());
        assert_eq!((new.history, new.seqno), (GROUP, 0));
        assert_eq!(Genesis::of_founder(None, None, |_| 0), None);
        let crashed = saved(-1, 0);
        assert_eq!(Genesis::of_founder(Some(&crashed), None, |_| 0), None);
        let at = Some(Position { uuid: HISTORY, seqno: 3 });
        assert_eq!(Genesis::of_founder(Some(&crashed), at, |_| 0).unwrap().seqno, 3);
    }

    #[test]
    fn a_database_from_before_the_group_counts_up_to_the_genesis() {
        let genesis = founded(10, 0, 2);
        let at = |seqno| genesis.standing(GROUP, Some(&saved(seqno, 0)), None, "--position");
        assert_eq!(at(10), Standing::At(10));
        assert_eq!(at(9), Standing::At(10), "only views are missing");
        assert_eq!(at(8), Standing::At(10));
        assert_eq!(at(7), Standing::At(7));
        assert_eq!(at(11), Standing::WrittenByOthers(11));
        let marked = genesis.standing(GROUP, Some(&saved(i64::MAX, GROUP)), None, "--position");
        assert_eq!(marked, Standing::At(i64::MAX), "whatever the file says");
    }

    #[test]
    fn the_mark_tells_whose_the_rest_is() {
        let genesis = founded(10, 0, 0);
        let at =
            |seqno, mark| genesis.standing(GROUP, Some(&saved(seqno, mark)), None, "--position");
        assert_eq!(at(500, GROUP), Standing::At(500));
        let after_views =
            founded(10, 0, 2).standing(GROUP, Some(&saved(8, GROUP)), None, "--position");
        assert_eq!(after_views, Standing::At(10), "crashed before InnoDB took anything in");
        assert_eq!(at(500, 0), Standing::WrittenByOthers(500), "by Galera, meanwhile");
        assert_eq!(at(10, 3), Standing::WrittenByOthers(10), "by another group");
        let second = founded(10, 3, 0);
        let of_first = second.standing(GROUP, Some(&saved(10, 3)), None, "--position");
        assert_eq!(of_first, Standing::At(10), "founded anew on what the other group left");
    }

    #[test]
    fn a_database_of_another_history_is_no_groups_because_of_a_file_beside_it() {
        let genesis = founded(10, 0, 0);
        let swapped = Some(Position { uuid: 3, seqno: 7 });
        for file in [saved(500, GROUP), saved(10, 0), saved(-1, GROUP)] {
            let standing = genesis.standing(GROUP, Some(&file), swapped, "--position");
            assert_eq!(standing, Standing::OtherHistory(3), "{file:?}");
            assert_eq!(Genesis::of_founder(Some(&file), swapped, |_| 0), None, "{file:?}");
        }
    }

    #[test]
    fn without_the_file_or_a_position_nothing_is_known() {
        let genesis = founded(10, 0, 0);
        let recovered = Some(Position { uuid: HISTORY, seqno: 10 });
        let unknown = |s: Standing| matches!(s, Standing::Unknown(_));
        let deleted = genesis.standing(GROUP, None, recovered, "--position");
        assert!(deleted.describe().contains(&format!("'# Quorate group {GROUP:032x}'")));
        assert!(unknown(deleted));
        assert!(unknown(genesis.standing(GROUP, Some(&saved(-1, GROUP)), None, "--position")));
        let crashed = genesis.standing(GROUP, Some(&saved(-1, GROUP)), recovered, "--position");
        assert_eq!(crashed, Standing::At(10));
        let mut nil = saved(-1, 0);
        nil.position.uuid = 0;
        assert!(unknown(genesis.standing(GROUP, Some(&nil), recovered, "--position")));
        let other = Genesis::of_group(3, &Constants::default());
        let begun = Some(Position { uuid: 3, seqno: 0 });
        assert_eq!(other.standing(3, None, begun, "--position"), Standing::At(0));
        let foreign = other.standing(3, Some(&saved(10, 0)), None, "--position");
        assert_eq!(foreign, Standing::OtherHistory(HISTORY));
    }
}
