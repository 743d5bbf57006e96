//! Whether docs/run/json.md names the fields of what is printed.

use serde_json::Value;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/run/json.md");

/// Fields of objects in it, too.
pub fn names_fields_of(printed: &Value) {
    let mut fields = BTreeSet::new();
    collect(printed, &mut fields);
    let unnamed: Vec<&str> =
        fields.into_iter().filter(|field| !PAGE.contains(&format!("`{field}`"))).collect();
    assert_eq!(unnamed, Vec::<&str>::new(), "docs/run/json.md does not say what these are");
}

fn collect<'a>(value: &'a Value, fields: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            fields.insert(name);
            collect(value, fields);
        }),
        Value::Array(all) => all.iter().for_each(|value| collect(value, fields)),
        _ => {}
    }
}
