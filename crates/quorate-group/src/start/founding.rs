//! Founding a group: a configuration of one as the log's first entry, and, when that is on disk, the
//! group's id. An existing log is never touched.
//!
//! A node that lost its disk and is started like the first time must not found a second group beside
//! its own: where a seed belongs to one of this name, or somebody listens there and does not say,
//! nothing is created.

use super::directory::Directory;
use crate::error::StartError;
use crate::options::Options;
use quorate_consensus::{
    Charter, Config, Entry, EntryKind, HardState, LogPosition, MemberId, MemberInfo, MemberRole,
};
use quorate_wire::PeerIdentity;

/// What is to be done before there is a member, in the order of the fields; then
/// [`Founding::apply`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Founding {
    /// Ask these for their status first, and let [`judge_seed`] judge each answer.
    pub ask: Vec<String>,
    /// Save the term, append the entry, wait for both.
    pub write: Option<(HardState, Entry)>,
    /// Then save this.
    pub group: Option<(u128, Charter)>,
    pub line: Option<String>,
}

/// What came of asking a seed how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedAnswer {
    Found(PeerIdentity),
    /// That address is this member's own, under another name.
    Itself,
    /// Nobody listens there, or no such host answers.
    Nobody,
    /// Somebody listens, and does not say which group it belongs to.
    Unclear {
        reason: String,
    },
}

/// Whether to found a group. `id` is random bits for its id.
pub(crate) fn founding(
    options: &Options,
    directory: &Directory,
    id: u128,
) -> Result<Founding, StartError> {
    let half = is_half_founded(directory);
    if !options.bootstrap && !half {
        return Ok(Founding::default());
    }
    if directory.group != 0 || (directory.last.index > 0 && !half) {
        let line = format!(
            "log {} belongs to group {:032x}: no other is created, the node returns to its group \
             (a bootstrap is not needed after an outage)",
            options.dir, directory.group
        );
        return Ok(Founding { line: Some(line), ..Founding::default() });
    }
    let id = id.max(1);
    let group = Some((id, options.charter));
    let line = Some(format!("created group {id:032x}"));
    if half {
        return Ok(Founding { group, line, ..Founding::default() });
    }
    if let Some(reason) = options.objection.clone() {
        return Err(StartError::MustNotFound { reason });
    }
    let ask = options.seeds.iter().filter(|addr| **addr != options.advertise).cloned().collect();
    let write = Some(first_entry(options, directory.member));
    Ok(Founding { ask, write, group, line })
}

/// Whether the group may be founded in spite of what was found at `addr`.
pub(crate) fn judge_seed(
    options: &Options,
    own: MemberId,
    addr: &str,
    answer: SeedAnswer,
) -> Result<(), StartError> {
    match answer {
        SeedAnswer::Found(found)
            if found.member != own
                && found.group != 0
                && found.group_name == options.group_name =>
        {
            Err(StartError::GroupExists {
                node: options.name.clone(),
                addr: addr.to_owned(),
                group_name: found.group_name,
                group: found.group,
            })
        }
        SeedAnswer::Unclear { reason } => {
            let (node, addr) = (options.name.clone(), addr.to_owned());
            Err(StartError::SeedUnclear { node, addr, reason })
        }
        _ => Ok(()),
    }
}

impl Founding {
    /// After it was carried out: what the directory says then.
    pub fn apply(&self, directory: &mut Directory) {
        if let Some((state, entry)) = &self.write {
            directory.hard_state = *state;
            directory.last = entry.position();
            directory.term_runs = vec![(entry.index, entry.term)];
            directory.special = vec![entry.clone()];
        }
        if let Some((group, charter)) = self.group {
            (directory.group, directory.charter) = (group, charter);
        }
    }
}

fn first_entry(options: &Options, own: MemberId) -> (HardState, Entry) {
    let info = MemberInfo {
        priority: options.priority,
        key: options.key.noted_at(options.level),
        zone: options.zone.clone(),
        ..MemberInfo::new(MemberRole::Voter, &options.advertise, &options.name)
    };
    let config = Config {
        members: [(own, info)].into(),
        rules: options.rules,
        level: options.level,
        ..Config::default()
    };
    let entry = Entry::new(1, 1, EntryKind::Config, config.encode());
    (HardState { term: 1, voted_for: Some(own) }, entry)
}

/// A crash between the two steps: nobody else can have heard of this group.
fn is_half_founded(directory: &Directory) -> bool {
    let first = directory.special.first();
    let config = first.and_then(|entry| Config::decode(&entry.data).ok());
    directory.group == 0
        && directory.last == LogPosition { term: 1, index: 1 }
        && config.is_some_and(|config| config.is_voter(directory.member))
}
