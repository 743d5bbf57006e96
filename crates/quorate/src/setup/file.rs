//! The file of options that `quorate setup` writes: what it says, what is kept of a former one, and what differs.
//!
//! Invariant: a line of the former file that sets nothing `setup` decides stays, comments too.

use super::provider::ProviderOptions;
use super::TRANSFERS;
use anyhow::{bail, Context, Result};
use quorate_lab::server::transfer_options;
use quorate_live::{SecretOptions, Security};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "# Written by `quorate setup`; `quorate setup --undo` removes it.\n";
const SERVER: &str = "mariadbd";
pub const PROVIDER_OPTIONS: &str = "wsrep_provider_options";

/// The file, if it is one that `setup` wrote; an error if it is somebody else's.
pub fn read(config: &Path) -> Result<Option<String>> {
    match fs::read_to_string(config) {
        Ok(text) if text.starts_with(HEAD) => Ok(Some(text)),
        Ok(_) => bail!(
            "{} was not written by `quorate setup`, and stays as it is: move it away, or name another \
             file with --config",
            config.display()
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", config.display())),
    }
}

/// Settings of the server, and of the scripts that transfer the state.
pub struct Settings<'a> {
    pub server: &'a [(&'a str, String)],
    pub transfers: &'a [(&'a str, String)],
}

impl Settings<'_> {
    /// The file, with what is kept of the former one.
    pub fn render(&self, former: &str) -> String {
        let kept = kept(former, self);
        let mut text = HEAD.to_owned();
        for (group, settings) in [(SERVER, self.server), (TRANSFERS, self.transfers)] {
            let more = kept.iter().find(|(of, _)| *of == group).map_or(&[][..], |(_, lines)| lines);
            if settings.is_empty() && more.is_empty() {
                continue;
            }
            text += &format!("{}[{group}]\n", if group == SERVER { "" } else { "\n" });
            for (name, value) in settings {
                text += &format!("{name:<30} = {value}\n");
            }
            more.iter().for_each(|line| text += &format!("{line}\n"));
        }
        for (group, lines) in kept.iter().filter(|(group, _)| ![SERVER, TRANSFERS].contains(group))
        {
            text += &format!("\n[{group}]\n{}\n", lines.join("\n"));
        }
        text
    }

    fn decides(&self, group: &str, name: &str) -> bool {
        let is = |known: &str| canonical(known) == canonical(name);
        match group {
            SERVER => self.server.iter().any(|(known, _)| is(known)),
            // Of a group without a secret or certificates there are none: those of before are not kept, either.
            TRANSFERS => {
                let file = PathBuf::new();
                let some = Security::Secret(SecretOptions { file, dynamic: false });
                transfer_options(&some, Path::new("/")).iter().any(|(known, _)| is(known))
            }
            _ => false,
        }
    }
}

/// Something that another file of options says; options of the provider each for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub group: String,
    pub option: String,
    pub from: Option<String>,
    pub to: Option<String>,
}

pub fn changes(former: &str, new: &str) -> Vec<Change> {
    let (former, new) = (settings(former), settings(new));
    let names = former.keys().chain(new.keys().filter(|name| !former.contains_key(*name)));
    let change = |name: &(String, String)| {
        let (from, to) = (former.get(name).cloned(), new.get(name).cloned());
        let (group, option) = name.clone();
        (from != to).then_some(Change { group, option, from, to })
    };
    names.filter_map(change).collect()
}

/// What the former file has of the provider's options.
pub fn provider_options(text: &str) -> Option<ProviderOptions> {
    let found = lines(text).find_map(|(_, line)| {
        let (name, value) = setting(line)?;
        (canonical(name) == PROVIDER_OPTIONS).then_some(value)
    });
    found.map(ProviderOptions::parse)
}

/// The value of one of the server's options in it.
pub fn value(text: &str, name: &str) -> Option<String> {
    settings(text).remove(&(SERVER.to_owned(), canonical(name)))
}

