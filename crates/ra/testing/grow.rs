//! Programs of any size, for measuring how work grows with it: three everyday forms, and the shapes of programs on which
//! other compilers took minutes. All on [`super::files::rows_file`]; the same size gives the same program.

use kempe_ra::*;

use super::build::*;
use super::files::*;
use super::rng::Rng;

/// A way to make a program of about so many instructions.
pub type Make = fn(u32) -> Program;

/// The everyday forms.
pub const FORMS: [(&str, Make); 3] = [("straight", straight), ("loops", loops), ("ifs", ifs)];

/// Instructions that each read two of the values at hand and put their result in the place of one of them.
struct Pool {
    values: Vec<VReg>,
    rng: Rng,
}

impl Pool {
    fn new(b: &mut Builder, count: usize) -> Pool {
        let values = (0..count).map(|_| b.make(ROWS, &[])).collect();
        Pool { values, rng: Rng::new(7) }
    }

    fn pick(&mut self) -> usize {
        self.rng.below(self.values.len() as u32) as usize
    }

    fn work(&mut self, b: &mut Builder, count: u32) {
        for _ in 0..count {
            let (one, other, to) = (self.pick(), self.pick(), self.pick());
            self.values[to] = b.make(ROWS, &[self.values[one], self.values[other]]);
        }
    }
}

/// Values at hand in the everyday forms.
const AT_HAND: usize = 24;

fn size(b: &Builder) -> u32 {
    b.0.insts.len() as u32
}

fn end(mut b: Builder, values: &[VReg]) -> Program {
    for &value in values {
        b.op(&[value], &[]);
    }
    b.inst(&[], NONE, false);
    b.finish()
}

/// One block.
pub fn straight(instructions: u32) -> Program {
    let mut b = Builder::default();
    b.block(&[]);
    let mut pool = Pool::new(&mut b, AT_HAND);
    pool.work(&mut b, instructions);
    end(b, &pool.values)
}

/// Two loops, one in the other, of some thirty instructions, one such pair after the other.
pub fn loops(instructions: u32) -> Program {
    let mut b = Builder::default();
    let mut block = b.block(&[]);
    let mut pool = Pool::new(&mut b, AT_HAND);
    while size(&b) < instructions {
        let carried = pool.pick();
        let (outer, inner) = (b.value(ROWS, false), b.value(ROWS, false));
        b.jump(block + 1, &[pool.values[carried]]);
        b.block_at(&[outer], 8.0);
        let kept = pool.values.clone();
        pool.values[carried] = outer;
        pool.work(&mut b, 6);
        b.jump(block + 2, &[pool.values[carried]]);
        let from_outer = pool.values.clone();
        b.block_at(&[inner], 64.0);
        pool.values[carried] = inner;
        pool.work(&mut b, 12);
        let next = pool.values[carried];
        b.branch(next, &[block + 3, block + 4]);
        b.block_at(&[], 56.0);
        b.jump(block + 2, &[next]);
        b.block_at(&[], 8.0);
        pool.values = from_outer;
        pool.work(&mut b, 6);
        b.branch(next, &[block + 5, block + 6]);
        b.block_at(&[], 7.0);
        b.jump(block + 1, &[next]);
        block = b.block(&[]);
        pool.values = kept;
        pool.values[carried] = next;
    }
    end(b, &pool.values)
}

/// A chain of selections of some ten instructions that each change one value.
pub fn ifs(instructions: u32) -> Program {
    let mut b = Builder::default();
    let mut block = b.block(&[]);
    let mut pool = Pool::new(&mut b, AT_HAND);
    while size(&b) < instructions {
        pool.work(&mut b, 2);
        let (changed, condition) = (pool.pick(), pool.pick());
        b.branch(pool.values[condition], &[block + 1, block + 2]);
        let kept = pool.values.clone();
        b.block_at(&[], 0.5);
        pool.work(&mut b, 3);
        b.jump(block + 3, &[pool.values[changed]]);
        pool.values = kept;
        b.block_at(&[], 0.5);
        let other = b.make(ROWS, &[pool.values[changed]]);
        b.jump(block + 3, &[other]);
        let merged = b.value(ROWS, false);
        block = b.block(&[merged]);
        pool.values[changed] = merged;
    }
    end(b, &pool.values)
}

