//! `quorate status`

use crate::remote::Remote;
use anyhow::Result;

pub fn status(group: &Remote, json: bool) -> Result<u8> {
    let survey = group.survey()?;
    if json {
        println!("{}", serde_json::to_string_pretty(&survey)?);
    } else {
        print!("{survey}");
    }
    Ok(survey.health.exit_code())
}
