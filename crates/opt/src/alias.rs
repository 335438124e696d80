//! Which memory accesses may touch the same bytes.
//!
//! An address is a *root* plus a constant offset; a root is a base (variable, resource, anything else) with a chain
//! of scaled indices. Two accesses with one root are compared by their offsets. Otherwise:
//!
//! * address spaces do not overlap, except that physical pointers may point into storage buffers;
//! * different variables do not overlap, as long as every pointer into their space is known to come from a variable;
//! * different storage buffers may be bound to overlapping memory (nothing in Vulkan forbids it without `Restrict`),
//!   so all those that the program writes are one class. A resource that the program never writes is taken as
//!   constant while it runs: that a buffer is written through one binding and read through another one declared
//!   read-only, without `coherent` or `volatile`, is what drivers assume not to happen;
//! * uniform buffers, push constants and constant data never change.

use kempe_ir::*;
use rustc_hash::FxHashMap;

/// What an address starts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    Var(Var),
    Res(Res),
    /// A value that nothing is known about.
    Value(Value),
}

/// A root: an index into [`Addresses::bases`].
pub type Root = u32;

/// The set of accesses that may touch each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Nothing writes it.
    Constant,
    Id(u8),
}

/// Variables of a space that get a class of their own; the rest share one.
const VAR_CLASSES: u32 = 24;

// Class numbers: spaces as a whole, then variables.
const PRIVATE: u8 = 0;
const SHARED: u8 = 1;
const STORAGE: u8 = 2;
const FIRST_VAR: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Base(Base),
    Index(Root, Value, u32),
}

/// Roots and offsets of addresses, made on demand.
pub struct Addresses {
    interned: FxHashMap<Step, Root>,
    /// Base of every root.
    pub bases: Vec<Base>,
    /// Alignment (a power of two) that is known of the root's index part.
    pub strides: Vec<u32>,
    known: Vec<Option<(Root, u32)>>,
    /// By variable; [`PRIVATE`] or [`SHARED`] when the space is one class.
    var_class: Vec<u8>,
    classes: u8,
    read_only: Vec<bool>,
}

impl Addresses {
    pub fn new(m: &Module) -> Addresses {
        let mut a = Addresses {
            interned: FxHashMap::default(),
            bases: Vec::new(),
            strides: Vec::new(),
            known: vec![None; m.func.values.len()],
            var_class: Vec::new(),
            classes: FIRST_VAR,
            read_only: read_only(m),
        };
        let (mut private, mut shared) = (true, true);
        for &b in &m.func.layout {
            for &i in &m.func.blocks[b].insts {
                let d = &m.func.insts[i];
                let space = match d.imm {
                    Imm::Mem(mem) => mem.space,
                    Imm::Atomic(at) => at.space,
                    _ => continue,
                };
                if !matches!(space, Space::Private | Space::Shared) {
                    continue;
                }
                let (root, _) = a.of(&m.func, d.args[0]);
                if !matches!(a.bases[root as usize], Base::Var(_)) {
                    match space {
                        Space::Private => private = false,
                        _ => shared = false,
                    }
                }
            }
        }
        let mut next = FIRST_VAR;
        let mut count = 0;
        for v in m.vars.values() {
            let (whole, split) = match v.space {
                Space::Private => (PRIVATE, private),
                _ => (SHARED, shared),
            };
            a.var_class.push(if split && count < VAR_CLASSES {
                count += 1;
                next += 1;
                next - 1
            } else {
                whole
            });
        }
        a.classes = next;
        a
    }

    /// Number of classes: [`Class::Id`] is below it. At most 64, so that a mask of them fits a word.
    pub fn classes(&self) -> usize {
        self.classes as usize
    }

