//! Small graphs with results worked out by hand, and random graphs run with uniform values shared by all lanes.

use super::*;
use crate::text::parse;

/// Divergent values and non-uniform blocks of a body.
fn analyse(body: &str) -> (String, String, Vec<LoopKind>) {
    let text = format!(
        "module \"t\" compute\nworkgroup 16 1 1\nresource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"\"\nfunc\n{body}"
    );
    let m = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:?}"));
    let cfg = Cfg::new(&m.func);
    let options = Options { one_workgroup_per_batch: true, uniform_payload: vec![0] };
    let d = Divergence::new(&m.func, &cfg, &options);
    let list = |it: Vec<String>| it.join(" ");
    (
        list(m.func.values.keys().filter(|&v| d.is_divergent(v)).map(|v| v.to_string()).collect()),
        list(m.func.layout.iter().filter(|&&b| d.is_non_uniform(b)).map(|b| b.to_string()).collect()),
        d.loops,
    )
}

const HEAD: &str = "b0:\n  %0:i32 = builtin.i32 <lane_id>\n  %1:i32 = payload.i32 <0>\n  %2:i32 = const.i32 <0>\n  %3:i32 = const.i32 <1>\n  %4:bool = ult.i32 %0, %1\n  %5:bool = ult.i32 %2, %1\n";

#[test]
fn a_divergent_diamond() {
    let (v, b, _) = analyse(&format!(
        "{HEAD}  branch %4, b1, b2\nb1:\n  %6:i32 = iadd.i32 %1, %3\n  jump b3(%6, %1)\nb2:\n  jump b3(%2, %1)\nb3(%7:i32, %8:i32):\n  %9:i32 = iadd.i32 %8, %3\n  return\n"
    ));
    assert_eq!(v, "%0 %4 %7");
    assert_eq!(b, "b1 b2");
}

#[test]
fn a_uniform_diamond_inside_of_a_divergent_side() {
    let (v, b, _) = analyse(&format!(
        "{HEAD}  branch %4, b1, b5\nb1:\n  branch %5, b2, b3\nb2:\n  jump b4(%2)\nb3:\n  jump b4(%3)\nb4(%7:i32):\n  jump b5\nb5:\n  return\n"
    ));
    assert_eq!(v, "%0 %4");
    assert_eq!(b, "b1 b2 b3 b4");
}

#[test]
fn a_counter_stays_uniform_in_a_loop_that_lanes_leave_one_by_one() {
    // The counter is compared with a lane's own bound; after the loop a copy by parameter is divergent.
    let (v, b, l) = analyse(&format!(
        "{HEAD}  jump b1(%2)\nb1(%6:i32):\n  %7:i32 = iadd.i32 %6, %3\n  %8:bool = ult.i32 %7, %0\n  branch %8, b1(%7), b2(%7)\nb2(%9:i32):\n  return\n"
    ));
    assert_eq!(v, "%0 %4 %8 %9");
    assert_eq!(b, "b1");
    assert_eq!(l, [LoopKind { divergent: true, skewed: false }]);
}

#[test]
fn a_counter_that_is_used_behind_the_loop_is_divergent() {
    let (v, _, _) = analyse(&format!(
        "{HEAD}  jump b1(%2)\nb1(%6:i32):\n  %7:i32 = iadd.i32 %6, %3\n  %10:i32 = const.i32 <5>\n  %8:bool = ult.i32 %7, %0\n  branch %8, b1(%7), b2\nb2:\n  %9:i32 = iadd.i32 %7, %10\n  return\n"
    ));
    // The constant does not change, so it stays uniform. The increment feeds the counter.
    assert_eq!(v, "%0 %4 %6 %7 %8 %9");
}

