//! Checks that a module is well formed.
//!
//! Three layers, each run only when the one before found nothing, because it relies on it:
//! 1. ids point at things that exist, and definitions and their results name each other;
//! 2. the order of the blocks is a structure (rules 1 to 4 at the head of [`crate::module`]);
//! 3. every use is dominated by its definition, and operands, results and immediates are what the row of the
//!    operation wants.
//!
//! The lowered form (addresses are `i32`) passes too: a load or store of `i8` or `i16` whose address is an `i32`
//! gives or takes an `i32`.

mod image;
mod interface;

use crate::analysis::Cfg;
use crate::entity::Table;
use crate::module::*;
use crate::ops::{Class, Op, OpInfo, Sig};
use crate::types::{Space, Type};

/// Errors that are collected before giving up.
const MAX_ERRORS: usize = 50;

/// Checks a module; the errors name block and instruction.
pub fn verify(module: &Module) -> Result<(), Vec<String>> {
    let mut v = Verifier { module, func: &module.func, errors: Vec::new() };
    v.tables();
    if v.errors.is_empty() {
        v.ids();
    }
    if v.errors.is_empty() {
        let cfg = Cfg::new(&module.func);
        v.layout(&cfg);
        if v.errors.is_empty() {
            v.types();
            v.dominance(&cfg);
        }
    }
    if v.errors.is_empty() { Ok(()) } else { Err(v.errors) }
}

struct Verifier<'a> {
    module: &'a Module,
    func: &'a Function,
    errors: Vec<String>,
}

