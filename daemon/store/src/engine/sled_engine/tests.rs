use std::{fs, path::Path, process::Command};

use super::{super::next_key, *};

/// Set in the child process: the folder of its database.
const FOLDER: &str = "SATCHEL_TEST_TREE";
const VALUES: u32 = 16_384;
const VALUE_BYTES: usize = 4 << 10;
const CACHE_BYTES: u64 = 4 << 20;

/// Returns the private memory of this process, in KiB.
fn private_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the state of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its private memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn fill(folder: &Path) -> Result<(), EngineError> {
    let engine = SledEngine::open(folder, CACHE_BYTES)?;
    for from in (0..VALUES).step_by(256) {
        let mut changes = Changes::default();
        for number in from..from + 256 {
            changes.put(number.to_be_bytes().to_vec(), vec![b'v'; VALUE_BYTES]);
        }
        engine.apply(changes)?;
    }
    engine.flush()
}

/// Not a test of its own, but the code of the child process in the test below. It reads everything once, and fails if that stays
/// in memory.
#[test]
fn child_that_reads_all() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let engine = SledEngine::open(Path::new(&folder), CACHE_BYTES).expect("the database opens");
    let (before, mut most, mut count, mut from) = (private_kib(), 0, 0, Vec::new());
    loop {
        // Steps of both lengths in which pages of a list are read.
        let step = if count % 64 < 32 { 32 } else { 8 };
        let found = engine.scan(&from, &[0xff; 4], step, false).expect("the database is read");
        let Some((last, _)) = found.last() else { break };
        (from, count) = (next_key(last), count + found.len());
        most = most.max(private_kib());
    }
    assert_eq!(count, VALUES as usize);
    let grown = most.saturating_sub(before) >> 10;
    // Between 12 and 25, because sled spreads pages over its shards at random; 64 if nothing is evicted.
    assert!(grown <= 32, "{grown} MiB of 64 that were read are in memory, with a bound of 4");
}

#[test]
fn pages_that_are_read_once_are_evicted() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path()).expect("the database is written");
    let arguments = ["--exact", "engine::sled_engine::tests::child_that_reads_all", "--test-threads", "1"];
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    let output = child.args(arguments).env(FOLDER, folder.path()).output().expect("the child runs");
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("1 passed"), "{output}");
}
