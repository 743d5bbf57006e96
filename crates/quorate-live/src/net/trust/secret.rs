//! The file of the group's secret: the same on all members.
//!
//! ```text
//! # any comment
//! 6f2c...  64 hexadecimal digits: 256 bits
//! a01b...  another one, which is accepted, too: while the secret is changed
//! ```
//!
//! The first is the one that a member proves itself with. So a secret is changed without a stop: the new
//! one is first added as the second on all members, then put first, then left alone.

use super::hex::{digits, parse_digits};
use crate::error::GroupError;
use std::fmt;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const BYTES: usize = 32;
/// So many are accepted at once.
const SECRETS_MAX: usize = 2;
/// A file of secrets is a few lines; whatever is longer is something else.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; BYTES]);

impl Secret {
    pub fn new() -> Result<Secret, GroupError> {
        random_bits().map(Secret)
    }

    /// Makes a file with this secret, for its owner alone. One that is there already stays as it is.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let head = "# The secret of a Quorate group: the same file on all of its members.";
        write_private(path, &format!("{head}\n{}\n", digits(&self.0)))
    }

    /// Adds it to a file, behind those that are there.
    pub fn append(&self, path: &Path) -> Result<(), GroupError> {
        let has = Secrets::read(path)?;
        if has.0.len() == SECRETS_MAX {
            let reason = format!("it has {SECRETS_MAX} secrets already: remove the old one first");
            return Err(bad(path, reason));
        }
        let text = read_private(path).map_err(|reason| bad(path, reason))?;
        // The last line may have been written without an end.
        let end = if text.ends_with('\n') { "" } else { "\n" };
        OpenOptions::new()
            .append(true)
            .open(path)
            .and_then(|mut file| {
                writeln!(file, "{end}{}", digits(&self.0))?;
                file.sync_all()
            })
            .map_err(|error| bad(path, error.to_string()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Nothing of it gets into a log.
impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

/// Those that are valid now; at least one. The first is the member's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Secrets(Vec<Secret>);

impl Secrets {
    pub fn read(path: &Path) -> Result<Secrets, GroupError> {
        read_digits(path).and_then(Secrets::new).map_err(|reason| bad(path, reason))
    }

    #[cfg(test)]
    pub fn of(secrets: Vec<Secret>) -> Secrets {
        Secrets(secrets)
    }

    pub fn own(&self) -> &Secret {
        &self.0[0]
    }

    pub fn all(&self) -> &[Secret] {
        &self.0
    }

    fn new(secrets: Vec<[u8; BYTES]>) -> Result<Secrets, String> {
        match secrets.len() {
            0 => Err("it holds no secret: make one with 'quorate secret new'".into()),
            1..=SECRETS_MAX => Ok(Secrets(secrets.into_iter().map(Secret).collect())),
            more => {
                Err(format!("it holds {more} secrets, at most {SECRETS_MAX} are valid at once"))
            }
        }
    }
}

/// For a secret or a key.
pub(crate) fn random_bits() -> Result<[u8; BYTES], GroupError> {
    super::check_processor()?;
    let mut bytes = [0; BYTES];
    graviola::random::fill(&mut bytes).map_err(|_| GroupError::NoEntropy)?;
    Ok(bytes)
}

/// The lines of a file of secrets or keys, which only its owner can read; else why it cannot be used.
pub(crate) fn read_digits(path: &Path) -> Result<Vec<[u8; BYTES]>, String> {
    read_private(path).and_then(|text| parse(&text))
}

fn parse(text: &str) -> Result<Vec<[u8; BYTES]>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let numbered = lines.map(|(at, line)| {
        let number = at + 1;
        parse_digits(line).ok_or_else(|| format!("line {number} is not 64 hexadecimal digits"))
    });
    numbered.collect()
}

/// The text of a file that is for its owner alone; else why it cannot be used.
pub fn read_private(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<(Metadata, String)> {
        let metadata = fs::metadata(path)?;
        if metadata.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("it is too long to be one"));
        }
        Ok((metadata, fs::read_to_string(path)?))
    };
    let (metadata, text) = read().map_err(|error| error.to_string())?;
    match shown_to_others(&metadata) {
        Some(reason) => Err(reason),
        None => Ok(text),
    }
}

/// A new file with this text, for its owner alone. One that is there already stays as it is.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Why a file is no secret any more. The rule that servers have for private keys: only its owner may read
/// it, or, of root's files, a group.
pub(super) fn shown_to_others(metadata: &Metadata) -> Option<String> {
    let denied = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    let mode = metadata.mode() & 0o777;
    (mode & denied != 0).then(|| {
        format!(
            "others than its owner may read it (mode {mode:o}): chmod 600 it, and if somebody has read it, \
             make another one"
        )
    })
}

fn bad(path: &Path, reason: String) -> GroupError {
    GroupError::SecretFile { path: path.to_owned(), reason }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A folder of one test's.
    pub(crate) struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Folder {
            let dir = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            Folder(dir)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _left = fs::remove_dir_all(&self.0);
        }
    }

    fn told(path: &Path) -> String {
        Secrets::read(path).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read_and_a_second_one_is_behind_it() {
        let folder = Folder::new("secret-two");
        let path = folder.0.join("secret");
        let (first, second) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_ne!(first, second);
        first.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Secrets::read(&path).unwrap().own(), &first);
        assert!(second.write(&path).is_err(), "a file that is there stays");
        second.append(&path).unwrap();
        let both = Secrets::read(&path).unwrap();
        assert_eq!((both.own(), both.all()), (&first, &[first.clone(), second][..]));
        let error = Secret::new().unwrap().append(&path).unwrap_err().to_string();
        assert!(error.contains("remove the old one"), "{error}");
    }

    #[test]
    fn a_second_one_is_added_behind_a_line_without_an_end() {
        let folder = Folder::new("secret-open-end");
        let path = folder.0.join("secret");
        let second = Secret::new().unwrap();
        write_private(&path, &"0".repeat(64)).unwrap();
        second.append(&path).unwrap();
        assert_eq!(Secrets::read(&path).unwrap().all(), [Secret([0; BYTES]), second]);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = Folder::new("secret-modes");
        let path = folder.0.join("secret");
        Secret::new().unwrap().write(&path).unwrap();
        for (mode, fits) in [(0o600, true), (0o400, true), (0o644, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Secrets::read(&path).is_ok(), fits, "{mode:o}");
        }
        assert!(told(&path).contains("mode 604") && told(&path).contains("chmod 600"));
    }

    #[test]
    fn what_is_no_secret_is_refused_with_the_line() {
        let digits = "0".repeat(64);
        let parsed = |text: &str| parse(text).and_then(Secrets::new);
        let reason = |text: &str| parsed(text).unwrap_err();
        assert!(parsed(&format!("# a\n\n  {digits} \r\n")).is_ok());
        assert!(reason("# nothing\n").contains("quorate secret new"));
        assert!(reason(&format!("{digits}\n{digits}0")).starts_with("line 2"));
        assert!(reason(&"é".repeat(32)).starts_with("line 1"));
        assert!(reason(&format!("{digits}\n").repeat(3)).contains("3 secrets"));
        assert!(told(Path::new("/no/such/file")).contains("/no/such/file"));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secrets(vec![Secret([0xab; BYTES])]);
        assert!(!format!("{secret:?}").contains("ab") && !format!("{secret:?}").contains("171"));
    }
}
