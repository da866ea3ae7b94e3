//! The tree of nodes in the raw files of ChatGPT and `DeepSeek`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Turn, arrange};

/// The nodes of a conversation: an object of nodes, each with its parent and perhaps its children.
pub struct Nodes<'a> {
    mapping: &'a Map<String, Value>,
    kept: BTreeSet<&'a str>,
    parents: BTreeMap<&'a str, &'a str>,
}

impl<'a> Nodes<'a> {
    /// Reads `mapping` without the nodes that have no message or that are `skipped`.
    pub fn new(mapping: &'a Map<String, Value>, skipped: impl Fn(&str) -> bool) -> Self {
        let message = |node: &Value| node["message"].is_object();
        let kept =
            mapping.iter().filter(|(key, node)| message(node) && !skipped(key)).map(|(key, _)| key.as_str());
        let named = |(key, node): (&'a String, &'a Value)| Some((key.as_str(), node["parent"].as_str()?));
        let mut nodes =
            Self { mapping, kept: kept.collect(), parents: mapping.iter().filter_map(named).collect() };
        for key in mapping.keys() {
            for child in nodes.children(key) {
                nodes.parents.entry(child).or_insert(key);
            }
        }
        if nodes.parents.is_empty() {
            nodes.chain();
        }
        nodes
    }

    /// Without links between nodes, each answers the one before; here members are in the order of their keys.
    fn chain(&mut self) {
        let keys: Vec<&'a str> = self.kept.iter().copied().collect();
        self.parents.extend(keys.windows(2).map(|pair| (pair[1], pair[0])));
    }

    fn children(&self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let mapping = self.mapping;
        let listed = mapping.get(key).and_then(|node| node["children"].as_array());
        let known = move |key: &Value| mapping.get_key_value(key.as_str()?).map(|(key, _)| key.as_str());
        listed.into_iter().flatten().filter_map(known)
    }

    /// The node, or its nearest ancestor with a message.
    pub fn nearest_kept(&self, key: &'a str) -> Option<&'a str> {
        let up = |key: &&'a str| self.parents.get(key).copied();
        std::iter::successors(Some(key), up).take(self.mapping.len() + 1).find(|key| self.kept.contains(key))
    }

    /// The nearest ancestor with a message, or one that the file does not contain.
    fn parent(&self, key: &str) -> Option<&'a str> {
        let above = *self.parents.get(key)?;
        let up = |key: &&'a str| self.parents.get(key).copied();
        let end = |key: &&str| self.kept.contains(key) || !self.mapping.contains_key(*key);
        std::iter::successors(Some(above), up).take(self.mapping.len() + 1).find(end)
    }

    /// For each node with a message, its children in the order of its list; under the empty key those of roots without a message.
    fn lists(&self) -> BTreeMap<String, Vec<String>> {
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let tops = self
            .mapping
            .keys()
            .map(String::as_str)
            .filter(|key| !self.kept.contains(key) && self.parent(key).is_none());
        lists
            .insert(String::new(), tops.flat_map(|key| self.listed(key, 0)).map(ToOwned::to_owned).collect());
        for key in &self.kept {
            lists.insert((*key).to_owned(), self.listed(key, 0).into_iter().map(ToOwned::to_owned).collect());
        }
        lists
    }

    fn listed(&self, key: &str, depth: usize) -> Vec<&'a str> {
        let mut all = Vec::new();
        for child in self.children(key) {
            if self.kept.contains(child) {
                all.push(child);
            } else if depth < self.mapping.len() {
                all.extend(self.listed(child, depth + 1));
            }
        }
        all
    }

    /// The turns in the order of the tree; `turn` makes one of key, node and parent.
    pub fn turns(&self, turn: fn(&str, &Value, Option<&str>) -> Turn) -> Vec<Turn> {
        let lists = self.lists();
        let place = |key: &str| lists.values().find_map(|list| list.iter().position(|other| other == key));
        let turns =
            self.kept.iter().map(|key| (turn(key, &self.mapping[*key], self.parent(key)), place(key)));
        arrange(turns.collect())
    }
}
