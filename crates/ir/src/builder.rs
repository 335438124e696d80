//! Appending instructions to blocks.

use crate::module::*;
use crate::ops::{Op, Sig};
use crate::types::{Space, Type};
use smallvec::{SmallVec, smallvec};

/// Appends instructions at the end of a block of a function.
pub struct Builder<'a> {
    pub func: &'a mut Function,
    pub block: Block,
    /// Given to every instruction made.
    pub loc: Loc,
    /// Given to every instruction made.
    pub flags: Flags,
}

impl<'a> Builder<'a> {
    pub fn new(func: &'a mut Function, block: Block) -> Builder<'a> {
        Builder { func, block, loc: Loc(0), flags: Flags::NONE }
    }

    /// Appends an instruction with the given results.
    pub fn inst(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value], results: &[Type]) -> Inst {
        let data = InstData {
            op,
            ty,
            flags: self.flags,
            imm,
            args: SmallVec::from_slice(args),
            results: smallvec![],
            loc: self.loc,
        };
        let i = self.func.make_inst(data, results);
        self.func.blocks[self.block].insts.push(i);
        i
    }

    /// Appends an operation with one result: `bool` for comparisons, `ty` for everything else.
    pub fn op(&mut self, op: Op, ty: Type, args: &[Value]) -> Value {
        let result = if op.info().sig == Sig::Compare { Type::Bool } else { ty };
        let i = self.inst(op, ty, Imm::None, args, &[result]);
        self.func.insts[i].results[0]
    }

    /// As [`Builder::op`] with an immediate.
    pub fn op_imm(&mut self, op: Op, ty: Type, imm: Imm, args: &[Value]) -> Value {
        let i = self.inst(op, ty, imm, args, &[ty]);
        self.func.insts[i].results[0]
    }

    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.op_imm(Op::Const, ty, Imm::Int(bits & ty.mask()), &[])
    }

    pub fn i32(&mut self, v: u32) -> Value {
        self.constant(Type::I32, v as u64)
    }

    pub fn f32(&mut self, v: f32) -> Value {
        self.constant(Type::F32, v.to_bits() as u64)
    }

    pub fn bool(&mut self, v: bool) -> Value {
        self.constant(Type::Bool, v as u64)
    }

    pub fn undef(&mut self, ty: Type) -> Value {
        self.op(Op::Undef, ty, &[])
    }

    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.func.ty(a);
        self.op(Op::Select, ty, &[cond, a, b])
    }

    pub fn builtin(&mut self, b: Builtin) -> Value {
        self.op_imm(Op::Builtin, Type::I32, Imm::Builtin(b), &[])
    }

    pub fn uniform(&mut self, w: UniformWord) -> Value {
        self.op_imm(Op::Uniform, Type::I32, Imm::Uniform(w), &[])
    }

    pub fn resource_addr(&mut self, res: Res, space: Space, element: Option<Value>) -> Value {
        self.op_imm(Op::ResourceAddr, Type::Ptr(space), Imm::Res(res), element.as_slice())
    }

    pub fn var_addr(&mut self, var: Var, space: Space) -> Value {
        self.op_imm(Op::VarAddr, Type::Ptr(space), Imm::Var(var), &[])
    }

    pub fn lea(&mut self, base: Value, index: Option<Value>, scale: u32, offset: i32) -> Value {
        let ty = self.func.ty(base);
        let mut args: SmallVec<[Value; 2]> = smallvec![base];
        args.extend(index);
        self.op_imm(Op::Lea, ty, Imm::Lea(LeaImm { scale, offset }), &args)
    }

    /// Loads `mem.count` components of type `ty`.
    pub fn load(&mut self, ty: Type, mem: MemImm, addr: Value) -> SmallVec<[Value; 1]> {
        let results: SmallVec<[Type; 4]> = smallvec![ty; mem.count as usize];
        let i = self.inst(Op::Load, ty, Imm::Mem(mem), &[addr], &results);
        self.func.insts[i].results.clone()
    }

    pub fn store(&mut self, ty: Type, mem: MemImm, addr: Value, data: &[Value]) {
        let mut args: SmallVec<[Value; 5]> = smallvec![addr];
        args.extend_from_slice(data);
        self.inst(Op::Store, ty, Imm::Mem(mem), &args, &[]);
    }

    pub fn jump(&mut self, to: Block, args: &[Value]) {
        self.func.blocks[self.block].term =
            Term::Jump(Target { block: to, args: SmallVec::from_slice(args) });
        self.func.blocks[self.block].term_loc = self.loc;
    }

    pub fn branch(&mut self, cond: Value, then: Block, els: Block) {
        self.func.blocks[self.block].term = Term::Branch {
            cond,
            then: Target { block: then, args: smallvec![] },
            els: Target { block: els, args: smallvec![] },
        };
        self.func.blocks[self.block].term_loc = self.loc;
    }

    pub fn ret(&mut self) {
        self.func.blocks[self.block].term = Term::Return;
        self.func.blocks[self.block].term_loc = self.loc;
    }
}
