//! Opens a page in headless Chromium, for tests: what it asks for, what it complains about, and what
//! stands where.
//!
//! Chromium is told what to do through a pair of pipes: JSON, each message ended by a zero byte.

use anyhow::{bail, ensure, Context, Result};
use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::{json, Value};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub width: u32,
    pub dark: bool,
    /// As on paper.
    pub print: bool,
}

/// A4, landscape, within its margins, in pixels of the style sheet.
const PAPER_WIDTH: u32 = 1032;

impl View {
    /// All in which a report must be readable.
    pub const ALL: [View; 5] = [
        View { width: 1400, dark: false, print: false },
        View { width: 1400, dark: true, print: false },
        View { width: 375, dark: false, print: false },
        View { width: 375, dark: true, print: false },
        View { width: PAPER_WIDTH, dark: false, print: true },
    ];

    pub fn name(self) -> String {
        let scheme = if self.dark { "dark" } else { "light" };
        let medium = if self.print { "paper" } else { "screen" };
        format!("{}-{scheme}-{medium}", self.width)
    }
}

/// A running Chromium, which ends with it.
pub struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    folder: PathBuf,
    session: Option<String>,
    next: u64,
    /// What came besides answers.
    events: Vec<Value>,
}

/// Texts of charts that are over each other or beyond the edge, and what is wider than the window.
const MEASURE: &str = r#"(() => {
    const wrong = [];
    const root = document.documentElement;
    if (root.scrollWidth > window.innerWidth) {
        for (const element of document.querySelectorAll('body *')) {
            const box = element.getBoundingClientRect();
            if (box.right > window.innerWidth + 1 && !element.closest('.scroll')) {
                const text = element.textContent.slice(0, 60);
                wrong.push('wider than the window: ' + element.tagName + ' ' + text);
                break;
            }
        }
        wrong.push('the page is ' + root.scrollWidth + ' wide in a window of ' + window.innerWidth);
    }
    if (matchMedia('print').matches) {
        for (const table of document.querySelectorAll('table')) {
            if (table.getBoundingClientRect().right > window.innerWidth + 1) {
                wrong.push('a table wider than the paper: ' + table.textContent.slice(0, 80));
            }
        }
    }
    const slack = 2;
    let charts = 0;
    for (const svg of document.querySelectorAll('svg')) {
        const frame = svg.getBoundingClientRect();
        if (!frame.width) continue;
        charts += 1;
        const texts = [...svg.querySelectorAll('text')].map(
            text => [text.textContent.trim(), text.getBoundingClientRect()]);
        const chart = svg.getAttribute('aria-label');
        texts.forEach(([text, box], at) => {
            if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
                wrong.push(chart + ': cut off: ' + text);
            }
            for (const [other, there] of texts.slice(at + 1)) {
                const across = Math.min(box.right, there.right) - Math.max(box.left, there.left);
                const down = Math.min(box.bottom, there.bottom) - Math.max(box.top, there.top);
                if (across > slack && down > slack) {
                    wrong.push(chart + ': "' + text + '" over "' + other + '"');
                }
            }
        });
    }
    return JSON.stringify({wrong, charts});
})()"#;

