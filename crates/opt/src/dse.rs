//! Stores that are overwritten before anything can read them, within a block.
//!
//! Backward over each block: a store whose bytes a later store of the same root covers, with no access in between
//! that may read them, goes. (Stores to variables that nobody reads at all are the business of `dce`, stores of
//! what memory holds already that of `gvn`.)

use crate::alias::{Addresses, Class, Root};
use kempe_ir::*;
use rustc_hash::FxHashMap;

pub fn run(m: &mut Module) -> bool {
    let mut addr = Addresses::new(m);
    let mut changed = false;
    // Words that a later store writes whole, by root; and the class they belong to.
    let mut covered: FxHashMap<(Root, u32), Class> = FxHashMap::default();
    for at in 0..m.func.layout.len() {
        let b = m.func.layout[at];
        let f = &m.func;
        if f.blocks[b].insts.iter().filter(|i| f.insts[**i].op == Op::Store).count() < 2 {
            continue;
        }
        covered.clear();
        let mut dead: Vec<Inst> = Vec::new();
        for &i in f.blocks[b].insts.iter().rev() {
            let d = &f.insts[i];
            if !matches!(d.op.effect(), Effect::Read | Effect::Write) {
                continue;
            }
            let (Imm::Mem(mem), Some((class, root, offset))) = (d.imm, addr.access(f, d)) else {
                covered.clear();
                continue;
            };
            if mem.volatile {
                covered.clear();
                continue;
            }
            let bytes = d.ty.bytes() * mem.count as u32;
            if offset >= u32::MAX - bytes {
                covered.clear();
                continue;
            }
            let words = |offset: u32| (offset / 4..(offset + bytes).div_ceil(4)).map(move |w| (root, w));
            if d.op == Op::Load {
                if class != Class::Constant && !covered.is_empty() {
                    // Through the same root only these words, through another one any of the class.
                    for w in words(offset) {
                        covered.remove(&w);
                    }
                    covered.retain(|k, c| *c != class || k.0 == root);
                }
                continue;
            }
            let aligned = offset.is_multiple_of(4) && bytes.is_multiple_of(4);
            if aligned && words(offset).all(|w| covered.contains_key(&w)) {
                dead.push(i);
                continue;
            }
            if aligned {
                for w in words(offset) {
                    covered.insert(w, class);
                }
            }
        }
        if !dead.is_empty() {
            m.func.blocks[b].insts.retain(|i| !dead.contains(i));
            changed = true;
        }
    }
    changed
}
