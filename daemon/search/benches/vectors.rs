//! Measures searches for vectors: `make bench`, or only these with `SATCHEL_BENCH_ONLY=vectors`.
//!
//! The vectors are made up, the same in each run: clusters around random centres, whose numbers become smaller along the vector, as
//! the variances of real embeddings do. The second kind also has a large part in common, as many models have, so that two random
//! vectors have a cosine of 0.75. Queries are other vectors of the same kind. The exact results are computed in the same run from the
//! original 32-bit numbers.
//!
//! `SATCHEL_BENCH_VECTORS=20000` measures with so many vectors, or several numbers separated by commas.

use std::{
    fs,
    hint::black_box,
    io::Write as _,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use satchel_search::vectors::{VectorFilter, VectorHit, VectorIndex, VectorSearch};

/// Numbers of a vector.
const DIMENSION: usize = 1536;
/// Hits of a search.
const LIMIT: usize = 10;
/// Searches for different vectors.
const QUERIES: u64 = 100;
/// How often each of them is measured.
const ROUNDS: usize = 5;
/// Vectors of a cluster, on average.
const CLUSTER: usize = 50;
/// One of so many vectors passes a filter.
const FILTERS: [u64; 3] = [1, 10, 100];

fn main() {
    // `cargo test --benches` also runs this program, only to check that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let only = std::env::var("SATCHEL_BENCH_ONLY").ok();
    if only.is_some_and(|only| !only.split(',').any(|one| one == "vectors")) {
        return;
    }
    let counts = std::env::var("SATCHEL_BENCH_VECTORS").unwrap_or_else(|_| "50000,200000".to_owned());
    print_line(&processor_line());
    for count in counts.split(',').filter_map(|count| count.parse().ok()) {
        for (name, common) in [("clustered", 0.0), ("with a common part", 3.0_f32.sqrt())] {
            measure(name, &Synthetic::new(count, common));
        }
    }
}

fn measure(name: &str, synthetic: &Synthetic) {
    let queries: Vec<_> = (0..QUERIES).map(|number| synthetic.vector(u64::MAX - number)).collect();
    let mut exact: Vec<Vec<Nearest>> = FILTERS.map(|_| vec![Nearest::default(); queries.len()]).into();
    let resident = resident_bytes();
    let mut index = VectorIndex::new(DIMENSION).expect("a supported dimension");
    let mut build = Duration::ZERO;
    for number in 0..synthetic.count {
        let vector = synthetic.vector(number);
        for (every, nearest) in FILTERS.iter().zip(&mut exact) {
            if number.is_multiple_of(*every) {
                for (query, nearest) in queries.iter().zip(nearest) {
                    nearest.offer(dot(query, &vector), number);
                }
            }
        }
        let began = Instant::now();
        index.insert(&id(number), &vector).expect("a usable vector");
        build += began.elapsed();
    }
    print_line(&format!("\n{} vectors of {DIMENSION} numbers, {name}", synthetic.count));
    print_line(&format!(
        "  built in {:.1} s, {} MiB by its own account, {} MiB more resident",
        build.as_secs_f64(),
        index.memory_bytes() >> 20,
        resident_bytes().saturating_sub(resident) >> 20,
    ));
    print_line("                            elapsed ms     processor ms");
    print_line("  passing    filter         p50      p99       p50      p99   recall@10   with originals");
    for (every, exact) in FILTERS.into_iter().zip(&exact) {
        searches(&index, synthetic, (&queries, exact), every);
    }
}

/// Measures one filter, given in both ways.
fn searches(
    index: &VectorIndex,
    synthetic: &Synthetic,
    (queries, exact): (&[Vec<f32>], &[Nearest]),
    every: u64,
) {
    let ids: Vec<_> = (0..synthetic.count).filter(|number| number.is_multiple_of(every)).map(id).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let passes = |id: &str| number(id).is_some_and(|number| number.is_multiple_of(every));
    let original = |id: &str| number(id).map(|number| synthetic.vector(number));
    let filters: &[_] = match every {
        1 => &[("none", VectorFilter::All)],
        _ => &[("by function", VectorFilter::Where(&passes)), ("by ids", VectorFilter::Ids(&ids))],
    };
    for (name, filter) in filters {
        let search = VectorSearch { limit: LIMIT, filter: *filter, original: None };
        let settled = VectorSearch { original: Some(&original), ..search };
        let (mut times, mut processor_times) = (Vec::new(), Vec::new());
        for query in queries.iter().cycle().take(queries.len() * ROUNDS) {
            let (began, began_processor) = (Instant::now(), processor_time());
            black_box(index.search(black_box(query), &search)).expect("a usable query");
            processor_times.push(processor_time().saturating_sub(began_processor));
            times.push(began.elapsed());
        }
        print_line(&format!(
            "  1 in {every:<5} {name:<12} {:>7.2}  {:>7.2}   {:>7.2}  {:>7.2}      {:.4}           {:.4}",
            percentile(&mut times, 50),
            percentile(&mut times, 99),
            percentile(&mut processor_times, 50),
            percentile(&mut processor_times, 99),
            recall(index, queries, exact, &search),
            recall(index, queries, exact, &settled),
        ));
    }
}

/// Returns the time that this thread had a processor, which other programs do not change much.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the time that so many of a hundred searches stay within, in milliseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times[times.len() * percent / 100].as_secs_f64() * 1e3
}