#[test]
fn a_uniform_loop_in_a_divergent_region() {
    let (v, b, l) = analyse(&format!(
        "{HEAD}  branch %4, b1(%2), b2\nb1(%6:i32):\n  %7:i32 = iadd.i32 %6, %3\n  %8:bool = ult.i32 %7, %1\n  branch %8, b1(%7), b2\nb2:\n  return\n"
    ));
    assert_eq!(v, "%0 %4");
    assert_eq!(b, "b1");
    assert_eq!(l, [LoopKind::default()]);
}

#[test]
fn an_early_way_back_skews_a_loop() {
    // b2 goes back early for some lanes while others wait at b3, which reads the counter.
    let (v, b, l) = analyse(&format!(
        "{HEAD}  jump b1(%2)\nb1(%6:i32):\n  %7:i32 = iadd.i32 %6, %3\n  branch %4, b2, b3\nb2:\n  jump b1(%7)\nb3:\n  %8:bool = ult.i32 %7, %1\n  branch %8, b1(%7), b4\nb4:\n  return\n"
    ));
    assert_eq!(v, "%0 %4 %6 %7 %8");
    assert_eq!(b, "b1 b2 b3");
    assert!(l[0].skewed);
    // The same with one way back at the end is in step.
    let (v, b, l) = analyse(&format!(
        "{HEAD}  jump b1(%2)\nb1(%6:i32):\n  %7:i32 = iadd.i32 %6, %3\n  branch %4, b2, b3\nb2:\n  jump b3\nb3:\n  %8:bool = ult.i32 %7, %1\n  branch %8, b1(%7), b4\nb4:\n  return\n"
    ));
    assert_eq!(v, "%0 %4");
    assert_eq!(b, "b2");
    assert_eq!(l, [LoopKind::default()]);
}

#[test]
fn an_early_end_leaves_the_rest_non_uniform() {
    let (v, b, _) = analyse(&format!("{HEAD}  branch %4, b1, b2\nb1:\n  return\nb2:\n  return\n"));
    assert_eq!((v.as_str(), b.as_str()), ("%0 %4", "b1 b2"));
}

#[test]
fn ending_inside_of_a_loop() {
    // Some lanes end in the loop; the rest goes on in step, with fewer lanes.
    let (v, b, l) = analyse(&format!(
        "{HEAD}  jump b1(%2)\nb1(%6:i32):\n  branch %4, b2, b3\nb2:\n  return\nb3:\n  %7:i32 = iadd.i32 %6, %3\n  %8:bool = ult.i32 %7, %1\n  branch %8, b1(%7), b4\nb4:\n  return\n"
    ));
    assert_eq!(v, "%0 %4");
    assert_eq!(b, "b1 b2 b3 b4");
    assert_eq!(l, [LoopKind::default()]);
}

#[test]
fn loads() {
    let (v, _, _) = analyse(&format!(
        "{HEAD}  %6:ptr.storage = resource_addr.ptr.storage <@0>\n  %7:i32 = load.i32 <storage x1 align 4> %6\n  %8:i32 = load.i32 <storage x1 align 4 volatile> %6\n  %9:ptr.storage = lea.ptr.storage <scale 4 offset 0> %6, %0\n  %10:i32 = load.i32 <storage x1 align 4> %9\n  %11:i32 = atomic.i32 <add storage> %6, %3\n  %12:bool = vote_any.bool %4\n  return\n"
    ));
    assert_eq!(v, "%0 %4 %8 %9 %10 %11");
}

#[test]
fn breaking_out_of_two_loops() {
    // Inner loop b2..b3, outer b1..b4; b3 leaves both for some lanes.
    let (v, b, l) = analyse(&format!(
        "{HEAD}  jump b1(%2)\nb1(%6:i32):\n  jump b2(%2)\nb2(%7:i32):\n  %8:i32 = iadd.i32 %7, %3\n  branch %4, b5(%8), b3\nb3:\n  %9:bool = ult.i32 %8, %1\n  branch %9, b2(%8), b4\nb4:\n  %10:i32 = iadd.i32 %6, %3\n  %11:bool = ult.i32 %10, %1\n  branch %11, b1(%10), b5(%2)\nb5(%12:i32):\n  return\n"
    ));
    assert_eq!(v, "%0 %4 %12");
    assert_eq!(b, "b1 b2 b3 b4");
    assert!(l.iter().all(|k| k.divergent && !k.skewed));
}

