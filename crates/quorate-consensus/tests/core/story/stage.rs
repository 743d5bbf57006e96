//! The stage of a scenario: members, links, and time.

use crate::support::{described, Member};
use quorate_consensus::{
    Config, Event, LogPosition, MemberId, MemberRole, Message, MessageBody, Options, RoleState,
    SnapshotMeta, Status, StepError,
};
use std::collections::{BTreeMap, BTreeSet};

type Outcome = Result<(), String>;
type Link = (MemberId, MemberId);

#[derive(Default)]
pub struct Stage {
    names: BTreeMap<String, MemberId>,
    founding: Config,
    spares: BTreeSet<MemberId>,
    tweaks: Vec<(String, String)>,
    members: BTreeMap<MemberId, Member>,
    now_ms: u64,
    flight: Vec<Message>,
    cut: BTreeSet<Link>,
    held: BTreeSet<Link>,
    slow: BTreeSet<MemberId>,
}

impl Stage {
    pub fn found(&mut self, members: &[&str]) -> Outcome {
        self.founding.level = quorate_consensus::LEVEL;
        for words in members {
            let (name, info) = described(words)?;
            let id = self.name(name);
            self.founding.members.insert(id, info);
        }
        Ok(())
    }

    pub fn add_spares(&mut self, names: &[&str]) {
        for name in names {
            let id = self.name(name);
            self.spares.insert(id);
        }
    }

    pub fn set_option(&mut self, name: &str, value: &str) -> Outcome {
        self.tweaks.push((name.into(), value.into()));
        tweaked(Options::new(MemberId(0), 0), &self.tweaks).map(|_| ())
    }

    pub fn id(&self, name: &str) -> Result<MemberId, String> {
        self.names.get(name).copied().ok_or_else(|| format!("nobody is called {name}"))
    }

    pub fn link(&self, link: &str) -> Result<Link, String> {
        let (from, to) = link.split_once("->").ok_or(format!("a->b expected, not {link}"))?;
        Ok((self.id(from)?, self.id(to)?))
    }

    pub fn feed(&mut self, id: MemberId, event: Event) -> Result<(), StepError> {
        self.start_all();
        let now_ms = self.now_ms;
        let Some(member) = self.members.get_mut(&id) else {
            return Ok(());
        };
        let outcome = member.step(now_ms, event);
        self.flight.append(&mut member.outbox);
        outcome
    }

    /// Everything that needs no time happens.
    pub fn settle(&mut self) -> Outcome {
        self.start_all();
        for _ in 0..1000 {
            let mut busy = false;
            for message in std::mem::take(&mut self.flight) {
                let link = (message.from, message.to);
                if self.held.contains(&link) {
                    self.flight.push(message);
                } else if !self.cut.contains(&link) {
                    busy = true;
                    self.feed(message.to, Event::Receive(message)).map_err(|e| e.to_string())?;
                }
            }
            for id in self.ids() {
                busy |= self.serve(id)?;
            }
            if !busy {
                return Ok(());
            }
        }
        Err("the group does not come to rest".into())
    }

