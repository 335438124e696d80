//! Coalescing: values that are copied to each other become one node where they do not meet, so that the copy goes away.
//!
//! Ties come first and are always joined: the instruction writes into the place of the use whatever was planned for the
//! def. Parameters with their arguments and moves follow, the most frequent first, and only where that is safe: either
//! every neighbour of the one is a neighbour of the other or finds a place in any case (George & Appel 1996), or the
//! neighbours that might not, taken together, leave the new node a place (Briggs 1994), both with the numbers p and q.
//!
//! Vectors are not joined into wide nodes: their members live apart, and select seats them side by side.

use crate::classes::{ClassId, Classes, bases};
use crate::code::*;
use crate::interference::Interference;
use crate::problem::OperandKind;

/// Most neighbours of a pair for the test that has to look at all of them; a value that lives everywhere would make
/// every copy of it cost as much as the program is long.
const MOST_NEIGHBOURS: usize = 2000;

struct Coalescer<'a> {
    graph: &'a mut Interference,
    classes: &'a mut Classes,
    class: Vec<ClassId>,
    /// By node: the sum of q over its neighbours.
    blocked: Vec<u32>,
}

struct Copy {
    tie: bool,
    weight: f32,
    a: u32,
    b: u32,
}

/// Join what may be joined; the graph has to be compact and is not afterwards.
pub(crate) fn coalesce(graph: &mut Interference, classes: &mut Classes, code: &Code) {
    let mut copies = find_copies(code);
    if copies.is_empty() {
        return;
    }
    copies.sort_by(|x, y| {
        y.tie.cmp(&x.tie).then(y.weight.total_cmp(&x.weight)).then((x.a, x.b).cmp(&(y.a, y.b)))
    });
    let count = graph.alive.len();
    let class: Vec<ClassId> =
        (0..count).map(|node| classes.of(&graph.mask[node], graph.size[node])).collect();
    let mut blocked = vec![0u32; count];
    for node in (0..count).filter(|&node| graph.alive[node]) {
        let others = graph.adjacent[node].iter();
        blocked[node] = others.map(|&other| classes.q(class[node], class[other as usize])).sum();
    }
    let mut coalescer = Coalescer { graph, classes, class, blocked };
    for copy in &copies {
        coalescer.join(copy);
    }
}

fn find_copies(code: &Code) -> Vec<Copy> {
    let mut copies = Vec::new();
    for block in &code.blocks {
        for edge in &block.succs {
            for (&arg, &param) in edge.args.iter().zip(&code.blocks[edge.to as usize].params) {
                copies.push(Copy { tie: false, weight: block.frequency, a: arg, b: param });
            }
        }
        for step in block.steps.clone() {
            let step = &code.steps[step as usize];
            let ops = &code.ops[step.ops()];
            for op in ops.iter().filter(|op| op.kind != OperandKind::Use) {
                let used = op.tied.and_then(|tied| ops.get(tied as usize));
                copies.extend(used.map(|used| Copy {
                    tie: true,
                    weight: block.frequency,
                    a: used.vreg.0,
                    b: op.vreg.0,
                }));
            }
            if let (true, [a, b]) = (step.is_move, ops)
                && a.kind != b.kind
            {
                copies.push(Copy { tie: false, weight: block.frequency, a: a.vreg.0, b: b.vreg.0 });
            }
        }
    }
    copies.retain(|copy| !code.is_undefined(copy.a) && !code.is_undefined(copy.b));
    copies
}

impl Coalescer<'_> {
    fn join(&mut self, copy: &Copy) {
        let (a, b) = (self.graph.root(copy.a), self.graph.root(copy.b));
        let alive = self.graph.alive[a as usize] && self.graph.alive[b as usize];
        let size = self.graph.size[a as usize];
        if a == b || !alive || size != self.graph.size[b as usize] || self.graph.meets(a, b) {
            return;
        }
        let mask = self.graph.mask[a as usize].and(&self.graph.mask[b as usize]);
        if bases(&mask, size).is_empty() {
            return;
        }
        let class = self.classes.of(&mask, size);
        let (small, large) = if self.graph.weight(a) <= self.graph.weight(b) { (a, b) } else { (b, a) };
        if copy.tie || self.is_safe(small, large, class) {
            self.merge(small, large, class);
        }
    }

    fn is_safe(&mut self, small: u32, large: u32, class: ClassId) -> bool {
        let settled =
            |this: &Self, node: u32| this.blocked[node as usize] < this.classes.p(this.class[node as usize]);
        if class == self.class[large as usize] {
            let covered = self.graph.adjacent[small as usize].iter().all(|&other| {
                let other = self.graph.root(other);
                !self.graph.alive[other as usize] || settled(self, other) || self.graph.meets(other, large)
            });
            if covered {
                return true;
            }
        }
        let lists = [small, large].map(|node| &self.graph.adjacent[node as usize]);
        if lists[0].len() + lists[1].len() > MOST_NEIGHBOURS {
            return false;
        }
        let mut others: Vec<u32> = lists.into_iter().flatten().map(|&other| self.graph.root(other)).collect();
        others.sort_unstable();
        others.dedup();
        let mut taken = 0;
        for other in others {
            if !self.graph.alive[other as usize] {
                continue;
            }
            let theirs = self.class[other as usize];
            let both = self.graph.meets(other, small) && self.graph.meets(other, large);
            let twice = if both { self.classes.q(theirs, self.class[small as usize]) } else { 0 };
            if self.blocked[other as usize] - twice >= self.classes.p(theirs) {
                taken += self.classes.q(class, theirs);
            }
        }
        taken < self.classes.p(class)
    }

    fn neighbours(&self, node: u32) -> Vec<u32> {
        let mut list: Vec<u32> = self.graph.adjacent[node as usize].clone();
        list.iter_mut().for_each(|other| *other = self.graph.root(*other));
        list.sort_unstable();
        list.dedup();
        list.retain(|&other| self.graph.alive[other as usize]);
        list
    }

    fn merge(&mut self, small: u32, large: u32, class: ClassId) {
        let (small_class, large_class) = (self.class[small as usize], self.class[large as usize]);
        for other in self.neighbours(small) {
            let theirs = self.class[other as usize];
            let gone = self.classes.q(theirs, small_class);
            let mut now = 0;
            if !self.graph.meets(other, large) {
                now = self.classes.q(theirs, large_class);
                self.blocked[large as usize] += self.classes.q(large_class, theirs);
            }
            self.blocked[other as usize] = self.blocked[other as usize] + now - gone;
        }
        self.graph.merge(small, large);
        if class != large_class {
            // (Masks only get smaller, so this is rare.)
            self.class[large as usize] = class;
            self.blocked[large as usize] = 0;
            for other in self.neighbours(large) {
                let theirs = self.class[other as usize];
                let (now, before) = (self.classes.q(theirs, class), self.classes.q(theirs, large_class));
                self.blocked[other as usize] = self.blocked[other as usize] + now - before;
                self.blocked[large as usize] += self.classes.q(class, theirs);
            }
        }
    }
}
