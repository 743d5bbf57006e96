//! The files, and what OpenSSL, with which the server's scripts read them, says of them.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let dir =
            std::env::temp_dir().join(format!("quorate-transfer-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Folder(dir)
    }

    fn write(&self, secrets: &[&Secret]) -> TransferFiles {
        let files = TransferFiles::of(&self.0);
        let secrets = secrets.iter().map(|secret| (*secret).clone()).collect();
        files.write(&Secrets::of(secrets)).unwrap();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// What it prints, if it succeeds.
fn openssl(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(said(&output.stdout) + &said(&output.stderr)),
    }
}

fn takes(ca: &Path, cert: &Path) -> bool {
    openssl(&["verify", "-x509_strict", "-CAfile", ca.to_str().unwrap(), cert.to_str().unwrap()])
        .is_ok()
}

#[test]
fn one_secret_gives_one_identity_on_all_members() {
    let (one, other) = (Secret::new().unwrap(), Secret::new().unwrap());
    let folders = ["one", "two", "three"].map(Folder::new);
    let here = folders[0].write(&[&one]);
    let there = folders[1].write(&[&one]);
    let elsewhere = folders[2].write(&[&other]);
    for (here, there, elsewhere) in [
        (&here.cert, &there.cert, &elsewhere.cert),
        (&here.key, &there.key, &elsewhere.key),
        (&here.ca, &there.ca, &elsewhere.ca),
    ] {
        assert_eq!(text(here), text(there));
        assert_ne!(text(here), text(elsewhere));
    }
}

#[test]
fn openssl_takes_the_certificate_of_the_secret_and_no_other() {
    let (one, other) = (Secret::new().unwrap(), Secret::new().unwrap());
    let folders = ["ours", "theirs", "changing"].map(Folder::new);
    let (ours, theirs) = (folders[0].write(&[&one]), folders[1].write(&[&other]));
    let changing = folders[2].write(&[&one, &other]);
    assert!(takes(&ours.ca, &ours.cert) && takes(&theirs.ca, &theirs.cert));
    assert!(!takes(&ours.ca, &theirs.cert) && !takes(&theirs.ca, &ours.cert));
    // While the secret is changed: the member shows the first, and takes both.
    assert_eq!(text(&changing.cert), text(&ours.cert));
    assert!(takes(&changing.ca, &ours.cert) && takes(&changing.ca, &theirs.cert));

    let of = |path: &Path| path.to_str().unwrap().to_owned();
    let shown = openssl(&["x509", "-in", &of(&ours.cert), "-pubkey", "-noout"]).unwrap();
    assert_eq!(shown, openssl(&["pkey", "-in", &of(&ours.key), "-pubout"]).unwrap());
    let names = |files: &TransferFiles| {
        openssl(&["x509", "-in", &of(&files.cert), "-noout", "-subject", "-enddate"]).unwrap()
    };
    assert!(names(&ours).contains("CN = quorate-") && names(&ours).contains("9999"));
    assert_ne!(names(&ours), names(&theirs));
}

#[test]
fn the_files_are_their_owners_alone_and_stay_as_they_are() {
    let secret = Secret::new().unwrap();
    let folder = Folder::new("files");
    let files = folder.write(&[&secret]);
    let made = |path: &Path| fs::metadata(path).unwrap().ino();
    let before = [made(&files.cert), made(&files.ca)];
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
    folder.write(&[&secret]);
    assert_eq!([made(&files.cert), made(&files.ca)], before, "nothing changed");
    for path in [&files.cert, &files.key, &files.ca] {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
    }
    fs::write(&files.key, "damaged").unwrap();
    folder.write(&[&secret]);
    assert!(text(&files.key).starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3, "nothing else is left there");
}

/// Another one would shut out the members that still run with the former release.
#[test]
fn the_identity_of_a_secret_is_the_same_in_all_releases() {
    let folder = Folder::new("fixed");
    let secret = folder.0.join("secret");
    fs::write(&secret, "7".repeat(64)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let files = TransferFiles::of(&folder.0);
    files.write(&Secrets::read(&secret).unwrap()).unwrap();
    assert_eq!(text(&files.cert), include_str!("sevens.pem"));
}
