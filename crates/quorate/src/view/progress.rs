//! Live progress: one line per node on a terminal, plain lines elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

const SPIN: Duration = Duration::from_millis(100);

/// Goes to standard error, so that standard output carries the result alone.
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// A line for what one node (or the whole cluster) is doing.
    pub fn node(&self, name: &str) -> NodeLine {
        let bar = self.bars.as_ref().map(|bars| {
            let style = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}")
                .expect("the template is a constant")
                .tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ");
            let bar = bars.add(ProgressBar::new_spinner().with_style(style));
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(SPIN);
            bar
        });
        NodeLine { name: name.to_owned(), bar, stage: RefCell::new(String::new()) }
    }

    /// A message that stays.
    pub fn say(&self, message: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| eprintln!("{message}")),
            None => eprintln!("{message}"),
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}

pub struct NodeLine {
    name: String,
    bar: Option<ProgressBar>,
    stage: RefCell<String>,
}

impl NodeLine {
    /// A new stage; said once where there is no terminal.
    pub fn stage(&self, stage: &str) {
        if *self.stage.borrow() == stage {
            return;
        }
        *self.stage.borrow_mut() = stage.to_owned();
        match &self.bar {
            Some(bar) => bar.set_message(stage.to_owned()),
            None => eprintln!("{}: {stage}", self.name),
        }
    }

    /// Passing news within a stage, for terminals only.
    pub fn detail(&self, detail: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} · {detail}", self.stage.borrow()));
        }
    }

    pub fn done(&self, result: &str) {
        self.finish("✓", result);
    }

    pub fn fail(&self, result: &str) {
        self.finish("✗", result);
    }

    fn finish(&self, mark: &str, result: &str) {
        match &self.bar {
            Some(bar) => {
                let style = ProgressStyle::with_template(&format!("{mark} {{prefix}}: {{msg}}"))
                    .expect("the template is a constant");
                bar.set_style(style);
                bar.finish_with_message(result.to_owned());
            }
            None => self.stage(result),
        }
    }
}
