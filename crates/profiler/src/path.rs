//! Call paths: chains of names, each kept once.

use rustc_hash::FxHashMap;

/// A call path: where in [`Paths`] its last name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub(crate) u32);

impl PathId {
    /// The path without names.
    pub const ROOT: PathId = PathId(0);
}

#[derive(Debug)]
struct Node {
    parent: PathId,
    name: Box<str>,
    children: FxHashMap<Box<str>, PathId>,
}

/// Every path that was ever met, in the order in which they were: a path stands behind the one that it prolongs.
#[derive(Debug)]
pub struct Paths {
    nodes: Vec<Node>,
}

impl Default for Paths {
    fn default() -> Self {
        Paths {
            nodes: vec![Node { parent: PathId::ROOT, name: "ROOT".into(), children: FxHashMap::default() }],
        }
    }
}

impl Paths {
    /// The path that goes one name further.
    pub fn child(&mut self, path: PathId, name: &str) -> PathId {
        if let Some(child) = self.nodes[path.0 as usize].children.get(name) {
            return *child;
        }
        let child = PathId(self.nodes.len() as u32);
        self.nodes.push(Node { parent: path, name: name.into(), children: FxHashMap::default() });
        self.nodes[path.0 as usize].children.insert(name.into(), child);
        child
    }

    /// The path of these names.
    pub fn of(&mut self, names: &[String]) -> PathId {
        names.iter().fold(PathId::ROOT, |path, name| self.child(path, name))
    }

    /// The last name of a path.
    pub fn name(&self, path: PathId) -> &str {
        &self.nodes[path.0 as usize].name
    }

    /// The path without its last name; the root's is the root.
    pub fn parent(&self, path: PathId) -> PathId {
        self.nodes[path.0 as usize].parent
    }

    /// The names of a path, `ROOT` first.
    pub fn names(&self, path: PathId) -> Vec<&str> {
        let mut names = vec![self.name(path)];
        let mut at = path;
        while at != PathId::ROOT {
            at = self.parent(at);
            names.push(self.name(at));
        }
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_once() {
        let mut paths = Paths::default();
        let a = paths.child(PathId::ROOT, "a");
        let ab = paths.child(a, "b");
        assert_eq!(paths.of(&["a".into(), "b".into()]), ab);
        assert_ne!(paths.child(PathId::ROOT, "b"), ab);
        assert_eq!(paths.names(ab), ["ROOT", "a", "b"]);
        assert_eq!(paths.parent(ab), a);
    }
}