/// A44: values derived from uniforms, all live at once in one block, then read one by one.
pub fn a44(values: u32) -> Program {
    let mut b = Builder::default();
    b.block(&[]);
    let mut list = Vec::new();
    for _ in 0..values {
        let uniform = b.remade(ROWS, 1);
        b.op(&[], &[uniform]);
        list.push(b.make(ROWS, &[uniform]));
    }
    end(b, &list)
}

/// A45: a ray marcher: one function after the other inlined in a loop, and all of them again in a second loop (shadows).
pub fn a45(functions: u32) -> Program {
    let mut b = Builder::default();
    b.block(&[]);
    let mut pool = Pool::new(&mut b, 8);
    for _ in 0..2 {
        let block = b.0.blocks.len() as u32 - 1;
        let carried = b.value(ROWS, false);
        b.jump(block + 1, &[pool.values[0]]);
        b.block_at(&[carried], 32.0);
        let point = pool.values.clone();
        let mut nearest = carried;
        for _ in 0..functions {
            pool.values.clone_from(&point);
            pool.work(&mut b, 40);
            nearest = b.make(ROWS, &[nearest, pool.values[0]]);
        }
        b.branch(nearest, &[block + 2, block + 3]);
        b.block_at(&[], 31.0);
        b.jump(block + 1, &[nearest]);
        b.block(&[]);
        pool.values = point;
        pool.values[0] = nearest;
    }
    end(b, &pool.values)
}

/// A48: one value, read again and again, each time in another register.
pub fn a48(uses: u32) -> Program {
    let mut b = Builder::default();
    b.block(&[]);
    let value = b.make(ROWS, &[]);
    for k in 0..uses {
        b.inst(&[fixed(read(value, ROWS), (k * 7 % 32) as u16)], NONE, false);
    }
    end(b, &[])
}

/// A49: a chain of the smallest selections; a few values live across all of them.
pub fn a49(count: u32) -> Program {
    let mut b = Builder::default();
    let mut block = b.block(&[]);
    let across: Vec<VReg> = (0..4).map(|_| b.make(ROWS, &[])).collect();
    let mut x = across[0];
    for k in 0..count {
        b.branch(across[k as usize % 4], &[block + 1, block + 2]);
        b.block_at(&[], 0.5);
        let y = b.make(ROWS, &[x]);
        b.jump(block + 3, &[y]);
        b.block_at(&[], 0.5);
        b.jump(block + 3, &[x]);
        x = b.value(ROWS, false);
        block = b.block(&[x]);
    }
    end(b, &[&across[..], &[x]].concat())
}

/// A50: selections in each other in a loop, `runs` instructions before each.
pub fn nested(depth: u32, runs: u32) -> Program {
    let mut b = Builder::default();
    b.block(&[]);
    let mut pool = Pool::new(&mut b, 12);
    let carried = b.value(ROWS, false);
    b.jump(1, &[pool.values[0]]);
    let mut block = b.block_at(&[carried], 10.0);
    pool.values[0] = carried;
    let start = pool.values.clone();
    for level in 0..depth {
        pool.work(&mut b, runs);
        // The way past this selection begins where everything inside has been written down.
        let past = 1 + depth + 2 * (depth - 1 - level) + 1;
        b.branch(pool.values[0], &[block + 1, past]);
        block = b.block_at(&[], 10.0 * 0.9f32.powi(level as i32 + 1));
    }
    pool.work(&mut b, runs);
    let mut result = pool.values[2];
    for level in (0..depth).rev() {
        b.jump(block + 2, &[result]);
        b.block_at(&[], 0.1);
        b.jump(block + 2, &[start[1 + level as usize % 11]]);
        result = b.value(ROWS, false);
        block = b.block_at(&[result], 10.0 * 0.9f32.powi(level as i32));
    }
    b.branch(result, &[block + 1, block + 2]);
    b.block_at(&[], 9.0);
    b.jump(1, &[result]);
    b.block(&[]);
    end(b, &[result])
}

/// A50 as reported: sixty selections deep, longer and longer runs.
pub fn a50(runs: u32) -> Program {
    nested(60, runs)
}

/// A50 with the depth growing.
pub fn a50_deep(depth: u32) -> Program {
    nested(depth, 10)
}
