//! How good an engine is: nDCG@10 and success@5.

use std::collections::BTreeMap;

use super::{
    corpus::Message,
    engines::{Engine, HITS},
    judged::{Kind, Language},
};

/// Hits among which one that is about what is meant counts as a success.
const SUCCESS_HITS: usize = 5;

/// Means over some queries, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) ndcg: f64,
    pub(crate) success: f64,
}

/// The figures of each query of one language with one engine.
pub(crate) struct Run {
    pub(crate) engine: &'static str,
    pub(crate) language: &'static str,
    pub(crate) queries: Vec<(Kind, &'static str, Figures)>,
}

impl Run {
    pub(crate) fn new(engine: &dyn Engine, language: &Language, messages: &[Message]) -> Self {
        let queries = language.queries.iter().map(|(kind, text, wanted)| {
            let judged: Vec<u8> =
                messages.iter().map(|message| message.relevance(language, wanted)).collect();
            let hits: Vec<u8> = engine.search(text).into_iter().map(|hit| judged[hit]).collect();
            (*kind, *text, Figures { ndcg: ndcg(&hits, judged), success: success(&hits) })
        });
        Self { engine: engine.name(), language: language.code, queries: queries.collect() }
    }

    pub(crate) fn mean(&self) -> Figures {
        mean(self.queries.iter().map(|(_, _, figures)| *figures))
    }
}

/// Returns the discounted gain of the hits, compared with the best possible one.
fn ndcg(hits: &[u8], mut judged: Vec<u8>) -> f64 {
    judged.sort_unstable_by(|one, other| other.cmp(one));
    let best = gain(&judged);
    if best > 0.0 { gain(hits) / best } else { 0.0 }
}

fn gain(relevances: &[u8]) -> f64 {
    let ranks = (2_u32..).map(f64::from);
    let gains = relevances.iter().map(|relevance| f64::from(2_u32.pow(u32::from(*relevance)) - 1));
    gains.zip(ranks).take(HITS).map(|(gain, rank)| gain / rank.log2()).sum()
}

fn success(hits: &[u8]) -> f64 {
    f64::from(u8::from(hits.iter().take(SUCCESS_HITS).any(|relevance| *relevance == 2)))
}

fn mean(figures: impl Iterator<Item = Figures>) -> Figures {
    let (mut sum, mut count) = (Figures::default(), 0.0_f64);
    for one in figures {
        sum = Figures { ndcg: sum.ndcg + one.ndcg, success: sum.success + one.success };
        count += 1.0;
    }
    Figures { ndcg: sum.ndcg / count.max(1.0), success: sum.success / count.max(1.0) }
}

/// Returns a table of nDCG@10 and success@5 for each language and each kind of query, and the queries whose figures with the first
/// engine are low.
pub(crate) fn report(runs: &[Run]) -> String {
    let mut engines: Vec<&str> = Vec::new();
    for run in runs {
        if !engines.contains(&run.engine) {
            engines.push(run.engine);
        }
    }
    let mut rows: BTreeMap<(u8, String), BTreeMap<&str, Vec<Figures>>> = BTreeMap::new();
    for run in runs {
        for (kind, _, figures) in &run.queries {
            for row in
                [(0, run.language.to_owned()), (1, format!("{kind:?}").to_lowercase()), (2, "all".to_owned())]
            {
                rows.entry(row).or_default().entry(run.engine).or_default().push(*figures);
            }
        }
    }
    let mut out = format!("{:<12}", "");
    engines.iter().for_each(|engine| out += &format!(" | {engine:<16}"));
    for ((_, name), cells) in &rows {
        out += &format!("\n{name:<12}");
        for engine in &engines {
            let Figures { ndcg, success } = mean(cells.get(engine).into_iter().flatten().copied());
            out += &format!(" | {ndcg:.3}  {success:.3}    ");
        }
    }
    out + "\n\n" + &weak(runs)
}

/// Returns the queries with low figures, beside those of the other engines.
fn weak(runs: &[Run]) -> String {
    let mut out = String::new();
    let first = runs.first().map_or("", |run| run.engine);
    for run in runs.iter().filter(|run| run.engine == first) {
        for (at, (kind, text, figures)) in run.queries.iter().enumerate().filter(|(_, one)| one.2.ndcg < 0.8)
        {
            let others = runs.iter().filter(|other| other.language == run.language && other.engine != first);
            let others: Vec<String> =
                others.map(|other| format!("{:.2}", other.queries[at].2.ndcg)).collect();
            let others = others.join(" ");
            out += &format!("{} {kind:?} {text:?}: {:.2}, others {others}\n", run.language, figures.ndcg);
        }
    }
    out
}
