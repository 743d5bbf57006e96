//! What a command says on its standard output.
//!
//! `print!` and `println!` of this crate are those of here. The language's own panic when nobody reads any more, as
//! behind `quorate status | head -1`.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process;

/// As a shell says it of a program that was ended by SIGPIPE.
const NOBODY_READS: i32 = 128 + 13;

macro_rules! print {
    ($($said:tt)*) => { $crate::output::say(format_args!($($said)*), "") };
}

macro_rules! println {
    ($($said:tt)*) => { $crate::output::say(format_args!($($said)*), "\n") };
}

/// Says it, with what ends it. Ends this process if that is not possible.
pub fn say(what: Arguments<'_>, end: &str) {
    let mut out = io::stdout().lock();
    let said = write!(out, "{what}{end}").and_then(|()| out.flush());
    let Err(error) = said else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        process::exit(NOBODY_READS);
    }
    eprintln!("quorate: this cannot be written: {error}. Look whether what was asked for is done");
    process::exit(i32::from(crate::failure::FAILED));
}
