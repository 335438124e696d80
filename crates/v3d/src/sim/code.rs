//! The program in the form that runs fast: decoded once, registers numbered through, constants spread out.

use super::{Mask, Program, UniformStream, rules};
use crate::decode::decode;
use crate::instr::{
    Alu, Branch, Cond, Dest, Instr, Pack, Part, Push, Signals, Source, Unpack, Update, Version, small_value,
};
use crate::magic;
use crate::ops::Op;

/// Registers of a thread: 64 rows, then r0 to r5 of 4.2.
pub(super) const REGISTERS: usize = 70;
/// Number of r0.
pub(super) const ACC: u8 = 64;
/// Number of r4, where results of SFU magic writes arrive.
pub(super) const R4: u8 = ACC + 4;
/// Number of r5.
pub(super) const R5: u8 = ACC + 5;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum From {
    Register(u8),
    Constant(u32),
    Nothing,
}

/// Where a value goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum To {
    Nowhere,
    Register(u8),
    Magic(u8),
}

/// What happens to the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flags {
    Keep,
    Push(Push),
    Update(Update),
}

/// What an unknown result is made of. An unknown value is still one value: exclusive or with itself gives zero, which
/// exchanges of two registers by three exclusive ors rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Another unknown.
    New,
    /// The first source, up to known bits.
    First,
    /// The exclusive or of both.
    Xor,
}

/// One part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    pub op: Op,
    pub from: [From; 2],
    pub unpack: [Unpack; 2],
    pub to: To,
    pub pack: Pack,
    pub cond: Option<Cond>,
    pub flags: Flags,
    /// 4.2: the sine of anything beyond a quarter turn is that of the quarter turn (`hardware-tests.md` section 6).
    pub quarter_turn: bool,
}

impl Half {
    fn new(version: Version, part: &Part) -> Half {
        let flags = match (part.push, part.update) {
            (Some(push), _) => Flags::Push(push),
            (None, Some(update)) => Flags::Update(update),
            (None, None) => Flags::Keep,
        };
        let sources = part.op.sources();
        let from = |i: usize| if i < sources { source(part.src[i]) } else { From::Nothing };
        Half {
            op: part.op,
            from: [from(0), from(1)],
            unpack: part.unpack,
            to: part.result().map_or(To::Nowhere, |d| dest(version, d)),
            pack: part.pack,
            cond: part.cond,
            flags,
            quarter_turn: part.op == Op::Sin && version == Version::V42,
        }
    }

    /// A register minus itself: zero even if nothing is known of it.
    pub fn cancels(&self) -> bool {
        self.op == Op::Sub && self.from[0] == self.from[1]
    }

    /// What the result has to do with an unknown source.
    pub fn origin(&self) -> Origin {
        if self.pack != Pack::None || self.unpack != [Unpack::None; 2] {
            return Origin::New;
        }
        match self.op {
            Op::Mov | Op::Fmov | Op::Not => Origin::First,
            Op::Xor => Origin::Xor,
            Op::Or | Op::And | Op::Min | Op::Max | Op::Umin | Op::Umax if self.from[0] == self.from[1] => {
                Origin::First
            }
            _ => Origin::New,
        }
    }

    /// Nothing to compute.
    pub fn is_idle(&self) -> bool {
        self.op == Op::Nop && self.flags == Flags::Keep
    }
}

fn source(s: Source) -> From {
    match s {
        Source::None => From::Nothing,
        Source::Row(r) => From::Register(r & 63),
        Source::Acc(r) => From::Register(ACC + r.min(5)),
        Source::Small(code) => small_value(code).map_or(From::Nothing, From::Constant),
    }
}

fn dest(version: Version, d: Dest) -> To {
    match d {
        Dest::Row(r) => To::Register(r & 63),
        Dest::Magic(magic::NOP) => To::Nowhere,
        Dest::Magic(n) if magic::class(version, n) == magic::Class::Accumulator => To::Register(ACC + n),
        Dest::Magic(n) => To::Magic(n),
    }
}

/// An ALU instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micro {
    pub add: Half,
    pub mul: Half,
    pub signals: Signals,
    pub sig_to: To,
    pub rotate: Option<u8>,
    /// Two results go to the same register (section 16: not defined).
    pub clash: Option<u8>,
    /// What the rules about slots and distances ask for (`rules`).
    pub traits: u16,
}

/// One word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Alu(Micro),
    Branch(Branch),
    /// Breaks a rule wherever it stands: the rule, and what is wrong.
    Invalid(&'static str, &'static str),
}

/// A contiguous piece of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub address: u32,
    pub first: usize,
    pub len: usize,
}