    /// Root and offset of an address.
    pub fn of(&mut self, f: &Function, addr: Value) -> (Root, u32) {
        // Down to something known, then back up.
        let mut chain: Vec<Value> = Vec::new();
        let mut at = addr;
        let (mut root, mut offset) = loop {
            if let Some(&Some(k)) = self.known.get(at.index()) {
                break k;
            }
            let base = match f.def_inst(at) {
                None => Base::Value(at),
                Some(i) => {
                    let d = &f.insts[i];
                    match (d.op, d.imm) {
                        (Op::Lea, Imm::Lea(_)) => {
                            chain.push(at);
                            at = d.args[0];
                            continue;
                        }
                        (Op::Iadd, _) if f.as_const(d.args[1]).is_some() => {
                            chain.push(at);
                            at = d.args[0];
                            continue;
                        }
                        (Op::VarAddr, Imm::Var(v)) => Base::Var(v),
                        (Op::ResourceAddr, Imm::Res(r)) if d.args.is_empty() => Base::Res(r),
                        (Op::Uniform, Imm::Uniform(UniformWord::BufferAddr { res, element: 0 })) => {
                            Base::Res(res)
                        }
                        _ => Base::Value(at),
                    }
                }
            };
            break (self.intern(Step::Base(base), base, 0), 0);
        };
        self.remember(at, (root, offset));
        while let Some(v) = chain.pop() {
            let Some(i) = f.def_inst(v) else { break };
            let d = &f.insts[i];
            match d.imm {
                Imm::Lea(l) => {
                    offset = offset.wrapping_add(l.offset as u32);
                    if let Some(&index) = d.args.get(1) {
                        match f.as_const(index) {
                            Some(k) => offset = offset.wrapping_add((k as u32).wrapping_mul(l.scale)),
                            None => {
                                let base = self.bases[root as usize];
                                root = self.intern(Step::Index(root, index, l.scale), base, l.scale);
                            }
                        }
                    }
                }
                _ => offset = offset.wrapping_add(f.as_const(d.args[1]).unwrap_or(0) as u32),
            }
            self.remember(v, (root, offset));
        }
        (root, offset)
    }

    fn remember(&mut self, v: Value, k: (Root, u32)) {
        if self.known.len() <= v.index() {
            self.known.resize(v.index() + 1, None);
        }
        self.known[v.index()] = Some(k);
    }

    fn intern(&mut self, step: Step, base: Base, scale: u32) -> Root {
        if let Some(&r) = self.interned.get(&step) {
            return r;
        }
        let r = self.bases.len() as Root;
        self.bases.push(base);
        let below = match step {
            Step::Base(_) => 0,
            Step::Index(root, ..) => self.strides[root as usize],
        };
        // 0 means any power of two divides it.
        let all = below | scale;
        self.strides.push(if all == 0 { 0 } else { 1 << all.trailing_zeros() });
        self.interned.insert(step, r);
        r
    }

    /// The class of an access.
    pub fn class(&self, space: Space, root: Root, read_only: bool) -> Class {
        if space.is_read_only() || read_only {
            return Class::Constant;
        }
        match (space, self.bases[root as usize]) {
            (Space::Private | Space::Shared, Base::Var(v)) => Class::Id(self.var_class[v.index()]),
            (Space::Private, _) => Class::Id(PRIVATE),
            (Space::Shared, _) => Class::Id(SHARED),
            (_, Base::Res(r)) if self.read_only[r.index()] => Class::Constant,
            _ => Class::Id(STORAGE),
        }
    }

    /// The classes that a barrier or fence lets other invocations change, as a mask.
    pub fn fenced(&self, m: &Arena<Var, Variable>, b: BarrierImm) -> u64 {
        let mut mask = 0;
        if b.storage {
            mask |= 1 << STORAGE;
        }
        if b.shared {
            mask |= 1 << SHARED;
            for (v, d) in m.iter() {
                if d.space == Space::Shared {
                    mask |= 1 << self.var_class[v.index()];
                }
            }
        }
        mask
    }

    /// Class of the accesses of an instruction that reads or writes memory: class, root, offset.
    pub fn access(&mut self, f: &Function, d: &InstData) -> Option<(Class, Root, u32)> {
        let (space, read_only) = match d.imm {
            Imm::Mem(mem) => (mem.space, mem.read_only),
            Imm::Atomic(a) => (a.space, false),
            _ => return None,
        };
        let (root, offset) = self.of(f, *d.args.first()?);
        Some((self.class(space, root, read_only), root, offset))
    }
}

/// Resources that the program writes under no name: several may share a binding (one buffer seen as several types).
fn read_only(m: &Module) -> Vec<bool> {
    let place = |r: &Resource| (r.set, r.binding);
    m.resources
        .values()
        .map(|r| r.read_only && m.resources.values().all(|o| o.read_only || place(o) != place(r)))
        .collect()
}

/// Two byte ranges of one root do not meet. Offsets are modulo 2^32.
pub fn disjoint(a: u32, a_len: u32, b: u32, b_len: u32) -> bool {
    b.wrapping_sub(a) >= a_len && a.wrapping_sub(b) >= b_len
}
