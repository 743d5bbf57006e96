//! Every target, over the committed corpus and what comes of changing it: without a fuzzer, with the stable
//! compiler, the same each time.

use quorate_fuzz::{seeds, Target, TARGETS};
use std::collections::BTreeSet;
use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;
use std::{fs, io};

/// Executions of each target beside those of its corpus; enough to notice a target that is broken.
const CHANGED_EACH: usize = 2_000;
/// Of inputs that are longer, so many bytes less.
const BYTES_MAX: usize = 1_500;

/// The corpus of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(seeds::folder(target)).expect("each target has a corpus");
    let read = |file: io::Result<fs::DirEntry>| {
        let file = file?;
        Ok((file.file_name().to_string_lossy().into_owned(), fs::read(file.path())?))
    };
    let mut corpus: Vec<_> =
        files.map(read).collect::<io::Result<_>>().expect("files that can be read");
    corpus.sort();
    corpus
}

/// Keeps the input with which a target panics.
fn run(target: &str, body: Target, what: &str, input: &[u8]) {
    if let Err(panic) = catch_unwind(|| body(input)) {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-panics"));
        let told = fs::write(&kept, input).map(|()| format!("the input is {}", kept.display()));
        eprintln!("{target} panics with {what}: {}", told.unwrap_or_else(|e| e.to_string()));
        resume_unwind(panic);
    }
}

#[test]
fn the_corpus_is_taken() {
    for (target, body) in TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{target} has no corpus");
        corpus.iter().for_each(|(name, input)| run(target, *body, name, input));
    }
}

#[test]
fn what_is_like_the_corpus_is_taken() {
    for (number, (target, body)) in TARGETS.iter().enumerate() {
        let mut chance = fastrand::Rng::with_seed(number as u64);
        let corpus = corpus(target);
        for execution in 0..CHANGED_EACH {
            let input = changed(&mut chance, &corpus);
            run(target, *body, &format!("execution {execution}"), &input);
        }
    }
}

/// One of the corpus, or bytes of chance, changed here and there.
fn changed(chance: &mut fastrand::Rng, corpus: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut input = match chance.u8(..8) {
        0 => (0..chance.usize(..200)).map(|_| chance.u8(..)).collect(),
        _ => corpus[chance.usize(..corpus.len())].1.clone(),
    };
    input.truncate(BYTES_MAX);
    for _ in 0..chance.u8(..5) {
        let at = chance.usize(..=input.len());
        match chance.u8(..6) {
            0 => input.truncate(at),
            1 => input.insert(at, chance.u8(..)),
            2 => {
                let end = (at + chance.usize(..40)).min(input.len());
                input.extend_from_within(at..end);
            }
            change => {
                let Some(byte) = input.get_mut(at) else { continue };
                *byte = match change {
                    3 => chance.u8(..),
                    4 => *byte ^ 1 << chance.u8(..8),
                    _ => [0, 1, 0x7f, 0x80, 0xff][chance.usize(..5)],
                };
            }
        }
    }
    input
}

/// See `examples/seeds.rs`.
#[test]
fn the_seeds_are_what_is_written_today() {
    let written = seeds::all().expect("formats of releases");
    for (target, _) in TARGETS {
        let named = |name: &String| name.starts_with("seed-");
        let committed = corpus(target).into_iter().filter(|(name, _)| named(name));
        let now = written.iter().filter(|seed| seed.target == *target);
        let now: BTreeSet<_> = now.map(|seed| (seed.name.clone(), seed.bytes.clone())).collect();
        assert!(committed.collect::<BTreeSet<_>>() == now, "{target}: see examples/seeds.rs");
    }
}

#[test]
fn each_target_is_one_of_the_fuzzer() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("the fuzzer's manifest");
    let programs = fs::read_dir(fuzz.join("fuzz_targets")).expect("its programs").count();
    assert_eq!(programs, TARGETS.len());
    for (target, _) in TARGETS {
        let file = fuzz.join("fuzz_targets").join(format!("{target}.rs"));
        let text = fs::read_to_string(file).unwrap_or_default();
        assert!(text.contains(&format!("run(\"{target}\", input)")), "{target} has a program");
        let path = format!("path = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&path), "{target} is in the manifest");
    }
}
