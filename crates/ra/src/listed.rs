//! A set of values that can be walked: a list, and for every value its place in it. The order means nothing, but is the same
//! every time.

use crate::graph::NONE;

#[derive(Default)]
pub(crate) struct Listed {
    list: Vec<u32>,
    /// By value: its place in the list, or [`NONE`].
    place: Vec<u32>,
}

impl Listed {
    /// None of the values below `count`.
    pub fn new(count: usize) -> Listed {
        Listed { list: Vec::new(), place: vec![NONE; count] }
    }

    /// There is one more value.
    pub fn grow(&mut self) {
        self.place.push(NONE);
    }

    pub fn contains(&self, vreg: u32) -> bool {
        self.place[vreg as usize] != NONE
    }

    /// `false`: it was there.
    pub fn insert(&mut self, vreg: u32) -> bool {
        let is_new = !self.contains(vreg);
        if is_new {
            self.place[vreg as usize] = self.list.len() as u32;
            self.list.push(vreg);
        }
        is_new
    }

    /// `false`: it was not there.
    pub fn remove(&mut self, vreg: u32) -> bool {
        let at = std::mem::replace(&mut self.place[vreg as usize], NONE);
        if at == NONE {
            return false;
        }
        self.list.swap_remove(at as usize);
        if let Some(&moved) = self.list.get(at as usize) {
            self.place[moved as usize] = at;
        }
        true
    }

    /// Empties it; what was in it.
    pub fn take(&mut self) -> Vec<u32> {
        for &vreg in &self.list {
            self.place[vreg as usize] = NONE;
        }
        std::mem::take(&mut self.list)
    }

    pub fn as_slice(&self) -> &[u32] {
        &self.list
    }
}
