//! Replacing values by values.

use kempe_ir::*;

/// A map from values to what stands for them, applied in one sweep.
pub struct Subst {
    map: Vec<Value>,
    any: bool,
}

impl Subst {
    pub fn new(f: &Function) -> Subst {
        Subst { map: f.values.keys().collect(), any: false }
    }

    /// From now on `to` stands for `v`.
    pub fn set(&mut self, v: Value, to: Value) {
        self.reach(v);
        self.reach(to);
        let to = self.get(to);
        debug_assert_ne!(v, to, "a value cannot replace itself");
        self.map[v.index()] = to;
        self.any = true;
    }

    fn reach(&mut self, v: Value) {
        while self.map.len() <= v.index() {
            self.map.push(Value(self.map.len() as u32));
        }
    }

    /// What stands for `v` in the end.
    pub fn get(&mut self, v: Value) -> Value {
        let mut root = v;
        while let Some(&next) = self.map.get(root.index())
            && next != root
        {
            root = next;
        }
        let mut at = v;
        while at != root {
            at = std::mem::replace(&mut self.map[at.index()], root);
        }
        root
    }

    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Rewrites every operand and every edge argument. Names move to the replacement where it has none.
    pub fn apply(&mut self, f: &mut Function) {
        if !self.any {
            return;
        }
        for at in 0..f.layout.len() {
            let b = f.layout[at];
            let Function { blocks, insts, .. } = f;
            for &i in &blocks[b].insts {
                for a in insts[i].args.iter_mut() {
                    *a = self.get(*a);
                }
            }
            self.apply_term(&mut f.blocks[b].term);
        }
        self.apply_names(f);
    }

    pub fn apply_term(&mut self, term: &mut Term) {
        if let Term::Branch { cond, .. } = term {
            *cond = self.get(*cond);
        }
        for t in term.targets_mut() {
            for a in t.args.iter_mut() {
                *a = self.get(*a);
            }
        }
    }

    pub fn apply_names(&mut self, f: &mut Function) {
        if f.names.is_empty() {
            return;
        }
        let moved: Vec<(Value, Value)> = f
            .names
            .keys()
            .filter_map(|&v| {
                let to = self.get(v);
                (to != v).then_some((v, to))
            })
            .collect();
        for (v, to) in moved {
            if let Some(name) = f.names.remove(&v) {
                f.names.entry(to).or_insert(name);
            }
        }
    }
}
