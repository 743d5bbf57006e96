//! The schedules as rounds of steps: pure functions of names, seed and what can be done.

use super::{Harm, Means, Step, Victims, NAMES};
use crate::random::Random;
use std::time::Duration;

/// Draws one round after the other.
pub struct Rounds {
    names: Vec<&'static str>,
    random: Random,
    nodes: usize,
    means: Means,
    drawn: usize,
}

impl Rounds {
    /// `names` in turn; `random` as a name stands for any, drawn anew each round, `every` for all
    /// in turn. What there are no means for is left out.
    /// An unknown name is the error.
    pub fn new(names: &[String], seed: u64, nodes: usize, means: Means) -> Result<Rounds, String> {
        let all = possible(means);
        let mut chosen = Vec::new();
        for name in names {
            match name.as_str() {
                "every" => chosen.extend(&all),
                "random" => chosen.push("random"),
                name => match NAMES.iter().find(|(known, _)| *known == name) {
                    Some((known, _)) if means.allow_schedule(known) => chosen.push(known),
                    Some(_) => {
                        return Err(format!(
                            "schedule {name} needs what is not there: the lab's network or disks, \
                             libfaketime for clocks, or control groups for starved"
                        ))
                    }
                    None => return Err(format!("there is no schedule {name:?}")),
                },
            }
        }
        let random = Random::seeded(seed);
        Ok(Rounds { names: chosen, random, nodes, means, drawn: 0 })
    }

    /// The next round and its name.
    pub fn draw(&mut self) -> (&'static str, Vec<Step>) {
        let mut name = self.names[self.drawn % self.names.len()];
        self.drawn += 1;
        if name == "random" {
            name = self.one_of(&possible(self.means));
        }
        let mut steps = self.steps(name);
        steps.push(Step::Settle);
        steps.push(self.wait(500, 3000));
        (name, steps)
    }

    fn steps(&mut self, name: &str) -> Vec<Step> {
        use Harm::{Kill, Pause, PowerCut, Stop, Wipe};
        let random = self.random.below(u64::MAX);
        match name {
            "one" => {
                let (harm, node) = (self.sudden(), self.node());
                self.hurt_for(harm, Victims::Node(node), 1000, 6000)
            }
            "minority" => {
                let harm = self.sudden();
                self.hurt_for(harm, Victims::Minority(random), 1000, 8000)
            }
            "leader" => {
                let harm = self.sudden();
                self.hurt_for(harm, Victims::Leader, 1000, 8000)
            }
            "primary" => {
                let harm = self.sudden();
                self.hurt_for(harm, Victims::Primary, 1000, 8000)
            }
            "all" => {
                let harm = self.possible(&[Kill, PowerCut]);
                self.hurt_for(harm, Victims::All, 100, 2000)
            }
            "staggered" => self.staggered(),
            "rolling" => (0..self.nodes)
                .flat_map(|node| {
                    let wait = self.wait(500, 2000);
                    [Step::Hurt(Stop, Victims::Node(node)), wait, Step::Mend(node), Step::Settle]
                })
                .collect(),
            "rapid" => {
                let node = self.node();
                let harm = self.possible(&[Kill, PowerCut]);
                (0..5)
                    .flat_map(|time| {
                        let (down, up) = (self.wait(100, 2000), self.wait(500, 5000));
                        [Step::Hurt(harm, Victims::Node(node)), down, Step::Mend(time), up]
                    })
                    .collect()
            }
            "joins" => {
                let wait = self.wait(500, 4000);
                let restart = Step::Hurt(Kill, Victims::Leader);
                let wipe = Step::Hurt(Wipe, Victims::Minority(random));
                vec![wipe, wait, restart, Step::Mend(0), Step::Mend(1)]
            }
            "transfer" => {
                let harm = self.possible(&[Harm::Isolate, Pause, Kill]);
                let (before, during, after) =
                    (self.wait(500, 2000), self.wait(500, 4000), self.wait(1000, 8000));
                // The joiner, or whoever it may be that gives it the state.
                let node = self.node();
                let other = Victims::Node((node + self.random.below(2) as usize) % self.nodes);
                vec![
                    Step::Hurt(Wipe, Victims::Node(node)),
                    before,
                    Step::Mend(0),
                    during,
                    Step::Hurt(harm, other),
                    after,
                    Step::Mend(1),
                ]
            }
            "amid" => {
                let (first, second) = (self.sudden(), self.sudden());
                let (early, late) = (self.wait(300, 3000), self.wait(300, 5000));
                let victims = self.any_victims();
                vec![
                    Step::Hurt(first, Victims::Minority(random)),
                    early,
                    Step::Hurt(second, victims),
                    late,
                    Step::Mend(0),
                    self.wait(100, 4000),
                    Step::Mend(1),
                ]
            }
            "partitions" => {
                let harm = self.one_of(&[Harm::Isolate, Harm::Deaf, Harm::Mute, Harm::Lossy]);
                let victims = self.any_victims();
                self.hurt_for(harm, victims, 1000, 10_000)
            }
            "disks" => {
                let harms = [Harm::FreezeDisk, Harm::FillDisk, Harm::FailSync, Harm::SlowSync];
                let harm = self.one_of(&harms);
                let victims = self.one_of(&[Victims::Leader, Victims::Follower(random)]);
                self.hurt_for(harm, victims, 2000, 8000)
            }
            "clocks" => {
                let victims = self.any_victims();
                self.hurt_for(Harm::ClockJump, victims, 1500, 6000)
            }
            "starved" => {
                let victims = self.any_victims();
                self.hurt_for(Harm::Starve, victims, 1000, 6000)
            }
            _ => vec![self.wait(5000, 5001)],
        }
    }

