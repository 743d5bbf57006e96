//! The options of the provider, as they stand in `wsrep_provider_options`: `name=value;name=value`.

use quorate_live::page;

/// The page that is made of the provider's own table.
const PAGE: &str = include_str!("../../../../docs/options.md");
/// Part of the title of the page's section of those that are no settings.
const ORDERS: &str = "Commands";
pub const DIR: &str = "quorate.dir";
pub const SECRET_FILE: &str = "quorate.secret_file";
pub const ZONE: &str = "quorate.zone";
pub const LISTEN: &str = "gmcast.listen_addr";

/// In their order; a name is there once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderOptions(Vec<(String, String)>);

impl ProviderOptions {
    pub fn parse(text: &str) -> ProviderOptions {
        let mut options = ProviderOptions::default();
        let pairs =
            text.trim().trim_matches('"').split(';').filter_map(|pair| pair.split_once('='));
        pairs.for_each(|(name, value)| options.set(name.trim(), value.trim()));
        options
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// An empty value takes it out.
    pub fn set(&mut self, name: &str, value: &str) {
        let at = self.0.iter().position(|(known, _)| known == name);
        match (at, value.is_empty()) {
            (Some(at), true) => drop(self.0.remove(at)),
            (Some(at), false) => self.0[at].1 = value.to_owned(),
            (None, true) => {}
            (None, false) => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// These before the others.
    pub fn begin_with(&mut self, first: Vec<(&str, String)>) {
        let first = first.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.0.splice(0..0, first);
    }

    pub fn render(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(";")
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// What stands behind `--option`: `NAME=VALUE`, a setting that the provider knows and that no other option of `setup`
/// is for.
pub fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("it is NAME=VALUE; NAME= takes an option out")?;
    let (name, value) = (name.trim(), value.trim());
    match name {
        DIR => return Err("say --log-dir".to_owned()),
        SECRET_FILE => return Err("say --secret-file".to_owned()),
        _ => {}
    }
    match section(name) {
        None => {
            return Err(format!(
                "{name} is no option of the provider; {} lists them",
                page!("docs/options.md")
            ))
        }
        Some(title) if title.starts_with(ORDERS) => {
            return Err(format!("{name} is an order for a node that runs, and no setting"));
        }
        Some(_) => {}
    }
    // Each would end the value, or the line, too early.
    if value.contains([';', '"', '\'', '\\', '#', '\n']) {
        return Err(format!("the value of {name} has a character that it cannot have"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Whether the value is the path of a file that has to be there.
pub fn is_file(name: &str) -> bool {
    name.ends_with("_file")
        || ["socket.ssl_cert", "socket.ssl_key", "socket.ssl_ca", "socket.ssl_crl"].contains(&name)
}

/// The title of the section that an option stands in; `None`: there is no such option.
fn section(name: &str) -> Option<&'static str> {
    let row = format!("| `{name}` |");
    let mut title = "";
    for line in PAGE.lines() {
        match line.strip_prefix("## ") {
            Some(next) => title = next,
            None if line.starts_with(&row) => return Some(title),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_kept_in_their_order_each_once() {
        let mut options = ProviderOptions::parse("\"a=1; b = 2;;a=3\"");
        assert_eq!(options.render(), "a=3;b=2");
        options.set("c", "4");
        options.set("a", "");
        options.begin_with(vec![("z", "0".into())]);
        assert_eq!((options.render().as_str(), options.get("b")), ("z=0;b=2;c=4", Some("2")));
        assert_eq!(options.take("b").as_deref(), Some("2"));
        assert_eq!(options.get("b"), None);
    }

    #[test]
    fn only_settings_that_the_provider_knows_are_taken() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(setting("quorate.log_retain = 2G"), pair("quorate.log_retain", "2G"));
        assert_eq!(setting("quorate.zone="), pair("quorate.zone", ""));
        assert_eq!(
            setting("gcache.size=1G"),
            pair("gcache.size", "1G"),
            "as Galera's users have it"
        );
        for (wrong, part) in [
            ("quorate.log_retain", "NAME=VALUE"),
            ("quorate.log_retian=2G", "no option of the provider"),
            ("quorate.switchover=any", "an order"),
            ("quorate.dir=/x", "--log-dir"),
            ("quorate.secret_file=/x", "--secret-file"),
            ("quorate.zone=a;b=c", "a character"),
        ] {
            let error = setting(wrong).unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn files_are_told_from_other_values() {
        for (name, file) in [
            ("quorate.encrypt_key_file", true),
            ("socket.ssl_ca", true),
            ("quorate.zone", false),
            ("socket.ssl_cipher", false),
        ] {
            assert!(section(name).is_some());
            assert_eq!(is_file(name), file, "{name}");
        }
    }
}
