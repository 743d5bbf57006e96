//! One seed, for the sweeps and the command of `quorate-seeds`.

use crate::oracle::{Rule, Violation};
use crate::plant::Plant;
use crate::scenario::Profile;
use crate::world::{Report, World};
use clap::Args;
use quorate_seeds::{argument, caught, Outcome, Simulator, Trace};

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
        let profile = (self.profile != Profile::Swarm).then(|| argument("profile", &self.profile));
        let plant = self.plant.as_ref().map(|plant| argument("plant", plant));
        profile.into_iter().chain(plant).collect()
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
