//! The thread that asks all members once a second, and makes samples of what they say.
//!
//! Invariant: what is said of the group as a whole (who leads, its term, members and rules) is what the member says that
//! knows it best, of those whose reports count. If none counts, nobody is said to lead. Until the member beside the
//! agent has answered once, it is said why it has not, and nothing else.

use crate::memory::{Known, Memory};
use crate::samples::{Sample, Samples};
use crate::watch::{Asks, Watch};
use quorate_live::port::{Operating, Report};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);
/// A member that is asked once a second, and may take a while, is known for so long.
const STALE: Duration = Duration::from_millis(2500);

/// Starts it. It ends with the process.
pub fn start(own: Arc<Memory>, operating: Arc<Operating>, samples: Arc<Samples>) -> io::Result<()> {
    let survey = Survey { own, operating, samples, others: BTreeMap::new(), group: None };
    thread::Builder::new().name("survey".to_owned()).spawn(move || survey.run()).map(drop)
}

struct Survey {
    own: Arc<Memory>,
    operating: Arc<Operating>,
    samples: Arc<Samples>,
    /// By address, as long as they are members.
    others: BTreeMap<String, (Watch, Arc<Memory>)>,
    /// As the one that knew it best said, when somebody was last known. However old: it says whom to ask.
    group: Option<Arc<Report>>,
}

impl Survey {
    fn run(mut self) {
        loop {
            let began = Instant::now();
            self.look();
            thread::sleep(INTERVAL.saturating_sub(began.elapsed()));
        }
    }

    fn look(&mut self) {
        let own = self.own.known();
        // Which group it is, and which member of it is this one, only that one can say.
        let Some((last, _)) = &own.last else {
            // Without a reason, it is being asked for the first time.
            if let Some(why) = &own.silence {
                self.samples.add(&Sample::of_silence(why));
            }
            return;
        };
        let mut known: BTreeMap<String, Known> =
            self.others.iter().map(|(at, (_, memory))| (at.clone(), memory.known())).collect();
        let best = best(&last.group, known.values().chain([&own]));
        let fresh = best.is_some();
        let former = self.group.take().filter(|former| former.group == last.group);
        let group = best.or(former).unwrap_or_else(|| last.clone());
        let is_own = |id: &str| id == last.own.id;
        let others = group.members.iter().filter(|member| !is_own(&member.id));
        self.watch(others.map(|member| member.address.as_str()));
        if let Some(here) = group.members.iter().find(|member| is_own(&member.id)) {
            known.insert(here.address.clone(), own.clone());
        }
        self.samples.add(&Sample::of(&group, fresh, &known));
        self.group = Some(group);
    }

    /// Asks these from now on, and no others.
    fn watch<'a>(&mut self, addresses: impl Iterator<Item = &'a str> + Clone) {
        self.others.retain(|known, _| addresses.clone().any(|address| address == known));
        for address in addresses {
            if self.others.contains_key(address) {
                continue;
            }
            let memory = Arc::new(Memory::new(STALE));
            let started = Watch::start(
                address,
                INTERVAL,
                self.operating.clone(),
                memory.clone(),
                Asks::Status,
            );
            // Without a thread for it, it is not known, and the next second tries again.
            if let Ok(watch) = started {
                self.others.insert(address.to_owned(), (watch, memory));
            }
        }
    }
}

