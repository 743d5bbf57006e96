//! With what a member encrypts its files.
//!
//! A key file is this node's own (each node has another). It holds one key a line, 64 hexadecimal digits:
//! the first is for new files, all of them are tried for those that are there. So a key is changed by a new
//! first line and a restart, and its line stays until no file needs it. Keys of 256 random bits and modes
//! of files are as with secrets.

use crate::error::GroupError;
use crate::net::trust::{check_processor, digits, random_bits, read_digits, write_private};
use crate::private_file;
use quorate_wal::{DiskKeyId, DiskKeys};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// So many lines a file may have: each change of the key adds one, until the old ones are needless.
const KEYS_MAX: usize = 16;
const HEADING: &str =
    "# What a Quorate node encrypts its log with: this node's alone. Without it the log is lost.";

/// Whether, and with what, a member's files are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtRest {
    /// New files are; those that are there are read whatever they are.
    pub encrypts: bool,
    /// None that is in the clear is read, if new ones are encrypted.
    pub refuses_plain: bool,
    /// The file with this node's keys.
    pub key_file: Option<PathBuf>,
    /// What the server gave, the newest first; tried behind those of the file.
    pub given: Vec<DiskKey>,
}

/// A key of 256 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct DiskKey([u8; 32]);

impl AtRest {
    pub(crate) fn load(&self) -> Result<DiskKeys, GroupError> {
        let mut keys = match &self.key_file {
            Some(path) => read(path)?,
            None => Vec::new(),
        };
        keys.extend(self.given.iter().map(|key| key.0));
        if keys.is_empty() {
            return if self.encrypts {
                Err(GroupError::NoDiskKey)
            } else {
                Ok(DiskKeys::default())
            };
        }
        check_processor()?;
        let keys = DiskKeys::new(&keys, self.encrypts);
        Ok(if self.refuses_plain { keys.refusing_plain() } else { keys })
    }
}

impl DiskKey {
    /// 256 random bits.
    pub fn new() -> Result<DiskKey, GroupError> {
        random_bits().map(DiskKey)
    }

    /// What was made of something that a server has as a key, whatever its length.
    pub fn of_server(key: &[u8]) -> Result<DiskKey, GroupError> {
        check_processor()?;
        let mut mac = graviola::hashing::hmac::Hmac::<graviola::hashing::Sha256>::new(key);
        mac.update(b"quorate: the server's key");
        let mut bytes = [0; 32];
        bytes.copy_from_slice(mac.finish().as_ref());
        Ok(DiskKey(bytes))
    }

    /// What it is known by.
    pub fn id(&self) -> DiskKeyId {
        DiskKeys::id_of(&self.0)
    }

    /// Makes a file with this key, for its owner alone. One that is there already stays as it is.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_private(path, &format!("{HEADING}\n{}\n", digits(&self.0)))
    }

    /// Puts it into a file, before those that are there. The file is replaced as a whole, by one of the same
    /// owner and mode: none of its keys is ever lost.
    pub fn prepend(&self, path: &Path) -> Result<(), GroupError> {
        if read(path)?.len() == KEYS_MAX {
            let reason = format!(
                "it has {KEYS_MAX} keys already: remove the last ones, which no file needs any more"
            );
            return Err(bad(path, reason));
        }
        fs::read_to_string(path)
            .and_then(|text| {
                let text = format!("{}\n{}\n", digits(&self.0), text.trim_end());
                private_file::replace_alike(path, text.as_bytes())
            })
            .map_err(|error| bad(path, error.to_string()))
    }
}

/// Nothing of it gets into a log.
impl std::fmt::Debug for DiskKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "DiskKey({})", self.id())
    }
}

fn read(path: &Path) -> Result<Vec<[u8; 32]>, GroupError> {
    let keys = read_digits(path).map_err(|reason| bad(path, reason))?;
    match keys.len() {
        0 => Err(bad(path, "it holds no key: make one with 'quorate key new'".into())),
        1..=KEYS_MAX => Ok(keys),
        more => Err(bad(path, format!("it holds {more} keys, at most {KEYS_MAX} are taken"))),
    }
}

fn bad(path: &Path, reason: String) -> GroupError {
    GroupError::DiskKeyFile { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::trust::Folder;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn at_rest(path: &Path, encrypts: bool) -> AtRest {
        AtRest { encrypts, key_file: Some(path.to_owned()), ..AtRest::default() }
    }

    fn key() -> DiskKey {
        DiskKey::new().unwrap()
    }

    #[test]
    fn a_new_key_is_first_and_the_old_ones_stay() {
        let folder = Folder::new("key-first");
        let path = folder.0.join("key");
        let (old, new) = (key(), key());
        old.write(&path).unwrap();
        assert!(new.write(&path).is_err(), "a file that is there stays");
        let keys = at_rest(&path, true).load().unwrap();
        assert_eq!(keys.encrypts_with(), Some(old.id()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        fs::write(folder.0.join("key.new"), "what a crash left").unwrap();
        new.prepend(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o400);
        let keys = at_rest(&path, true).load().unwrap();
        assert_eq!(keys.encrypts_with(), Some(new.id()));
        assert_eq!(keys.to_string(), format!("{}, {}", new.id(), old.id()));
        assert_eq!(at_rest(&path, false).load().unwrap().encrypts_with(), None);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left beside it");
        for _ in 2..KEYS_MAX {
            key().prepend(&path).unwrap();
        }
        let error = key().prepend(&path).unwrap_err().to_string();
        assert!(error.contains("16 keys already"), "{error}");
    }

    #[test]
    fn what_cannot_be_a_key_file_is_refused() {
        let folder = Folder::new("key-bad");
        let path = folder.0.join("key");
        let refusal = |at_rest: AtRest| at_rest.load().unwrap_err().to_string();
        assert!(refusal(at_rest(&path, true)).contains(path.to_str().unwrap()));
        key().write(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(at_rest(&path, false)).contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "# nothing\n").unwrap();
        assert!(refusal(at_rest(&path, true)).contains("quorate key new"));
        fs::write(&path, "abc\n").unwrap();
        assert!(refusal(at_rest(&path, true)).contains("line 1"));
    }

    #[test]
    fn encryption_without_a_key_is_refused_and_a_key_of_the_servers_is_one() {
        let none = AtRest { encrypts: true, ..AtRest::default() };
        assert!(none.load().unwrap_err().to_string().contains("quorate.encrypt_key_file"));
        assert_eq!(AtRest::default().load().unwrap().encrypts_with(), None);
        let given = DiskKey::of_server(b"of any length").unwrap();
        let server = AtRest { given: vec![given.clone()], ..none };
        assert_eq!(server.load().unwrap().encrypts_with(), Some(given.id()));
        assert_ne!(DiskKey::of_server(b"another").unwrap().id(), given.id());
    }

    #[test]
    fn a_key_is_not_shown() {
        assert!(!format!("{:?}", DiskKey([0xab; 32])).contains("abab"));
    }
}
