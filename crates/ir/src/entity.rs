//! Entity ids and the dense tables they index.
//!
//! Every thing of the IR is a `u32` newtype; side tables are vectors by id. No pointers, no hash maps: iteration
//! order is creation order, so the same input gives the same bytes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An id that indexes a dense table.
pub trait Entity: Copy + Eq + fmt::Debug {
    fn new(index: usize) -> Self;
    fn index(self) -> usize;
}

/// Declares entity id types: `entity! { /// docs Name = "prefix" }`.
#[macro_export]
macro_rules! entity {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $crate::entity::Entity for $name {
            #[inline]
            fn new(index: usize) -> Self {
                $name(index as u32)
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

/// The table that owns entities of one kind: `push` makes a new id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arena<K, V> {
    items: Vec<V>,
    kind: PhantomData<K>,
}

impl<K, V> Default for Arena<K, V> {
    fn default() -> Self {
        Arena { items: Vec::new(), kind: PhantomData }
    }
}

impl<K: Entity, V> Arena<K, V> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, item: V) -> K {
        self.items.push(item);
        K::new(self.items.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, k: K) -> Option<&V> {
        self.items.get(k.index())
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::new)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(i, v)| (K::new(i), v))
    }

    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }

    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.items.iter_mut()
    }
}

impl<K: Entity, V> Index<K> for Arena<K, V> {
    type Output = V;
    #[inline]
    fn index(&self, k: K) -> &V {
        &self.items[k.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for Arena<K, V> {
    #[inline]
    fn index_mut(&mut self, k: K) -> &mut V {
        &mut self.items[k.index()]
    }
}

/// A side table: one value for every entity of an arena, with a default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table<K, V> {
    items: Vec<V>,
    kind: PhantomData<K>,
}

impl<K: Entity, V: Clone> Table<K, V> {
    /// A table for `len` entities, each with `default`.
    pub fn new(len: usize, default: V) -> Self {
        Table { items: vec![default; len], kind: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Grows to `len` entities, new ones with `default`.
    pub fn grow(&mut self, len: usize, default: V) {
        if self.items.len() < len {
            self.items.resize(len, default);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(i, v)| (K::new(i), v))
    }
}

impl<K: Entity, V> Index<K> for Table<K, V> {
    type Output = V;
    #[inline]
    fn index(&self, k: K) -> &V {
        &self.items[k.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for Table<K, V> {
    #[inline]
    fn index_mut(&mut self, k: K) -> &mut V {
        &mut self.items[k.index()]
    }
}
