//! What a member is opened with.

use crate::at_rest::AtRest;
use crate::error::GroupError;
use crate::net::trust::{Operators, Security};
use quorate_consensus::placement::Pace;
use quorate_consensus::{
    Charter, KeyId, Level, MemberId, MemberRole, Rules, LEVEL, PRIORITY_DEFAULT,
};
use quorate_group::Options;
use quorate_wire::NAME_MAX;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Log directory.
    pub dir: PathBuf,
    pub group_name: String,
    /// Where to listen, `host:port`.
    pub listen: String,
    /// What others are told to connect to.
    pub advertise: String,
    /// Peers to ask for admission (and to find the group at again), `host:port`.
    pub seeds: Vec<String>,
    /// Create a new group if (and only if) the directory holds no log.
    pub bootstrap: bool,
    /// Why this member must not found a group, should it be told to: [`StartError::MustNotFound`].
    ///
    /// [`StartError::MustNotFound`]: crate::StartError::MustNotFound
    pub objection: Option<String>,
    /// Of a group that this member founds; a member that joins takes over its group's.
    pub charter: Charter,
    /// What holds first for a group that this member founds; later: [`Group::set_rules`].
    ///
    /// [`Group::set_rules`]: crate::Group::set_rules
    pub rules: Rules,
    pub name: String,
    /// Client address to show in views.
    pub incoming: String,
    /// What this node is to be in a group that does not know it yet (or that expelled it): a data
    /// member, a learner, or a logger. The node that creates a group is a data member of it.
    pub role: MemberRole,
    /// How much rather than others it should lead, 0 (never) to 100; as for `role`.
    pub priority: u8,
    /// Where it stands, for the commit rule of zones; as for `role`.
    pub zone: String,
    /// The state machine has no state yet (and none of the group's entries): should the log be
    /// empty, too, a snapshot is as good as all entries from the first on.
    pub blank: bool,
    pub election_timeout: Duration,
    /// A leader whose log disk makes no progress for so long hands over.
    pub disk_stall_timeout: Duration,
    /// A voter gone for so long is removed from the group, if the others have a majority without
    /// it; it is admitted again when it returns. Never without this.
    pub expel_timeout: Option<Duration>,
    /// Without a leader for this long the member reports that it is not primary.
    pub primary_timeout: Duration,
    /// A member silent for this long leaves the view (it stays a voter).
    pub suspect_timeout: Duration,
    pub segment_bytes: u64,
    /// So much of the log is kept for members that come back, and all that is younger than `retain_age`, if
    /// that is given.
    pub retain_bytes: u64,
    pub retain_age: Option<Duration>,
    /// As large as the log is to become, whoever may want it; `None`: four fifths of the disk that it is on, or
    /// [`LOG_SEGMENTS_MIN`] files if that is more.
    pub log_max: Option<u64>,
    /// Whom this member believes; other than [`Security::ThisHost`] where others can reach it.
    pub security: Security,
    /// Which operators this member takes; later: [`Group::set_operators`].
    ///
    /// [`Group::set_operators`]: crate::Group::set_operators
    pub operators: Operators,
    /// With what the log and its snapshots are encrypted; by default they are not.
    pub at_rest: AtRest,
    /// Longest proposal, at most 2 GiB; the same on all members of a group.
    pub proposal_bytes_max: usize,
    /// The highest feature level that this member knows (see `quorate_consensus::level`).
    pub level: Level,
}

/// The port of an address that others are told, on all addresses of its kind. A name can stand for either kind: IPv4.
pub fn everywhere(advertised: &str) -> String {
    let (host, port) = advertised.rsplit_once(':').unwrap_or((advertised, ""));
    match host.starts_with('[') || host.parse::<Ipv6Addr>().is_ok() {
        true => format!("[::]:{port}"),
        false => format!("0.0.0.0:{port}"),
    }
}

/// Files that a log may have at least ([`GroupOptions::log_max`]): two that the newest snapshots hold, the one
/// that is written, and one of what is applied. With fewer it would be full at once.
pub const LOG_SEGMENTS_MIN: u64 = 4;

impl GroupOptions {
    /// Whether the others will take what this member says of itself.
    pub(crate) fn check_names(&self) -> Result<(), GroupError> {
        let named = [
            ("the name (wsrep_node_name)", &self.name),
            ("the address (wsrep_node_address)", &self.advertise),
            ("the clients' address (wsrep_node_incoming_address)", &self.incoming),
            ("the zone (quorate.zone)", &self.zone),
        ];
        match named.into_iter().find(|(_, text)| text.len() > NAME_MAX) {
            Some((what, text)) => {
                Err(GroupError::LongName { what, bytes: text.len(), most: NAME_MAX })
            }
            None => Ok(()),
        }
    }

