//! The line format: see the module above for what a line looks like.

use super::{Action, IdSet, Operation, Outcome, Step};
use std::fmt::{self, Display, Write};
use std::io::BufRead;
use std::str::{FromStr, SplitWhitespace};

#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error("line {line} of the history is no operation ({what}): {text:?}")]
    Line { line: usize, what: &'static str, text: String },
    #[error("reading the history: {0}")]
    Io(#[from] std::io::Error),
}

/// Reads a whole history. A last line without its end was being written when the run was killed,
/// and is left out.
pub fn read(mut input: impl BufRead) -> Result<Vec<Operation>, Malformed> {
    let mut operations = Vec::new();
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        input.read_line(&mut line)?;
        let Some(text) = line.strip_suffix('\n') else { break };
        let operation = parse(text).map_err(|what| Malformed::Line {
            line: number,
            what,
            text: text.to_owned(),
        })?;
        operations.push(operation);
    }
    Ok(operations)
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match self.outcome {
            Outcome::Ok => "ok",
            Outcome::Fail => "fail",
            Outcome::Unknown => "unknown",
        };
        let Operation { begin_us, end_us, process, node, action, note, .. } = self;
        write!(f, "{begin_us} {end_us} p{process} n{node} {outcome} {action}")?;
        if note.is_empty() {
            return Ok(());
        }
        f.write_str(" # ")?;
        note.chars().try_for_each(|c| f.write_char(if c.is_control() { ' ' } else { c }))
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Insert { first, rows } => write!(f, "insert {first} {rows}"),
            Action::Present(set) => {
                f.write_str("present ")?;
                separated(f, &set.runs, |f, (first, last)| write!(f, "{first}-{last}"))?;
                f.write_str(" ")?;
                separated(f, &set.repeated, |f, id| write!(f, "{id}"))
            }
            Action::Transfer { from, to, amount } => write!(f, "transfer {from} {to} {amount}"),
            Action::Balances(values) => {
                f.write_str("balances ")?;
                separated(f, values, |f, value| write!(f, "{value}"))
            }
            Action::Add { counter } => write!(f, "add {counter}"),
            Action::Counters(values) => {
                f.write_str("counters ")?;
                separated(f, values, |f, value| write!(f, "{value}"))
            }
            Action::Txn(steps) => {
                f.write_str("txn")?;
                steps.iter().try_for_each(|step| write!(f, " {step}"))
            }
            Action::Write { register, value } => write!(f, "write {register} {value}"),
            Action::Read { register, value } => write!(f, "read {register} {value}"),
            Action::Child { id, parent } => write!(f, "child {id} {parent}"),
            Action::Delete { parent } => write!(f, "delete {parent}"),
            Action::Children(pairs) => {
                f.write_str("children ")?;
                separated(f, pairs, |f, (id, parent)| write!(f, "{id}-{parent}"))
            }
            Action::Statement(text) => write!(f, "statement {text}"),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Append { key, value } => write!(f, "{key}+{value}"),
            Step::Read { key, list: None } => write!(f, "{key}=?"),
            Step::Read { key, list: Some(list) } => {
                write!(f, "{key}=")?;
                separated(f, list, |f, value| write!(f, "{value}"))
            }
        }
    }
}

/// A list as `a,b,c`; an empty one as `-`, so that it is a word.
fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    show: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    if items.is_empty() {
        return f.write_str("-");
    }
    items.iter().enumerate().try_for_each(|(place, item)| {
        if place > 0 {
            f.write_str(",")?;
        }
        show(f, item)
    })
}

type Parsed<T> = Result<T, &'static str>;

fn parse(line: &str) -> Parsed<Operation> {
    let (line, note) = line.split_once(" # ").unwrap_or((line, ""));
    let mut words = line.split_whitespace();
    let begin_us = number(words.next())?;
    let end_us = number(words.next())?;
    let process = number(words.next().and_then(|word| word.strip_prefix('p')))?;
    let node = number(words.next().and_then(|word| word.strip_prefix('n')))?;
    let outcome = match words.next() {
        Some("ok") => Outcome::Ok,
        Some("fail") => Outcome::Fail,
        Some("unknown") => Outcome::Unknown,
        _ => return Err("no outcome"),
    };
    let action = parse_action(&mut words)?;
    if words.next().is_some() {
        return Err("more words than the action has");
    }
    Ok(Operation { begin_us, end_us, process, node, outcome, action, note: note.to_owned() })
}

fn parse_action(words: &mut SplitWhitespace<'_>) -> Parsed<Action> {
    let kind = words.next().ok_or("no action")?;
    Ok(match kind {
        "insert" => Action::Insert { first: number(words.next())?, rows: number(words.next())? },
        "present" => Action::Present(IdSet {
            runs: list(words.next(), pair)?,
            repeated: list(words.next(), |word| number(Some(word)))?,
        }),
        "transfer" => Action::Transfer {
            from: number(words.next())?,
            to: number(words.next())?,
            amount: number(words.next())?,
        },
        "balances" => Action::Balances(list(words.next(), |word| number(Some(word)))?),
        "add" => Action::Add { counter: number(words.next())? },
        "counters" => Action::Counters(list(words.next(), |word| number(Some(word)))?),
        "txn" => Action::Txn(words.by_ref().map(parse_step).collect::<Parsed<_>>()?),
        "write" => Action::Write { register: number(words.next())?, value: number(words.next())? },
        "read" => Action::Read { register: number(words.next())?, value: number(words.next())? },
        "child" => Action::Child { id: number(words.next())?, parent: number(words.next())? },
        "delete" => Action::Delete { parent: number(words.next())? },
        "children" => Action::Children(list(words.next(), pair)?),
        "statement" => Action::Statement(words.by_ref().collect::<Vec<_>>().join(" ")),
        _ => return Err("unknown action"),
    })
}

fn parse_step(word: &str) -> Parsed<Step> {
    if let Some((key, value)) = word.split_once('+') {
        return Ok(Step::Append { key: number(Some(key))?, value: number(Some(value))? });
    }
    let (key, values) = word.split_once('=').ok_or("a step neither reads nor appends")?;
    let list = match values {
        "?" => None,
        values => Some(list(Some(values), |word| number(Some(word)))?),
    };
    Ok(Step::Read { key: number(Some(key))?, list })
}

fn list<T>(word: Option<&str>, item: impl Fn(&str) -> Parsed<T>) -> Parsed<Vec<T>> {
    match word {
        None => Err("a list is missing"),
        Some("-") => Ok(Vec::new()),
        Some(word) => word.split(',').map(item).collect(),
    }
}

fn pair(word: &str) -> Parsed<(u64, u64)> {
    let (first, second) = word.split_once('-').ok_or("no pair")?;
    Ok((number(Some(first))?, number(Some(second))?))
}

fn number<T: FromStr>(word: Option<&str>) -> Parsed<T> {
    word.and_then(|word| word.parse().ok()).ok_or("a number is missing or out of range")
}
