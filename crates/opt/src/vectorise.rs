//! Neighbouring loads and stores of one block to vector accesses.
//!
//! Memory accesses are what costs most on the targets, per access more than per component. Loads through one root
//! (see `alias`) whose offsets follow each other become one load where the first of them stands; stores become one
//! where the last stands. Nothing that may touch the same bytes is crossed, no barrier, no atomic. Only accesses of
//! 32-bit components are merged, so no merged access needs more alignment than its parts had. Longer vectors than
//! the target takes are cut on the way.
//!
//! Private memory is left alone: its words are not neighbours on a machine that interleaves lanes.

use crate::alias::{Addresses, Base, Class, Root, disjoint};
use crate::pipeline::Options;
use crate::subst::Subst;
use kempe_ir::*;
use smallvec::{SmallVec, smallvec};

/// Groups that are open at a time: bounds the time in blocks with many roots.
const MAX_GROUPS: usize = 32;
/// Instructions between members of one merged access: merging further apart would keep components alive for long.
const MAX_DISTANCE: usize = 400;
/// Components in a group before it is closed.
const MAX_ELEMENTS: usize = 1024;

pub fn run(m: &mut Module, options: &Options) -> bool {
    if options.vector_components < 2 {
        return false;
    }
    align_shared(m);
    let mut addr = Addresses::new(m);
    let mut subst = Subst::new(&m.func);
    let mut changed = false;
    for at in 0..m.func.layout.len() {
        let b = m.func.layout[at];
        let mut groups = Groups { open: Vec::new(), closed: Vec::new() };
        collect(m, &mut addr, b, &mut groups);
        groups.closed.append(&mut groups.open);
        let mut edits = Edits::default();
        for g in &mut groups.closed {
            form(m, options, g, &mut edits);
        }
        if !edits.is_empty() {
            apply(&mut m.func, b, edits, &mut subst);
            changed = true;
        }
    }
    subst.apply(&mut m.func);
    changed
}

/// One component of an access.
#[derive(Clone, Copy)]
struct Element {
    offset: u32,
    inst: Inst,
    /// Result or operand number.
    part: u16,
    /// Position in the block.
    pos: u32,
}

struct Group {
    store: bool,
    space: Space,
    read_only: bool,
    root: Root,
    class: Class,
    /// Largest power of two that the root is known to be a multiple of.
    root_align: u32,
    elements: Vec<Element>,
    /// Ranges that were written (for loads: after the group began) or read (for stores).
    touched: SmallVec<[(u32, u32); 4]>,
    first_pos: u32,
}

/// What the start of a buffer is a multiple of at least: the smallest offset alignment that an implementation may ask
/// for is larger.
const BUFFER_ALIGN: u32 = 16;

/// Largest power of two that a root is a multiple of, by its base and its strides.
fn root_align(m: &Module, addr: &Addresses, root: Root) -> u32 {
    let base = match addr.bases[root as usize] {
        Base::Var(v) => m.vars[v].align,
        Base::Res(_) => BUFFER_ALIGN,
        Base::Value(_) => 1,
    };
    match addr.strides[root as usize] {
        0 => base,
        stride => base.min(stride),
    }
}

/// Shared variables start at vector boundaries: that costs a few bytes and tells the alignment of what is in them.
pub fn align_shared(m: &mut Module) {
    for v in m.vars.values_mut() {
        if v.space == Space::Shared && v.size >= 16 {
            v.align = v.align.max(16);
        }
    }
}

struct Groups {
    open: Vec<Group>,
    closed: Vec<Group>,
}

impl Groups {
    /// Closes the groups for which `hit` holds.
    fn close(&mut self, hit: impl Fn(&Group) -> bool) {
        let mut n = 0;
        while n < self.open.len() {
            if hit(&self.open[n]) {
                let g = self.open.remove(n);
                self.closed.push(g);
            } else {
                n += 1;
            }
        }
    }
}

