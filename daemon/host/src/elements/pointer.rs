//! JSON pointers (RFC 6901), followed in a stream.

use super::{
    input::{Input, Source},
    malformed,
};
use crate::imports::Failure;

/// Steps of a pointer; exports nest their lists two or three deep.
const MAX_STEPS: usize = 32;

/// The unescaped steps of `pointer`, or what is wrong with it.
pub(super) fn parse(pointer: &str) -> Result<Vec<String>, String> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(steps) = pointer.strip_prefix('/') else {
        return Err("a JSON pointer must be empty or begin with /".to_owned());
    };
    let steps: Vec<String> =
        steps.split('/').take(MAX_STEPS + 1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    if steps.len() > MAX_STEPS {
        return Err(format!("a JSON pointer may have {MAX_STEPS} steps at most"));
    }
    Ok(steps)
}

/// Moves `input` to the value that `steps` lead to.
pub(super) fn find(input: &mut Input, source: &mut dyn Source, steps: &[String]) -> Result<(), Failure> {
    for step in steps {
        match input.peek_value(source)? {
            Some(b'{') => member(input, source, step)?,
            Some(b'[') => item(input, source, step)?,
            _ => return Err(absent(step)),
        }
    }
    Ok(())
}

fn member(input: &mut Input, source: &mut dyn Source, wanted: &str) -> Result<(), Failure> {
    loop {
        // Past the brace or the comma.
        input.bump();
        if input.peek_value(source)? != Some(b'"') {
            return Err(absent(wanted));
        }
        let key = input.key(source)?;
        if input.peek_value(source)? != Some(b':') {
            return Err(malformed("there is no colon after a key here"));
        }
        input.bump();
        // Leaves `input` before the value.
        input.peek_value(source)?;
        if key == wanted {
            return Ok(());
        }
        input.value(source, None)?;
        if input.peek_value(source)? != Some(b',') {
            return Err(absent(wanted));
        }
    }
}

fn item(input: &mut Input, source: &mut dyn Source, wanted: &str) -> Result<(), Failure> {
    let plain = wanted == "0" || !wanted.starts_with(['0', '+']);
    let index = wanted.parse::<u64>().ok().filter(|_| plain).ok_or_else(|| absent(wanted))?;
    input.bump();
    for _ in 0..index {
        input.peek_value(source)?;
        input.value(source, None)?;
        if input.peek_value(source)? != Some(b',') {
            return Err(absent(wanted));
        }
        input.bump();
    }
    match input.peek_value(source)? {
        Some(b']') | None => Err(absent(wanted)),
        Some(_) => Ok(()),
    }
}

fn absent(step: &str) -> Failure {
    malformed(&format!("there is no \"{}\" here", crate::text::clean(step)))
}