impl Verifier<'_> {
    fn error(&mut self, message: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(message);
        }
    }

    fn inst_error(&mut self, b: Block, i: Inst, message: &str) {
        let op = self.func.insts[i].op.name();
        self.error(format!("{b}: {i} ({op}): {message}"));
    }

    /// Module-level tables.
    fn tables(&mut self) {
        let m = self.module;
        if m.workgroup_size.contains(&0) {
            self.error("the work-group size has a zero".to_owned());
        }
        if m.workgroup_size.iter().try_fold(1u32, |n, &s| n.checked_mul(s)).is_none() {
            self.error("the work-group size is beyond 32 bits".to_owned());
        }
        if let Err(e) = interface::modes(m) {
            self.error(e);
        }
        if m.resources.values().filter(|r| r.kind == ResKind::PushConstants).count() > 1 {
            self.error("more than one push constant block".to_owned());
        }
        for (id, r) in m.resources.iter() {
            if r.kind.is_image() != r.image.is_some() {
                self.error(format!("{id}: the facts of an image do not fit the kind of resource"));
            }
        }
        for (id, var) in m.vars.iter() {
            if !matches!(var.space, Space::Private | Space::Shared) {
                self.error(format!("{id}: a variable in {} memory", var.space.name()));
            }
            if !var.align.is_power_of_two() {
                self.error(format!("{id}: alignment {} is not a power of two", var.align));
            }
        }
        for (n, line) in m.locs.iter().enumerate() {
            if line.file as usize >= m.files.len() {
                self.error(format!("location {n} names file {}, which does not exist", line.file));
            }
        }
    }

    /// Every id names something, and definitions and results name each other.
    fn ids(&mut self) {
        let f = self.func;
        if f.layout.is_empty() {
            self.error("the function has no blocks".to_owned());
        }
        let mut in_layout = Table::new(f.blocks.len(), false);
        for &b in &f.layout {
            if f.blocks.get(b).is_none() {
                self.error(format!("{b} is in the layout but does not exist"));
            } else if std::mem::replace(&mut in_layout[b], true) {
                self.error(format!("{b} is in the layout twice"));
            }
        }
        if !self.errors.is_empty() {
            return;
        }
        let mut placed = Table::new(f.insts.len(), false);
        for &b in &f.layout {
            let data = &f.blocks[b];
            for (n, &p) in data.params.iter().enumerate() {
                if f.values.get(p).is_none_or(|d| d.def != ValueDef::Param(b, n as u16)) {
                    self.error(format!("{b}: parameter {n} is {p}, which is defined elsewhere"));
                }
            }
            for &i in &data.insts {
                let Some(inst) = f.insts.get(i) else {
                    self.error(format!("{b}: {i} does not exist"));
                    continue;
                };
                if std::mem::replace(&mut placed[i], true) {
                    self.inst_error(b, i, "stands in two places");
                }
                for (n, &r) in inst.results.iter().enumerate() {
                    if f.values.get(r).is_none_or(|d| d.def != ValueDef::Inst(i, n as u16)) {
                        self.inst_error(b, i, &format!("result {n} is {r}, which is defined elsewhere"));
                    }
                }
                for &a in &inst.args {
                    if f.values.get(a).is_none() {
                        self.inst_error(b, i, &format!("operand {a} does not exist"));
                    }
                }
                if inst.loc.0 as usize > self.module.locs.len() {
                    self.inst_error(b, i, "its source location does not exist");
                }
            }
            if data.term_loc.0 as usize > self.module.locs.len() {
                self.error(format!("{b}: the source location of its end does not exist"));
            }
            if let Term::Branch { cond, .. } = data.term
                && f.values.get(cond).is_none()
            {
                self.error(format!("{b}: condition {cond} does not exist"));
            }
            for t in data.term.targets() {
                if f.blocks.get(t.block).is_none() || !in_layout[t.block] {
                    self.error(format!("{b}: jumps to {}, which is not in the layout", t.block));
                    continue;
                }
                for &a in &t.args {
                    if f.values.get(a).is_none() {
                        self.error(format!("{b}: argument {a} does not exist"));
                    }
                }
            }
        }
        for &v in f.names.keys() {
            if f.values.get(v).is_none() {
                self.error(format!("a name is given to {v}, which does not exist"));
            }
        }
    }

    /// The order of the blocks.
    fn layout(&mut self, cfg: &Cfg) {
        let f = self.func;
        let name = |p: u32| f.layout[p as usize];
        if !cfg.preds[0].is_empty() {
            self.error(format!("{}: the entry has a predecessor, {}", name(0), name(cfg.preds[0][0])));
            return;
        }
        for b in 1..cfg.len() as u32 {
            if !cfg.reachable(b) {
                self.error(format!(
                    "{}: not reachable from blocks that stand before it, so an edge to it is not an edge back",
                    name(b)
                ));
            }
        }
        for l in &cfg.loops {
            for b in l.header + 1..=l.last {
                for &p in &cfg.preds[b as usize] {
                    if p < l.header || p > l.last {
                        self.error(format!(
                            "{}: jumps to {} into the middle of the loop from {} to {}",
                            name(p),
                            name(b),
                            name(l.header),
                            name(l.last)
                        ));
                    }
                }
            }
        }
    }

    /// Uses are dominated by definitions.
    fn dominance(&mut self, cfg: &Cfg) {
        let f = self.func;
        // Where a value becomes available: position of the block, and index in it (parameters 0, instruction n at
        // n + 1).
        let mut at = Table::new(f.values.len(), (u32::MAX, 0u32));
        for (p, &b) in f.layout.iter().enumerate() {
            for &v in &f.blocks[b].params {
                at[v] = (p as u32, 0);
            }
            for (n, &i) in f.blocks[b].insts.iter().enumerate() {
                for &r in &f.insts[i].results {
                    at[r] = (p as u32, n as u32 + 1);
                }
            }
        }
        let ok = |v: Value, pos: u32, index: u32| {
            let (p, n) = at[v];
            p != u32::MAX && if p == pos { n < index } else { cfg.dominates(p, pos) }
        };
        for (p, &b) in f.layout.iter().enumerate() {
            let p = p as u32;
            let data = &f.blocks[b];
            for (n, &i) in data.insts.iter().enumerate() {
                for &a in &f.insts[i].args {
                    if !ok(a, p, n as u32 + 1) {
                        self.inst_error(b, i, &format!("{a} is not defined on every path to here"));
                    }
                }
            }
            let end = data.insts.len() as u32 + 1;
            if let Term::Branch { cond, .. } = data.term
                && !ok(cond, p, end)
            {
                self.error(format!("{b}: condition {cond} is not defined on every path to here"));
            }
            for t in data.term.targets() {
                for &a in &t.args {
                    if !ok(a, p, end) {
                        self.error(format!("{b}: argument {a} is not defined on every path to here"));
                    }
                }
            }
        }
    }

    fn types(&mut self) {
        let f = self.func;
        for &b in &f.layout {
            let data = &f.blocks[b];
            for &i in &data.insts {
                if let Err(e) = check_inst(self.module, &f.insts[i]) {
                    self.inst_error(b, i, &e);
                }
            }
            if self.module.stage == Stage::Geometry
                && let Err((i, e)) = interface::vertices_are_whole(self.module, b)
            {
                self.inst_error(b, i, &e);
            }
            if let Term::Branch { cond, .. } = data.term
                && f.ty(cond) != Type::Bool
            {
                self.error(format!("{b}: condition {cond} is {}, not bool", f.ty(cond)));
            }
            for t in data.term.targets() {
                let params = &f.blocks[t.block].params;
                if params.len() != t.args.len() {
                    self.error(format!(
                        "{b}: {} arguments for the {} parameters of {}",
                        t.args.len(),
                        params.len(),
                        t.block
                    ));
                    continue;
                }
                for (&p, &a) in params.iter().zip(&t.args) {
                    if f.ty(p) != f.ty(a) {
                        self.error(format!(
                            "{b}: argument {a} is {}, but parameter {p} of {} is {}",
                            f.ty(a),
                            t.block,
                            f.ty(p)
                        ));
                    }
                }
            }
        }
    }
}

