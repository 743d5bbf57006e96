//! In words: what was published, whether the peers here show its shape, and where Quorate stands.

use super::chapter::Chapter;
use super::grid::{Entry, Grid};
use super::standing::{standings, standings_at, Standing, QUORATE};
use super::Told;
use crate::published::{judge, setups, Judgement, Shape};
use crate::record::{Cell, Place};
use crate::system::PEERS;
use maud::{html, Markup};
use quorate_report::page::{self, Tone};
use std::collections::{BTreeMap, BTreeSet};

/// How systems of the other server are named.
const MYSQL: &str = "gr-";

/// Points at which Quorate is ahead, level and behind.
type Counts = [usize; 3];

/// Of the whole run.
pub(super) struct Overall {
    /// Beside the peers of the same server.
    mariadb: Counts,
    /// Beside Group Replication, in all settings that were measured: they are one product.
    mysql: Counts,
    failed: usize,
    /// Of them, those of Quorate: no point at which it has no figure is counted as behind.
    failed_ours: usize,
    /// Cells in which another member led at the end.
    moved: usize,
    /// Tests whose published shape was judged, and those of them that show it, in whole or in part.
    judged: usize,
    reproduced: usize,
    partly: usize,
    /// Of each peer, over all tests.
    peers: Vec<(String, Counts)>,
    rounds: usize,
    builds: usize,
    /// Points with systems that were measured at other times in one round.
    apart: usize,
    /// Cells that do not say when they were measured.
    timeless: usize,
}

/// What was measured within so many seconds is of one time.
const APART_S: u64 = 3600;

impl Overall {
    pub(super) fn of(told: &Told) -> Overall {
        let mut peers: Vec<(String, Counts)> = Vec::new();
        let (mut judged, mut reproduced, mut partly) = (0, 0, 0);
        for chapter in told.chapters() {
            let counts = |place: &Place| chapter.counts(place);
            for standing in standings_at(counts, chapter, &told.summary, &told.order) {
                let known = peers.iter().position(|(peer, _)| *peer == standing.peer);
                let at = known.unwrap_or_else(|| {
                    peers.push((standing.peer.clone(), [0; 3]));
                    peers.len() - 1
                });
                let counts = [standing.ahead, standing.level, standing.behind];
                for (sum, count) in peers[at].1.iter_mut().zip(counts) {
                    *sum += count;
                }
            }
            match judge(chapter.test, &told.summary).shape() {
                Shape::Reproduced => (judged, reproduced) = (judged + 1, reproduced + 1),
                Shape::Partly => (judged, partly) = (judged + 1, partly + 1),
                Shape::NotReproduced => judged += 1,
                Shape::CannotBeSaid | Shape::NothingPublished => {}
            }
        }
        let failed = || told.results.cells.iter().filter(|cell| cell.failed.is_some());
        let sum = |of_mysql: bool| {
            let counted = peers.iter().filter(|(peer, _)| {
                PEERS.contains(&peer.as_str()) && peer.starts_with(MYSQL) == of_mysql
            });
            counted.fold(Counts::default(), |sum, (_, counts)| {
                [0, 1, 2].map(|at| sum[at] + counts[at])
            })
        };
        let builds = told.results.run.settings.values().map(|settings| &settings.build);
        let moved = |cell: &&Cell| cell.facts.contains_key("primary moved");
        Overall {
            mariadb: sum(false),
            mysql: sum(true),
            failed: failed().count(),
            moved: told.results.cells.iter().filter(moved).count(),
            failed_ours: failed().filter(|cell| cell.system == QUORATE).count(),
            judged,
            reproduced,
            partly,
            peers: peers.into_iter().map(|(peer, counts)| (told.title(&peer), counts)).collect(),
            rounds: told.rounds.values().copied().max().unwrap_or(0),
            builds: builds.collect::<BTreeSet<_>>().len(),
            apart: apart(&told.results.cells),
            timeless: told.results.cells.iter().filter(|cell| cell.began_s == 0).count(),
        }
    }

