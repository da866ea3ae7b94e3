//! Builds the text of a JSON object of a row.

use super::Value;

/// The text of a JSON object under construction, so that a row is read by the same code as an element of a JSON export.
#[derive(Debug, Default)]
pub struct ObjectText {
    text: String,
}

impl ObjectText {
    /// Adds a member, or nothing for [`Value::Null`]. Bytes must be a text in UTF-8. False if the value has no form in JSON.
    #[must_use = "a value that has no form in JSON is left out"]
    pub fn value(&mut self, key: &str, value: &Value) -> bool {
        match value {
            Value::Null => {}
            Value::Integer(number) => self.json(key, &number.to_string()),
            Value::Real(number) if number.is_finite() => {
                self.json(key, &serde_json::json!(number).to_string());
            }
            Value::Text(text) => self.string(key, text),
            Value::Blob(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.string(key, text),
                Err(_) => return false,
            },
            Value::Real(_) => return false,
        }
        true
    }

    /// Adds a member whose value is a string.
    pub fn string(&mut self, key: &str, text: &str) {
        self.json(key, &serde_json::json!(text).to_string());
    }

    /// Adds a member whose value is a JSON text; whoever reads the object finds whether it is one.
    pub fn json(&mut self, key: &str, json: &str) {
        self.separate();
        self.text.push_str(&serde_json::json!(key).to_string());
        self.text.push(':');
        self.text.push_str(json);
    }

    /// Adds the members of the text of another object. False if it is none.
    #[must_use = "a text that is no object is left out"]
    pub fn members(&mut self, object: &str) -> bool {
        let inside = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(inside) = inside else { return false };
        if !inside.trim().is_empty() {
            self.separate();
            self.text.push_str(inside);
        }
        true
    }

    /// The text of the object.
    pub fn finish(mut self) -> String {
        if self.text.is_empty() {
            self.text.push('{');
        }
        self.text.push('}');
        self.text
    }

    fn separate(&mut self) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
    }
}
