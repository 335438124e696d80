//! By demand: the old order, but everything that only makes a value stands right before its first user, operand by
//! operand, the one first that takes more instructions (Sethi & Ullman 1970, roughly, for a graph instead of a tree).

use super::graph::Graph;

pub(super) fn schedule(g: &Graph) -> Vec<u32> {
    let n = g.len();
    let mut out: Vec<u32> = Vec::with_capacity(n);
    // Instructions that a value takes, its own operands' included, as a measure of what it needs meanwhile.
    let mut work = vec![1u32; n];
    for k in 0..n {
        let sum = g.nodes[k].preds.iter().fold(1u32, |sum, &p| work[p as usize].saturating_add(sum));
        work[k] = sum.min(1 << 16);
    }
    let mut done = vec![false; n];
    let mut stack: Vec<u32> = Vec::new();
    for root in 0..n as u32 {
        let node = &g.nodes[root as usize];
        let waits = node.waits && node.defs.iter().all(|&v| !g.lives_out[v as usize]);
        if waits && root + 1 != n as u32 {
            continue;
        }
        stack.push(root);
        while let Some(&k) = stack.last() {
            if done[k as usize] {
                stack.pop();
                continue;
            }
            let open = stack.len();
            stack.extend(g.nodes[k as usize].preds.iter().filter(|&&p| !done[p as usize]));
            if stack.len() == open {
                stack.pop();
                done[k as usize] = true;
                out.push(k);
            } else {
                // The last one is taken first.
                stack[open..].sort_by_key(|&p| (work[p as usize], std::cmp::Reverse(p)));
            }
        }
    }
    out
}