/// Who is in the newest term, leads there, and has most of the log knows the group best, of those of this group whose
/// reports count.
fn best<'a>(group: &str, known: impl Iterator<Item = &'a Known>) -> Option<Arc<Report>> {
    let fresh = known.filter_map(|known| known.fresh.clone());
    // Another group's member may answer at an address by now.
    let ours = fresh.filter(|report| report.group == group);
    ours.max_by_key(|report| (report.term, report.own.leads, report.own.commit_index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{report, voter};
    use quorate_live::port::MemberReport;
    use quorate_live::OperatorIdentity;
    use serde_json::Value;

    /// Nobody listens there.
    fn address(id: &str) -> String {
        format!("127.0.0.{}:1", id.as_bytes()[0])
    }

    fn member(id: &str) -> MemberReport {
        let (name, address) = (format!("node-{id}"), address(id));
        MemberReport { name, address, ..voter(id) }
    }

    /// As this member of a, b and c says it.
    fn said(by: &str, term: u64, leader: Option<&str>) -> Report {
        let mut report = report(leader == Some(by), "single");
        (report.group, report.term) = ("g".into(), term);
        (report.own.id, report.leader) = (by.into(), leader.map(str::to_owned));
        report.members = vec![member("a"), member("b"), member("c")];
        report
    }

    fn known(report: Report) -> Known {
        let memory = Memory::new(Duration::from_secs(60));
        memory.answered(report, Instant::now());
        memory.known()
    }

    fn leader(group: &str, known: &[Known]) -> Option<String> {
        best(group, known.iter()).and_then(|report| report.leader.clone())
    }

    #[test]
    fn who_leads_says_whoever_knows_the_group_best_of_those_that_count() {
        // Cut off from the others, and asked by an agent that is not.
        let cut_off = known(said("a", 4, None));
        let leads = known(said("b", 4, Some("b")));
        let behind = known(said("c", 3, Some("a")));
        let all = [cut_off, leads, behind];
        assert_eq!(leader("g", &all).as_deref(), Some("b"));
        assert_eq!(leader("another", &all), None);
        let old = Known { fresh: None, ..all[1].clone() };
        assert_eq!(leader("g", &[old]), None);
    }

    /// Of `a`'s agent. What b and c say is given by the test: whoever asks them notes it elsewhere.
    fn survey(own: Memory) -> Survey {
        let operating = Arc::new(Operating::new(&OperatorIdentity::Anonymous).unwrap());
        let memory = || Arc::new(Memory::new(Duration::from_secs(60)));
        let others = ["b", "c"].map(|id| {
            let elsewhere = (operating.clone(), memory());
            let watch =
                Watch::start(&address(id), INTERVAL, elsewhere.0, elsewhere.1, Asks::Status);
            (address(id), (watch.unwrap(), memory()))
        });
        let (own, samples) = (Arc::new(own), Arc::new(Samples::new()));
        Survey { own, operating, samples, others: others.into(), group: None }
    }

    fn last_sample(survey: &Survey) -> Value {
        let (kept, _) = survey.samples.follow();
        serde_json::from_str(kept.last().unwrap()).unwrap()
    }

    #[test]
    fn why_a_member_has_not_answered_yet_is_said_until_it_has() {
        let mut survey = survey(Memory::new(Duration::from_secs(60)));
        survey.look();
        assert!(survey.samples.follow().0.is_empty(), "it is being asked");
        survey.own.not_answered("connection refused".into(), true);
        survey.look();
        let sample = last_sample(&survey);
        assert_eq!(sample["silence"], "connection refused");
        assert_eq!(sample["nodes"].as_array().map(Vec::len), Some(0), "{sample}");
        survey.own.answered(said("a", 4, Some("a")), Instant::now());
        survey.look();
        let sample = last_sample(&survey);
        assert!(sample.get("silence").is_none() && sample["leader"] == "node-a", "{sample}");
    }

    #[test]
    fn a_leader_that_is_dead_does_not_lead_on_the_console_of_its_own_agent() {
        let own = Memory::new(Duration::from_secs(60));
        own.answered(said("a", 4, Some("a")), Instant::now());
        let mut survey = survey(own);
        survey.look();
        assert_eq!(last_sample(&survey)["leader"], "node-a");

        survey.own.not_answered("connection refused".into(), true);
        survey.look();
        let sample = last_sample(&survey);
        assert_eq!((&sample["leader"], &sample["term"]), (&Value::Null, &4.into()), "{sample}");

        // Another one is elected, and one joins.
        let mut news = said("b", 5, Some("b"));
        news.members.push(member("d"));
        survey.others[&address("b")].1.answered(news, Instant::now());
        survey.look();
        let sample = last_sample(&survey);
        assert_eq!((&sample["leader"], &sample["term"]), (&"node-b".into(), &5.into()), "{sample}");
        let nodes = sample["nodes"].as_array().unwrap();
        let roles: Vec<&str> = nodes.iter().map(|node| node["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["unknown", "primary", "unknown", "unknown"]);
        assert!(survey.others.contains_key(&address("d")), "it is asked from now on");

        // Nobody is known any more: its members are, and whom to ask.
        survey.others[&address("b")].1.not_answered("connection refused".into(), true);
        survey.look();
        let sample = last_sample(&survey);
        assert_eq!((&sample["leader"], &sample["term"]), (&Value::Null, &5.into()), "{sample}");
        assert_eq!(sample["nodes"].as_array().unwrap().len(), 4);
    }
}