/// `ty` is one of the class.
pub fn in_class(class: Class, ty: Type) -> bool {
    match class {
        Class::Any => true,
        Class::Int => ty.is_int(),
        Class::IntBool => ty.is_int() || ty == Type::Bool,
        Class::Float => ty.is_float(),
        Class::F32 => ty == Type::F32,
        Class::I32 => ty == Type::I32,
        Class::Bool => ty == Type::Bool,
    }
}

/// Checks operands, results and the immediate of one instruction. All ids must be valid.
fn check_inst(m: &Module, inst: &InstData) -> Result<(), String> {
    let f = &m.func;
    let info: &OpInfo = inst.op.info();
    let ty = inst.ty;
    if !in_class(info.class, ty) {
        return Err(format!("does not exist at type {ty}"));
    }
    let args: Vec<Type> = inst.args.iter().map(|&a| f.ty(a)).collect();
    let results: Vec<Type> = inst.results.iter().map(|&r| f.ty(r)).collect();
    let expect_args = |want: &[Type]| match_types("operand", want, &args);
    let expect_results = |want: &[Type]| match_types("result", want, &results);
    match info.sig {
        Sig::Nullary => expect_args(&[])?,
        Sig::Unary => expect_args(&[ty])?,
        Sig::Binary | Sig::Compare => expect_args(&[ty, ty])?,
        Sig::Ternary => expect_args(&[ty, ty, ty])?,
        Sig::Select => expect_args(&[Type::Bool, ty, ty])?,
        Sig::Shift => expect_args(&[ty, Type::I32])?,
        Sig::Convert => match args[..] {
            [from] if converts(inst.op, from, ty) => {}
            [from] => return Err(format!("does not convert {from} to {ty}")),
            _ => return Err(format!("{} operands instead of 1", args.len())),
        },
        Sig::Special => return check_special(m, inst, &args, &results),
    }
    check_imm(m, inst)?;
    expect_results(&[if inst.op.is_compare() { Type::Bool } else { ty }])
}

