//! A look at a member.

use quorate_consensus::{Config, Index, Level, MemberId, MemberInfo, Term};
use quorate_wire::Standing;

/// What the log says of itself.
#[derive(Clone, Debug, Default)]
pub struct LogFigures {
    pub bytes: u64,
    /// How many there may be; `None`: as many as the disk takes.
    pub max: Option<u64>,
    pub first_index: Index,
    pub syncs: u64,
    pub sync_us_avg: f64,
    pub sync_us_deviation: f64,
    pub sync_us_min: u64,
    pub sync_us_max: u64,
    pub warning: Option<String>,
}

/// What this member knows of another one's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerLook {
    pub id: MemberId,
    /// There is a connection, in one direction at least.
    pub connected: bool,
    /// The lowest and the highest feature level that it knows, if it has ever been connected.
    pub levels: Option<(Level, Level)>,
    /// Client address, as it said.
    pub incoming: String,
    /// Leader only: so much of the log it is known to have.
    pub matched: Option<Index>,
    /// Leader only: a snapshot is on its way there.
    pub snapshotting: bool,
    /// How its server stands, as it last said.
    pub standing: Option<Standing>,
}

#[derive(Clone, Debug, Default)]
pub struct GroupStatus {
    pub member: MemberId,
    pub leader: Option<MemberId>,
    pub is_leader: bool,
    pub term: Term,
    pub last_index: Index,
    pub persisted_index: Index,
    pub commit_index: Index,
    pub applied_index: Index,
    /// All that vote, loggers too.
    pub voters: Vec<MemberId>,
    /// All that do not (yet).
    pub learners: Vec<MemberId>,
    pub loggers: Vec<MemberId>,
    /// The membership as this member knows it, with roles, priorities, zones and rules.
    pub config: Config,
    /// The feature level of what is committed: that of `config` may yet be given up for a former one.
    pub level: Level,
    /// The others, as far as they were ever heard of.
    pub peers: Vec<PeerLook>,
    pub log_bytes: u64,
    /// See [`LogFigures::max`].
    pub log_max: Option<u64>,
    pub first_index: Index,
    pub syncs: u64,
    pub sync_us_avg: f64,
    pub sync_us_deviation: f64,
    pub sync_us_min: u64,
    pub sync_us_max: u64,
    pub primary: bool,
    pub proposals_pending: usize,
    /// The most that there were at once, and the mean number that another one found when it came.
    pub proposals_pending_max: usize,
    pub proposals_pending_avg: f64,
    /// Number of the newest view the state machine was shown.
    pub view_number: u64,
    /// What other members said that did not count: how often, by kind.
    pub rejected: Vec<(&'static str, u64)>,
    /// Somebody whose word does not count here says that this member is an older state of itself: what that
    /// means, and what to do.
    pub disputed: Option<String>,
    /// What is wrong with the log's disk but not (yet) in the way.
    pub log_warning: Option<String>,
}

impl GroupStatus {
    /// `KIND=COUNT` of what did not count, with commas between.
    pub fn rejections(&self) -> String {
        let kinds = self.rejected.iter().map(|(kind, count)| format!("{kind}={count}"));
        kinds.collect::<Vec<_>>().join(",")
    }

    /// Who leads, if that is another member: it carries out what this one cannot.
    pub fn leads_elsewhere(&self) -> Option<&MemberInfo> {
        self.leader.filter(|_| !self.is_leader).and_then(|leader| self.config.members.get(&leader))
    }

    /// Names and values, as `quorate status` asks them over the group port.
    pub fn lines(&self) -> Vec<(String, String)> {
        let ids =
            |ids: &[MemberId]| ids.iter().map(MemberId::to_string).collect::<Vec<_>>().join(",");
        let leader = self.leader.map(|id| id.to_string()).unwrap_or_default();
        let lines = [
            ("member", self.member.to_string()),
            ("leader", leader),
            ("is_leader", self.is_leader.to_string()),
            ("term", self.term.to_string()),
            ("first_index", self.first_index.to_string()),
            ("last_index", self.last_index.to_string()),
            ("persisted_index", self.persisted_index.to_string()),
            ("commit_index", self.commit_index.to_string()),
            ("applied_index", self.applied_index.to_string()),
            ("view_number", self.view_number.to_string()),
            ("voters", ids(&self.voters)),
            ("learners", ids(&self.learners)),
            ("loggers", ids(&self.loggers)),
            ("level", self.config.level.to_string()),
            ("primary", self.primary.to_string()),
            ("proposals_pending", self.proposals_pending.to_string()),
            ("rejected", self.rejections()),
            ("log_bytes", self.log_bytes.to_string()),
            ("log_max", self.log_max.map(|max| max.to_string()).unwrap_or_default()),
            ("syncs", self.syncs.to_string()),
            ("sync_us_avg", format!("{:.1}", self.sync_us_avg)),
            ("sync_us_max", self.sync_us_max.to_string()),
            ("disputed", self.disputed.clone().unwrap_or_default()),
            ("log_warning", self.log_warning.clone().unwrap_or_default()),
        ];
        lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
