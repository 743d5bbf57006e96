//! What operators write.

use quorate::options::Options;
use std::time::Instant;

/// Arguments of the server are text.
fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

pub fn cluster_address(input: &[u8]) {
    quorate::fuzzing::cluster_address(&text(input));
}

pub fn orders(input: &[u8]) {
    quorate::fuzzing::orders(&text(input));
}

pub fn operator_texts(input: &[u8]) {
    quorate_live::fuzzing::operator_texts(&text(input));
}

pub fn agent_request(input: &[u8]) {
    quorate_agent::fuzzing::request(&text(input));
}

/// Given at the start, then again while the server runs: all or nothing, and what is shown can be set.
pub fn options(input: &[u8]) {
    let text = text(input);
    let mut options = Options::default();
    for running in [false, true] {
        let before = options.render();
        match options.set(&text, running) {
            Ok(_) => check(&mut options),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(options.render(), before, "nothing was changed");
            }
        }
    }
}

fn check(options: &mut Options) {
    let shown = options.render();
    let commands = options.set(&shown, true).expect("what is shown");
    assert!(commands.is_empty() && options.render() == shown);
    let _settings = options.settings();
    for spec in quorate::options::SPECS {
        if spec.kind == quorate::options::Kind::Period {
            let (name, period) = (spec.name, options.period(spec.name));
            let end = Instant::now().checked_add(period);
            assert!(end.is_some() && u64::try_from(period.as_millis()).is_ok(), "{name} ends");
        }
    }
}
