//! Committed entries, as each member's database gets to see them.

use super::start::load;
use super::{show, Fault, Mark, Plant, Rule, World};
use crate::database::{is_fragment, Database, Decision, Part};
use crate::oracle::digest_of_notes;
use quorate_certify::Outcome;
use quorate_consensus::{Config, Entry, EntryKind, Index};
use quorate_group::{Committed, Content, Input, Notes};
use quorate_wal::ReadError;

/// Entries a slow member applies at a time.
const SLOW_BATCH: usize = 3;
const READ_BYTES: usize = 64 << 10;
const LARGE: usize = 8 << 10;

impl World {
    pub(super) fn feed_soon(&mut self, m: usize) {
        let lag = self.nodes[m].apply_lag_us;
        let Some(process) = &mut self.nodes[m].process else { return };
        if !process.feed_due {
            process.feed_due = true;
            self.later_at(m, lag, move |w| w.feed(m));
        }
    }

    pub(super) fn feed(&mut self, m: usize) {
        let given_up = self.has_returned(m);
        let Some(process) = &mut self.nodes[m].process else { return };
        process.feed_due = false;
        // What is left of a log that was given up is nobody's any more.
        if process.fatal.is_some() || given_up {
            return;
        }
        if self.plant == Some(Plant::FedTooEarly) {
            process.fed_to = process.wal.last().index;
        }
        if let Err(reason) = self.feed_some(m) {
            return self.clean_stop(m, reason);
        }
        self.tell_applied(m);
        self.finish_reads(m);
        self.snapshot_if_due(m);
        let Some(process) = &self.nodes[m].process else { return };
        if process.applied() < process.fed_to || process.install.is_some() {
            self.feed_soon(m);
        }
    }

    /// The product's node ends so; it is no loss unless the disk was intact.
    fn clean_stop(&mut self, m: usize, reason: String) {
        let node = &self.nodes[m];
        let Some(process) = node.process.as_ref().filter(|_| !node.disk.is_dead()) else { return };
        let reason = format!("cannot go on after {}: {reason}", process.applied());
        self.oracle.fail_if(
            node.damage.is_none() && !self.scenario.may(Fault::SyncFails),
            Rule::StartsAgain,
            || format!("m{m} {reason}"),
        );
        note!(self, "m{m} stops: {reason}");
        if let Some(process) = &mut self.nodes[m].process {
            process.fatal = Some(reason);
        }
    }

