//! Writes the inputs with which fuzzing begins: each fixture of each importer as one input.
//!
//! ```sh
//! cargo run --manifest-path tests/fuzz/Cargo.toml --example seed
//! ```

use std::{error::Error, fs, path::Path};

use satchel_importer::{Bundle, testkit};

/// The longest input, in bytes: short ones are tried more often.
const MAX_INPUT_BYTES: usize = 32 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for target in fs::read_dir(here.join("targets"))? {
        let target = target?.path();
        let name = target.file_stem().ok_or("a target without a name")?;
        let corpus = here.join("corpus").join(name);
        fs::create_dir_all(&corpus)?;
        for fixture in testkit::fixtures(&here.join("../../plugins").join(name).join("fixtures"))? {
            let input = input(&fixture.join("input"))?;
            if !input.is_empty() {
                fs::write(corpus.join(fixture.file_name().ok_or("a fixture without a name")?), input)?;
            }
        }
    }
    Ok(())
}

/// The files of a folder as one input, as [`testkit::input_files`] reads it; those that do not fit are left out.
fn input(folder: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut input = Vec::new();
    for entry in Bundle::from_folder(folder)?.entries() {
        let bytes = fs::read(folder.join(&entry.path))?;
        let parts = bytes.windows(testkit::FILE_SEPARATOR.len()).any(|part| part == testkit::FILE_SEPARATOR);
        if parts || input.len() + entry.path.len() + bytes.len() > MAX_INPUT_BYTES {
            continue;
        }
        if !input.is_empty() {
            input.extend_from_slice(testkit::FILE_SEPARATOR);
        }
        input.extend_from_slice(entry.path.as_bytes());
        input.push(b'\n');
        input.extend_from_slice(&bytes);
    }
    Ok(input)
}
