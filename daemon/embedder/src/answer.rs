//! Answers with embeddings, of which servers write several forms.

use std::fmt;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{
    config::MAX_DIMENSIONS,
    error::{EndpointError, ServerMessage},
};

/// What a server answers. Other fields, such as `model` and `usage`, differ between servers and are not needed.
#[derive(Deserialize)]
struct Answer {
    data: Option<Vec<Item>>,
    /// Some servers answer with an error and the status of a success.
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Embedding,
}

/// The values of a vector; what is not a number, and so `null` in JSON, is NaN.
struct Embedding(Vec<f32>);

/// What an answer has.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// The vectors in the order of the texts.
    Vectors(Vec<Vec<f32>>),
    /// An error, which is a text or an object of the server.
    Error,
}

/// Reads the vectors of `count` texts, all of them usable and with the same number of values.
pub(crate) fn parse(body: &[u8], count: usize) -> Result<Parsed, EndpointError> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| malformed(&error.to_string()))?;
    let Some(items) = answer.data else {
        let error = answer.error.filter(|error| !error.is_null());
        return error.map(|_| Parsed::Error).ok_or_else(|| malformed("it has no `data`"));
    };
    let vectors = in_order(items, count)?;
    vectors.iter().try_for_each(|vector| check(vector, vectors[0].len()))?;
    Ok(Parsed::Vectors(vectors))
}

/// Sorts the vectors by `index`; without any, they are in the order of the texts.
fn in_order(items: Vec<Item>, count: usize) -> Result<Vec<Vec<f32>>, EndpointError> {
    if items.len() != count {
        return Err(EndpointError::WrongCount { expected: count, actual: items.len() });
    }
    if items.iter().all(|item| item.index.is_none()) {
        return Ok(items.into_iter().map(|item| item.embedding.0).collect());
    }
    let mut vectors = vec![None; count];
    for Item { index, embedding } in items {
        let place = index.and_then(|index| vectors.get_mut(index));
        let place = place.ok_or_else(|| malformed("an `index` is missing or out of range"))?;
        if place.replace(embedding.0).is_some() {
            return Err(malformed("two vectors have the same `index`"));
        }
    }
    // As many vectors as places, no place taken twice: none is empty.
    Ok(vectors.into_iter().flatten().collect())
}

fn check(vector: &[f32], expected: usize) -> Result<(), EndpointError> {
    if vector.is_empty() {
        return Err(EndpointError::UnusableVector { problem: "without values" });
    }
    if !vector.iter().all(|value| value.is_finite()) {
        return Err(EndpointError::UnusableVector { problem: "with values that are not numbers" });
    }
    if vector.iter().all(|value| *value == 0.0) {
        return Err(EndpointError::UnusableVector { problem: "of zeros" });
    }
    if vector.len() != expected {
        return Err(EndpointError::WrongDimension { expected, actual: vector.len() });
    }
    Ok(())
}

fn malformed(reason: &str) -> EndpointError {
    EndpointError::Malformed { reason: ServerMessage::new(reason) }
}

impl<'de> Deserialize<'de> for Embedding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EmbeddingVisitor)
    }
}

/// Reads a list of numbers, or base64 of little-endian values, which some servers send without being asked.
struct EmbeddingVisitor;

impl<'de> Visitor<'de> for EmbeddingVisitor {
    type Value = Embedding;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an embedding as a list of numbers or as base64")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Embedding, A::Error> {
        let mut vector = Vec::new();
        while let Some(value) = values.next_element::<Option<f32>>()? {
            if vector.len() == MAX_DIMENSIONS {
                return Err(A::Error::custom(TOO_MANY_VALUES));
            }
            vector.push(value.unwrap_or(f32::NAN));
        }
        Ok(Embedding(vector))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Embedding, E> {
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| E::custom("an embedding is not base64"))?;
        let (values, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(E::custom("an embedding in base64 does not have whole values"));
        }
        if values.len() > MAX_DIMENSIONS {
            return Err(E::custom(TOO_MANY_VALUES));
        }
        Ok(Embedding(values.iter().map(|value| f32::from_le_bytes(*value)).collect()))
    }
}

