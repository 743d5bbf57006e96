//! The interpreter of the scenario language: words of a line to actions and expectations.

mod stage;

use quorate_consensus::{
    ConfigChange, Entry, EntryKind, Event, LogPosition, Message, MessageBody, PriorityRule,
    Proposal, Rules, StepError,
};
use stage::Stage;
use std::path::Path;

type Outcome = Result<(), String>;

/// Plays one file; the error says where and how the story went another way.
pub fn play(path: &Path) -> Outcome {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut stage = Stage::default();
    for (number, line) in text.lines().enumerate() {
        let command = line.split('#').next().unwrap_or_default().trim();
        if command.is_empty() {
            continue;
        }
        perform(&mut stage, command).map_err(|problem| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            format!("{file}:{}: {command}\n  {problem}\n{}", number + 1, stage.describe())
        })?;
    }
    Ok(())
}

fn perform(stage: &mut Stage, command: &str) -> Outcome {
    let (command, refusal) = match command.split_once(" -> ") {
        Some((command, refusal)) => (command, Some(refusal.trim())),
        None => (command, None),
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    let (verb, args) = words.split_first().ok_or("an empty command")?;
    if let Some(event) = local_event(stage, verb, args)? {
        let outcome = stage.feed(stage.id(args[0])?, event);
        return check_refusal(outcome, refusal);
    }
    match (*verb, args) {
        ("group", names) => stage.found(names)?,
        ("spare", names) => stage.add_spares(names),
        ("option", [name, value]) => stage.set_option(name, value)?,
        ("settle", []) => stage.settle()?,
        ("wait", [ms]) => stage.wait(number(ms)?)?,
        ("timeout", [name]) => stage.time_out(stage.id(name)?)?,
        ("elect", [name]) => {
            stage.time_out(stage.id(name)?)?;
            stage.settle()?;
            stage.expect(name, "role", "leader")?;
        }
        ("cut", [link]) => stage.cut(link)?,
        ("heal", []) => stage.heal(),
        ("hold", [link]) => stage.hold(link)?,
        ("release", [link]) => stage.release(link)?,
        ("lose", [link]) => stage.lose(link)?,
        ("slow", [name]) => stage.set_slow(name, true)?,
        ("fast", [name]) => stage.set_slow(name, false)?,
        ("sync", [name]) => {
            stage.sync(name)?;
            stage.report(name)?;
        }
        ("sync-silently", [name]) => stage.sync(name)?,
        ("report", [name]) => stage.report(name)?,
        ("crash", [name]) => stage.crash(name)?,
        ("restart", [name]) => stage.restart(name)?,
        ("wipe", [name]) => stage.wipe(name)?,
        ("compact", [name, index]) => stage.compact(name, number(index)?)?,
        ("inject", [link, "term", term, body @ ..]) => inject(stage, link, number(term)?, body)?,
        ("expect", [link, "holds", kinds @ ..]) => stage.expect_held(link, kinds)?,
        ("expect", [name, pairs @ ..]) if pairs.len() % 2 == 0 => {
            for pair in pairs.chunks(2) {
                stage.expect(name, pair[0], pair[1])?;
            }
        }
        _ => return Err("no such command".into()),
    }
    Ok(())
}

/// Commands that are one event for one member.
fn local_event(stage: &Stage, verb: &str, args: &[&str]) -> Result<Option<Event>, String> {
    Ok(Some(match (verb, args) {
        ("propose", [_, words @ ..]) if !words.is_empty() => Event::Propose(batch(words)),
        ("forward", [_, from, words @ ..]) if !words.is_empty() => {
            Event::ProposeFor(stage.id(from)?, batch(words))
        }
        ("change", [_, changes @ ..]) => Event::ChangeMembership(change(stage, changes)?),
        ("expel", [_, member]) => Event::ChangeMembership(ConfigChange::Expel(stage.id(member)?)),
        ("transfer", [_, to]) => Event::TransferLeadership(stage.id(to)?),
        ("welcome", [_, newcomer]) => Event::SnapshotWelcome(stage.id(newcomer)?),
        ("connected", [_, peer]) => Event::Connected(stage.id(peer)?),
        ("unreachable", [_, peer]) => Event::Unreachable(stage.id(peer)?),
        ("alone", [_, gone]) => Event::ContinueAlone(stage.id(gone)?),
        ("rules", [_, rules @ ..]) => {
            Event::ChangeMembership(ConfigChange::Rules(parse_rules(rules)?))
        }
        ("force", [_, audit, kept @ ..]) => {
            let keep: Result<_, String> = kept.iter().map(|name| stage.id(name)).collect();
            Event::ForceQuorum { keep: keep?, audit: (*audit).into() }
        }
        ("lag", [_, member, lag]) => {
            Event::Lag { member: stage.id(member)?, lag: Some(number(lag)? as u8) }
        }
        ("await", [_]) => Event::Awaited(true),
        ("await-no-more", [_]) => Event::Awaited(false),
        ("hang", [_]) => Event::HostHangs(true),
        ("unhang", [_]) => Event::HostHangs(false),
        ("fail-disk", [_]) => Event::StepDown,
        ("read", [_, ctx]) => Event::ReadIndex { ctx: number(ctx)? },
        _ => return Ok(None),
    }))
}

fn batch(words: &[&str]) -> Vec<Proposal> {
    let data = words.iter().map(|word| word.as_bytes().to_vec().into());
    data.map(|data| Proposal::new(EntryKind::Data, data)).collect()
}

fn parse_rules(words: &[&str]) -> Result<Rules, String> {
    let mut rules = Rules::default();
    for word in words {
        match (*word, word.strip_prefix("zones=")) {
            ("forced", _) => rules.priorities = PriorityRule::Forced,
            ("after", _) => rules.after = true,
            (_, Some(zones)) => rules.zones_min = number(zones)? as u8,
            _ => return Err(format!("forced, after or zones=N expected, not {word}")),
        }
    }
    Ok(rules)
}

fn change(stage: &Stage, words: &[&str]) -> Result<ConfigChange, String> {
    let (mut put, mut remove) = (Vec::new(), Vec::new());
    for word in words {
        if let Some(name) = word.strip_prefix('-') {
            remove.push(stage.id(name)?);
        } else if let Some(name) = word.strip_prefix('+') {
            let (name, info) = crate::support::described(name)?;
            put.push((stage.id(name)?, info));
        } else {
            return Err(format!(
                "+name, +name:learner (logger, w80, zone=x) or -name expected, not {word}"
            ));
        }
    }
    Ok(ConfigChange::Update { put, remove })
}

fn check_refusal(outcome: Result<(), StepError>, refusal: Option<&str>) -> Outcome {
    let reason = outcome.as_ref().err().map(|error| match error {
        StepError::NotLeader { .. } => "not-leader",
        StepError::ChangePending { .. } => "pending",
        StepError::BadChange(_) => "bad",
        StepError::Transferring { .. } => "transferring",
        StepError::DiskBehind { .. } => "disk-behind",
    });
    if reason == refusal {
        return Ok(());
    }
    match outcome {
        Ok(()) => Err("accepted, but a refusal was expected".into()),
        Err(error) => Err(format!("refused ({}): {error}", reason.unwrap_or_default())),
    }
}

fn inject(stage: &mut Stage, link: &str, term: u64, words: &[&str]) -> Outcome {
    let (from, to) = stage.link(link)?;
    let body = match words {
        ["heartbeat", commit, round] => {
            MessageBody::Heartbeat { commit: number(commit)?, round: number(round)? }
        }
        ["append", prev, entries @ .., "commit", commit] => {
            let entries: Result<Vec<Entry>, String> = entries
                .iter()
                .map(|word| {
                    let LogPosition { term, index } = position(word)?;
                    let data = "injected".into();
                    Ok(Entry::new(index, term, EntryKind::Data, data))
                })
                .collect();
            MessageBody::Append {
                prev: position(prev)?,
                entries: entries?,
                commit: number(commit)?,
            }
        }
        ["append-reply", matched] => MessageBody::AppendReply { matched: number(matched)? },
        ["timeout-now"] => MessageBody::TimeoutNow,
        ["vote", last] => MessageBody::Vote { last: position(last)?, transfer: false },
        ["pre-vote", last] => MessageBody::PreVote { last: position(last)? },
        ["snapshot", last] => return stage.offer_snapshot(from, to, term, position(last)?),
        _ => return Err("no such message".into()),
    };
    stage.feed(to, Event::Receive(Message { from, to, term, body })).map_err(|e| e.to_string())
}

fn number(word: &str) -> Result<u64, String> {
    match word {
        "max" => Ok(u64::MAX),
        _ => word.parse().map_err(|_| format!("a number expected, not {word}")),
    }
}

/// `index@term`
fn position(word: &str) -> Result<LogPosition, String> {
    let (index, term) = word.split_once('@').ok_or(format!("index@term expected, not {word}"))?;
    Ok(LogPosition { term: number(term)?, index: number(index)? })
}