/// Returns the share of the exact results that a search finds.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn recall(index: &VectorIndex, queries: &[Vec<f32>], exact: &[Nearest], search: &VectorSearch<'_>) -> f64 {
    let (mut found, mut all) = (0, 0);
    for (query, exact) in queries.iter().zip(exact) {
        let hits = index.search(query, search).expect("a usable query");
        let has = |number: u64| hits.iter().any(|VectorHit { id: hit, .. }| *hit == id(number));
        found += exact.0.iter().filter(|(_, number)| has(*number)).count();
        all += exact.0.len();
    }
    found as f64 / all as f64
}

/// The nearest vectors so far: cosines and numbers.
#[derive(Clone, Default)]
struct Nearest(Vec<(f32, u64)>);

impl Nearest {
    fn offer(&mut self, cosine: f32, number: u64) {
        if self.0.len() == LIMIT && self.0.last().is_some_and(|(least, _)| cosine <= *least) {
            return;
        }
        let at = self.0.partition_point(|(other, _)| *other >= cosine);
        self.0.insert(at, (cosine, number));
        self.0.truncate(LIMIT);
    }
}

/// Makes vectors of length 1.
struct Synthetic {
    count: u64,
    centers: Vec<Vec<f32>>,
    /// How large each number is.
    sizes: Vec<f32>,
    common: Vec<f32>,
}

impl Synthetic {
    /// `common` is the length of the common part, relative to that of the rest.
    fn new(count: u64, common: f32) -> Self {
        let clusters = usize::try_from(count).unwrap_or_default() / CLUSTER + 1;
        let mut random = Random(7);
        // The variances are as different as those of about 180 equal ones.
        let sizes: Vec<f32> = (0..DIMENSION)
            .map(|at| 1.0 / (1.0 + f32::from(u16::try_from(at).unwrap_or_default()) / 64.0))
            .collect();
        let rest = dot(&sizes, &sizes).sqrt();
        let mut common_part = unit((0..DIMENSION).map(|_| random.normal()).collect());
        common_part.iter_mut().for_each(|number| *number *= common * rest);
        let centers = (0..clusters).map(|_| (0..DIMENSION).map(|_| random.normal()).collect()).collect();
        Self { count, centers, sizes, common: common_part }
    }

    fn vector(&self, number: u64) -> Vec<f32> {
        let mut random = Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let cluster = usize::try_from(random.next() % self.centers.len() as u64).unwrap_or_default();
        let parts = self.centers[cluster].iter().zip(&self.sizes).zip(&self.common);
        let number = |((center, size), common): ((&f32, &f32), &f32)| {
            (0.7 * center + 0.7 * random.normal()) * size + common
        };
        unit(parts.map(number).collect())
    }
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// About normally distributed, with a variance of 1: the sum of four evenly distributed numbers.
    fn normal(&mut self) -> f32 {
        let bytes = self.next().to_le_bytes();
        let parts = bytes.as_chunks().0.iter().map(|part| f32::from(u16::from_le_bytes(*part)));
        (parts.sum::<f32>() / 65_536.0 - 2.0) * 3.0_f32.sqrt()
    }
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    vector.iter_mut().for_each(|number| *number /= length);
    vector
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; 32];
    for (left, right) in left.chunks_exact(32).zip(right.chunks_exact(32)) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    sums.iter().sum()
}

/// As long as the ids of memories.
fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn number(id: &str) -> Option<u64> {
    id.rsplit('-').next()?.parse().ok()
}

/// Returns the memory of this process, in bytes; 0 if the system does not tell.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or_default() << 10
}

fn processor_line() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    format!("processor{name}, {}, one thread", std::env::consts::ARCH)
}

fn print_line(text: &str) {
    let mut out = std::io::stdout().lock();
    // If the pipe is closed, nobody reads what would follow.
    if writeln!(out, "{text}").is_err() {
        std::process::exit(1);
    }
}
