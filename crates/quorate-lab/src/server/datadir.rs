//! Datadirs of a new cluster.

use super::software::find_program;
use super::{Account, Node};
use crate::leftovers::clear;
use anyhow::{bail, Context, Result};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Present as long as the datadir is the copy that its cluster began with: a state transfer
/// clears the datadir first, and this file with it.
const TEMPLATE_MARK: &str = "quorate_template";
/// The state transfer scripts keep this file while they work.
const TRANSFER_MARK: &str = "sst_in_progress";

/// True if the datadir holds a whole database; otherwise state transfer fills it.
pub fn has_data(node: &Node) -> bool {
    let data = node.data();
    data.join("mysql").is_dir() && !data.join(TRANSFER_MARK).exists()
}

/// True if the datadir began as the common template: where it has no position, that is seqno 0.
pub fn is_template(node: &Node) -> bool {
    node.data().join(TEMPLATE_MARK).exists()
}

/// Installs the system tables once, at `template`, and copies them to all of `nodes`, so that all
/// begin with equal content and none needs a state transfer.
pub fn make_datadirs(nodes: &[Node], template: &Path, account: &Account) -> Result<()> {
    copy_datadirs(nodes, template, account, |data, tmp| install(data, tmp, account))
}

/// As [`make_datadirs`]: `install` is given an empty datadir and a folder for temporary tables, both
/// the account's.
pub fn copy_datadirs(
    nodes: &[Node],
    template: &Path,
    account: &Account,
    install: impl FnOnce(&Path, &Path) -> Result<()>,
) -> Result<()> {
    clear(template)?;
    fs::create_dir(template).with_context(|| format!("making {}", template.display()))?;
    account.own(template, 0o700)?;
    // Of its own: a server that starts clears what others have in the folder that all share.
    let tmp = template.with_extension("tmp");
    clear(&tmp)?;
    fs::create_dir(&tmp).with_context(|| format!("making {}", tmp.display()))?;
    account.own(&tmp, 0o700)?;
    install(template, &tmp)?;
    clear(&tmp)?;
    for node in nodes {
        copy(template, &node.data())?;
    }
    clear(template)
}

/// Copies under another name first, so that an interrupted copy is never taken for data.
fn copy(template: &Path, data: &Path) -> Result<()> {
    let unfinished = data.with_extension("new");
    clear(&unfinished)?;
    let output = Command::new("cp")
        .args(["-a", "--reflink=auto", "--sparse=always"])
        .args([template, &unfinished])
        .output()
        .context("running cp")?;
    if !output.status.success() {
        bail!("copying {} failed: {}", template.display(), text(&output.stderr));
    }
    clear(data)?;
    fs::rename(&unfinished, data).with_context(|| format!("making {}", data.display()))
}

/// Installs the system tables into `data`, with temporary tables in `tmp`.
fn install(data: &Path, tmp: &Path, account: &Account) -> Result<()> {
    let program = find_program("mariadb-install-db").context("mariadb-install-db vanished")?;
    let mut command = Command::new(program);
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", tmp.display()))
        .args(["--skip-test-db", "--skip-name-resolve"])
        .arg("--auth-root-authentication-method=socket")
        .arg(format!("--auth-root-socket-user={}", account.name))
        .args(account.switch.then(|| format!("--user={}", account.name)));
    let output = command.output().context("running mariadb-install-db")?;
    if !output.status.success() || !data.join("mysql").is_dir() {
        bail!(
            "mariadb-install-db failed in {}:\n{}{}",
            data.display(),
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    // The folder is another account's by now: its links are not followed.
    let mark = data.join(TEMPLATE_MARK);
    File::create_new(&mark).map(drop).with_context(|| format!("making {}", mark.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
