//! Loads of uniform buffers at constant addresses: once, where all of them are dominated.
//!
//! Such a load cannot fault and never gives anything else, so where several branches load the same word (each bounds
//! check of an unrolled loop loads the same size), or a loop does, one load in front does it. The pass only puts that
//! load there; `gvn` then removes the others, and `vectorise` merges neighbours.
//!
//! Push constants are left alone: a target reads them like constants.

use crate::alias::{Addresses, Base};
use crate::graph::{Dom, Graph, Loops};
use kempe_ir::*;
use rustc_hash::FxHashMap;

/// Words that are moved at most: they stay in registers from there on.
const MAX_WORDS: usize = 24;

struct Word {
    res: Res,
    offset: u32,
    ty: Type,
    align: u32,
    loc: Loc,
    /// Dominates all blocks that load it.
    block: Block,
    blocks: u32,
    last: Block,
    /// Loads that would go.
    loads: u32,
}

pub fn run(m: &mut Module) -> bool {
    if !m.resources.values().any(|r| r.kind == ResKind::UniformBuffer) || m.func.layout.len() < 2 {
        return false;
    }
    let mut addr = Addresses::new(m);
    let g = Graph::new(&m.func);
    let dom = Dom::new(&m.func, &g);
    let loops = Loops::new(&m.func, &g);
    let f = &mut m.func;
    let mut words: Vec<Word> = Vec::new();
    let mut index: FxHashMap<(Res, u32, u32), usize> = FxHashMap::default();
    for &b in &f.layout {
        for &i in &f.blocks[b].insts {
            let d = &f.insts[i];
            let (Op::Load, Imm::Mem(mem)) = (d.op, d.imm) else { continue };
            if mem.space != Space::Uniform || mem.volatile {
                continue;
            }
            let (root, offset) = addr.of(f, d.args[0]);
            let Some(res) = addr.plain_resource(root) else { continue };
            for k in 0..mem.count as u32 {
                let bytes = d.ty.bytes();
                let at = offset.wrapping_add(k * bytes);
                let align = if k == 0 { mem.align } else { mem.align.min(1 << (k * bytes).trailing_zeros()) };
                let n = *index.entry((res, at, bytes)).or_insert_with(|| {
                    let (ty, loc) = (d.ty, d.loc);
                    words.push(Word {
                        res,
                        offset: at,
                        ty,
                        align,
                        loc,
                        block: b,
                        blocks: 1,
                        last: b,
                        loads: 0,
                    });
                    words.len() - 1
                });
                let w = &mut words[n];
                w.align = w.align.min(align);
                w.loads += 1;
                if w.last != b {
                    w.last = b;
                    w.blocks += 1;
                    w.block = dom.common(w.block, b);
                }
            }
        }
    }
    words.retain_mut(|w| {
        let mut to = w.block;
        while let Some(l) = loops.innermost(g.pos[to]) {
            to = dom.idom(loops.list[l as usize].header);
        }
        let moves = to != w.block || w.blocks > 1;
        w.block = to;
        moves
    });
    // Those that save most first; ties by address, so that neighbours stay together.
    words.sort_by_key(|w| (std::cmp::Reverse(w.loads), w.res, w.offset));
    words.truncate(MAX_WORDS);
    words.sort_by_key(|w| (g.pos[w.block], w.res, w.offset));
    for w in &words {
        let mut b = Builder::new(f, w.block);
        b.loc = w.loc;
        let base = b.resource_addr(w.res, Space::Uniform, None);
        let at = if w.offset == 0 { base } else { b.lea(base, None, 0, w.offset as i32) };
        let mem =
            MemImm { space: Space::Uniform, count: 1, align: w.align, volatile: false, read_only: true };
        b.load(w.ty, mem, at);
    }
    !words.is_empty()
}

impl Addresses {
    /// The resource when the root is its start, without an index.
    fn plain_resource(&self, root: crate::alias::Root) -> Option<Res> {
        match self.bases[root as usize] {
            Base::Res(r) if self.strides[root as usize] == 0 => Some(r),
            _ => None,
        }
    }
}
