//! Parents and children joined by a foreign key with cascading deletes.

use super::client::{classify, statement, Client};
use super::set::read_ids;
use super::Workload;
use crate::check::{references, Finding};
use crate::history::{Action, Operation};
use anyhow::Result;
use mysql::prelude::Queryable;
use mysql::Conn;
use parking_lot::Mutex;

/// Parents that children are added to, and that are deleted.
const RECENT: usize = 16;

#[derive(Default)]
pub struct References {
    /// Parents whose insertion was acknowledged, the newest last.
    recent: Mutex<Vec<u64>>,
}

impl References {
    fn add_parent(&self, client: &mut Client, node: usize) -> Result<()> {
        let first = client.unique();
        client.attempt(
            node,
            |connection| statement(connection, format!("INSERT INTO parents VALUES ({first})")),
            |done| {
                if done.is_some() {
                    let mut recent = self.recent.lock();
                    if recent.len() == RECENT {
                        recent.remove(0);
                    }
                    recent.push(first);
                }
                Action::Insert { first, rows: 1 }
            },
        )
    }
}

impl Workload for References {
    fn name(&self) -> &'static str {
        "references"
    }

    fn tables(&self) -> Vec<String> {
        vec![
            "CREATE TABLE lab.parents (id BIGINT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
            "CREATE TABLE lab.children (id BIGINT PRIMARY KEY, parent BIGINT NOT NULL, \
             KEY (parent), FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE) \
             ENGINE=InnoDB"
                .to_owned(),
        ]
    }

    fn step(&self, client: &mut Client) -> Result<()> {
        let node = client.writer();
        let recent = self.recent.lock().clone();
        let what = client.random.below(10);
        if recent.is_empty() || what < 3 {
            return self.add_parent(client, node);
        }
        let parent = recent[client.random.below(recent.len() as u64) as usize];
        if what == 3 {
            let delete = format!("DELETE FROM parents WHERE id = {parent}");
            return client.attempt(
                node,
                |connection| {
                    connection.query_drop(delete).map_err(classify)?;
                    Ok(connection.affected_rows())
                },
                |deleted| match deleted {
                    // It has not come to this node yet, or is deleted already.
                    Some(0) => Action::Statement("DELETE of no row".to_owned()),
                    _ => Action::Delete { parent },
                },
            );
        }
        let id = client.unique();
        client.attempt(
            node,
            |connection| {
                statement(connection, format!("INSERT INTO children VALUES ({id}, {parent})"))
            },
            |_| Action::Child { id, parent },
        )
    }

    fn read_final(&self, connection: &mut Conn) -> mysql::Result<Vec<Action>> {
        let mut actions = read_ids(connection, "parents")?;
        let all = "SELECT id, parent FROM lab.children ORDER BY id";
        actions.push(Action::Children(connection.query(all)?));
        Ok(actions)
    }

    fn check(&self, history: &[Operation]) -> Vec<Finding> {
        references::check(history)
    }
}
