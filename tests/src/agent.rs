//! `quorate agent` beside a node of a cluster, and what it answers.

use crate::cluster::{command_path, TestCluster};
use crate::program::beside;
use anyhow::{Context, Result};
use quorate_lab::server::secret_in;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Of those who may give orders.
pub const TOKEN: &str = "a token that is long enough";

/// It ends with this.
pub struct Agent {
    child: Child,
    /// Where it speaks HTTP, `host:port`.
    pub address: String,
}

impl Agent {
    pub fn of(cluster: &TestCluster, node: u16) -> Result<Agent> {
        let (credential, token) = (cluster.dir.join("agent.operator"), cluster.dir.join("token"));
        if !credential.exists() {
            let secret = secret_in(&cluster.dir).context("the cluster has no secret")?;
            let (secret, out) = (secret.display().to_string(), credential.display().to_string());
            let new = ["operator", "new", "agent", "--secret-file", &secret, "--out", &out];
            cluster.quorate(&new)?;
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&token)?;
            file.write_all(TOKEN.as_bytes())?;
        }
        let mut child = beside(&command_path())
            .args(["agent", "--listen", "127.0.0.1:0", "--member"])
            .arg(cluster.group_address(node))
            .arg("--operator-file")
            .arg(&credential)
            .arg("--token-file")
            .arg(&token)
            .stderr(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let said = child.stderr.take().context("it has no output")?;
        BufReader::new(said).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.with_context(|| format!("it says {line:?}"))?.to_owned();
        Ok(Agent { child, address })
    }

    /// Status code, body, and how long that took.
    pub fn ask(&self, request: &str, more: &str) -> Result<(u16, String, Duration)> {
        let begin = Instant::now();
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        write!(stream, "{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{more}")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let code = text.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        Ok((code.context("no status")?, body.unwrap_or_default(), begin.elapsed()))
    }

    pub fn code(&self, path: &str) -> Result<u16> {
        Ok(self.ask(&format!("GET {path}"), "\r\n")?.0)
    }

    pub fn json(&self, path: &str) -> Result<Value> {
        let (_, body, _) = self.ask(&format!("GET {path}"), "\r\n")?;
        serde_json::from_str(&body).with_context(|| body.clone())
    }

    /// Sends an order, as tools do that do not say of what type its body is.
    pub fn order(
        &self,
        path: &str,
        body: &str,
        authorization: Option<&str>,
    ) -> Result<(u16, String)> {
        let shown = authorization.map(|shown| format!("Authorization: {shown}\r\n"));
        let more =
            format!("Content-Length: {}\r\n{}\r\n{body}", body.len(), shown.unwrap_or_default());
        let (code, said, _) = self.ask(&format!("POST {path}"), &more)?;
        Ok((code, said))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
