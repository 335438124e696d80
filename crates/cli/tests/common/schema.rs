//! As much of JSON Schema as the published schema uses. A word that is not known here fails, so that nothing in the
//! schema goes unchecked.

use serde_json::Value;

/// Why a value does not follow a schema, with the place.
pub fn check(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let fail = |what: String| Err(format!("{place}: {what}"));
    for (word, rule) in schema.as_object().ok_or(format!("{place}: schema is no object"))? {
        match word.as_str() {
            "$schema" | "title" | "description" | "then" | "else" => {}
            "type" => {
                let good = match rule.as_str() {
                    Some("object") => value.is_object(),
                    Some("array") => value.is_array(),
                    Some("string") => value.is_string(),
                    Some("integer") => value.is_u64() || value.is_i64(),
                    other => return fail(format!("type {other:?} is not known")),
                };
                if !good {
                    return fail(format!("{value} is no {rule}"));
                }
            }
            "const" if value != rule => return fail(format!("{value} is not {rule}")),
            "const" => {}
            "enum" => {
                if !rule.as_array().is_some_and(|list| list.contains(value)) {
                    return fail(format!("{value} is not one of {rule}"));
                }
            }
            "minimum" => {
                if value.as_f64() < rule.as_f64() {
                    return fail(format!("{value} is less than {rule}"));
                }
            }
            "required" => {
                for key in rule.as_array().into_iter().flatten() {
                    let key = key.as_str().unwrap_or_default();
                    if value.get(key).is_none() {
                        return fail(format!("`{key}` is missing"));
                    }
                }
            }
            "properties" => {
                for (key, rule) in rule.as_object().into_iter().flatten() {
                    if let Some(member) = value.get(key) {
                        check(rule, member, &format!("{place}.{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (key, member) in value.as_object().into_iter().flatten() {
                    check(rule, member, &format!("{place}.{key}"))?;
                }
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, item, &format!("{place}[{i}]"))?;
                }
            }
            "if" => {
                let branch = if check(rule, value, place).is_ok() { "then" } else { "else" };
                if let Some(rule) = schema.get(branch) {
                    check(rule, value, place)?;
                }
            }
            other => return fail(format!("schema word `{other}` is not known to this test")),
        }
    }
    Ok(())
}