fn match_types(what: &str, want: &[Type], have: &[Type]) -> Result<(), String> {
    if want.len() != have.len() {
        return Err(format!("{} {what}s instead of {}", have.len(), want.len()));
    }
    for (n, (w, h)) in want.iter().zip(have).enumerate() {
        if w != h {
            return Err(format!("{what} {n} is {h}, not {w}"));
        }
    }
    Ok(())
}

/// Whether a conversion exists.
fn converts(op: Op, from: Type, to: Type) -> bool {
    match op {
        Op::Trunc => from.is_int() && from.bits() > to.bits(),
        Op::Zext | Op::Sext => (from.is_int() || from == Type::Bool) && from.bits() < to.bits(),
        Op::Ftosi | Op::Ftoui => from.is_float(),
        Op::Sitof | Op::Uitof => from.is_int(),
        Op::Fconv => from.is_float() && from != to,
        Op::Bitcast => from != to && from.bits() == to.bits() && from != Type::Bool,
        _ => false,
    }
}

/// The immediate of operations without a rule of their own.
fn check_imm(m: &Module, inst: &InstData) -> Result<(), String> {
    let ty = inst.ty;
    match (inst.op, inst.imm) {
        (Op::Const, Imm::Int(bits)) => {
            if bits & !ty.mask() != 0 {
                return Err(format!("constant {bits:#x} is wider than {ty}"));
            }
        }
        (Op::Payload, Imm::Int(n)) => {
            if n > u32::MAX as u64 {
                return Err(format!("payload number {n} is too large"));
            }
        }
        (Op::Builtin, Imm::Builtin(b)) => {
            if ty != b.ty() {
                return Err(format!("this built-in is {}, not {ty}", b.ty()));
            }
            if let Some((_, c, n)) = b.component()
                && c >= n
            {
                return Err(format!("component {c} of {n}"));
            }
        }
        (Op::Uniform, Imm::Uniform(w)) => {
            if ty != Type::I32 && !ty.is_ptr() {
                return Err(format!("a uniform word is i32 or a pointer, not {ty}"));
            }
            match w {
                UniformWord::BufferAddr { res, .. } | UniformWord::BufferSize { res, .. } => {
                    resource(m, res)?;
                }
                UniformWord::TextureState { res, .. } | UniformWord::ImageSize { res, .. } => {
                    image::image(m, res)?;
                }
                UniformWord::SamplerState { res, .. } => {
                    resource(m, res)?;
                }
                UniformWord::NumWorkgroups(c) | UniformWord::ViewportScale { axis: c, .. } if c > 2 => {
                    return Err(format!("component {c} of three"));
                }
                _ => {}
            }
        }
        (Op::VarAddr, Imm::Var(v)) => {
            let var = m.vars.get(v).ok_or_else(|| format!("{v} does not exist"))?;
            if ty != Type::Ptr(var.space) {
                return Err(format!("address of {v} is ptr.{}, not {ty}", var.space.name()));
            }
        }
        (Op::Reduce, Imm::Reduce(r)) => {
            if crate::eval::reduce_identity(r.op, ty).is_none() || !in_class(r.op.info().class, ty) {
                return Err(format!("cannot reduce {ty} by {}", r.op.name()));
            }
            if r.cluster != 0 && !r.cluster.is_power_of_two() {
                return Err(format!("cluster of {} lanes", r.cluster));
            }
        }
        (Op::Const | Op::Payload | Op::Builtin | Op::Uniform | Op::VarAddr | Op::Reduce, _) => {
            return Err("has the wrong kind of immediate".to_owned());
        }
        (_, Imm::None) => {}
        _ => return Err("must not have an immediate".to_owned()),
    }
    Ok(())
}

fn resource(m: &Module, res: Res) -> Result<&Resource, String> {
    m.resources.get(res).ok_or_else(|| format!("{res} does not exist"))
}