impl Browser {
    /// Starts the `chromium` of Debian.
    pub fn start() -> Result<Browser> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("quorate-browser-{process}-{number}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let pipes = [folder.join("to"), folder.join("from")];
        let made = Command::new("mkfifo").args(&pipes).status().context("mkfifo")?;
        ensure!(made.success(), "mkfifo: {made}");
        let process = Command::new("sh")
            .arg("-c")
            .arg(
                "exec chromium --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe \
                 --hide-scrollbars --disable-background-networking --no-first-run \
                 --user-data-dir=\"$0/profile\" about:blank 3<\"$0/to\" 4>\"$0/from\"",
            )
            .arg(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting sh")?;
        let to = File::options().write(true).open(&pipes[0])?;
        let from = BufReader::new(File::open(&pipes[1])?);
        let (session, events) = (None, Vec::new());
        let mut browser = Browser { process, to, from, folder, session, next: 1, events };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = target.context("is chromium installed? make test-packages")?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Opens a page; what is wrong with it. `charts_min` must be seen.
    pub fn look_at(&mut self, page: &Path, view: View, charts_min: u64) -> Result<Vec<String>> {
        let page = fs::canonicalize(page)?;
        let url = format!("file://{}", page.display());
        self.visit(&url, view)?;
        let measured = self.call("Runtime.evaluate", json!({"expression": MEASURE}))?;
        let measured = measured["result"]["value"].as_str().context("nothing measured")?;
        let measured: Value = serde_json::from_str(measured)?;
        let wrong = measured["wrong"].as_array().into_iter().flatten();
        let mut wrong: Vec<String> = wrong.map(|line| line.as_str().unwrap_or("").into()).collect();
        let charts = measured["charts"].as_u64().unwrap_or(0);
        if charts < charts_min {
            wrong.push(format!("{charts} charts are seen"));
        }
        wrong.extend(complaints(&self.events, |asked| asked == url));
        Ok(wrong)
    }

    /// The same in all views, each fault with its view. With `SCREENSHOTS` in the environment, pictures are left
    /// beside the page.
    pub fn look_everywhere(&mut self, page: &Path, charts_min: u64) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for view in View::ALL {
            let name = view.name();
            let faults = self.look_at(page, view, charts_min)?;
            wrong.extend(faults.iter().map(|fault| format!("{name}: {fault}")));
            if std::env::var_os("SCREENSHOTS").is_some() {
                self.screenshot(&page.with_extension(format!("{name}.png")))?;
            }
        }
        Ok(wrong)
    }

    /// Opens what is at this address, in a window of this kind.
    pub fn visit(&mut self, url: &str, view: View) -> Result<()> {
        self.show_as(view)?;
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }))?;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.receive()?;
        }
        Ok(())
    }

    /// What this JavaScript says of the page that is open.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", asked)?;
        ensure!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        Ok(answer["result"]["value"].take())
    }

    /// A click with the mouse into the middle of the element that this selects.
    pub fn click(&mut self, selector: &str) -> Result<()> {
        let place = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}}); \
             const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ))?;
        for (kind, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "buttons": buttons, "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// A key of the keyboard, such as `Tab` or `Enter`.
    pub fn press(&mut self, key: &str) -> Result<()> {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            other => bail!("the key {other}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text
            });
            self.call("Input.dispatchKeyEvent", event)?;
        }
        Ok(())
    }

    /// Text into whatever has the focus.
    pub fn enter(&mut self, text: &str) -> Result<()> {
        self.call("Input.insertText", json!({ "text": text })).map(drop)
    }

    /// What the page that is open asked of others than `origin`, and what it complained about, since it was opened.
    pub fn complaints(&mut self, origin: &str) -> Vec<String> {
        complaints(&self.events, |asked| asked.starts_with(origin))
    }

    /// The whole page that is open, as PNG.
    pub fn screenshot(&mut self, file: &Path) -> Result<()> {
        let options = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", options)?;
        save(&picture, file).map(drop)
    }

    /// The page that is open as PDF; how many pages it has.
    pub fn print(&mut self, file: &Path) -> Result<usize> {
        let options = json!({"printBackground": true, "preferCSSPageSize": true});
        let pdf = self.call("Page.printToPDF", options)?;
        let bytes = save(&pdf, file)?;
        ensure!(bytes.starts_with(b"%PDF"), "no PDF");
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.matches("/Type /Page\n").count())
    }

    fn show_as(&mut self, view: View) -> Result<()> {
        let scheme = if view.dark { "dark" } else { "light" };
        let metrics = json!({
            "width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": false
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics)?;
        let media = json!({
            "media": if view.print { "print" } else { "screen" },
            "features": [{"name": "prefers-color-scheme", "value": scheme}]
        });
        self.call("Emulation.setEmulatedMedia", media)?;
        Ok(())
    }

    fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.to.write_all(&bytes).with_context(|| format!("telling Chromium: {method}"))?;
        loop {
            let answer = self.receive()?;
            if answer["id"] == id {
                if let Some(error) = answer.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(answer["result"].clone());
            }
        }
    }

    /// The next message; one that answers nothing is kept.
    fn receive(&mut self) -> Result<Value> {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes)?;
        ensure!(bytes.pop() == Some(0), "Chromium ended");
        let message: Value = serde_json::from_slice(&bytes)?;
        if message.get("id").is_none() {
            self.events.push(message.clone());
        }
        Ok(message)
    }
}

/// Requests that are not allowed, and what was said.
fn complaints(events: &[Value], is_allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for event in events {
        let parameters = &event["params"];
        match event["method"].as_str().unwrap_or("") {
            "Network.requestWillBeSent" => {
                let asked = parameters["request"]["url"].as_str().unwrap_or("");
                if !is_allowed(asked) && !asked.starts_with("data:") {
                    wrong.push(format!("asked for {asked}"));
                }
            }
            "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                wrong.push(format!("said {parameters}"));
            }
            _ => {}
        }
    }
    wrong
}

fn save(answer: &Value, file: &Path) -> Result<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(answer["data"].as_str().context("no data")?)?;
    fs::write(file, &bytes).with_context(|| format!("writing {}", file.display()))?;
    Ok(bytes)
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Chromium's other processes end with it, and may write until then.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
