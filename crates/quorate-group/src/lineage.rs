//! Members that came back as an older state of themselves: a virtual machine's image or a backup of
//! the log directory was restored, or a second copy of it runs somewhere.
//!
//! Such a member does not remember what it acknowledged or whom it voted for, so it must not vote.
//! Two things give it away:
//! - it counts its starts, and views carry the count: whoever has seen a higher one than a member
//!   names of itself refuses the connection;
//! - it has less on disk than it acknowledged to the leader in this term (the core notices).
//!
//! It is told, stops, and leaves a mark in its directory: with each further start its count would
//! grow, until nobody could tell any more.
//!
//! What cannot be noticed: a member rolled back to a state of its present start, that acknowledged
//! nothing since to the leader of the present term; and one that comes back when nobody is left who
//! has seen the later start.

use crate::error::GroupError;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::snapshot::Content;
use crate::view::View;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_consensus::{Entry, EntryKind, MemberId};
use quorate_wal::Identity;
use quorate_wire::{PeerIdentity, Refusal, RefusalCode};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MARK_NAME: &str = "rolled-back";

/// What is known of the members' starts.
#[derive(Default)]
pub(crate) struct Lineage {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The highest count of starts that a view showed.
    starts: BTreeMap<MemberId, u32>,
    /// Those that lost what they had acknowledged.
    lost: BTreeSet<MemberId>,
}

impl Lineage {
    pub fn learn(&self, view: &View) {
        let mut state = self.state.lock();
        for member in &view.members {
            let known = state.starts.entry(member.id).or_default();
            *known = (*known).max(member.incarnation);
        }
    }

    /// It has less on disk than it had acknowledged. False if that was known.
    pub fn lost_entries(&self, member: MemberId) -> bool {
        self.state.lock().lost.insert(member)
    }

    /// Refuses a member that is an older state of itself.
    pub fn check(&self, from: &PeerIdentity) -> Result<(), Refusal> {
        let state = self.state.lock();
        let known = state.starts.get(&from.member).copied().unwrap_or_default();
        let refuse = |text: String| Err(Refusal { code: RefusalCode::RolledBack, text });
        if from.incarnation < known {
            return refuse(format!(
                "node {} (member {}) says that this is its start number {}, but the group has seen \
                 its start number {known}",
                from.name, from.member, from.incarnation
            ));
        }
        if state.lost.contains(&from.member) {
            return refuse(format!(
                "node {} (member {}) has less on disk than it had acknowledged to the leader",
                from.name, from.member
            ));
        }
        Ok(())
    }
}

/// What a directory says of starts, looked through when it is opened. One in which a view names this
/// start of the member, or a later one, is refused: the views are newer than the file that counts
/// the starts. Such a directory is marked.
pub(crate) struct Starts<'a> {
    pub own: Identity,
    pub dir: &'a Path,
    pub lineage: &'a Lineage,
}

impl Starts<'_> {
    pub fn of_log(&self, special: &[Entry]) -> Result<(), GroupError> {
        let views = special.iter().filter(|entry| entry.kind == EntryKind::View);
        views
            .filter_map(|entry| View::decode(entry.data.clone()).ok())
            .try_for_each(|v| self.of(&v))
    }

    pub fn of_snapshot(&self, content: &Bytes) -> Result<(), GroupError> {
        let content = Content::decode(content.clone());
        content.map_or(Ok(()), |content| self.of(&content.view))
    }

    fn of(&self, view: &View) -> Result<(), GroupError> {
        self.lineage.learn(view);
        let own = &self.own;
        let shown = view.members.iter().find(|member| member.id == own.member);
        let Some(shown) = shown.filter(|shown| shown.incarnation >= own.incarnation) else {
            return Ok(());
        };
        let reason = format!(
            "this is start number {} of member {}, but its log has seen start number {}",
            own.incarnation, own.member, shown.incarnation
        );
        mark(self.dir, &reason).map_err(|source| unmarked(self.dir, source))?;
        Err(GroupError::RolledBack { dir: self.dir.to_path_buf(), reason })
    }
}

/// Refuses a directory that was marked by an earlier start.
pub(crate) fn check_mark(dir: &Path) -> Result<(), GroupError> {
    match fs::read_to_string(mark_path(dir)) {
        Ok(reason) => Err(GroupError::RolledBack { dir: dir.to_path_buf(), reason }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(unmarked(dir, source)),
    }
}

impl Member {
    /// The others say that this member is an older state of itself: it stops, for good.
    pub fn rolled_back(&self, reason: &str) {
        if self.has_failed() {
            return;
        }
        let dir = &self.options.dir;
        if let Err(source) = mark(dir, reason) {
            self.log(LogLevel::Error, unmarked(dir, source).to_string());
        }
        let error = GroupError::RolledBack { dir: dir.clone(), reason: reason.to_owned() };
        let fatal = format!("node {} stops: {error}", self.options.name);
        self.with_core(|driver| self.withdraw(driver, fatal, error.to_string()));
    }
}

/// Durable when it returns.
fn mark(dir: &Path, reason: &str) -> io::Result<()> {
    let mut file = File::create(mark_path(dir))?;
    file.write_all(reason.as_bytes())?;
    file.sync_all()?;
    File::open(dir)?.sync_all()
}

fn mark_path(dir: &Path) -> PathBuf {
    dir.join(MARK_NAME)
}

fn unmarked(dir: &Path, source: io::Error) -> GroupError {
    GroupError::Mark { path: mark_path(dir), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ViewMember;
    use quorate_consensus::Charter;

    fn view(starts: &[(u128, u32)]) -> View {
        let member = |(id, incarnation): &(u128, u32)| ViewMember {
            id: MemberId(*id),
            incarnation: *incarnation,
            ..ViewMember::default()
        };
        View { number: 1, members: starts.iter().map(member).collect(), primary: None }
    }

    fn identity(id: u128, incarnation: u32) -> PeerIdentity {
        PeerIdentity {
            member: MemberId(id),
            incarnation,
            group: 7,
            charter: Charter::default(),
            group_name: "g".into(),
            name: "n".into(),
            addr: "a:1".into(),
            incoming: String::new(),
        }
    }

    #[test]
    fn only_an_older_start_or_one_with_less_on_disk_is_refused() {
        let lineage = Lineage::default();
        lineage.learn(&view(&[(1, 4), (2, 9)]));
        lineage.learn(&view(&[(1, 5)]));
        lineage.learn(&view(&[(1, 3), (2, 9)]));
        let refused = |id, start| lineage.check(&identity(id, start)).is_err();
        assert!(refused(1, 4) && !refused(1, 5) && !refused(1, 6));
        assert!(refused(2, 8) && !refused(2, 9) && !refused(3, 1));
        assert!(lineage.lost_entries(MemberId(1)) && !lineage.lost_entries(MemberId(1)));
        assert!(refused(1, 6) && !refused(2, 9));
    }
}
