//! A CA and what it signs, made as an administrator would.

use super::FORKS;
use quorate_live::{TlsOptions, ANY_NAME};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
const VALID: [&str; 2] = ["-days", "3650"];
/// What `openssl ca` needs to know to keep a revocation list, and to sign.
const REGISTER: &str =
    "[ca]\ndefault_ca=d\n[d]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\n\
     default_crl_days=30\ncertificate=ca.pem\nprivate_key=ca-key.pem\nnew_certs_dir=.\n\
     rand_serial=yes\nunique_subject=no\npolicy=names\n[names]\ncommonName=supplied\n";

/// A directory.
pub struct Authority {
    pub dir: PathBuf,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir()
            .join(format!("quorate-certificates-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("extensions"), "basicConstraints=CA:FALSE\n").unwrap();
        let made = Self { dir };
        let own = ["req", "-x509", "-subj", "/CN=ca", "-keyout", "ca-key.pem", "-out", "ca.pem"];
        made.openssl(&[&own[..], &NEW_KEY, &VALID].concat());
        made
    }

    /// The same CA, with a certificate for so many days.
    pub fn renew_ca(&self, days: &str) {
        let own = ["req", "-x509", "-subj", "/CN=ca", "-key", "ca-key.pem", "-out", "ca.pem"];
        self.openssl(&[&own[..], &["-days", days]].concat());
    }

    /// A new key and certificate for `NAME.example`, in files of this name.
    pub fn issue(&self, name: &str) -> TlsOptions {
        self.issue_to(name, &format!("DNS:{name}.example"))
    }

    /// With these alternative names, as openssl writes them; without any, of the subject `/CN=node`.
    pub fn issue_to(&self, name: &str, names: &str) -> TlsOptions {
        let extensions = match names.is_empty() {
            true => "basicConstraints=CA:FALSE\n".to_owned(),
            false => format!("basicConstraints=CA:FALSE\nsubjectAltName={names}\n"),
        };
        fs::write(self.dir.join("extensions"), extensions).unwrap();
        self.sign(name, &["-extfile", "extensions"])
    }

    pub fn sign(&self, name: &str, more: &[&str]) -> TlsOptions {
        let tls = self.files(name, Some("ca.pem"));
        self.request(&tls);
        self.issue_for(&tls, &VALID, more);
        tls
    }

    pub fn request(&self, tls: &TlsOptions) {
        let key = text(&tls.key);
        let request = ["req", "-subj", "/CN=node", "-keyout", key, "-out", "request.pem"];
        self.openssl(&[&request[..], &NEW_KEY].concat());
    }

    pub fn issue_for(&self, tls: &TlsOptions, valid: &[&str], more: &[&str]) {
        let sign = ["x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca-key.pem"];
        let out = ["-CAcreateserial", "-out", text(&tls.cert)];
        self.openssl(&[&sign[..], &out, valid, more].concat());
    }

    pub fn self_signed(&self) -> TlsOptions {
        let tls = self.files("self", None);
        let (cert, key) = (text(&tls.cert), text(&tls.key));
        let own = ["req", "-x509", "-subj", "/CN=all", "-keyout", key, "-out", cert];
        self.openssl(&[&own[..], &NEW_KEY, &VALID].concat());
        tls
    }

    pub fn files(&self, name: &str, ca: Option<&str>) -> TlsOptions {
        let path = |end: &str| self.dir.join(format!("{name}-{end}.pem"));
        TlsOptions {
            cert: path("cert"),
            key: path("key"),
            ca: ca.map(|name| self.dir.join(name)),
            names: vec![ANY_NAME.to_owned()],
            crl: None,
            ciphers: String::new(),
            dynamic: false,
        }
    }

    /// For what was requested last: a certificate that has ended.
    pub fn issue_ended(&self, tls: &TlsOptions) {
        self.keep_register();
        let sign = ["ca", "-config", "register", "-batch", "-notext", "-in", "request.pem"];
        let dates = ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z"];
        let out = ["-extfile", "extensions", "-out", text(&tls.cert)];
        self.openssl(&[&sign[..], &dates, &out].concat());
    }

    fn keep_register(&self) {
        for (file, text) in [("register", REGISTER), ("index", ""), ("number", "01\n")] {
            if !self.dir.join(file).exists() {
                fs::write(self.dir.join(file), text).unwrap();
            }
        }
    }

    /// Writes the list of what was revoked so far, and gives its file.
    pub fn revocation_list(&self) -> PathBuf {
        self.keep_register();
        let list = ["ca", "-config", "register", "-gencrl", "-out", "revoked.pem"];
        self.openssl(&list);
        self.dir.join("revoked.pem")
    }

    pub fn revoke(&self, tls: &TlsOptions) {
        self.revocation_list();
        self.openssl(&["ca", "-config", "register", "-revoke", text(&tls.cert)]);
        self.revocation_list();
    }

    fn openssl(&self, arguments: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args(arguments).current_dir(&self.dir);
        openssl.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let forked = FORKS.write();
        let child = openssl.spawn().unwrap();
        drop(forked);
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.dir);
    }
}
