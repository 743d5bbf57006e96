//! The system as it runs, for the record.

use super::Fleet;
use crate::record::{Setup, MEMBERS_SEPARATOR};
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use mysql::Conn;
use std::path::Path;

/// In the place of the fleet's folder.
const FOLDER: &str = "FOLDER";

impl Fleet {
    /// Has these statements done by each member.
    pub(crate) fn tell_all(&self, statements: &[String]) -> Result<()> {
        for member in self.members() {
            let mut connection = self.connect(member)?;
            for statement in statements {
                connection.query_drop(statement).with_context(|| statement.clone())?;
            }
        }
        Ok(())
    }

    /// Sets global variables on each member. An error if one has not become what it was to be.
    pub(crate) fn set_variables(&self, values: &[(&str, &str)]) -> Result<()> {
        let set = |(name, value): &(&str, &str)| format!("SET GLOBAL {name} = {value}");
        self.tell_all(&values.iter().map(set).collect::<Vec<_>>())?;
        let mut connections = self.connections()?;
        values.iter().try_for_each(|(name, value)| self.check(&mut connections, name, value))
    }

    fn connections(&self) -> Result<Vec<Conn>> {
        self.members().map(|member| self.connect(member)).collect()
    }

    fn check(&self, connections: &mut [Conn], name: &str, expected: &str) -> Result<()> {
        let values = read(connections, name)?;
        ensure!(
            values.iter().all(|value| value == expected),
            "{}: {name} is to be {expected}, and is {}",
            self.system.name(),
            values.join(" / ")
        );
        Ok(())
    }

    /// What was given to the first member, and what all say that they have. An error if any of them is
    /// less durable, or more, than its description says: figures of it would be those of another system.
    pub fn setup(&self) -> Result<Setup> {
        let mut connections = self.connections()?;
        let mut read_back = Vec::new();
        for (name, expected) in self.system.durability() {
            self.check(&mut connections, name, expected)?;
            read_back.push((name.to_owned(), expected.to_owned()));
        }
        for name in self.system.roles() {
            let values = read(&mut connections, name)?;
            read_back.push(((*name).to_owned(), values.join(MEMBERS_SEPARATOR)));
        }
        let mut told = Vec::new();
        for name in self.system.tells() {
            let values = read(&mut connections[..1], name)?;
            told.push(((*name).to_owned(), values.concat()));
        }
        let folder = self.folder.path();
        let first = &mut connections[0];
        let server: Option<String> = first.query_first("SELECT VERSION()")?;
        let provider = self.system.provider_version(first)?;
        let versions: Vec<String> = server.into_iter().chain(provider).collect();
        Ok(Setup {
            name: self.system.name().to_owned(),
            title: self.system.title().to_owned(),
            version: versions.join(", "),
            options: portable(self.options(0)?, folder),
            read_back,
            told: portable(told, folder),
            encrypted: self.system.encrypts(),
        })
    }
}

/// Without the name of the fleet's folder, which no two runs share.
fn portable(options: Vec<(String, String)>, folder: &Path) -> Vec<(String, String)> {
    let folder = folder.display().to_string();
    options.into_iter().map(|(name, value)| (name, value.replace(&folder, FOLDER))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{all, Ground, Sources};
    use quorate_lab::server::{self, Account, Node, Ports};
    use std::fs;

    /// The options of all systems, on servers in this folder.
    fn options(folder: &Path) -> Vec<Vec<(String, String)>> {
        fs::create_dir_all(folder).unwrap();
        let nodes: Vec<Node> =
            (1..=3).map(|number| Node::new(folder, number, Ports::USUAL)).collect();
        let account = Account::choose().unwrap();
        let ground = Ground { nodes: &nodes, account: &account, folder };
        // Any file will do for a provider.
        let sources =
            Sources { provider: std::env::current_exe().ok(), mysql_root: Some("/mysql".into()) };
        let systems = all(&sources).into_iter().filter(|system| !system.name().contains("galera"));
        let own = systems.map(|system| system.options(&ground, 0).unwrap());
        own.map(|own| [server::common_options(&nodes[0]), own].concat()).collect()
    }

    #[test]
    fn a_system_has_the_same_options_in_every_run() {
        let base = std::env::temp_dir().join(format!("quorate-setup-{}", std::process::id()));
        let [one, other] = ["one", "other"].map(|name| {
            let folder = base.join(name);
            options(&folder).into_iter().map(|own| portable(own, &folder)).collect::<Vec<_>>()
        });
        fs::remove_dir_all(&base).unwrap();
        assert!(one[0].iter().any(|(_, value)| value.starts_with(FOLDER)), "{:?}", one[0]);
        assert_eq!(one, other);
    }
}