/// A random graph that obeys the layout rules and little else: loops with several ways back and out, edges that skip,
/// parameters anywhere. Every lane folds what it sees into a word of its own, so the result shows the order and the
/// values of everything that it did.
fn random_graph(seed: u64) -> Module {
    use crate::builder::Builder;
    use crate::inputs::Random;
    use crate::types::Type;
    use smallvec::SmallVec;

    let mut r = Random(seed);
    let mut chance = |percent: u64| r.below(100) < percent;
    let mut m = Module::new("graph", Stage::Compute);
    m.workgroup_size = [16, 1, 1];
    let out = m.resources.push(Resource {
        kind: ResKind::StorageBuffer,
        set: 0,
        binding: 0,
        elements: 1,
        size: 0,
        tail_stride: 4,
        name: String::new(),
        read_only: false,
        image: None,
    });
    // Loops as nested intervals of positions.
    let mut loops: Vec<(u32, u32)> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let n = 6 + (seed % 9) as u32;
    let mut headers = vec![None; n as usize];
    for b in 1..n - 1 {
        // At most one loop ends at a block, so that every loop has its last block to itself.
        let rest = (n - 2 - b) as usize;
        if open.len() < rest.min(3) && chance(30) {
            headers[b as usize] = Some(loops.len());
            open.push(loops.len() as u32);
            loops.push((b, b));
        }
        for &l in &open {
            loops[l as usize].1 = b;
        }
        if open.len() > rest || chance(35) {
            open.pop();
        }
    }
    let around = |b: u32| -> Vec<usize> {
        (0..loops.len()).filter(|&l| (loops[l].0..=loops[l].1).contains(&b)).collect()
    };
    let mut r = Random(seed ^ 0xabcd);
    // Successors: the next block, and sometimes another; the last block of a loop goes back.
    let mut succs: Vec<Vec<u32>> = Vec::new();
    for b in 0..n {
        let mut s = Vec::new();
        if b + 1 < n {
            s.push(b + 1);
            let here = around(b);
            let forward: Vec<u32> = (b + 1..n)
                .filter(|&t| around(t).iter().all(|l| here.contains(l) || loops[*l].0 == t))
                .collect();
            let back: Vec<u32> = here.iter().map(|&l| loops[l].0).collect();
            if let Some(&l) = here.iter().find(|&&l| loops[l].1 == b) {
                s.push(loops[l].0);
            } else if !back.is_empty() && r.below(100) < 25 {
                s.push(back[r.below(back.len() as u64) as usize]);
            } else if r.below(100) < 60 {
                s.push(forward[r.below(forward.len() as u64) as usize]);
            }
        }
        succs.push(s);
    }
    // Some blocks end the invocation instead, where the next block is reached from elsewhere.
    for b in 1..n - 1 {
        let elsewhere = (0..b).any(|q| succs[q as usize].contains(&(b + 1)));
        if succs[b as usize].len() == 1 && elsewhere && r.below(100) < 30 {
            succs[b as usize].clear();
        }
    }
    for _ in 0..n {
        m.func.add_block();
    }
    for (b, s) in succs.iter().enumerate() {
        let target = |t: u32| Target { block: Block(t), args: SmallVec::new() };
        m.func.blocks[Block(b as u32)].term = match s[..] {
            [] => Term::Return,
            [t] => Term::Jump(target(t)),
            // The condition comes later.
            [t, u, ..] => Term::Branch { cond: Value(0), then: target(u), els: target(t) },
        };
    }
    let cfg = Cfg::new(&m.func);
    // Parameters: a counter on every header, and some more.
    let mut params: Vec<Vec<Value>> = Vec::new();
    for b in 0..n {
        let extra = if b > 0 && r.below(100) < 50 { 1 } else { 0 };
        let count = extra + headers[b as usize].is_some() as u32;
        params.push((0..count).map(|_| m.func.add_param(Block(b), Type::I32)).collect());
    }
    // Contents, in order, with the values that are available at the end of each block.
    let mut available: Vec<Vec<Value>> = Vec::new();
    let mut lane = Value(0);
    let mut address = Value(0);
    let mem = MemImm { space: Space::Storage, count: 1, align: 4, volatile: false, read_only: false };
    for b in 0..n {
        let mut seen: Vec<Value> = match cfg.idom[b as usize] {
            NONE => Vec::new(),
            d => available[d as usize].clone(),
        };
        seen.extend(&params[b as usize]);
        let mut x = Builder::new(&mut m.func, Block(b));
        if b == 0 {
            lane = x.builtin(Builtin::LocalInvocationIndex);
            let base = x.resource_addr(out, Space::Storage, None);
            address = x.lea(base, Some(lane), 4, 0);
            let group = x.builtin(Builtin::WorkgroupId(0));
            seen.extend([lane, group]);
        }
        for _ in 0..1 + r.below(2) {
            let pick = |r: &mut Random| seen[r.below(seen.len() as u64) as usize];
            let (p, q) = (pick(&mut r), pick(&mut r));
            let k = x.i32(r.below(16) as u32 | 1);
            let t = x.op(Op::Imul, Type::I32, &[p, k]);
            let v = x.op(Op::Iadd, Type::I32, &[t, q]);
            let old = x.load(Type::I32, mem, address)[0];
            let k = x.i32(33);
            let t = x.op(Op::Imul, Type::I32, &[old, k]);
            let new = x.op(Op::Xor, Type::I32, &[t, v]);
            x.store(Type::I32, mem, address, &[new]);
            seen.push(v);
        }
        // Where the block goes.
        let counter = |t: u32| headers[t as usize].map(|_| params[t as usize][0]);
        let goes_back = succs[b as usize].get(1).copied().filter(|&t| t <= b);
        let cond = if let Some(h) = goes_back {
            // At most as often as a bound says, of the lane or of all.
            let bound = if r.below(2) == 0 {
                let three = x.i32(3);
                x.op(Op::And, Type::I32, &[lane, three])
            } else {
                x.i32(r.below(4) as u32)
            };
            counter(h).map(|c| x.op(Op::Ult, Type::I32, &[c, bound]))
        } else if succs[b as usize].len() == 2 {
            let v = seen[r.below(seen.len() as u64) as usize];
            let shift = x.i32(r.below(3) as u32);
            let t = x.op(Op::Lshr, Type::I32, &[v, shift]);
            let one = x.i32(1);
            let bit = x.op(Op::And, Type::I32, &[t, one]);
            Some(x.op(Op::Ieq, Type::I32, &[bit, one]))
        } else {
            None
        };
        let mut arguments = |x: &mut Builder, t: u32| -> SmallVec<[Value; 4]> {
            let mut args = SmallVec::new();
            for n in 0..params[t as usize].len() {
                let arg = match counter(t) {
                    Some(c) if n == 0 && t <= b => {
                        let one = x.i32(1);
                        x.op(Op::Iadd, Type::I32, &[c, one])
                    }
                    Some(_) if n == 0 => x.i32(0),
                    _ => seen[r.below(seen.len() as u64) as usize],
                };
                args.push(arg);
            }
            args
        };
        let args: Vec<_> = succs[b as usize].iter().map(|&t| arguments(&mut x, t)).collect();
        match &mut m.func.blocks[Block(b)].term {
            Term::Jump(t) => t.args = args[0].clone(),
            Term::Branch { cond: c, then, els } => {
                *c = cond.unwrap();
                then.args = args[1].clone();
                els.args = args[0].clone();
            }
            _ => {}
        }
        available.push(seen);
    }
    m
}