    pub(super) fn tone(&self) -> Tone {
        let [ahead, level, behind] = [0, 1, 2].map(|at| self.mariadb[at] + self.mysql[at]);
        match (ahead + level + behind, behind, self.failed) {
            (0, ..) => Tone::Plain,
            (_, 0, 0) => Tone::Good,
            _ => Tone::Warn,
        }
    }

    pub(super) fn headline(&self) -> String {
        let stands = |[ahead, level, behind]: Counts| match ahead + level + behind {
            0 => None,
            all => Some(format!(
                "ahead at {ahead} of {all} points, level at {level} and behind at {behind}"
            )),
        };
        let of_mariadb = stands(self.mariadb).map(|stands| {
            format!("Beside MariaDB's ways to replicate with synced commits, Quorate is {stands}.")
        });
        let of_mysql = stands(self.mysql)
            .map(|stands| format!("Beside MySQL Group Replication, Quorate is {stands}."));
        match (of_mariadb, of_mysql) {
            (None, None) => {
                "Nothing to compare: no point has figures of Quorate and of a peer.".to_owned()
            }
            (mariadb, mysql) => mariadb.into_iter().chain(mysql).collect::<Vec<_>>().join(" "),
        }
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = String> + '_ {
        self.peers.iter().map(|(peer, [ahead, level, behind])| {
            format!("beside {peer}: ahead at {ahead}, level at {level}, behind at {behind}")
        })
    }

    fn shapes(&self) -> String {
        match self.judged {
            0 => "Of the published shapes, none can be judged by these cells.".to_owned(),
            judged => format!(
                "Of {judged} tests whose published shape can be judged, the peers here reproduce {} and \
                 {} in part.",
                self.reproduced, self.partly
            ),
        }
    }

    fn failures(&self) -> String {
        let ours = self.failed_ours;
        match self.failed {
            0 => String::new(),
            failed => format!(
                "Failed cells: {failed}, of them of Quorate: {ours}; their reasons stand at the end."
            ),
        }
    }

    /// Everything else, in one line.
    pub(super) fn remarks(&self) -> String {
        let one_round = match self.rounds {
            1 => "One round: no spread; a small difference may be chance.",
            _ => "",
        };
        let level = "Level: the rounds disagree, or it is less than 3 %.";
        let mysql = match self.mysql != Counts::default() {
            true => {
                "Group Replication is part of MySQL, and all others are of MariaDB: its ratios are of the servers \
                 also."
            }
            false => "",
        };
        let moved = match self.moved {
            0 => String::new(),
            moved => format!("Cells in which another member led at the end: {moved}."),
        };
        let builds = match self.builds {
            0 | 1 => String::new(),
            builds => format!("The tests were measured with {builds} builds of Quorate: the table of settings says which."),
        };
        let apart = match self.apart {
            0 => String::new(),
            apart => format!(
                "Points at which systems of one round were measured more than an hour apart: {apart}; their ratios are \
                 not of one time."
            ),
        };
        let timeless = match self.timeless {
            0 => String::new(),
            timeless => format!(
                "Cells that do not say when they were measured: {timeless}; whether systems of one round were measured \
                 within an hour is not known of them."
            ),
        };
        let said = [level, mysql, one_round].map(str::to_owned);
        let mut remarks = vec![self.shapes(), self.failures(), moved, builds, apart, timeless];
        remarks.extend(said);
        remarks.retain(|remark| !remark.is_empty());
        remarks.join(" ")
    }

    pub(super) fn markup(&self) -> Markup {
        html! {
            p { strong.headline { (self.headline()) } }
            ul { @for peer in self.peers() { li { (peer) } } }
            p { (self.remarks()) }
        }
    }
}

/// Of the cells that say when they were measured.
fn apart(cells: &[Cell]) -> usize {
    let mut times: BTreeMap<(&Place, u32), (u64, u64)> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.failed.is_none() && cell.began_s > 0) {
        let at = cell.began_s;
        let (first, last) = times.entry((&cell.place, cell.round)).or_insert((at, at));
        (*first, *last) = (at.min(*first), at.max(*last));
    }
    let apart = times.into_iter().filter(|(_, (first, last))| last - first > APART_S);
    apart.map(|((place, _), _)| place).collect::<BTreeSet<_>>().len()
}

