//! Members that came back as an older state of themselves: a virtual machine's image or a backup of
//! the log directory was restored, or a second copy of it runs somewhere.
//!
//! Such a member does not remember what it acknowledged or whom it voted for, so it must not vote.
//! Two things give it away:
//! - it counts its starts, views carry the count, and it says it when it introduces itself: whoever has
//!   seen a higher one than a member names of itself refuses the connection;
//! - it has less on disk than it acknowledged to the leader in this term (the core notices).
//!
//! It is told, stops, and leaves a mark in its directory: with each further start its count would
//! grow, until nobody could tell any more.
//!
//! What cannot be noticed: a member that was started at most once since the state that it is rolled
//! back to (it counts no lower start than the others have seen), and that acknowledged nothing since to
//! the leader of the present term; and one that comes back when nobody is left who has seen the later
//! start.

use crate::error::StartError;
use crate::start::Directory;
use crate::view::View;
use quorate_consensus::{EntryKind, MemberId};
use quorate_wire::{PeerIdentity, Refusal, RefusalCode};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the members' starts.
#[derive(Default)]
pub(crate) struct Lineage {
    /// The highest count of starts that a view showed, or that a member said.
    starts: BTreeMap<MemberId, u32>,
    /// Those that lost what they had acknowledged.
    lost: BTreeSet<MemberId>,
}

impl Lineage {
    /// What a directory, and the newest snapshot in it, show.
    pub fn of(directory: &Directory, newest: Option<&View>) -> Self {
        let mut lineage = Self::default();
        views(directory).iter().chain(newest).for_each(|view| lineage.learn(view));
        lineage
    }

    pub fn learn(&mut self, view: &View) {
        for member in &view.members {
            self.heard(member.id, member.incarnation);
        }
    }

    /// It introduced itself with this count.
    pub fn heard(&mut self, member: MemberId, incarnation: u32) {
        let known = self.starts.entry(member).or_default();
        *known = (*known).max(incarnation);
    }

    /// It has less on disk than it had acknowledged. False if that was known.
    pub fn lost_entries(&mut self, member: MemberId) -> bool {
        self.lost.insert(member)
    }

    /// Refuses a member that is an older state of itself.
    pub fn check(&self, from: &PeerIdentity) -> Result<(), Refusal> {
        let known = self.starts.get(&from.member).copied().unwrap_or_default();
        let refuse = |text: String| Err(Refusal { code: RefusalCode::RolledBack, text });
        if from.incarnation < known {
            return refuse(format!(
                "node {} (member {}) says that this is its start number {}, but the group has seen \
                 its start number {known}",
                from.name, from.member, from.incarnation
            ));
        }
        if self.lost.contains(&from.member) {
            return refuse(format!(
                "node {} (member {}) has less on disk than it had acknowledged to the leader",
                from.name, from.member
            ));
        }
        Ok(())
    }
}

/// Refuses a directory in which a view names this start of the member, or a later one: the views (of
/// the log and of the `newest` snapshot) are newer than the file that counts the starts. The reason is
/// to be left in it as a mark. `dir` is for the error.
pub(crate) fn check_starts(
    directory: &Directory,
    newest: Option<&View>,
    dir: &str,
) -> Result<(), StartError> {
    let Directory { member, incarnation, .. } = *directory;
    let views = views(directory);
    let shown = views.iter().chain(newest).flat_map(|view| &view.members);
    let latest = shown.filter(|shown| shown.id == member).map(|shown| shown.incarnation).max();
    let Some(shown) = latest.filter(|shown| *shown >= incarnation) else { return Ok(()) };
    let reason = format!(
        "this is start number {incarnation} of member {member}, but its log has seen start number \
         {shown}"
    );
    Err(StartError::RolledBack { dir: dir.to_owned(), reason })
}

fn views(directory: &Directory) -> Vec<View> {
    let entries = directory.special.iter().filter(|entry| entry.kind == EntryKind::View);
    entries.filter_map(|entry| View::decode(entry.data.clone()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ViewMember;

    fn view(starts: &[(u128, u32)]) -> View {
        let member = |(id, incarnation): &(u128, u32)| ViewMember {
            id: MemberId(*id),
            incarnation: *incarnation,
            ..ViewMember::default()
        };
        View { number: 1, members: starts.iter().map(member).collect(), primary: None }
    }

    fn identity(id: u128, incarnation: u32) -> PeerIdentity {
        PeerIdentity { member: MemberId(id), incarnation, ..PeerIdentity::default() }
    }

    #[test]
    fn only_an_older_start_or_one_with_less_on_disk_is_refused() {
        let mut lineage = Lineage::default();
        lineage.learn(&view(&[(1, 4), (2, 9)]));
        lineage.learn(&view(&[(1, 5)]));
        lineage.learn(&view(&[(1, 3), (2, 9)]));
        let refused = |lineage: &Lineage, id, start| lineage.check(&identity(id, start)).is_err();
        assert!(refused(&lineage, 1, 4) && !refused(&lineage, 1, 5) && !refused(&lineage, 1, 6));
        assert!(refused(&lineage, 2, 8) && !refused(&lineage, 2, 9) && !refused(&lineage, 3, 1));
        assert!(lineage.lost_entries(MemberId(1)) && !lineage.lost_entries(MemberId(1)));
        assert!(refused(&lineage, 1, 6) && !refused(&lineage, 2, 9));
    }
}
