//! What happened at each path, added up, and the file that Hatchet reads.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use crate::metric::{Kind, Metric, Value};
use crate::path::{PathId, Paths};
use crate::session::{DeviceKind, Kernel};

/// The kernels of one path.
#[derive(Debug, Clone, PartialEq)]
struct Kernels {
    count: u64,
    nanoseconds: u64,
    /// Where the last one ran.
    device: (DeviceKind, u32),
}

#[derive(Debug, Default)]
struct Node {
    kernels: Option<Kernels>,
    metrics: IndexMap<String, Metric>,
}

/// The paths that a session has met.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<PathId, Node>,
}

impl Tree {
    /// A path is there, if nothing ever happens at it.
    pub fn touch(&mut self, path: PathId) {
        self.nodes.entry(path).or_default();
    }

    /// Adds a kernel that ran.
    pub fn add_kernel(&mut self, path: PathId, kernel: &Kernel<'_>) {
        let kernels = self.nodes.entry(path).or_default().kernels.get_or_insert(Kernels {
            count: 0,
            nanoseconds: 0,
            device: kernel.device,
        });
        kernels.count += 1;
        kernels.nanoseconds += kernel.end.saturating_sub(kernel.start);
        kernels.device = kernel.device;
    }

    /// Adds what the program says.
    pub fn add_metrics(&mut self, path: PathId, metrics: &[(String, Value)]) {
        let node = self.nodes.entry(path).or_default();
        for (name, value) in metrics {
            let (name, kind) = Metric::parse(name);
            match node.metrics.get_mut(&name) {
                Some(metric) => metric.update(value.clone()),
                None => {
                    node.metrics.insert(name, Metric { kind, value: value.clone() });
                }
            }
        }
    }

    /// The devices on which kernels ran.
    pub fn devices(&self) -> BTreeSet<(DeviceKind, u32)> {
        self.nodes.values().filter_map(|node| node.kernels.as_ref().map(|k| k.device)).collect()
    }

    /// The file's text: the tree as Hatchet's literal, then what is known of the devices.
    pub fn hatchet(&self, paths: &Paths, devices: Json) -> String {
        let mut children: BTreeMap<PathId, Vec<PathId>> = BTreeMap::new();
        let mut known = BTreeSet::from([PathId::ROOT]);
        for &path in self.nodes.keys() {
            let mut at = path;
            while known.insert(at) {
                children.entry(paths.parent(at)).or_default().push(at);
                at = paths.parent(at);
            }
        }
        // In the order in which the program first came there.
        children.values_mut().for_each(|list| list.sort_unstable());
        let mut root = self.literal(PathId::ROOT, paths, &children);
        // The viewer takes for inclusive what the root has.
        for name in self.inclusive() {
            let metrics = root["metrics"].as_object_mut().expect("a node's metrics are an object");
            metrics.entry(name).or_insert(json!(0));
        }
        let text = serde_json::to_string_pretty(&json!([root, devices]));
        text.expect("names and numbers have a text") + "\n"
    }

    /// One node with all below it. Without recursion: a path of Python's frames can be long.
    fn literal(&self, root: PathId, paths: &Paths, children: &BTreeMap<PathId, Vec<PathId>>) -> Json {
        let mut order = vec![root];
        let mut at = 0;
        while let Some(path) = order.get(at) {
            order.extend(children.get(path).into_iter().flatten());
            at += 1;
        }
        // Every node stands in front of those below it: from the back, each finds its children made.
        let mut made: BTreeMap<PathId, Json> = BTreeMap::new();
        for path in order.into_iter().rev() {
            let below: Vec<Json> =
                children.get(&path).into_iter().flatten().filter_map(|child| made.remove(child)).collect();
            let node = json!({
                "frame": {"name": paths.name(path), "type": "function"},
                "metrics": self.metrics(path),
                "children": below,
            });
            made.insert(path, node);
        }
        made.remove(&root).unwrap_or_default()
    }

    fn metrics(&self, path: PathId) -> Map<String, Json> {
        let mut metrics = Map::new();
        let Some(node) = self.nodes.get(&path) else { return metrics };
        if let Some(kernels) = &node.kernels {
            metrics.insert("count".into(), json!(kernels.count));
            metrics.insert("time (ns)".into(), json!(kernels.nanoseconds));
            metrics.insert("device_type".into(), json!(kernels.device.0.name()));
            metrics.insert("device_id".into(), json!(kernels.device.1.to_string()));
        }
        metrics.extend(node.metrics.iter().map(|(name, metric)| (name.clone(), metric.value.json())));
        metrics
    }

    fn inclusive(&self) -> BTreeSet<String> {
        let kernels = self.nodes.values().any(|node| node.kernels.is_some());
        let of_kernels = ["count", "time (ns)"].into_iter().filter(|_| kernels).map(str::to_string);
        let inclusive =
            |metric: &Metric| metric.kind == Kind::Inclusive && !matches!(metric.value, Value::Text(_));
        let of_nodes = self.nodes.values().flat_map(|node| &node.metrics);
        of_kernels.chain(of_nodes.filter(|(_, m)| inclusive(m)).map(|(name, _)| name.clone())).collect()
    }
}