fn tone(shape: Shape) -> Tone {
    match shape {
        Shape::Reproduced => Tone::Good,
        Shape::Partly => Tone::Warn,
        Shape::NotReproduced => Tone::Bad,
        Shape::CannotBeSaid | Shape::NothingPublished => Tone::Plain,
    }
}

/// Each test in a few lines.
pub(super) fn tests(told: &Told) -> Markup {
    html! {
        @for chapter in told.chapters() {
            @let judgement = judge(chapter.test, &told.summary);
            h3 { a href={ "#" (chapter.test) } { (chapter.test) } " · " (chapter.title) }
            p {
                @if !judgement.published.is_empty() {
                    strong { "Published. " } (judgement.published) " "
                }
                (page::badge(tone(judgement.shape()), &shape_words(&judgement)))
            }
            (stands(told, chapter))
        }
    }
}

pub(super) fn shape_words(judgement: &Judgement) -> String {
    let shape = judgement.shape();
    let judged = judgement.checks.iter().filter(|check| check.holds.is_some()).count();
    let held = judgement.checks.iter().filter(|check| check.holds == Some(true)).count();
    match shape {
        Shape::NothingPublished => shape.words().to_owned(),
        Shape::CannotBeSaid => format!("shape {}", shape.words()),
        _ => format!("shape {} by the peers here: {held} of {judged} checks", shape.words()),
    }
}

/// Where Quorate stands, beside each peer.
fn stands(told: &Told, chapter: &Chapter) -> Markup {
    let lines = stand_lines(told, chapter);
    html! {
        ul { @for (peer, words) in lines {
            li {
                @if let Some(peer) = peer {
                    "beside " (page::system(&peer, &told.title(&peer))) ": "
                }
                (words)
            }
        } }
    }
}

/// By peer, where there is one.
pub(super) fn stand_lines(told: &Told, chapter: &Chapter) -> Vec<(Option<String>, String)> {
    let standings = standings(chapter, &told.summary, &told.order);
    if !standings.is_empty() {
        let line = |standing: &Standing| (Some(standing.peer.clone()), standing.words());
        return standings.iter().map(line).collect();
    }
    let grid = Grid::new(chapter, chapter.main(), &told.summary, &told.order);
    let mut lines = Vec::new();
    for (at, system) in grid.systems.iter().enumerate() {
        let told_of = grid.rows.iter().filter_map(|(_, entries)| match &entries[at] {
            Entry::Fact(fact) => Some(fact.clone()),
            Entry::Failed => Some("failed".to_owned()),
            Entry::Figure(..) | Entry::Nothing => None,
        });
        let mut facts: Vec<String> = told_of.collect();
        facts.dedup();
        if !facts.is_empty() {
            lines.push((None, format!("{}: {}", told.title(system), facts.join(" / "))));
        }
    }
    if lines.is_empty() {
        let words = match grid.systems.iter().any(|system| system == QUORATE) {
            true => "Quorate alone was measured",
            false => "Quorate was not measured",
        };
        lines.push((None, words.to_owned()));
    }
    lines
}

/// The checks of a test.
pub(super) fn of_chapter(told: &Told, chapter: &Chapter) -> Markup {
    let judgement = judge(chapter.test, &told.summary);
    html! {
        @for setup in setups(chapter.test) {
            p.small.faint { "Published with: " (setup) }
        }
        @if !judgement.checks.is_empty() {
            h3 { "Do the peers here show the published shape? "
                (page::badge(tone(judgement.shape()), judgement.shape().words())) }
            (page::scroll(html! { table {
                thead { tr { th { "published" } th.n { "here" } th {} } }
                tbody { @for check in &judgement.checks {
                    @let (tone, word) = match check.holds {
                        Some(true) => (Tone::Good, "as published"),
                        Some(false) => (Tone::Bad, "otherwise"),
                        None => (Tone::Plain, "cannot be said"),
                    };
                    tr {
                        td.text { (check.published) }
                        td.n { (check.here) }
                        td.(tone.class()) { (word) }
                    }
                } }
            } }))
            p.small.faint { "As published: within a factor of two; a ratio also nearer to the \
                published one than to 1, or within a quarter of it." }
        }
    }
}