/// Lines by group that set nothing that is decided here.
fn kept<'a>(former: &'a str, settings: &Settings<'_>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut kept: Vec<(&str, Vec<&str>)> = Vec::new();
    for (group, line) in lines(former) {
        if setting(line).is_some_and(|(name, _)| settings.decides(group, name)) {
            continue;
        }
        match kept.iter_mut().find(|(known, _)| *known == group) {
            Some((_, lines)) => lines.push(line),
            None => kept.push((group, vec![line])),
        }
    }
    kept
}

/// Those that are not empty, with the group that they stand in; the head is none.
pub fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut group = SERVER;
    let lines = text.strip_prefix(HEAD).unwrap_or(text).lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).filter_map(move |line| {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(next) => {
                group = next;
                None
            }
            None => Some((group, line)),
        }
    })
}

/// `name = value`; of a comment none.
pub fn setting(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(['#', ';', '!']) {
        return None;
    }
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    Some((name.trim(), value.trim()))
}

/// By group and name.
fn settings(text: &str) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for (group, line) in lines(text) {
        let Some((name, value)) = setting(line) else { continue };
        let mut put =
            |name: String, value: &str| all.insert((group.to_owned(), name), value.to_owned());
        match canonical(name) {
            name if name == PROVIDER_OPTIONS => {
                let options = ProviderOptions::parse(value);
                options.iter().for_each(|(name, value)| drop(put(name.to_owned(), value)));
            }
            name => drop(put(name, value)),
        }
    }
    all
}

/// Dashes and underscores are the same in names of options.
pub fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(server: &[(&str, &str)], transfers: &[(&str, &str)], former: &str) -> String {
        let [server, transfers] = [server, transfers].map(|all| {
            all.iter().map(|(name, value)| (*name, (*value).to_owned())).collect::<Vec<_>>()
        });
        Settings { server: &server, transfers: &transfers }.render(former)
    }

    #[test]
    fn what_setup_does_not_decide_is_kept() {
        let first = render(&[("bind-address", "0.0.0.0")], &[("encrypt", "3")], "");
        assert_eq!(render(&[("bind-address", "0.0.0.0")], &[("encrypt", "3")], &first), first);
        let more = first.replace(
            "[sst]",
            "# ours\nmax_connections = 900\nskip-name-resolve\n[sst]\ncompressor = zstd",
        );
        let again = render(&[("bind_address", "::")], &[], &format!("{more}[client]\nport = 1\n"));
        assert_eq!(
            again,
            format!(
                "{HEAD}[mariadbd]\n{:<30} = ::\n# ours\nmax_connections = 900\nskip-name-resolve\n\n\
                 [sst]\ncompressor = zstd\n\n[client]\nport = 1\n",
                "bind_address"
            )
        );
    }

    #[test]
    fn changes_are_told_option_by_option() {
        let former = "[mariadbd]\nwsrep_cluster_address = gcomm://a\n\
                      wsrep_provider_options = \"quorate.dir=/d;quorate.zone=eu\"\nwsrep-on = ON\n";
        let new = "[mariadbd]\nwsrep_cluster_address = gcomm://a,b\n\
                   wsrep_provider_options = \"quorate.dir=/d;quorate.priority=70\"\nwsrep_on = ON\n[sst]\nencrypt = 3\n";
        let change = |group: &str, option: &str, from: Option<&str>, to: Option<&str>| Change {
            group: group.into(),
            option: option.into(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        };
        assert_eq!(
            changes(former, new),
            [
                change("mariadbd", "quorate.zone", Some("eu"), None),
                change("mariadbd", "wsrep_cluster_address", Some("gcomm://a"), Some("gcomm://a,b")),
                change("mariadbd", "quorate.priority", None, Some("70")),
                change("sst", "encrypt", None, Some("3")),
            ]
        );
        assert_eq!(changes(new, new), []);
        assert_eq!(value(new, "wsrep-cluster-address").as_deref(), Some("gcomm://a,b"));
        let kept = provider_options(former).expect("it has some");
        assert_eq!(kept.get("quorate.zone"), Some("eu"));
        assert_eq!(provider_options("[mariadbd]\n"), None);
    }
}