/// A program ready to run.
#[derive(Clone, Debug)]
pub struct Code {
    pub(super) version: Version,
    pub(super) steps: Vec<Step>,
    /// The same, as decoded; nops for what is no instruction.
    pub(super) instrs: Vec<Instr>,
    pub(super) pieces: Vec<Piece>,
    pub(super) entry: Option<usize>,
    pub(super) uniforms: UniformStream,
    pub(super) threads: u32,
    pub(super) single_segment: bool,
    pub(super) workgroup_size: [u32; 3],
    /// Some instruction reads a uniform or side-band word from memory.
    pub(super) reads_snapshot: bool,
}

impl Code {
    /// Decodes the program. Words that are no instructions stop the run only when they are reached.
    pub fn new(program: &Program) -> Code {
        let mut steps = Vec::new();
        let mut instrs = Vec::new();
        let mut pieces = Vec::new();
        let mut reads_snapshot = matches!(program.uniforms, UniformStream::Address(_));
        for (address, words) in &program.pieces {
            pieces.push(Piece { address: *address, first: steps.len(), len: words.len() });
            for &word in words {
                let decoded = decode(program.version, word);
                instrs.push(decoded.unwrap_or(Instr::NOP));
                let broken = match &decoded {
                    Ok(Instr::Alu(alu)) => rules::broken_alu(program.version, program.threads, alu),
                    Ok(Instr::Branch(branch)) => rules::broken_branch(program.threads, branch),
                    Err(e) => Some((e.rule().unwrap_or("12"), "not an instruction")),
                };
                let step = match decoded {
                    _ if let Some((rule, what)) = broken => Step::Invalid(rule, what),
                    Ok(Instr::Alu(alu)) => Step::Alu(micro(program.version, &alu)),
                    Ok(Instr::Branch(branch)) => {
                        // A new pointer may lead anywhere.
                        reads_snapshot |=
                            branch.uniforms.is_some_and(|u| u != crate::instr::UniformMove::Relative);
                        Step::Branch(branch)
                    }
                    Err(_) => Step::Invalid("12", "not an instruction"),
                };
                if let Step::Alu(m) = &step {
                    reads_snapshot |= m.signals.has(Signals::LDUNIFA | Signals::LDUNIFARF);
                }
                steps.push(step);
            }
        }
        let mut code = Code {
            version: program.version,
            steps,
            instrs,
            pieces,
            entry: Some(0),
            uniforms: program.uniforms.clone(),
            threads: program.threads,
            single_segment: program.single_segment,
            workgroup_size: program.workgroup_size,
            reads_snapshot,
        };
        if let Some(address) = program.entry {
            code.entry = code.at_address(address);
        }
        code
    }

    /// The word at a byte address.
    pub(super) fn at_address(&self, address: u32) -> Option<usize> {
        self.pieces.iter().find_map(|p| {
            let offset = address.checked_sub(p.address)?;
            (offset % 8 == 0 && (offset as usize) / 8 < p.len).then_some(p.first + offset as usize / 8)
        })
    }

    /// The byte address of a word, or of the place right behind a piece.
    pub(super) fn address_of(&self, word: usize) -> u32 {
        let piece = self.pieces.iter().rev().find(|p| p.first <= word);
        piece.map_or(0, |p| p.address.wrapping_add(((word - p.first) as u32).wrapping_mul(8)))
    }

    /// Whether the word follows its predecessor in memory (a piece does not run into the next one).
    pub(super) fn continues_at(&self, word: usize) -> bool {
        word < self.steps.len() && !self.pieces.iter().any(|p| p.first == word && p.len != 0)
    }
}

fn micro(version: Version, alu: &Alu) -> Micro {
    let mut m = Micro {
        add: Half::new(version, &alu.add),
        mul: Half::new(version, &alu.mul),
        signals: alu.signals,
        sig_to: alu.sig_dest.map_or(To::Nowhere, |d| dest(version, d)),
        rotate: alu.rotate,
        clash: None,
        traits: rules::traits(version, alu),
    };
    let implicit = alu
        .signals
        .has(Signals::LDUNIF | Signals::LDUNIFA)
        .then_some(To::Register(uniform_register(version)));
    let mut seen = [0u8; REGISTERS];
    let broadcast = |to: To| match to {
        To::Magic(magic::QUAD | magic::REP) => Some(uniform_register(version)),
        To::Register(r) => Some(r),
        _ => None,
    };
    for to in [m.add.to, m.mul.to, m.sig_to].into_iter().chain(implicit) {
        if let Some(r) = broadcast(to) {
            seen[r as usize] += 1;
            if seen[r as usize] > 1 {
                m.clash = Some(r);
            }
        }
    }
    m
}

/// The register that ldunif writes.
pub(super) fn uniform_register(version: Version) -> u8 {
    match version {
        Version::V42 => R5,
        Version::V71 => 0,
    }
}

/// The name of a register in messages.
pub(super) fn register_name(r: u8) -> String {
    if r < ACC { format!("rf{r}") } else { format!("r{}", r - ACC) }
}

/// All lanes.
pub(super) const ALL: Mask = Mask::MAX;