    /// Defaults for data members of one region: election timeout 1 s, hand-over after 1 s without
    /// progress of the disk, not primary after 2 s without a leader, out of the view after 5 s of
    /// silence, never expelled, segments of 64 MiB, at least 1 GiB of log kept, proposals up to
    /// 1 GiB.
    pub fn new(dir: impl Into<PathBuf>, group_name: &str, addr: &str) -> Self {
        Self {
            dir: dir.into(),
            group_name: group_name.to_owned(),
            listen: addr.to_owned(),
            advertise: addr.to_owned(),
            seeds: Vec::new(),
            bootstrap: false,
            objection: None,
            charter: Charter::default(),
            rules: Rules::default(),
            name: addr.to_owned(),
            incoming: String::new(),
            role: MemberRole::Voter,
            priority: PRIORITY_DEFAULT,
            zone: String::new(),
            blank: false,
            election_timeout: Duration::from_secs(1),
            disk_stall_timeout: Duration::from_secs(1),
            expel_timeout: None,
            primary_timeout: Duration::from_secs(2),
            suspect_timeout: Duration::from_secs(5),
            segment_bytes: 64 << 20,
            retain_bytes: 1 << 30,
            retain_age: None,
            log_max: None,
            security: Security::ThisHost,
            operators: Operators::default(),
            at_rest: AtRest::default(),
            proposal_bytes_max: 1 << 30,
            level: LEVEL,
        }
    }

    /// Whether there is a state that is transferred.
    pub(crate) fn has_data(&self) -> bool {
        self.role != MemberRole::Logger
    }

    /// What one record of the log and one field of a packet can hold is a little more than this.
    pub(crate) fn longest_proposal(&self) -> usize {
        const PROPOSAL_BYTES_MAX: usize = 2 << 30;
        self.proposal_bytes_max.min(PROPOSAL_BYTES_MAX)
    }

    /// What the machine is made with.
    pub(crate) fn machine(&self, seed: u64, key: KeyId) -> Options {
        let ms = |time: Duration| time.as_millis() as u64;
        Options {
            group_name: self.group_name.clone(),
            name: self.name.clone(),
            advertise: self.advertise.clone(),
            incoming: self.incoming.clone(),
            key,
            seeds: self.seeds.clone(),
            bootstrap: self.bootstrap,
            objection: self.objection.clone(),
            charter: self.charter,
            rules: self.rules,
            role: self.role,
            priority: self.priority,
            zone: self.zone.clone(),
            blank: self.blank,
            election_timeout_ms: ms(self.election_timeout),
            disk_stall_ms: ms(self.disk_stall_timeout),
            expel_ms: self.expel_timeout.map(ms),
            primary_ms: ms(self.primary_timeout),
            suspect_ms: ms(self.suspect_timeout),
            pace: Pace::default(),
            lease_reads: false,
            segment_bytes: self.segment_bytes,
            level: self.level,
            dir: self.dir.display().to_string(),
            seed,
        }
    }

    /// Longest packet accepted from a member: one proposal, or many that add up to one append.
    pub(crate) fn message_bytes_max(&self) -> usize {
        const SLACK: usize = 16 << 20;
        self.longest_proposal() + SLACK
    }
}

/// Read from the directory before anything runs: what a restarted member can start from.
#[derive(Clone, Debug)]
pub struct OpenInfo {
    pub member: MemberId,
    pub incarnation: u32,
    /// 0: belongs to no group yet.
    pub group: u128,
    /// True if the directory held no log before.
    pub fresh: bool,
    /// True if this opening made the group.
    pub founded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_listens_on_the_kind_of_address_that_it_tells_the_others() {
        for (address, listen) in [
            ("10.0.0.3:4567", "0.0.0.0:4567"),
            ("log1.lan:4000", "0.0.0.0:4000"),
            ("[2001:db8::3]:4567", "[::]:4567"),
            ("[fe80::1%eth0]:4567", "[::]:4567"),
            ("2001:db8::3:4567", "[::]:4567"),
        ] {
            assert_eq!(everywhere(address), listen, "{address}");
        }
    }
}