fn list_uniform(m: &Module, d: &Divergence) -> String {
    let values = m.func.layout.iter().flat_map(|&b| {
        let block = &m.func.blocks[b];
        let insts = block.insts.iter().flat_map(|&i| m.func.insts[i].results.iter());
        block.params.iter().chain(insts).copied().collect::<Vec<_>>()
    });
    let changing = |v: &Value| m.func.as_const(*v).is_none() && d.is_uniform(*v);
    values.filter(changing).map(|v| v.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn random_graphs_run_the_same_with_uniform_values_shared() {
    use crate::exec::{Environment, Inputs, Sizes};
    use crate::interp::{Form, Program};

    let (mut ran, mut kinds, mut uniform, mut all) = (0, [0; 4], 0, 0);
    for seed in 0..2000 {
        let m = random_graph(seed);
        crate::verify::verify(&m).unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        let cfg = Cfg::new(&m.func);
        let d =
            Divergence::new(&m.func, &cfg, &Options { one_workgroup_per_batch: true, ..Default::default() });
        let inputs = Inputs::new([2, 1, 1]).buffer(0, 0, vec![0; 64]);
        let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
        let program = Program::new(&m).unwrap();
        let options = crate::interp::Options { step_limit: 300_000, ..crate::interp::Options::source() };
        let Ok(base) = program.run(&env, &options) else { continue };
        let single = crate::interp::Options {
            form: Form::Source { subgroup_size: 1 },
            step_limit: 10_000_000,
            ..options
        };
        let r = program.run(&env, &single).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(r.memory, base.memory, "seed {seed}, one lane at a time");
        let shared = crate::interp::Options { broadcast: Some(&d), ..options };
        let r = program
            .run(&env, &shared)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", crate::text::print(&m)));
        if r.memory != base.memory {
            let uniform = list_uniform(&m, &d);
            panic!(
                "seed {seed}: sharing these changes results: {uniform}\n{:?}\n{}",
                d.loops,
                crate::text::print(&m)
            );
        }
        ran += 1;
        for k in &d.loops {
            kinds[k.divergent as usize + 2 * k.skewed as usize] += 1;
        }
        all += m.func.values.len();
        uniform += m.func.values.keys().filter(|&v| d.is_uniform(v)).count();
    }
    // The test means something only if it reaches every kind of loop and not everything is divergent.
    assert!(
        ran > 1500 && [0, 1, 3].iter().all(|&k| kinds[k] > 100) && uniform * 4 > all,
        "{ran} {kinds:?} {uniform} {all}"
    );
}

/// The only way out of a loop stands inside of it: lanes come there one by one.
#[test]
fn a_way_out_inside_of_the_loop() {
    let text = "module \"main\" compute\nworkgroup 16 1 1\n\
        resource @0 storage set 0 binding 0 elements 1 size 64 stride 0 \"b\"\nfunc\nb0:\n  \
        %0:i32 = builtin.i32 <local_invocation_index>\n  %1:i32 = const.i32 <0>\n  %2:i32 = const.i32 <1>\n  \
        %3:ptr.storage = resource_addr.ptr.storage <@0>\n  %4:ptr.storage = lea.ptr.storage <scale 4 offset 0> %3, %0\n  \
        jump b1(%1)\nb1(%5:i32):\n  %6:bool = slt.i32 %5, %0\n  branch %6, b3, b2\n\
        b2:\n  store.i32 <storage x1 align 4> %4, %5\n  jump b4\n\
        b3:\n  %7:i32 = iadd.i32 %5, %2\n  jump b1(%7)\nb4:\n  return\n";
    let m = crate::text::parse(text).unwrap();
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:?}"));
    let cfg = Cfg::new(&m.func);
    let d = Divergence::new(&m.func, &cfg, &Options { one_workgroup_per_batch: true, ..Default::default() });
    let control: Vec<bool> = m.func.layout.iter().map(|&b| d.is_non_uniform(b)).collect();
    assert_eq!(control, [false, true, true, true, false]);
    assert!(d.loops[0].divergent);
}
