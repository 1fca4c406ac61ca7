//! Uniquing of types, attributes and locations.

use std::hash::Hash;
use std::sync::Arc;

use cranelift_entity::EntityRef;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// An append-only set whose members are named by their index.
#[derive(Debug, Clone)]
pub(crate) struct Interner<K, V: Hash + Eq> {
    set: IndexSet<Arc<V>, FxBuildHasher>,
    key: std::marker::PhantomData<K>,
}

impl<K: EntityRef, V: Hash + Eq> Interner<K, V> {
    pub(crate) fn new() -> Self {
        Interner { set: IndexSet::default(), key: std::marker::PhantomData }
    }

    pub(crate) fn intern(&mut self, value: V) -> K {
        if let Some(index) = self.set.get_index_of(&value) {
            return K::new(index);
        }
        K::new(self.set.insert_full(Arc::new(value)).0)
    }

    pub(crate) fn get(&self, key: K) -> &V {
        &self.set[key.index()]
    }

    /// The reference of a value that is already uniqued.
    pub(crate) fn find(&self, value: &V) -> Option<K> {
        self.set.get_index_of(value).map(K::new)
    }
}
