//! The core from outside: told stories, random schedules, absurd input, and another implementation.

mod hostile;
mod oracle;
mod safety;
mod scenarios;
mod story;
mod support;