    fn feed_some(&mut self, m: usize) -> Result<(), String> {
        let Some(process) = &mut self.nodes[m].process else { return Ok(()) };
        let applied = process.applied();
        if let Some(index) = process.install.take() {
            if index > applied {
                return self.install(m, index);
            }
        }
        let fed_to = process.fed_to;
        if fed_to <= applied {
            return Ok(());
        }
        let mut entries = Vec::new();
        match process.wal.read(applied + 1, READ_BYTES, &mut entries) {
            Ok(()) => {}
            Err(ReadError::Purged { .. }) if process.install.is_some() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        if entries.is_empty() {
            return Err("the log did not take the next entry".into());
        }
        let slow = self.nodes[m].apply_lag_us > 0;
        let count = if slow { SLOW_BATCH } else { usize::MAX };
        let run = self.nodes[m].run;
        for entry in entries.into_iter().take(count) {
            if entry.index > fed_to {
                break;
            }
            self.apply(m, entry)?;
            if self.nodes[m].run != run || self.oracle.failed() {
                break;
            }
        }
        Ok(())
    }

    fn install(&mut self, m: usize, index: Index) -> Result<(), String> {
        let id = self.nodes[m].id;
        let Some(process) = &mut self.nodes[m].process else { return Ok(()) };
        let (stored, content) =
            load(&process.snapshots, index).ok_or("the snapshot cannot be read")?;
        let content = Content::decode(content).map_err(|error| error.to_string())?;
        process.database = Database::restore(&content.machine, self.retries.on)?;
        let digest = process.database.digest();
        let forgets = self.plant == Some(Plant::ForgottenNotes);
        let notes = if forgets { Notes::default() } else { content.notes };
        process.feed.install(stored, content.view, notes);
        process.notes = digest_of_notes(process.feed.notes());
        let notes = process.notes;
        let applied = process.feed.applied();
        self.oracle.state(id, index, digest);
        self.oracle.notes(id, index, notes);
        // The state jumped over entries that may have decided what is pending here.
        self.give_up(m, |_| true);
        self.step(m, Input::Started(applied));
        Ok(())
    }

    fn apply(&mut self, m: usize, entry: Entry) -> Result<(), String> {
        let id = self.nodes[m].id;
        let (index, kind, position) = (entry.index, entry.kind, entry.position());
        let news = self.oracle.is_news(index);
        self.check_fed(m, &entry);
        if news {
            self.mark_entry(&entry);
        }
        let Some(process) = &mut self.nodes[m].process else { return Ok(()) };
        let gone = match self.plant {
            Some(Plant::ViewOnSomeOnly) if m == 0 => process.feed.view().members.clone(),
            _ => Vec::new(),
        };
        let committed = process.feed.entry(entry).map_err(|error| error.to_string())?;
        let is_view = matches!(committed, Some(Committed::View { .. }));
        let decision = match committed {
            Some(Committed::View { view, .. }) => {
                process.database.view(&view, &gone);
                None
            }
            Some(Committed::Data { index, data, primary_term, level }) => {
                let decision = process.database.write(index, data, (primary_term, level))?;
                Some((decision, primary_term.is_some()))
            }
            None => None,
        };
        let (digest, applied) = (process.database.digest(), process.feed.applied());
        let unlogged = process.unlogged;
        let noted = process.feed.take_noted();
        if noted.is_some() {
            process.notes = digest_of_notes(process.feed.notes());
        }
        let (notes, view) = (process.notes, process.feed.view().number);
        self.oracle.state(id, index, digest);
        self.oracle.notes(id, index, notes);
        if unlogged && index >= self.nodes[m].database_at {
            self.logged(m);
        }
        if kind == EntryKind::View {
            self.view_seen(m, index);
        }
        if is_view && news {
            self.mark(Mark::View);
        }
        if let Some(noted) = noted {
            self.noted(m, news, &noted, view);
        }
        if let Some((decision, single)) = decision {
            self.decided(m, index, news, single, decision);
        } else {
            note!(self, "m{m} applies {} {kind:?}", show(position));
            self.step(m, Input::Applied(applied));
        }
        Ok(())
    }

    /// What the database had is in the log again.
    fn logged(&mut self, m: usize) {
        if let Some(process) = &mut self.nodes[m].process {
            process.unlogged = false;
        }
        self.step(m, Input::Unlogged(false));
    }

    fn mark_entry(&mut self, entry: &Entry) {
        match entry.kind {
            EntryKind::Noop => self.mark(Mark::Noop),
            EntryKind::Config => {
                if let Ok(config) = Config::decode(&entry.data) {
                    self.mark(if config.is_joint() { Mark::JointConfig } else { Mark::Config });
                    self.mark_membership(&config);
                    self.check_lost(&config);
                    self.committed_config = (entry.index, config);
                    self.replace_expelled_later();
                }
            }
            EntryKind::Data if entry.data.len() >= LARGE => self.mark(Mark::LargeEntry),
            EntryKind::Data | EntryKind::View | EntryKind::Note | EntryKind::Unknown(_) => {}
        }
    }

    fn decided(&mut self, m: usize, index: Index, news: bool, single: bool, decision: Decision) {
        let Decision { op, ref write_set, seqno, outcome } = decision;
        note!(self, "m{m} applies op {op} at {index}: seqno {seqno}, {outcome:?}");
        let header = *write_set.header();
        if news {
            let fragment = is_fragment(&header) && !header.is_toi();
            self.mark(match outcome {
                Outcome::Ok if fragment => Mark::FragmentPassed,
                Outcome::Ok => Mark::Passed,
                Outcome::Conflict { .. } => Mark::Conflict,
                Outcome::TooOld => Mark::TooOld,
                Outcome::Orphan => Mark::Orphan,
                Outcome::NotPrimary => Mark::NotPrimary,
                Outcome::Duplicate => Mark::Duplicate,
            });
            self.oracle.verdict(index, &decision);
            if self.oracle.primacy(op, index, outcome, single) {
                self.mark(Mark::PrimaryWrite);
            }
        }
        let Some(process) = &mut self.nodes[m].process else { return };
        if header.origin != process.origin {
            return;
        }
        let pending = process.pending.remove(&header.serial);
        self.mark_kin(m, &header, outcome == Outcome::Ok);
        let Some(pending) = pending else { return };
        self.take_in(m, |intake| intake.decided(header.serial));
        let Some(process) = &mut self.nodes[m].process else { return };
        if let Some(client) = pending.client {
            process.clients[client].stream = match (outcome, pending.part) {
                (Outcome::Ok, Part::First | Part::Next(_)) => Some(seqno),
                _ => None,
            };
        }
        self.oracle.acknowledged(pending.op, index);
        self.carry_out(m);
        if outcome == Outcome::Ok {
            self.may_await_others(m, seqno);
        }
        if let Some(client) = pending.client {
            self.told(m, client, pending.task, outcome == Outcome::Ok);
            self.client_later(m, client);
        }
    }
}
