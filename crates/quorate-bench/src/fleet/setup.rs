//! The system as it runs, for the record.

use super::Fleet;
use crate::record::Setup;
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;

impl Fleet {
    /// What was given to the first member, and what all say that they have. An error if any of them is
    /// less durable, or more, than its description says: figures of it would be those of another system.
    pub fn setup(&self) -> Result<Setup> {
        let mut connections: Vec<Conn> =
            self.members().map(|member| self.connect(member)).collect::<Result<_>>()?;
        let mut read_back = Vec::new();
        for (name, expected) in self.system.durability() {
            let values = read(&mut connections, name)?;
            ensure!(
                values.iter().all(|value| value == expected),
                "{}: {name} is to be {expected}, and is {}",
                self.system.name(),
                values.join(" / ")
            );
            read_back.push((name.to_owned(), expected.to_owned()));
        }
        for name in self.system.roles() {
            let values = read(&mut connections, name)?;
            read_back.push(((*name).to_owned(), values.join(" / ")));
        }
        let first = &mut connections[0];
        let server: Option<String> = first.query_first("SELECT VERSION()")?;
        let provider = self.system.provider_version(first)?;
        let versions: Vec<String> = server.into_iter().chain(provider).collect();
        Ok(Setup {
            name: self.system.name().to_owned(),
            title: self.system.title().to_owned(),
            version: versions.join(", "),
            options: self.options(0)?,
            read_back,
            encrypted: false,
        })
    }
}

/// A global variable of each member.
fn read(connections: &mut [Conn], name: &str) -> Result<Vec<String>> {
    let statement = format!("SHOW GLOBAL VARIABLES LIKE '{}'", name.replace('_', "\\_"));
    let value = |connection: &mut Conn| {
        let row: Option<(String, String)> = connection.query_first(&statement)?;
        Ok(row.with_context(|| format!("the server has no {name}"))?.1)
    };
    connections.iter_mut().map(value).collect()
}