fn collect(m: &Module, addr: &mut Addresses, b: Block, groups: &mut Groups) {
    let f = &m.func;
    for (pos, &i) in f.blocks[b].insts.iter().enumerate() {
        let d = &f.insts[i];
        if !matches!(d.op.effect(), Effect::Read | Effect::Write) {
            continue;
        }
        let access = addr.access(f, d);
        let (Op::Load | Op::Store, Imm::Mem(mem), Some((class, root, offset))) = (d.op, d.imm, access) else {
            // Atomics, barriers, fences: no access to memory that changes may move across.
            groups.close(|g| g.class != Class::Constant);
            continue;
        };
        let store = d.op == Op::Store;
        let count = if store { d.args.len() - 1 } else { d.results.len() } as u32;
        let len = count * d.ty.bytes();
        if mem.volatile {
            groups.close(|g| g.class != Class::Constant);
            continue;
        }
        // What this access means for groups that are open.
        if class != Class::Constant {
            groups.close(|g| {
                // Through another root it may be anywhere. Through the same one, a store of the group must not move
                // down past it. (A load of the group only moves up, away from it.)
                g.class == class
                    && if g.root == root {
                        g.store && g.elements.iter().any(|e| !disjoint(e.offset, 4, offset, len))
                    } else {
                        g.store || store
                    }
            });
            for g in &mut groups.open {
                if g.root == root && g.class == class && g.store != store {
                    g.touched.push((offset, len));
                }
            }
        }
        if mem.space == Space::Private || d.ty.bits() != 32 {
            continue;
        }
        let found = groups.open.iter().position(|g| {
            g.store == store
                && g.root == root
                && g.space == mem.space
                && g.read_only == mem.read_only
                && g.elements.len() < MAX_ELEMENTS
                && g.touched.len() < MAX_GROUPS
                && pos as u32 - g.first_pos < MAX_DISTANCE as u32
                // A load that joins moves up past the writes since the group began. (A store of the group moves
                // down past this point only when it is merged with a later one: what was read in between was looked
                // at above.)
                && (store || g.touched.iter().all(|&(o, l)| disjoint(o, l, offset, len)))
        });
        let n = match found {
            Some(n) => n,
            None => {
                groups.close(|g| g.store == store && g.root == root && g.space == mem.space);
                if groups.open.len() >= MAX_GROUPS {
                    let g = groups.open.remove(0);
                    groups.closed.push(g);
                }
                groups.open.push(Group {
                    store,
                    space: mem.space,
                    read_only: mem.read_only,
                    root,
                    class,
                    root_align: root_align(m, addr, root),
                    elements: Vec::new(),
                    touched: smallvec![],
                    first_pos: pos as u32,
                });
                groups.open.len() - 1
            }
        };
        let g = &mut groups.open[n];
        // The root is a multiple of what both the address and the offset are multiples of.
        let known = if offset == 0 { mem.align } else { mem.align.min(1 << offset.trailing_zeros()) };
        g.root_align = g.root_align.max(known);
        for part in 0..count {
            let offset = offset.wrapping_add(part * 4);
            g.elements.push(Element { offset, inst: i, part: part as u16, pos: pos as u32 });
        }
    }
}

/// A vector access that replaces parts of others.
struct Piece {
    store: bool,
    space: Space,
    read_only: bool,
    align: u32,
    elements: SmallVec<[Element; 4]>,
    /// Where it goes.
    pos: u32,
}

#[derive(Default)]
struct Edits {
    pieces: Vec<Piece>,
    remove: Vec<Inst>,
}

