//! One seed, for the sweeps and the command of `quorate-seeds`.

use crate::oracle::{Rule, Violation};
use crate::plant::Plant;
use crate::scenario::Profile;
use crate::trace::Trace;
use crate::world::{Report, World};
use clap::{Args, ValueEnum};
use quorate_seeds::{Outcome, Simulator};
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// Groups of members, each in its world.
#[derive(Args, Clone, Copy, Debug)]
pub struct Groups {
    /// Which faults the seeds may choose from.
    #[arg(long, value_enum, default_value_t = Profile::Swarm)]
    pub profile: Profile,
    /// Plant a bug on purpose, to see it found.
    #[arg(long, value_enum)]
    pub plant: Option<Plant>,
}

impl Simulator for Groups {
    type Outcome = Report;

    /// A panic, of the product or of the simulator, counts as a violation.
    fn run(&self, seed: u64, lines: usize) -> Report {
        let mut world = World::new(seed, self.profile, self.plant, Trace::last(lines));
        let panicked = caught(|| world.run());
        let mut report = world.report();
        if let Some(detail) = panicked {
            report.violation = Some(Violation { rule: Rule::Panic, detail });
        }
        report
    }

    fn arguments(&self) -> String {
        let mut arguments = String::new();
        if self.profile != Profile::Swarm {
            arguments += &format!(" --profile {}", value_name(&self.profile));
        }
        if let Some(plant) = &self.plant {
            arguments += &format!(" --plant {}", value_name(plant));
        }
        arguments
    }
}

impl Outcome for Report {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn digest(&self) -> u64 {
        self.digest
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("events", self.events),
            ("committed entries", self.committed),
            ("terms with a leader", self.terms_led as u64),
            ("ms of virtual time", self.virtual_us / 1000),
        ]
    }

    fn coverage(&self) -> Vec<(String, u64)> {
        self.coverage.named()
    }

    fn violation(&self) -> Option<String> {
        let at_ms = self.virtual_us as f64 / 1000.0;
        self.violation.as_ref().map(|violation| format!("{violation} (at {at_ms:.3} ms)"))
    }

    fn story(&self) -> &[String] {
        &self.trace
    }
}

fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

thread_local! {
    /// A run is on this thread: a panic is its result, not to be printed.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `body` panicked with, if it did.
fn caught(body: impl FnOnce()) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| match RUNNING.get() {
            true => PANIC.with(|message| *message.borrow_mut() = Some(info.to_string())),
            false => usual(info),
        }));
    });
    RUNNING.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    RUNNING.set(false);
    let message = || PANIC.with(|message| message.borrow_mut().take()).unwrap_or_default();
    outcome.is_err().then(message)
}
