//! Values that are written where some lanes must keep what they have: variables.
//!
//! On the machine's own graph such a value has versions, each written under the execution mask and tied to the one
//! before; where walks meet, versions meet in a block parameter. Three kinds of values need it:
//!
//! * the parameters of a block where lanes wait: written on each edge to it, read when the walk comes there;
//! * a value that is used behind a loop which lanes leave in different rounds: each lane needs the value of its own
//!   last round. A header parameter is then itself written under the mask at the end of the loop;
//! * a value whose definition the walk may skip on the way to a use (only lanes that had it get there, but the
//!   machine's graph does not know that).
//!
//! A variable exists only in its *scope*, from the first place where a lane may need it: before that there is no
//! older version to keep, so the first write is no instruction at all.

use super::flow::Flow;
use super::plan::Plan;
use super::prepare::Prepared;
use super::values;
use kempe_ir::analysis::NONE;
use kempe_ir::{Table, Term, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Parameter of a join, written on its edges.
    Join,
    /// Parameter of a loop header, written where the loop is entered and where it goes back.
    Header,
    /// Written where the value is defined, under the mask.
    Def,
    /// Renamed where the value is defined.
    Plain,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Var {
    pub kind: Kind,
    pub value: Value,
    /// Start of the scope: position times two, plus one when it begins inside the block.
    pub from: u32,
    /// Last position where it is read.
    pub to: u32,
}

pub(super) struct Vars {
    pub list: Vec<Var>,
    of: Table<Value, u32>,
    /// By loop: variables that need a parameter of the header.
    pub carried: Vec<Vec<u32>>,
    /// Values (by root) that some other block or an edge uses.
    far: Table<Value, bool>,
}

impl Vars {
    pub fn new(p: &Prepared, flow: &Flow, plan: &Plan) -> Vars {
        let mut vars = Vars {
            list: Vec::new(),
            of: Table::new(p.func.values.len(), NONE),
            carried: vec![Vec::new(); p.cfg.loops.len()],
            far: Table::new(p.func.values.len(), false),
        };
        vars.joins(p, flow);
        for at in 0..p.len() {
            let block = p.block(at);
            for &i in &block.insts {
                if p.is_needed(i) {
                    for &a in &p.func.insts[i].args {
                        vars.used(p, flow, plan, p.root(a), at);
                    }
                }
            }
            if let Term::Branch { cond, .. } = block.term {
                vars.used(p, flow, plan, p.root(cond), at);
            }
            for t in block.term.targets() {
                for (n, _) in p.params(p.cfg.pos[t.block]) {
                    if let Some(&a) = t.args.get(n) {
                        vars.used(p, flow, plan, p.root(a), at);
                    }
                }
            }
        }
        vars.loops(p);
        vars
    }

    /// The variable of a root.
    #[inline]
    pub fn of(&self, root: Value) -> Option<u32> {
        Some(self.of[root]).filter(|&v| v != NONE)
    }

    /// Used outside of the block that defines it.
    #[inline]
    pub fn is_far(&self, root: Value) -> bool {
        self.far[root]
    }

    /// Whether a use in another block reads the variable and not the definition itself.
    pub fn reads_version(&self, p: &Prepared, flow: &Flow, plan: &Plan, root: Value, at: u32) -> bool {
        let def = p.def_pos(root);
        flow.left_diverging(p, def, at) != NONE || !plan.dominates(def, at)
    }

    fn joins(&mut self, p: &Prepared, flow: &Flow) {
        for at in 0..p.len() {
            if !flow.meets[at as usize] {
                continue;
            }
            let mut from = u32::MAX;
            for &q in &p.cfg.preds[at as usize] {
                from = from.min(match flow.left_diverging(p, q, at) {
                    NONE => q * 2 + 1,
                    l => p.cfg.loops[l as usize].header * 2,
                });
            }
            for (_, value) in p.params(at) {
                self.add(Var { kind: Kind::Join, value, from, to: at });
            }
        }
    }

    fn add(&mut self, var: Var) {
        self.of[var.value] = self.list.len() as u32;
        self.list.push(var);
    }

    fn used(&mut self, p: &Prepared, flow: &Flow, plan: &Plan, root: Value, at: u32) {
        let def = p.def_pos(root);
        if def == at || def == NONE {
            return;
        }
        self.far[root] = true;
        // The condition of short arms is asked again in them.
        let to = if flow.through[at as usize] { at + 2 } else { at };
        if values::is_remade(p, root) || values::payload(p, root).is_some() {
            return;
        }
        let left = flow.left_diverging(p, def, at);
        if left == NONE && plan.dominates(def, at) {
            return;
        }
        let (from, kind) = if left == NONE {
            (def * 2 + 1, Kind::Plain)
        } else {
            // A value that must stay the same in all lanes cannot be written under a mask itself.
            let param = matches!(p.func.values[root].def, kempe_ir::ValueDef::Param(..));
            let header = param && p.loop_at(def).is_some() && !flow.value_is_uniform(root);
            let kind = if header { Kind::Header } else { Kind::Def };
            (p.cfg.loops[left as usize].header * 2, kind)
        };
        match self.of(root) {
            None => self.add(Var { kind, value: root, from, to }),
            Some(v) => {
                let var = &mut self.list[v as usize];
                var.from = var.from.min(from);
                var.to = var.to.max(to);
                if var.kind == Kind::Plain {
                    var.kind = kind;
                }
            }
        }
    }

    fn loops(&mut self, p: &Prepared) {
        for v in 0..self.list.len() {
            let var = self.list[v];
            let def = p.def_pos(var.value);
            let mut writes: Vec<u32> = Vec::new();
            match var.kind {
                Kind::Join => writes.extend(p.cfg.preds[def as usize].iter().copied()),
                Kind::Header => {
                    writes.extend(p.cfg.preds[def as usize].iter().copied());
                    writes.push(def);
                }
                Kind::Def | Kind::Plain => writes.push(def),
            }
            for w in writes {
                let mut l = p.cfg.loop_of[w as usize];
                while l != NONE {
                    let header = p.cfg.loops[l as usize].header;
                    let list = &mut self.carried[l as usize];
                    // The header's own parameter stands for it there.
                    let own = var.kind == Kind::Header && header == def;
                    if var.from <= header * 2 && var.to >= header && !own && list.last() != Some(&(v as u32))
                    {
                        list.push(v as u32);
                    }
                    l = p.cfg.loops[l as usize].parent;
                }
            }
        }
    }
}