impl Edits {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

fn form(m: &Module, options: &Options, g: &mut Group, edits: &mut Edits) {
    let single = g.elements.first().map(|e| e.inst);
    let limit = options.vector_components as usize;
    let all = g.elements.len();
    if g.elements.iter().all(|e| Some(e.inst) == single) && all <= limit && !options.vector_within_16 {
        return;
    }
    g.elements.sort_by_key(|e| (e.offset as i32, e.pos, e.part));
    if g.elements.windows(2).any(|w| w[0].offset == w[1].offset) {
        // The same component twice: common subexpressions were not merged. Leave it.
        return;
    }
    // Cut into pieces.
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while at < all {
        let mut end = at + 1;
        let e = &g.elements;
        while end < all && end - at < limit && e[end].offset == e[end - 1].offset.wrapping_add(4) {
            if options.vector_within_16 {
                // Both ends provably in one aligned block.
                let align = g.root_align.min(16);
                let block = e[at].offset % align;
                if block + (end - at + 1) as u32 * 4 > align {
                    break;
                }
            }
            end += 1;
        }
        let elements: SmallVec<[Element; 4]> = e[at..end].iter().copied().collect();
        let first = elements[0];
        let align = align_of(m, g, first, &elements);
        let positions = elements.iter().map(|e| e.pos);
        let pos = if g.store { positions.max() } else { positions.min() }.unwrap_or(first.pos);
        pieces.push(Piece { store: g.store, space: g.space, read_only: g.read_only, align, elements, pos });
        at = end;
    }
    // Accesses that stay as they are: alone in their piece, and whole.
    let whole = |p: &Piece| {
        let i = p.elements[0].inst;
        let d = &m.func.insts[i];
        let count = if p.store { d.args.len() - 1 } else { d.results.len() };
        p.elements.len() == count && p.elements.iter().all(|e| e.inst == i)
    };
    // A split pays only when it leaves fewer accesses (or was asked for by the limit).
    let mut insts: Vec<Inst> = g.elements.iter().map(|e| e.inst).collect();
    insts.sort();
    insts.dedup();
    let too_long = |i: &Inst| {
        let d = &m.func.insts[*i];
        (if g.store { d.args.len() - 1 } else { d.results.len() }) > limit
    };
    if pieces.len() >= insts.len() && !insts.iter().any(too_long) {
        return;
    }
    for p in pieces {
        if whole(&p) {
            continue;
        }
        for e in &p.elements {
            edits.remove.push(e.inst);
        }
        edits.pieces.push(p);
    }
}

/// Alignment that is known of the first component of a piece.
fn align_of(m: &Module, g: &Group, first: Element, elements: &[Element]) -> u32 {
    let from_root =
        if first.offset == 0 { g.root_align } else { g.root_align.min(1 << first.offset.trailing_zeros()) };
    let mut best = from_root.max(4);
    for e in elements {
        if let Imm::Mem(mem) = m.func.insts[e.inst].imm {
            // Offset of the member's own address from the piece's.
            let delta = e.offset.wrapping_sub(e.part as u32 * 4).wrapping_sub(first.offset);
            let known = if delta == 0 { mem.align } else { mem.align.min(1 << delta.trailing_zeros()) };
            best = best.max(known);
        }
    }
    best
}

fn apply(f: &mut Function, b: Block, mut edits: Edits, subst: &mut Subst) {
    edits.pieces.sort_by_key(|p| (p.pos, p.elements[0].offset as i32));
    let mut removed = vec![false; f.blocks[b].insts.len()];
    edits.remove.sort();
    edits.remove.dedup();
    let old = std::mem::take(&mut f.blocks[b].insts);
    for (pos, i) in old.iter().enumerate() {
        removed[pos] = edits.remove.binary_search(i).is_ok();
    }
    let mut next = 0;
    for (pos, i) in old.into_iter().enumerate() {
        // Loads stand where the first member stood, stores where the last did: both at `pos`.
        while next < edits.pieces.len() && edits.pieces[next].pos == pos as u32 {
            emit(f, b, i, &edits.pieces[next], subst);
            next += 1;
        }
        if !removed[pos] {
            f.blocks[b].insts.push(i);
        }
    }
}

/// Emits a piece. `here` is the member at this position, whose address is at hand.
fn emit(f: &mut Function, b: Block, here: Inst, p: &Piece, subst: &mut Subst) {
    let first = p.elements[0];
    let Some(at) = p.elements.iter().find(|e| e.inst == here) else {
        debug_assert!(false, "a piece stands where one of its members stood");
        return;
    };
    // Address of the first component from the address of the member here.
    let own = at.offset.wrapping_sub(at.part as u32 * 4);
    let delta = first.offset.wrapping_sub(own) as i32;
    let base = subst.get(f.insts[here].args[0]);
    let ty = f.insts[first.inst].ty;
    let loc = f.insts[first.inst].loc;
    let mem = MemImm {
        space: p.space,
        count: p.elements.len() as u8,
        align: p.align,
        volatile: false,
        read_only: p.read_only,
    };
    let mut bld = Builder::new(f, b);
    bld.loc = loc;
    let addr = if delta == 0 {
        base
    } else if bld.func.ty(base).is_ptr() {
        bld.lea(base, None, 0, delta)
    } else {
        let k = bld.i32(delta as u32);
        bld.op(Op::Iadd, Type::I32, &[base, k])
    };
    if p.store {
        let mut data: SmallVec<[Value; 4]> = smallvec![];
        for e in &p.elements {
            let v = subst.get(bld.func.insts[e.inst].args[e.part as usize + 1]);
            data.push(if bld.func.ty(v) == ty { v } else { cast(&mut bld, ty, v) });
        }
        bld.store(ty, mem, addr, &data);
        return;
    }
    let values = bld.load(ty, mem, addr);
    for (e, v) in p.elements.iter().zip(values) {
        let old = bld.func.insts[e.inst].results[e.part as usize];
        let want = bld.func.ty(old);
        let new = if want == ty { v } else { cast(&mut bld, want, v) };
        subst.set(old, new);
    }
}

fn cast(bld: &mut Builder, ty: Type, v: Value) -> Value {
    bld.op(Op::Bitcast, ty, &[v])
}
