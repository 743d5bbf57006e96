//! How the whole group was, second by second, for as long as a look back is of use.

use crate::lag;
use crate::memory::Known;
use crate::verdict;
use parking_lot::Mutex;
use quorate_live::port::{MemberReport, Report};
use quorate_live::CommitLatencyReport;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;

/// Ten minutes of seconds.
pub const SAMPLES_MAX: usize = 600;
/// Samples that a slow reader may be behind; it begins anew then.
const BACKLOG: usize = 16;

/// One second. The names of the fields are those of the page that shows it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub time: u64,
    pub group: String,
    pub level: u32,
    pub term: u64,
    pub leader: Option<String>,
    pub primary_mode: String,
    /// Nothing moves leadership, or expels a member, without an order.
    pub paused: bool,
    pub nodes: Vec<Node>,
    /// Why the member beside the agent has not answered yet: until it has, nothing else is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Node {
    pub name: String,
    pub zone: String,
    pub priority: u8,
    pub votes: u8,
    /// `primary`, `replica`, `logger`, `none`, or `unknown`: it does not answer.
    pub role: &'static str,
    /// In the words of the server, or why it does not answer.
    pub state: String,
    pub seqno: Option<i64>,
    pub committed: Option<i64>,
    pub lag: Option<u64>,
    pub lag_ms: Option<u64>,
    pub queue: Option<u64>,
    pub log_bytes: Option<u64>,
    /// Since its start: from two samples follows the mean between them.
    pub syncs: Option<u64>,
    pub sync_us_avg: Option<f64>,
    /// Commits of its clients since its start, and the microseconds that they took in all.
    pub commits: Option<u64>,
    pub commit_us: Option<u64>,
}

/// Each is written as JSON once, when it is added, however many follow.
pub struct Samples {
    kept: Mutex<VecDeque<Arc<str>>>,
    news: broadcast::Sender<Arc<str>>,
}

impl Samples {
    pub fn new() -> Samples {
        Samples { kept: Mutex::default(), news: broadcast::channel(BACKLOG).0 }
    }

    pub fn add(&self, sample: &Sample) {
        let sample: Arc<str> = json!(sample).to_string().into();
        let mut kept = self.kept.lock();
        if kept.len() == SAMPLES_MAX {
            kept.pop_front();
        }
        kept.push_back(sample.clone());
        // With the lock held: who subscribes sees each sample once. Nobody may be listening.
        let _ = self.news.send(sample);
    }

    /// What there is, oldest first, and what comes after it.
    pub fn follow(&self) -> (Vec<Arc<str>>, broadcast::Receiver<Arc<str>>) {
        let kept = self.kept.lock();
        (kept.iter().cloned().collect(), self.news.subscribe())
    }
}

impl Sample {
    /// The member beside the agent has not answered yet, for this reason.
    pub fn of_silence(why: &str) -> Sample {
        Sample { time: unix_ms(), silence: Some(why.to_owned()), ..Sample::default() }
    }

    /// As `group` knows the group, and each member says of itself, by its address. `fresh` tells whether that report
    /// counts: one that is too old names no leader.
    pub fn of(group: &Report, fresh: bool, members: &BTreeMap<String, Known>) -> Sample {
        let leader = group.leading().filter(|_| fresh);
        Sample {
            time: unix_ms(),
            group: group.group_name.clone(),
            level: group.level.into(),
            term: group.term,
            leader: leader.map(|leader| leader.name.clone()),
            primary_mode: group.rules.primary_mode.clone(),
            paused: group.rules.paused,
            nodes: group
                .members
                .iter()
                .map(|member| Node::of(member, members.get(&member.address)))
                .collect(),
            silence: None,
        }
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

impl Node {
    fn of(member: &MemberReport, known: Option<&Known>) -> Node {
        let MemberReport { name, zone, priority, votes, .. } = member.clone();
        let node = Node { name, zone, priority, votes, ..Node::default() };
        // Another one may answer at its address.
        let fresh =
            known.and_then(|known| known.fresh.clone()).filter(|report| report.own.id == member.id);
        let Some(report) = fresh else {
            let silence = known.and_then(|known| known.silence.clone());
            let state = silence.unwrap_or_else(|| "not known yet".to_owned());
            return Node { role: "unknown", state, ..node };
        };
        let own = &report.own;
        let server = own.server.as_ref();
        let latency = server.and_then(|server| server.commit_latency.as_ref());
        Node {
            role: verdict::role(&report),
            state: verdict::state(&report).to_owned(),
            seqno: server.map(|server| server.seqno),
            committed: server.map(|server| server.committed),
            lag: server.map(|_| lag::write_sets(&report)),
            lag_ms: server.map(|server| server.lag_ms),
            queue: server.map(|server| server.queued),
            log_bytes: Some(own.log.bytes),
            syncs: Some(own.log.syncs),
            sync_us_avg: Some(own.log.sync_us_avg),
            commits: latency.map(|latency| latency.commit.count()),
            commit_us: latency.map(CommitLatencyReport::sum_us),
            ..node
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::verdict::tests::{report, voter};
    use serde_json::Value;
    use std::time::{Duration, Instant};

    fn member(id: &str) -> MemberReport {
        MemberReport { name: format!("node-{id}"), address: format!("{id}:4567"), ..voter(id) }
    }

    #[test]
    fn a_sample_has_each_member_as_it_says_itself_or_why_it_does_not() {
        let mut own = report(true, "multi");
        own.own.id = "a".into();
        own.members = vec![member("a"), member("b"), member("c")];
        own.leader = Some("a".into());
        let (here, gone) =
            (Memory::new(Duration::from_secs(9)), Memory::new(Duration::from_secs(9)));
        here.answered(own.clone(), Instant::now());
        gone.not_answered("connection refused".into(), true);
        let known = [("a:4567", here.known()), ("b:4567", gone.known())];
        let known = known.into_iter().map(|(address, known)| (address.to_owned(), known)).collect();
        let sample = Sample::of(&own, true, &known);
        assert_eq!(sample.leader.as_deref(), Some("node-a"));
        let told: Vec<(&str, &str)> =
            sample.nodes.iter().map(|node| (node.role, node.state.as_str())).collect();
        assert_eq!(
            told,
            [
                ("primary", "Synced"),
                ("unknown", "connection refused"),
                ("unknown", "not known yet")
            ]
        );
        assert_eq!((sample.nodes[0].lag, sample.nodes[0].lag_ms), (Some(10), Some(1500)));
        assert!(!sample.paused);
        own.rules.paused = true;
        assert!(Sample::of(&own, true, &known).paused);
        assert_eq!(Sample::of(&own, false, &known).leader, None, "it is too old");
    }

    #[test]
    fn who_follows_sees_what_is_kept_and_each_later_one_once() {
        let samples = Samples::new();
        let first = Sample::of(&report(true, "multi"), true, &BTreeMap::new());
        let add = |time| samples.add(&Sample { time, ..first.clone() });
        let time = |sample: &str| serde_json::from_str::<Value>(sample).unwrap()["time"].clone();
        (0..SAMPLES_MAX as u64 + 5).for_each(add);
        let (kept, mut news) = samples.follow();
        assert_eq!((kept.len(), time(&kept[0])), (SAMPLES_MAX, json!(5)));
        add(1000);
        assert_eq!(news.try_recv().map(|sample| time(&sample)), Ok(json!(1000)));
        assert!(news.try_recv().is_err());
    }
}
