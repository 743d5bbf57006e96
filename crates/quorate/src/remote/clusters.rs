//! The groups that this user has named: a file in the user's configuration folder, replaced as a whole.

use super::absolute;
use crate::args::Target;
use crate::failure::{Failure, NO_CLUSTER, USAGE};
use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

const FORMAT: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub seeds: Vec<String>,
    #[serde(default)]
    pub operator_file: Option<PathBuf>,
    #[serde(default)]
    pub ssl_cert: Option<PathBuf>,
    #[serde(default)]
    pub ssl_key: Option<PathBuf>,
    #[serde(default)]
    pub ssl_ca: Option<PathBuf>,
    #[serde(default)]
    pub ssl_names: Vec<String>,
}

impl Known {
    /// What the command line says, and nothing else.
    pub fn of(target: &Target) -> Result<Known> {
        let path = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        let certificate = &target.certificate;
        if target.operator_file.is_some() && certificate.ssl_cert.is_some() {
            let message = "--operator-file and --ssl-cert both say who asks, and one alone can: leave the other out. \
                           Nothing was done";
            return Err(Failure::new(USAGE, message).into());
        }
        Ok(Known {
            seeds: target.seeds.clone(),
            operator_file: path(&target.operator_file)?,
            ssl_cert: path(&certificate.ssl_cert)?,
            ssl_key: path(&certificate.ssl_key)?,
            ssl_ca: path(&certificate.ssl_ca)?,
            ssl_names: certificate.ssl_names.clone(),
        })
    }

    pub fn shows_nothing(&self) -> bool {
        self.operator_file.is_none() && self.ssl_cert.is_none()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    clusters: BTreeMap<String, Known>,
}

/// The file, and what is in it.
#[derive(Debug)]
pub struct Clusters {
    path: PathBuf,
    pub all: BTreeMap<String, Known>,
}

impl Clusters {
    pub fn read() -> Result<Clusters> {
        Clusters::at(path()?)
    }

    /// In this file; none, if it is not there.
    pub fn at(path: PathBuf) -> Result<Clusters> {
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Clusters { path, all: BTreeMap::new() });
            }
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let damaged = || format!("{} is damaged: mend it, or remove it", path.display());
        let content: Content = serde_json::from_slice(&text).with_context(damaged)?;
        if content.format != FORMAT {
            let (path, format) = (path.display(), content.format);
            bail!("{path} has format {format}, this command knows {FORMAT}: use the one that wrote it");
        }
        Ok(Clusters { path, all: content.clusters })
    }

    pub fn find(&self, name: &str) -> Result<Known> {
        self.all.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = self.all.keys().map(String::as_str).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message = format!(
                "no cluster {name} is kept in {}; there are: {there}. 'quorate cluster add' keeps one",
                self.path.display()
            );
            Failure::new(NO_CLUSTER, message).into()
        })
    }

    pub fn add(&mut self, name: &str, known: Known) -> Result<()> {
        if name.is_empty() || name.contains(char::is_whitespace) || known.seeds.is_empty() {
            let message =
                "a cluster is kept under a name without spaces, with --seed HOST:PORT,...";
            return Err(Failure::new(USAGE, message).into());
        }
        self.all.insert(name.to_owned(), known);
        self.write()
    }

    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.find(name)?;
        self.all.remove(name);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let content = Content { format: FORMAT, clusters: self.all.clone() };
        let new = self.path.with_extension("json.new");
        let write = || {
            self.path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&new, serde_json::to_vec_pretty(&content)?)?;
            fs::rename(&new, &self.path)
        };
        write().with_context(|| format!("writing {}", self.path.display()))
    }
}

/// Where nothing says whose home it is, as in a unit of systemd, it is that of the account.
fn path() -> Result<PathBuf> {
    let configuration = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || Some(env::home_dir().filter(|home| home.is_absolute())?.join(".config"));
    let folder = configuration.filter(|path| path.is_absolute()).or_else(home).context(
        "this account has no home directory to keep the names of clusters in: set HOME or XDG_CONFIG_HOME",
    )?;
    Ok(folder.join("quorate/clusters.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::exit_code;
    use crate::view::page::names_fields_of;

    #[test]
    fn what_is_added_is_found_again_until_it_is_removed() {
        let dir = env::temp_dir().join(format!("quorate-clusters-{}", std::process::id()));
        let path = dir.join("quorate/clusters.json");
        let known = Known { seeds: vec!["a:1".into()], ..Known::default() };
        Clusters::at(path.clone()).unwrap().add("shop", known.clone()).unwrap();
        let mut clusters = Clusters::at(path.clone()).unwrap();
        assert_eq!(clusters.find("shop").unwrap(), known);
        let error = clusters.find("other").unwrap_err().to_string();
        assert!(error.contains("shop"), "{error}");
        assert!(clusters.add("no seeds", Known::default()).is_err());
        names_fields_of(&serde_json::to_value(&clusters.all["shop"]).unwrap());
        clusters.remove("shop").unwrap();
        assert!(Clusters::at(path.clone()).unwrap().all.is_empty());
        fs::write(&path, "{}").unwrap();
        assert!(Clusters::at(path).unwrap_err().to_string().contains("damaged"));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn who_asks_is_said_once() {
        let mut target = Target { operator_file: Some("ann".into()), ..Target::default() };
        assert!(Known::of(&target).is_ok());
        target.certificate.ssl_cert = Some("cert".into());
        let refused = Known::of(&target).unwrap_err();
        assert_eq!(exit_code(&refused), USAGE);
        target.operator_file = None;
        assert!(Known::of(&target).is_ok());
    }
}