/// An address operand of a space.
fn check_address(ty: Option<&Type>, space: Space) -> Result<(), String> {
    match ty {
        Some(Type::I32) => Ok(()),
        Some(Type::Ptr(s)) if *s == space => Ok(()),
        Some(ty) => Err(format!("the address is {ty}, not ptr.{} or i32", space.name())),
        None => Err("has no address".to_owned()),
    }
}

/// Type of the values that a memory operation moves.
pub fn moved_type(ty: Type, address: Type) -> Type {
    if address == Type::I32 && matches!(ty, Type::I8 | Type::I16) { Type::I32 } else { ty }
}

fn check_special(m: &Module, inst: &InstData, args: &[Type], results: &[Type]) -> Result<(), String> {
    let ty = inst.ty;
    let expect = |a: &[Type], r: &[Type]| {
        match_types("operand", a, args)?;
        match_types("result", r, results)
    };
    let no_imm = || match inst.imm {
        Imm::None => Ok(()),
        _ => Err("must not have an immediate".to_owned()),
    };
    let wrong_imm = || Err("has the wrong kind of immediate".to_owned());
    const I: Type = Type::I32;
    match inst.op {
        Op::BitInsert => no_imm().and(expect(&[ty, ty, I, I], &[ty])),
        Op::BitExtractS | Op::BitExtractU => no_imm().and(expect(&[ty, I, I], &[ty])),
        Op::PackHalf => no_imm().and(expect(&[Type::F32, Type::F32], &[I])),
        Op::UnpackHalfLo | Op::UnpackHalfHi => no_imm().and(expect(&[I], &[Type::F32])),
        Op::Sample | Op::SampleImplicit => image::check_sample(m, inst, args, results),
        Op::Input | Op::Output | Op::ReadOutput | Op::EmitVertex | Op::EndPrimitive => {
            interface::check(m, inst, args, results)
        }
        Op::Demote => no_imm().and(expect(&[], &[])),
        Op::IsHelper => no_imm().and(expect(&[], &[Type::Bool])),
        Op::Elect => no_imm().and(expect(&[], &[Type::Bool])),
        Op::VoteAny | Op::VoteAll => no_imm().and(expect(&[Type::Bool], &[Type::Bool])),
        Op::VoteEq => match args {
            [_] => no_imm().and(match_types("result", &[Type::Bool], results)),
            _ => Err(format!("{} operands instead of 1", args.len())),
        },
        Op::Ballot => no_imm().and(expect(&[Type::Bool], &[I])),
        Op::ResourceAddr | Op::ResourceSize => {
            let Imm::Res(res) = inst.imm else { return wrong_imm() };
            let kind = resource(m, res)?.kind;
            let element: &[Type] = if args.is_empty() { &[] } else { &[I] };
            let want = match (inst.op, kind) {
                (Op::ResourceSize, ResKind::StorageBuffer | ResKind::UniformBuffer) => I,
                (Op::ResourceAddr, ResKind::StorageBuffer) => Type::Ptr(Space::Storage),
                (Op::ResourceAddr, ResKind::UniformBuffer) => Type::Ptr(Space::Uniform),
                (Op::ResourceAddr, ResKind::PushConstants) => Type::Ptr(Space::Push),
                _ => return Err(format!("{res} is not a buffer")),
            };
            if ty != want {
                return Err(format!("gives {want}, not {ty}"));
            }
            expect(element, &[want])
        }
        Op::Lea => {
            if !matches!(inst.imm, Imm::Lea(_)) {
                return wrong_imm();
            }
            if !ty.is_ptr() && ty != I {
                return Err(format!("the address is {ty}"));
            }
            expect(&[ty, I][..if args.len() == 1 { 1 } else { 2 }], &[ty])
        }
        Op::Load | Op::Store => {
            let Imm::Mem(mem) = inst.imm else { return wrong_imm() };
            check_address(args.first(), mem.space)?;
            if mem.count == 0 || mem.count > 16 {
                return Err(format!("{} components", mem.count));
            }
            if !mem.align.is_power_of_two() {
                return Err(format!("alignment {} is not a power of two", mem.align));
            }
            if inst.op == Op::Store && mem.space.is_read_only() {
                return Err(format!("writes {} memory", mem.space.name()));
            }
            let moved = vec![moved_type(ty, args[0]); mem.count as usize];
            if inst.op == Op::Load {
                match_types("operand", &args[..1], args)?;
                match_types("result", &moved, results)
            } else {
                match_types("component", &moved, &args[1..])?;
                match_types("result", &[], results)
            }
        }
        Op::Atomic => {
            let Imm::Atomic(a) = inst.imm else { return wrong_imm() };
            check_address(args.first(), a.space)?;
            if a.space.is_read_only() {
                return Err(format!("writes {} memory", a.space.name()));
            }
            let allowed = match a.op {
                op if op.float().is_some() => ty.is_float(),
                AtomicOp::Exchange | AtomicOp::Load | AtomicOp::Store => ty.is_int() || ty.is_float(),
                _ => ty.is_int(),
            };
            if !allowed {
                return Err(format!("does not exist at type {ty}"));
            }
            let data = match a.op {
                AtomicOp::Load => 0,
                AtomicOp::CompareExchange => 2,
                _ => 1,
            };
            match_types("data operand", &[ty, ty][..data], &args[1..])?;
            if a.op == AtomicOp::Store && results.is_empty() {
                return Ok(());
            }
            match_types("result", &[ty], results)
        }
        Op::ImageLoad | Op::ImageStore | Op::ImageAtomic | Op::ImageSize | Op::ImageLevels => {
            image::check(m, inst, args, results)
        }
        Op::Barrier | Op::Fence => match inst.imm {
            Imm::Barrier(_) => expect(&[], &[]),
            _ => wrong_imm(),
        },
        _ => Err("has no rule".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;

    fn module() -> (Module, Block) {
        let mut m = Module::new("main", Stage::Compute);
        let b = m.func.add_block();
        m.func.blocks[b].term = Term::Return;
        (m, b)
    }

    fn first_error(m: &Module) -> String {
        verify(m).err().map_or_else(|| "fine".to_owned(), |e| e[0].clone())
    }

    #[test]
    fn dominance_and_types() {
        let (mut m, b0) = module();
        let (b1, b2) = (m.func.add_block(), m.func.add_block());
        let mut b = Builder::new(&mut m.func, b0);
        let c = b.bool(true);
        b.branch(c, b1, b2);
        let mut b = Builder::new(&mut m.func, b1);
        let x = b.i32(4);
        b.jump(b2, &[]);
        let mut b = Builder::new(&mut m.func, b2);
        b.op(Op::Iadd, Type::I32, &[x, x]);
        b.ret();
        assert_eq!(first_error(&m), "b2: i2 (iadd): %1 is not defined on every path to here");
        let i = m.func.blocks[b2].insts.pop().unwrap();
        m.func.blocks[b1].insts.push(i);
        assert_eq!(first_error(&m), "fine");
        m.func.insts[i].args[1] = c;
        assert_eq!(first_error(&m), "b1: i2 (iadd): operand 1 is bool, not i32");
        m.func.insts[i].args[1] = Value(77);
        assert_eq!(first_error(&m), "b1: i2 (iadd): operand %77 does not exist");
        m.func.blocks[b1].insts.pop();
        assert_eq!(first_error(&m), "fine");
        m.func.layout.swap(1, 2);
        assert_eq!(first_error(&m), "b0: jumps to b1 into the middle of the loop from b2 to b1");
        m.func.layout.swap(1, 2);
        m.func.add_block();
        assert!(first_error(&m).starts_with("b3: not reachable"), "{}", first_error(&m));
    }

    #[test]
    fn loops_are_contiguous_and_entered_at_the_header() {
        // b0 -> b1 | b2; b1 is a header, b2 in its loop, b3 jumps back.
        let (mut m, b0) = module();
        let b: Vec<Block> = (0..4).map(|_| m.func.add_block()).collect();
        let mut x = Builder::new(&mut m.func, b0);
        let c = x.bool(true);
        x.branch(c, b[0], b[1]);
        Builder::new(&mut m.func, b[0]).jump(b[1], &[]);
        Builder::new(&mut m.func, b[1]).jump(b[2], &[]);
        Builder::new(&mut m.func, b[2]).branch(c, b[0], b[3]);
        Builder::new(&mut m.func, b[3]).ret();
        assert_eq!(first_error(&m), "b0: jumps to b2 into the middle of the loop from b1 to b3");
        m.func.blocks[b0].term = Term::Jump(Target { block: b[0], args: Default::default() });
        assert_eq!(first_error(&m), "fine");
        m.func.blocks[b[3]].term = Term::Jump(Target { block: b0, args: Default::default() });
        assert_eq!(first_error(&m), "b0: the entry has a predecessor, b4");
    }

    /// One module that uses every kind of instruction, and what is said when one thing in it is wrong.
    #[test]
    fn every_rule_objects() {
        let text = "module \"main\" compute
workgroup 16 1 1
file \"a\"
loc 0 1 1
resource @0 storage set 0 binding 0 elements 4 size 0 stride 4 \"data\"
resource @1 uniform set 0 binding 1 elements 1 size 16 stride 0 \"block\"
var $0 shared size 64 align 4 \"tile\"
func
b0:
  %0:i32 = const.i32 <7> #1
  %1:i8 = const.i8 <255>
  %2:f32 = const.f32 <0x3f800000>
  %3:f16 = const.f16 <15360>
  %4:ptr.storage = resource_addr.ptr.storage <@0> %0
  %5:i32 = resource_size.i32 <@0>
  %6:ptr.shared = var_addr.ptr.shared <$0>
  %7:ptr.shared = lea.ptr.shared <scale 4 offset 0> %6, %0
  %8:f32, %9:f32 = load.f32 <shared x2 align 4> %7
  store.f32 <storage x2 align 4> %4, %8, %9
  %10:i32 = atomic.i32 <compare_exchange storage> %4, %0, %0
  %11:i32 = atomic.i32 <load storage> %4
  atomic.i32 <store storage> %4, %0
  %12:i32 = uniform.i32 <buffer_addr @1 0>
  %13:i32 = load.i8 <storage x1 align 1> %12
  %14:i32 = sext.i32 %1
  %15:f32 = fconv.f32 %3
  %16:i32 = ftosi.i32 %2
  %17:i32 = bitcast.i32 %2
  %18:i32 = bit_insert.i32 %0, %0, %0, %0
  %19:i32 = pack_half.i32 %2, %2
  %20:f32 = reduce.f32 <fadd inclusive cluster 4> %2
  %21:bool = vote_eq.bool %2
  %22:i32 = ballot.i32 %21
  %23:i32 = shuffle.i32 %0, %0
  %24:f32 = select.f32 %21, %2, %8
  %25:i32 = builtin.i32 <workgroup_id 2>
  barrier.i32 <shared>
  branch %21, b1(%0), b2
b1(%26:i32):
  jump b2
b2:
  return
";
        let check = |text: &str| match crate::text::parse(text) {
            Ok(m) => first_error(&m),
            Err(e) => panic!("{e}"),
        };
        assert_eq!(check(text), "fine");
        for (from, to, message) in [
            ("workgroup 16", "workgroup 0", "has a zero"),
            ("workgroup 16 1", "workgroup 65536 65536", "beyond 32 bits"),
            ("loc 0", "loc 3", "names file 3"),
            ("#1", "#9", "source location does not exist"),
            ("tile", "tile\"\nvar $1 storage size 4 align 4 \"x", "a variable in storage memory"),
            ("align 4 \"tile", "align 5 \"tile", "not a power of two"),
            ("const.i8 <255>", "const.i8 <256>", "wider than i8"),
            ("const.i8 <255>", "const.i8", "wrong kind of immediate"),
            ("<@0> %0", "<@9> %0", "@9 does not exist"),
            ("ptr.storage <@0> %0", "ptr.storage <@1> %0", "gives ptr.uniform"),
            ("<@0> %0", "<@0> %2", "operand 0 is f32"),
            ("ptr.shared <$0>", "ptr.shared <$1>", "$1 does not exist"),
            ("%6:ptr.shared = var_addr.ptr.shared", "%6:ptr.private = var_addr.ptr.private", "ptr.shared"),
            ("lea.ptr.shared <scale 4 offset 0>", "lea.ptr.shared", "wrong kind of immediate"),
            ("x2 align 4> %7", "x2 align 6> %7", "alignment 6"),
            ("x2 align 4> %7", "x3 align 4> %7", "2 results instead of 3"),
            ("x2 align 4> %7", "x0 align 4> %7", "0 components"),
            ("<shared x2", "<storage x2", "the address is ptr.shared"),
            ("<storage x2", "<uniform x2", "the address is ptr.storage"),
            ("%4, %8, %9", "%4, %8, %0", "component 1 is i32"),
            ("%4, %8, %9", "%4, %8", "1 components instead of 2"),
            ("<compare_exchange storage> %4, %0", "<compare_exchange storage> %4, %2", "data operand 0"),
            ("atomic.i32 <load", "atomic.ptr.shared <load", "does not exist at type"),
            ("%13:i32 = load.i8", "%13:i8 = load.i8", "result 0 is i8, not i32"),
            ("%14:i32 = sext.i32 %1", "%14:i32 = sext.i32 %0", "does not convert i32 to i32"),
            ("%14:i32 = sext.i32 %1", "%14:i32 = trunc.i32 %1", "does not convert i8 to i32"),
            ("fconv.f32 %3", "fconv.f32 %2", "does not convert f32 to f32"),
            ("ftosi.i32 %2", "ftosi.i32 %0", "does not convert i32"),
            ("bitcast.i32 %2", "bitcast.i32 %3", "does not convert f16"),
            ("bit_insert.i32 %0, %0, %0, %0", "bit_insert.i32 %0, %0, %0", "3 operands instead of 4"),
            ("pack_half.i32 %2, %2", "pack_half.i32 %2, %0", "operand 1 is i32"),
            ("<fadd inclusive cluster 4>", "<fsub inclusive cluster 4>", "cannot reduce"),
            ("<fadd inclusive cluster 4>", "<iadd inclusive cluster 4>", "cannot reduce"),
            ("<fadd inclusive cluster 4>", "<fadd inclusive cluster 3>", "cluster of 3"),
            ("ballot.i32 %21", "ballot.i32 %0", "operand 0 is i32"),
            ("select.f32 %21, %2, %8", "select.f32 %21, %2, %0", "operand 2 is i32"),
            ("<workgroup_id 2>", "<workgroup_id 3>", "component 3"),
            ("barrier.i32 <shared>", "barrier.i32", "wrong kind of immediate"),
            ("branch %21", "branch %0", "is i32, not bool"),
            ("b1(%0)", "b1", "0 arguments for the 1 parameters"),
            ("b1(%0)", "b1(%2)", "argument %2 is f32"),
            ("b1(%0)", "b1(%26)", "argument %26 is not defined on every path"),
            ("b1(%0), b2", "b1(%0), b7", "jumps to b7"),
        ] {
            assert!(text.contains(from), "{from}");
            let e = check(&text.replacen(from, to, 1));
            assert!(e.contains(message), "{from} -> {to}: {e}");
        }
    }
}