const TOO_MANY_VALUES: &str = "an embedding has more than 16384 values";

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    fn vectors(body: &str, count: usize) -> Vec<Vec<f32>> {
        match parse(body.as_bytes(), count).unwrap() {
            Parsed::Vectors(vectors) => vectors,
            Parsed::Error => panic!("an error"),
        }
    }

    fn error(body: &str, count: usize) -> EndpointError {
        parse(body.as_bytes(), count).unwrap_err()
    }

    #[test]
    fn vectors_are_sorted_by_index() {
        let body = r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0.5,2]},
            {"index":0,"embedding":[-1,1e-3]}],"model":"m","usage":{"prompt_tokens":2}}"#;
        assert_eq!(vectors(body, 2), [[-1.0, 0.001], [0.5, 2.0]]);
        assert_eq!(vectors(r#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#, 2), [[1.0], [2.0]]);
    }

    #[test]
    fn base64_is_read() {
        // 1.0 and -2.0.
        assert_eq!(vectors(r#"{"data":[{"index":0,"embedding":"AACAPwAAAMA="}]}"#, 1), [[1.0, -2.0]]);
        for wrong in ["AACAPw=", "AAA=", "!"] {
            let body = format!(r#"{{"data":[{{"embedding":"{wrong}"}}]}}"#);
            assert!(matches!(error(&body, 1), EndpointError::Malformed { .. }), "{wrong}");
        }
    }

    #[test]
    fn vectors_that_cannot_be_compared_are_refused() {
        for (values, problem) in [
            ("[]", "without values"),
            ("[1, null]", "not numbers"),
            ("[0, -0.0]", "of zeros"),
            // The first value is NaN.
            ("\"AADAfwAAgD8=\"", "not numbers"),
        ] {
            let error = error(&format!(r#"{{"data":[{{"embedding":{values}}}]}}"#), 1);
            assert!(matches!(error, EndpointError::UnusableVector { .. }), "{error}");
            assert!(error.to_string().contains(problem), "{error}");
        }
        let body = r#"{"data":[{"embedding":[1,2]},{"embedding":[1]}]}"#;
        assert!(matches!(error(body, 2), EndpointError::WrongDimension { expected: 2, actual: 1 }));
    }

    #[test]
    fn there_is_one_vector_for_each_text() {
        let body = r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#;
        assert!(matches!(error(body, 3), EndpointError::WrongCount { expected: 3, actual: 2 }));
        assert!(error(body, 2).to_string().contains("the same `index`"));
        let body = r#"{"data":[{"index":2,"embedding":[1]},{"index":0,"embedding":[1]}]}"#;
        assert!(error(body, 2).to_string().contains("out of range"));
        let body = r#"{"data":[{"embedding":[1]},{"index":0,"embedding":[1]}]}"#;
        assert!(error(body, 2).to_string().contains("missing"));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for body in
            ["", "{", "[]", "{}", "null", "<html>", r#"{"data":[{"embedding":[NaN]}]}"#, r#"{"data":{}}"#]
        {
            assert!(matches!(error(body, 1), EndpointError::Malformed { .. }), "{body}");
        }
        // More than a value of 32 bits can be.
        let large = r#"{"data":[{"embedding":[1, 1e300]}]}"#;
        assert!(matches!(error(large, 1), EndpointError::Malformed { .. }));
        let long = format!(r#"{{"data":[{{"embedding":[{}1]}}]}}"#, "1,".repeat(MAX_DIMENSIONS));
        assert!(error(&long, 1).to_string().contains(TOO_MANY_VALUES));
        assert!(matches!(parse(br#"{"error":"no such model"}"#, 1), Ok(Parsed::Error)));
    }
}
