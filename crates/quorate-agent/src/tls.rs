//! The certificate that the agent shows, and its key.
//!
//! Invariant: what is shown was read whole, and the key fits. Files that are changed are read again at the next
//! use that is a second after the last look: when somebody connects, or asks for the certificate's end on a connection
//! that stays. If they cannot be used, the former certificate stays in use, and a line says why, once for each change.

use crate::journal::say;
use parking_lot::{Mutex, MutexGuard};
use quorate_live::{https, GroupError, Https};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tokio_rustls::TlsAcceptor;

/// Between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The files, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those between it and its CA.
    pub cert: PathBuf,
    pub key: PathBuf,
}

pub struct Tls {
    files: TlsFiles,
    state: Mutex<State>,
}

struct State {
    shown: Https,
    /// How the files were when they were read last, whatever came of it.
    read: [Stamp; 2],
    looked: Instant,
}

/// What differs once a file was changed or replaced: when, which, how long. `None`: it is not there.
type Stamp = Option<(i64, i64, u64, u64)>;

impl Tls {
    pub fn read(files: TlsFiles) -> Result<Tls, GroupError> {
        // Before they are read: a change meanwhile is seen at the next look.
        let read = files.stamps();
        let shown = https(&files.cert, &files.key)?;
        Ok(Tls { files, state: Mutex::new(State { shown, read, looked: Instant::now() }) })
    }

    /// Until the certificate in use ends, or one behind it that ends sooner; below 0 from then on.
    pub fn days_left(&self) -> Option<i64> {
        self.current().shown.expiry.as_ref().map(|expiry| expiry.days_left(SystemTime::now()))
    }

    /// With the certificate as it is now.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.current().shown.config.clone().into()
    }

    /// As the files are, or were a second ago.
    fn current(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        if state.looked.elapsed() >= LOOK_EVERY {
            state.looked = Instant::now();
            self.look(&mut state);
        }
        state
    }

    fn look(&self, state: &mut State) {
        let stamps = self.files.stamps();
        if state.read == stamps {
            return;
        }
        state.read = stamps;
        match https(&self.files.cert, &self.files.key) {
            Ok(shown) => {
                state.shown = shown;
                say(&format!("{} was read again", self.files.cert.display()));
            }
            Err(error) => say(&format!("the former certificate stays in use: {error}")),
        }
    }
}

impl TlsFiles {
    fn stamps(&self) -> [Stamp; 2] {
        [stamp(&self.cert), stamp(&self.key)]
    }
}

fn stamp(path: &Path) -> Stamp {
    let file = fs::metadata(path).ok()?;
    Some((file.mtime(), file.mtime_nsec(), file.ino(), file.len()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    pub(crate) const OWN: &str = "own";
    pub(crate) const OTHER: &str = "other";

    /// A certificate that is its own CA, and is none of another's.
    const OPENSSL: &str = "[req]\ndistinguished_name=name\nx509_extensions=extensions\n[name]\n\
                           [extensions]\nbasicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n";

    /// A folder of one test's.
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Folder {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("quorate-agent-{name}-{id}"));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("openssl.cnf"), OPENSSL).unwrap();
            Folder(path)
        }

        pub(crate) fn files(&self, name: &str) -> TlsFiles {
            let path = |end: &str| self.0.join(format!("{name}{end}.pem"));
            TlsFiles { cert: path(""), key: path("-key") }
        }

        /// Makes a key and its certificate.
        pub(crate) fn make(&self, name: &str) -> TlsFiles {
            self.make_for(name, 30)
        }

        fn make_for(&self, name: &str, days: u32) -> TlsFiles {
            let files = self.files(name);
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-config"]).arg(self.0.join("openssl.cnf"));
            openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
            openssl.args(["-days", &days.to_string(), "-subj", &format!("/CN={name}")]);
            let done = openssl.arg("-keyout").arg(&files.key).arg("-out").arg(&files.cert);
            let done = done.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            files
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _left = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_end_of_the_certificate_is_known_in_days() {
        let folder = Folder::new("days");
        // Made for thirty days, a moment ago.
        let tls = Tls::read(folder.make(OWN)).unwrap();
        assert_eq!(tls.days_left(), Some(29));
        // Renewed, and nobody connects.
        folder.make_for(OWN, 90);
        tls.state.lock().looked -= LOOK_EVERY;
        assert_eq!(tls.days_left(), Some(89));
    }

    #[test]
    fn files_that_cannot_be_used_are_refused_with_a_sentence_that_names_them() {
        let folder = Folder::new("bad");
        let (own, other) = (folder.make(OWN), folder.make(OTHER));
        let refusal = |cert: &Path, key: &Path| {
            let files = TlsFiles { cert: cert.to_owned(), key: key.to_owned() };
            Tls::read(files).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(&own.cert, &own.key), "");
        let nowhere = folder.files("nowhere").cert;
        for (cert, key, what) in [
            (&nowhere, &own.key, "nowhere.pem cannot be used for HTTPS"),
            (&own.cert, &nowhere, "nowhere.pem cannot be used for HTTPS"),
            (&own.cert, &other.key, "other-key.pem cannot be used for HTTPS: it does not fit"),
            (&own.key, &own.key, "own-key.pem cannot be used for HTTPS: it holds no certificate"),
            (&own.cert, &own.cert, "(--tls-cert, --tls-key)"),
        ] {
            let said = refusal(cert, key);
            assert!(said.contains(what), "{what}: {said}");
        }
        fs::set_permissions(&own.key, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(&own.cert, &own.key).contains("chmod 600"));
    }
}
