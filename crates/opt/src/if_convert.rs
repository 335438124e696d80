//! If-conversion: short arms of a branch run always, and selections choose their results.
//!
//! A branch costs a machine without an execution mask in hardware many instructions (flags, masks, delay slots), so a
//! few operations are cheaper than the branch around them. An arm is converted when it computes only what may run
//! for nothing: no stores, no loads that may fault (uniform memory at constant offsets is always there), no lane
//! operations. Arms with a conversion of their own inside are seen after `cfg` has merged what is left of it; the
//! pipeline repeats the two.

use crate::cfg::select_args;
use crate::graph::Graph;
use crate::pipeline::Options;
use kempe_ir::*;

/// Limit when the source asks to flatten.
const FLATTEN_COST: u32 = 64;

pub fn run(m: &mut Module, options: &Options) -> bool {
    let f = &mut m.func;
    let g = Graph::new(f);
    let mut changed = false;
    // Blocks whose place in the graph changed: their neighbours wait for the next round.
    let mut touched = vec![false; f.blocks.len()];
    for at in (0..f.layout.len()).rev() {
        let b = f.layout[at];
        let Term::Branch { cond, then, els } = f.blocks[b].term.clone() else { continue };
        if then.block == els.block || touched[b.index()] {
            continue;
        }
        let limit = match f.blocks[b].branch_hint {
            BranchHint::None => options.if_convert_cost,
            BranchHint::Flatten => options.if_convert_cost.max(FLATTEN_COST),
            BranchHint::DontFlatten => continue,
        };
        // Where the two ways meet, as seen from each side.
        let arm = |t: &Target| -> Option<Target> {
            let ok = g.single_pred(t.block).is_some() && !touched[t.block.index()] && t.block != b;
            match &f.blocks[t.block].term {
                Term::Jump(to) if ok && !g.is_back(t.block, to.block) => Some(to.clone()),
                _ => None,
            }
        };
        let (a, e) = (arm(&then), arm(&els));
        let (then_arm, els_arm) = match (&a, &e) {
            (Some(x), Some(y)) if x.block == y.block => (true, true),
            (Some(x), _) if x.block == els.block => (true, false),
            (_, Some(y)) if y.block == then.block => (false, true),
            _ => continue,
        };
        let mut cost = 0u32;
        for (is_arm, t) in [(then_arm, &then), (els_arm, &els)] {
            if is_arm {
                cost = cost.saturating_add(arm_cost(f, t.block, limit));
            }
        }
        let t1 = if then_arm { a.clone() } else { None }.unwrap_or_else(|| then.clone());
        let t2 = if els_arm { e.clone() } else { None }.unwrap_or_else(|| els.clone());
        debug_assert_eq!(t1.block, t2.block);
        // Edges of the arms without operations pass arguments that select as well.
        cost = cost.saturating_add(t1.args.iter().zip(&t2.args).filter(|(x, y)| x != y).count() as u32);
        if cost > limit {
            continue;
        }
        // Arms have one way in, so their parameters are the arguments.
        let mut params: Vec<(Value, Value)> = Vec::new();
        for (is_arm, t) in [(then_arm, &then), (els_arm, &els)] {
            if is_arm {
                params.extend(f.blocks[t.block].params.iter().copied().zip(t.args.iter().copied()));
            }
        }
        if !params.is_empty() {
            // `cfg` removes parameters of blocks with one way in; nothing is lost by waiting for it.
            continue;
        }
        for (is_arm, t) in [(then_arm, &then), (els_arm, &els)] {
            if is_arm {
                let insts = std::mem::take(&mut f.blocks[t.block].insts);
                f.blocks[b].insts.extend(insts);
                touched[t.block.index()] = true;
            }
        }
        let to = select_args(f, b, cond, &t1, &t2);
        touched[to.block.index()] = true;
        touched[b.index()] = true;
        f.blocks[b].term = Term::Jump(to);
        f.blocks[b].branch_hint = BranchHint::None;
        changed = true;
    }
    if changed {
        crate::graph::prune_unreachable(f);
        crate::graph::repair_loops(f);
    }
    changed
}

/// Cost of running a block for nothing; more than `limit` when it must not.
fn arm_cost(f: &Function, b: Block, limit: u32) -> u32 {
    let mut cost = 0u32;
    for &i in &f.blocks[b].insts {
        match speculation_cost(f, &f.insts[i]) {
            Some(c) => cost += c,
            None => return limit + 1,
        }
        if cost > limit {
            break;
        }
    }
    cost
}

/// About the number of machine instructions of an operation that may run for nothing; `None` for others.
pub fn speculation_cost(f: &Function, d: &InstData) -> Option<u32> {
    use Op::*;
    match d.op.effect() {
        Effect::Pure => {}
        Effect::Constant => return Some(if d.args.is_empty() { 1 } else { 2 }),
        Effect::Read => return uniform_load(f, d).then_some(2 + d.results.len() as u32),
        Effect::Write | Effect::Lanes => return None,
    }
    let wide = if d.ty.bits() == 64 { 3 } else { 1 };
    Some(match d.op {
        Const | Undef | Bitcast => 0,
        Imul | Smulhi | Umulhi => 2 * wide,
        Sdiv | Udiv | Srem | Smod | Umod => 24 * wide,
        Fdiv | Frem | Fmod | Fsqrt | Frsqrt | Fexp2 | Flog2 | RcpApprox | RsqrtApprox | Exp2Approx
        | Log2Approx | SinpiApprox => 4 * wide,
        Fsin | Fcos => 8 * wide,
        Popcount | Bitreverse | FindLsb | FindSmsb | BitInsert => 6 * wide,
        Fma | BitExtractS | BitExtractU | Lea => 2,
        _ => wide,
    })
}

/// A load that cannot fault whatever the program does: uniform memory at a constant offset.
fn uniform_load(f: &Function, d: &InstData) -> bool {
    let Imm::Mem(mem) = d.imm else { return false };
    if mem.volatile || !mem.space.is_read_only() {
        return false;
    }
    let mut at = d.args[0];
    while let Some(i) = f.def_inst(at) {
        let d = &f.insts[i];
        match d.op {
            Op::Lea if d.args.len() == 1 => at = d.args[0],
            Op::ResourceAddr => return d.args.is_empty(),
            Op::Uniform => return true,
            _ => return false,
        }
    }
    false
}