    fn staggered(&mut self) -> Vec<Step> {
        let harm = self.possible(&[Harm::Kill, Harm::PowerCut]);
        let mut left: Vec<usize> = (0..self.nodes).collect();
        let mut steps = Vec::new();
        while !left.is_empty() {
            let node = left.swap_remove(self.random.below(left.len() as u64) as usize);
            steps.push(Step::Hurt(harm, Victims::Node(node)));
            steps.push(self.wait(20, 1000 / self.nodes as u64));
        }
        steps.push(self.wait(100, 2000));
        steps.extend((0..self.nodes).map(Step::Mend));
        steps
    }

    fn hurt_for(&mut self, harm: Harm, victims: Victims, least: u64, most: u64) -> Vec<Step> {
        vec![Step::Hurt(harm, victims), self.wait(least, most), Step::Mend(0)]
    }

    /// What happens to a node without its doing.
    fn sudden(&mut self) -> Harm {
        self.possible(&[Harm::Kill, Harm::PowerCut, Harm::Pause, Harm::Isolate])
    }

    fn any_victims(&mut self) -> Victims {
        let random = self.random.below(u64::MAX);
        let any = [
            Victims::Node(self.node()),
            Victims::Minority(random),
            Victims::Leader,
            Victims::Primary,
            Victims::Follower(random),
        ];
        self.one_of(&any)
    }

    fn possible(&mut self, harms: &[Harm]) -> Harm {
        let possible: Vec<Harm> =
            harms.iter().copied().filter(|harm| self.means.allow(*harm)).collect();
        self.one_of(&possible)
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.random.below(items.len() as u64) as usize]
    }

    fn node(&mut self) -> usize {
        self.random.below(self.nodes as u64) as usize
    }

    fn wait(&mut self, least_ms: u64, most_ms: u64) -> Step {
        Step::Wait(Duration::from_millis(least_ms + self.random.below(most_ms - least_ms)))
    }
}

/// The schedules in which something fails that there are means for.
fn possible(means: Means) -> Vec<&'static str> {
    let names = NAMES.iter().map(|(name, _)| *name);
    names.filter(|name| *name != "none" && means.allow_schedule(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(seed: u64, means: Means) -> Rounds {
        Rounds::new(&["every".to_owned(), "random".to_owned()], seed, 5, means).unwrap()
    }

    #[test]
    fn a_seed_is_a_schedule() {
        let draw = |seed| {
            let mut rounds = rounds(seed, Means::ALL);
            (0..40).map(|_| rounds.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn what_a_round_breaks_it_mends() {
        for seed in 0..50 {
            let mut rounds = rounds(seed, Means::ALL);
            for _ in 0..20 {
                let (name, steps) = rounds.draw();
                let mut hurt = 0;
                let mut mended = Vec::new();
                for step in &steps {
                    match step {
                        Step::Hurt(..) => hurt += 1,
                        Step::Mend(number) => {
                            assert!(*number < hurt, "{name} mends before it breaks");
                            mended.push(*number);
                        }
                        Step::Wait(_) | Step::Settle => {}
                    }
                }
                mended.sort_unstable();
                assert_eq!(mended, (0..hurt).collect::<Vec<_>>(), "{name}");
                let wiped = steps.iter().filter(|step| matches!(step, Step::Hurt(Harm::Wipe, _)));
                assert!(wiped.count() <= 1, "{name}");
                assert!(!steps.contains(&Step::Hurt(Harm::Wipe, Victims::All)), "{name}");
            }
        }
    }

    #[test]
    fn nothing_is_asked_of_what_is_not_there() {
        let mut rounds = rounds(1, Means::NONE);
        for _ in 0..200 {
            for step in rounds.draw().1 {
                if let Step::Hurt(harm, _) = step {
                    assert!(Means::NONE.allow(harm), "{harm}");
                }
            }
        }
        let one = |name: &str, means| Rounds::new(&[name.to_owned()], 1, 3, means);
        assert!(one("disks", Means { disks: false, ..Means::ALL }).is_err());
        assert!(one("clocks", Means { clocks: false, ..Means::ALL }).is_err());
        assert!(one("nonsense", Means::ALL).is_err());
    }
}
