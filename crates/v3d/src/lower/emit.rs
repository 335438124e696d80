//! What this machine emits beside arithmetic: memory and payloads, what it computes once, and what is certain about the words that
//! it is given. The rest is [`kempe_words::emit`].

use kempe_ir::io::IoImm;
use kempe_ir::{Builtin, Flags, Imm, MemImm, Op, Space, Type, UniformWord, Value};
pub(super) use kempe_words::emit::{Known, low_mask};
use smallvec::{SmallVec, smallvec};

/// The function under construction.
pub(super) type Emit = kempe_words::emit::Emit<Once>;

/// What is computed once at the start of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Once {
    Builtin(Builtin),
    LaneData,
    GroupWord,
    /// A start word of a graphics program.
    Start(u32),
    Input(IoImm, Type),
    SharedBase,
    PrivateBase,
}

/// What is certain about a word of the driver or a built-in.
pub(super) fn given(imm: Imm) -> Known {
    match imm {
        Imm::Uniform(word) => match word {
            // A dispatch has at most 65535 work-groups by axis: 16-bit fields (reference section 13.6).
            UniformWord::NumWorkgroups(_) => Known::below(16),
            // What the driver hands out starts at 16-byte blocks at least.
            UniformWord::BufferAddr { .. }
            | UniformWord::PushAddr
            | UniformWord::ConstantAddr
            | UniformWord::ScratchAddr
            | UniformWord::SharedAddr => Known { zeros: 15, ones: 0, signs: 1 },
            // 16 lanes times private bytes (limited in `address`) and spill slots.
            UniformWord::ScratchBytesPerThread => Known::below(24),
            _ => Known::NOTHING,
        },
        Imm::Builtin(Builtin::LaneId) => Known::below(4),
        // core << 6 | QPU << 2 | thread, one core (reference section 2).
        Imm::Builtin(Builtin::ThreadId) => Known::below(8),
        _ => Known::NOTHING,
    }
}

/// The machine's own instructions.
pub(super) trait MachineOps {
    fn payload(&mut self, n: u64) -> Value;
    fn load(&mut self, ty: Type, mem: MemImm, addr: Value) -> SmallVec<[Value; 4]>;
    fn store(&mut self, ty: Type, mem: MemImm, addr: Value, data: &[Value]);
}

impl MachineOps for Emit {
    fn payload(&mut self, n: u64) -> Value {
        // `Imm::Int` of a payload number and of a constant do not meet: the payload is read once (`Once`).
        self.one(Op::Payload, Type::I32, Flags::NONE, Imm::Int(n), &[])
    }

    fn load(&mut self, ty: Type, mem: MemImm, addr: Value) -> SmallVec<[Value; 4]> {
        let result = if matches!(ty, Type::I8 | Type::I16) { Type::I32 } else { ty };
        let results: SmallVec<[Type; 4]> = smallvec![result; mem.count as usize];
        let i = self.inst(Op::Load, ty, Flags::NONE, Imm::Mem(mem), &[addr], &results);
        let values: SmallVec<[Value; 4]> = SmallVec::from_slice(&self.func.insts[i].results);
        if result != ty {
            self.set_known(values[0], Known::below(ty.bits()));
        }
        values
    }

    fn store(&mut self, ty: Type, mem: MemImm, addr: Value, data: &[Value]) {
        let mut args: SmallVec<[Value; 5]> = smallvec![addr];
        args.extend_from_slice(data);
        self.inst(Op::Store, ty, Flags::NONE, Imm::Mem(mem), &args, &[]);
    }
}

/// Facts of an ordinary word access.
pub(super) fn words(space: Space, count: u8, align: u32) -> MemImm {
    MemImm { space, count, align, volatile: false, read_only: space.is_read_only() }
}