    pub fn wait(&mut self, ms: u64) -> Outcome {
        self.settle()?;
        let end_ms = self.now_ms + ms;
        while self.now_ms < end_ms {
            self.now_ms = (self.now_ms + 10).min(end_ms);
            for id in self.ids() {
                self.feed(id, Event::Tick).map_err(|e| e.to_string())?;
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Time passes, but only this member notices.
    pub fn time_out(&mut self, id: MemberId) -> Outcome {
        self.start_all();
        self.now_ms += 3 * self.members[&id].options.election_timeout_ms;
        self.feed(id, Event::Tick).map_err(|e| e.to_string())
    }

    pub fn cut(&mut self, what: &str) -> Outcome {
        if what.contains("->") {
            let link = self.link(what)?;
            self.cut.insert(link);
        } else {
            let id = self.id(what)?;
            let others: Vec<MemberId> = self.names.values().copied().collect();
            self.cut.extend(others.iter().flat_map(|other| [(id, *other), (*other, id)]));
        }
        Ok(())
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    pub fn hold(&mut self, link: &str) -> Outcome {
        let link = self.link(link)?;
        self.held.insert(link);
        Ok(())
    }

    pub fn release(&mut self, link: &str) -> Outcome {
        let link = self.link(link)?;
        self.held.remove(&link);
        Ok(())
    }

    pub fn lose(&mut self, link: &str) -> Outcome {
        let link = self.link(link)?;
        self.held.remove(&link);
        self.flight.retain(|message| (message.from, message.to) != link);
        Ok(())
    }

    pub fn set_slow(&mut self, name: &str, slow: bool) -> Outcome {
        let id = self.id(name)?;
        if slow {
            self.slow.insert(id);
        } else {
            self.slow.remove(&id);
        }
        Ok(())
    }

    pub fn sync(&mut self, name: &str) -> Outcome {
        self.member(name)?.disk.sync(usize::MAX);
        Ok(())
    }

    pub fn report(&mut self, name: &str) -> Outcome {
        let now_ms = self.now_ms;
        let member = self.member(name)?;
        member.report(now_ms);
        let mut sent = std::mem::take(&mut member.outbox);
        self.flight.append(&mut sent);
        Ok(())
    }

    pub fn crash(&mut self, name: &str) -> Outcome {
        self.member(name)?.crash(0);
        Ok(())
    }

    pub fn restart(&mut self, name: &str) -> Outcome {
        let now_ms = self.now_ms;
        self.member(name)?.start(now_ms);
        Ok(())
    }

    pub fn wipe(&mut self, name: &str) -> Outcome {
        let member = self.member(name)?;
        member.crash(0);
        member.disk = crate::support::disk::Disk::new(Config::default());
        Ok(())
    }

    pub fn compact(&mut self, name: &str, index: u64) -> Outcome {
        let id = self.id(name)?;
        let member = self.member(name)?;
        let entry = member.disk.durable.get(index).ok_or("no such entry on the disk")?;
        let upto = entry.position();
        member.disk.compact(upto);
        let config = member.disk.written.snapshot.config.clone();
        self.feed(id, Event::Compacted(upto, config)).map_err(|e| e.to_string())
    }

    pub fn offer_snapshot(
        &mut self,
        from: MemberId,
        to: MemberId,
        term: u64,
        last: LogPosition,
    ) -> Outcome {
        let meta = SnapshotMeta { last, config: self.founding.clone() };
        self.feed(to, Event::InstallSnapshot { from, term, meta }).map_err(|e| e.to_string())
    }

    pub fn expect_held(&mut self, link: &str, kinds: &[&str]) -> Outcome {
        let link = self.link(link)?;
        let held = self.flight.iter().filter(|message| (message.from, message.to) == link);
        let held: Vec<&str> = held.map(|message| kind(&message.body)).collect();
        same("holds", &held.join(" "), &kinds.join(" "))
    }

    pub fn expect(&mut self, name: &str, key: &str, wanted: &str) -> Outcome {
        self.start_all();
        let id = self.id(name)?;
        let now_ms = self.now_ms;
        let member = &self.members[&id];
        let core = member.core.as_ref().ok_or_else(|| format!("{name} does not run"))?;
        let status = core.status(now_ms);
        let found = match key {
            "read" => {
                let (ctx, _) = wanted.split_once('=').ok_or("CTX=INDEX expected")?;
                let answers = member.reads.iter().filter(|ready| ready.ctx.to_string() == ctx);
                let answers: Vec<String> = answers
                    .map(|ready| ready.index.map_or("none".into(), |index| index.to_string()))
                    .collect();
                let answers = answers.join("+");
                format!("{ctx}={}", if answers.is_empty() { "waiting" } else { &answers })
            }
            "log" => {
                let entries = member.disk.written.entries.iter();
                joined(entries.map(|e| format!("{}@{}", e.index, e.term)), ",")
            }
            "base" => member.disk.written.snapshot.last.index.to_string(),
            _ => self.found_in(&status, key)?,
        };
        same(key, &found, wanted)
    }

    pub fn describe(&self) -> String {
        let lines = self.names.iter().filter_map(|(name, id)| {
            let status = self.members.get(id)?.core.as_ref()?.status(self.now_ms);
            let LogPosition { term, index } = status.last;
            let (role, commit, persisted) = (status.role, status.commit, status.persisted);
            Some(format!(
                "  {name}: {role:?} last {index}@{term} persisted {persisted} commit {commit}"
            ))
        });
        joined(lines, "\n")
    }

    fn found_in(&self, status: &Status, key: &str) -> Result<String, String> {
        let names = |ids: Vec<MemberId>| {
            let names = joined(ids.iter().map(|id| self.name_of(*id)), "");
            if names.is_empty() {
                "none".into()
            } else {
                names
            }
        };
        let config = &status.config;
        let of_role = |role| {
            let members = config.members.iter().filter(|(_, info)| info.role == role);
            members.map(|(id, _)| *id).collect()
        };
        Ok(match key {
            "role" => match status.role {
                RoleState::Leader { .. } => "leader".into(),
                RoleState::Follower { .. } => "follower".into(),
                RoleState::PreCandidate { .. } => "precandidate".into(),
                RoleState::Candidate { .. } => "candidate".into(),
            },
            "leader" => status.leader.map_or("none".into(), |leader| self.name_of(leader)),
            "term" => status.term.to_string(),
            "commit" => status.commit.to_string(),
            "persisted" => status.persisted.to_string(),
            "last" => format!("{}@{}", status.last.index, status.last.term),
            "lease" => if status.lease_valid { "yes" } else { "no" }.into(),
            "voters" => names(config.voters().collect()),
            "learners" => names(of_role(MemberRole::Learner)),
            "loggers" => names(of_role(MemberRole::Logger)),
            "outgoing" => names(config.outgoing.clone()),
            "lost" => names(config.lost.clone()),
            "audit" => config.audit.clone(),
            _ => return Err(format!("{key} cannot be expected")),
        })
    }

    fn name(&mut self, name: &str) -> MemberId {
        let next = MemberId((self.names.len() as u128 + 1) << 96);
        *self.names.entry(name.into()).or_insert(next)
    }

    fn name_of(&self, id: MemberId) -> String {
        let known = self.names.iter().find(|(_, known)| **known == id);
        known.map_or_else(|| format!("{id:?}"), |(name, _)| name.clone())
    }

    fn ids(&self) -> Vec<MemberId> {
        self.members.keys().copied().collect()
    }

    fn member(&mut self, name: &str) -> Result<&mut Member, String> {
        self.start_all();
        let id = self.id(name)?;
        self.members.get_mut(&id).ok_or_else(|| format!("{name} was never started"))
    }

    fn start_all(&mut self) {
        for id in self.names.values() {
            self.members.entry(*id).or_insert_with(|| {
                let seed = (id.0 >> 96) as u64;
                let options = tweaked(Options::new(*id, seed), &self.tweaks).expect("checked");
                let spare = self.spares.contains(id);
                let founding = if spare { Config::default() } else { self.founding.clone() };
                let mut member = Member::new(options, founding);
                member.start(self.now_ms);
                member
            });
        }
    }

    /// Disk and driver of one member at work; false if there was nothing to do.
    fn serve(&mut self, id: MemberId) -> Result<bool, String> {
        let now_ms = self.now_ms;
        let slow = self.slow.contains(&id);
        let Some(member) = self.members.get_mut(&id).filter(|member| member.running()) else {
            return Ok(false);
        };
        let mut busy = false;
        if !slow && (member.disk.unsynced() > 0 || member.disk.has_reports()) {
            busy = true;
            member.disk.sync(usize::MAX);
            member.report(now_ms);
        }
        for fetch in std::mem::take(&mut member.fetches) {
            busy = true;
            member.answer_fetch(now_ms, fetch);
        }
        let snapshots = std::mem::take(&mut member.snapshots);
        let meta = member.snapshot();
        self.flight.append(&mut member.outbox);
        for to in snapshots {
            busy = true;
            let reachable = !self.cut.contains(&(id, to)) && self.members[&to].running();
            let last = meta.as_ref().map_or(0, |meta| meta.last.index);
            let offer = meta.clone().filter(|_| reachable);
            let ok = offer.is_some();
            if let Some(meta) = offer {
                let term = self.members[&id].core.as_ref().map_or(0, |c| c.status(now_ms).term);
                let event = Event::InstallSnapshot { from: id, term, meta };
                self.feed(to, event).map_err(|e| e.to_string())?;
            }
            self.feed(id, Event::SnapshotSent { to, last, ok }).map_err(|e| e.to_string())?;
        }
        Ok(busy)
    }
}

fn tweaked(mut options: Options, tweaks: &[(String, String)]) -> Result<Options, String> {
    for (name, value) in tweaks {
        let number = || value.parse::<u64>().map_err(|_| format!("{name} is a number"));
        match name.as_str() {
            "lease_reads" => options.lease_reads = value == "on",
            "disk_stall_ms" => options.disk_stall_ms = number()?,
            "clock_drift_ms" => options.clock_drift_ms = number()?,
            "append_bytes_max" => options.append_bytes_max = number()? as usize,
            "inflight_bytes_max" => options.inflight_bytes_max = number()? as usize,
            "inflight_messages_max" => options.inflight_messages_max = number()? as usize,
            "recent_bytes_max" => options.recent_bytes_max = number()? as usize,
            _ => return Err(format!("there is no option {name}")),
        }
    }
    Ok(options)
}

fn kind(body: &MessageBody) -> &'static str {
    match body {
        MessageBody::PreVote { .. } => "pre-vote",
        MessageBody::PreVoteReply { .. } => "pre-vote-reply",
        MessageBody::Vote { .. } => "vote",
        MessageBody::VoteReply { .. } => "vote-reply",
        MessageBody::Append { .. } => "append",
        MessageBody::AppendReply { .. } => "append-reply",
        MessageBody::AppendReject { .. } => "append-reject",
        MessageBody::Heartbeat { .. } => "heartbeat",
        MessageBody::HeartbeatReply { .. } => "heartbeat-reply",
        MessageBody::ReadIndex { .. } => "read-index",
        MessageBody::ReadIndexReply { .. } => "read-index-reply",
        MessageBody::TimeoutNow => "timeout-now",
        MessageBody::ForcedVote { .. } => "forced-vote",
        MessageBody::ForcedVoteReply { .. } => "forced-vote-reply",
        MessageBody::SnapshotReply { .. } => "snapshot-reply",
    }
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

fn same(what: &str, found: &str, wanted: &str) -> Outcome {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: expected {wanted}, found {found}"))
    }
}
