//! The encodings of both versions as data, and the lookup tables that decoder and encoder share.
//!
//! Facts: reference sections 4.1, 5, 6.1 to 6.4, 8.
//!
//! An operation is picked by a 14-bit *key*: the opcode field above a 6-bit selector field. The selector is the pair of
//! operand selectors of the part on 4.2 (second source above first) and the address of the second source on 7.1. All
//! modifiers are bit fields of the key, so one [`Form`] per operation says everything: which keys it owns and where its
//! pack and unpack codes sit. Operations that share their keys differ in a further condition ([`Extra`]) and stand next
//! to each other.

use std::sync::LazyLock;

use crate::instr::{Op, Pack, Signals, Unpack, Version};
use crate::ops;

/// Which part of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Unit {
    /// The ADD part.
    Add,
    /// The MUL part.
    Mul,
}

/// Condition outside of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extra {
    /// None.
    Always,
    /// Order key of source a at most that of b (section 6.1).
    Ordered,
    /// Order key of source a above that of b.
    Swapped,
    /// Bit ma of the word has this value; the destination is then a row.
    Ma(bool),
    /// The ADD write address has this value; there is no destination.
    Waddr(u8),
}

/// Where an output pack code sits in the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PackField {
    /// Nowhere: no pack.
    Absent,
    /// Two bits from this position.
    At(u8),
    /// Two bits from this position hold the code plus one.
    PlusOne(u8),
    /// As [`PackField::At`], for operations whose selector range merely looks like a pack: no tool uses it (section 8.4).
    Unverified(u8),
}

/// Where an unpack code sits in the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnpackField {
    /// Nowhere: no unpack.
    Absent,
    /// f32 code in two bits from this position.
    F32(u8),
    /// f32 code in three bits from this position.
    F32Wide(u8),
    /// i32 code in three bits from this position.
    I32(u8),
    /// f16 code is the opcode minus the first opcode of the form.
    F16,
}

/// The encoding of one operation in one part.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The operation.
    pub op: Op,
    /// Ranges of opcodes, inclusive.
    pub codes: &'static [(u8, u8)],
    /// Bit n: selector value n belongs to the form.
    pub selectors: u64,
    /// Condition outside of the key.
    pub extra: Extra,
    /// Output pack.
    pub pack: PackField,
    /// Unpack of source a.
    pub a: UnpackField,
    /// Unpack of source b.
    pub b: UnpackField,
}

const F32_CODES: [Unpack; 8] = [
    Unpack::Abs,
    Unpack::None,
    Unpack::L,
    Unpack::H,
    Unpack::Sat,
    Unpack::Nsat,
    Unpack::Max0,
    Unpack::Unknown7,
];
const F16_CODES: [Unpack; 5] = [Unpack::None, Unpack::Ff, Unpack::Ll, Unpack::Hh, Unpack::Swp];
const I32_CODES: [Unpack; 5] = [Unpack::None, Unpack::Ul, Unpack::Uh, Unpack::Il, Unpack::Ih];

impl UnpackField {
    /// The modifier that the key holds, with its raw code.
    #[inline]
    fn read(self, key: u16, first_opcode: u8) -> Option<Unpack> {
        match self {
            UnpackField::Absent => Some(Unpack::None),
            UnpackField::F32(at) => Some(F32_CODES[usize::from(key >> at & 3)]),
            UnpackField::F32Wide(at) => Some(F32_CODES[usize::from(key >> at & 7)]),
            UnpackField::I32(at) => I32_CODES.get(usize::from(key >> at & 7)).copied(),
            UnpackField::F16 => {
                F16_CODES.get(usize::from((key >> 6).wrapping_sub(first_opcode.into()))).copied()
            }
        }
    }

    fn mask(self) -> u16 {
        match self {
            UnpackField::Absent | UnpackField::F16 => 0,
            UnpackField::F32(at) => 3 << at,
            UnpackField::F32Wide(at) | UnpackField::I32(at) => 7 << at,
        }
    }

    /// The key bits for a modifier, to be added to the base key; `None` if the field cannot say it.
    #[inline]
    fn write(self, unpack: Unpack) -> Option<u16> {
        match self {
            UnpackField::Absent => (unpack == Unpack::None).then_some(0),
            UnpackField::F32(at) => f32_code(unpack).filter(|&c| c < 4).map(|c| c << at),
            UnpackField::F32Wide(at) => f32_code(unpack).map(|c| c << at),
            UnpackField::I32(at) => code_in(&I32_CODES, unpack).map(|c| c << at),
            UnpackField::F16 => code_in(&F16_CODES, unpack).map(|c| c << 6),
        }
    }
}

#[inline]
fn code_in(codes: &[Unpack], unpack: Unpack) -> Option<u16> {
    codes.iter().position(|&u| u == unpack).map(|c| c as u16)
}

/// The f32 unpack code; it is also the upper part of the order key (section 6.1).
#[inline]
pub fn f32_code(unpack: Unpack) -> Option<u16> {
    Some(match unpack {
        Unpack::Abs => 0,
        Unpack::None => 1,
        Unpack::L => 2,
        Unpack::H => 3,
        Unpack::Sat => 4,
        Unpack::Nsat => 5,
        Unpack::Max0 => 6,
        Unpack::Unknown7 => 7,
        _ => return None,
    })
}

impl PackField {
    #[inline]
    fn read(self, key: u16) -> Option<Pack> {
        let code = match self {
            PackField::Absent => 0,
            PackField::At(at) | PackField::Unverified(at) => key >> at & 3,
            PackField::PlusOne(at) => (key >> at & 3).wrapping_sub(1),
        };
        match code {
            0 => Some(Pack::None),
            1 => Some(Pack::L),
            2 => Some(Pack::H),
            _ => None,
        }
    }

    fn mask(self) -> u16 {
        match self {
            PackField::Absent => 0,
            PackField::At(at) | PackField::Unverified(at) | PackField::PlusOne(at) => 3 << at,
        }
    }

    #[inline]
    fn write(self, pack: Pack) -> Option<u16> {
        let code = pack as u16;
        match self {
            PackField::Absent => (pack == Pack::None).then_some(0),
            PackField::At(at) | PackField::Unverified(at) => Some(code << at),
            PackField::PlusOne(at) => Some((code + 1) << at),
        }
    }
}

/// Position of opcode bit `n` in the key.
const fn op(n: u8) -> u8 {
    6 + n
}

const ANY: u64 = u64::MAX;

/// 4.2: second selector `b`, first selector anything.
const fn sb(b: u32) -> u64 {
    0xff << (8 * b)
}

/// 4.2: second selector from `lo` to `hi`, first selector anything.
const fn sbs(lo: u32, hi: u32) -> u64 {
    let mut mask = 0;
    let mut b = lo;
    while b <= hi {
        mask |= sb(b);
        b += 1;
    }
    mask
}

/// 4.2: second selector `b`, first selector from `lo` to `hi`.
const fn sab(lo: u32, hi: u32, b: u32) -> u64 {
    range(8 * b + lo, 8 * b + hi)
}

/// Selector values `lo` to `hi`.
const fn range(lo: u32, hi: u32) -> u64 {
    (u64::MAX >> (63 - (hi - lo))) << lo
}

/// 7.1: one selector value.
const fn one(n: u32) -> u64 {
    1 << n
}

const fn form(op: Op, codes: &'static [(u8, u8)], selectors: u64) -> Form {
    Form {
        op,
        codes,
        selectors,
        extra: Extra::Always,
        pack: PackField::Absent,
        a: UnpackField::Absent,
        b: UnpackField::Absent,
    }
}

impl Form {
    const fn when(mut self, extra: Extra) -> Form {
        self.extra = extra;
        self
    }

    const fn pack(mut self, pack: PackField) -> Form {
        self.pack = pack;
        self
    }

    const fn a(mut self, a: UnpackField) -> Form {
        self.a = a;
        self
    }

    const fn b(mut self, b: UnpackField) -> Form {
        self.b = b;
        self
    }

    /// Unpack of both sources in opcode bits 3:2 and 1:0.
    const fn ab(self) -> Form {
        self.a(UnpackField::F32(op(2))).b(UnpackField::F32(op(0)))
    }

    /// The usual f32 form: pack in opcode bits 5:4, unpack as [`Form::ab`].
    const fn float(self) -> Form {
        self.pack(PackField::At(op(4))).ab()
    }

    /// Whether the modifier codes of a key of the form mean something.
    fn accepts(&self, key: u16) -> bool {
        self.pack.read(key).is_some()
            && self.a.read(key, self.codes[0].0).is_some()
            && self.b.read(key, self.codes[0].0).is_some()
    }

    /// The modifiers in a key of the form: pack, unpack of a, unpack of b.
    #[inline]
    pub fn modifiers(&self, key: u16) -> (Pack, Unpack, Unpack) {
        let first = self.codes[0].0;
        // The lookup table only leads here with keys that `accepts` let pass.
        (
            self.pack.read(key).unwrap_or_default(),
            self.a.read(key, first).unwrap_or_default(),
            self.b.read(key, first).unwrap_or_default(),
        )
    }

    /// The lowest key of the form with its modifier bits cleared.
    fn base(&self) -> u16 {
        let key = u16::from(self.codes[0].0) << 6 | self.selectors.trailing_zeros() as u16;
        // The source of vpmsetup (4.2) is at the same time what tells it from flnafirst.
        let source = if self.op == Op::Vpmsetup { 7 } else { 0 };
        key & !(self.pack.mask() | self.a.mask() | self.b.mask() | source)
    }

    /// The key for these modifiers, selectors of sources zero. `None` if the form cannot say them.
    #[inline]
    pub fn key(&self, base: u16, pack: Pack, a: Unpack, b: Unpack) -> Option<u16> {
        Some(base + self.pack.write(pack)? + self.a.write(a)? + self.b.write(b)?)
    }
}

const FADD: &[(u8, u8)] = &[(0, 47)];
const VFPACK: &[(u8, u8)] = &[(53, 55), (57, 59), (61, 63)];
const FMIN: &[(u8, u8)] = &[(128, 175)];

/// The forms that have the same encoding on both versions.
const fn shared() -> [Form; 25] {
    [
        form(Op::Fadd, FADD, ANY).float().when(Extra::Ordered),
        form(Op::Faddnf, FADD, ANY).float().when(Extra::Swapped),
        form(Op::Vfpack, VFPACK, ANY).ab(),
        form(Op::Add, &[(56, 56)], ANY),
        form(Op::Sub, &[(60, 60)], ANY),
        form(Op::Fsub, &[(64, 111)], ANY).float(),
        form(Op::Min, &[(120, 120)], ANY),
        form(Op::Max, &[(121, 121)], ANY),
        form(Op::Umin, &[(122, 122)], ANY),
        form(Op::Umax, &[(123, 123)], ANY),
        form(Op::Shl, &[(124, 124)], ANY),
        form(Op::Shr, &[(125, 125)], ANY),
        form(Op::Asr, &[(126, 126)], ANY),
        form(Op::Ror, &[(127, 127)], ANY),
        form(Op::Fmin, FMIN, ANY).float().when(Extra::Ordered),
        form(Op::Fmax, FMIN, ANY).float().when(Extra::Swapped),
        form(Op::Vfmin, &[(176, 180)], ANY).a(UnpackField::F16),
        form(Op::And, &[(181, 181)], ANY),
        form(Op::Or, &[(182, 182)], ANY),
        form(Op::Xor, &[(183, 183)], ANY),
        form(Op::Vadd, &[(184, 184)], ANY),
        form(Op::Vsub, &[(185, 185)], ANY),
        form(Op::LdvpmgIn, &[(189, 189)], ANY).when(Extra::Ma(false)),
        form(Op::LdvpmgOut, &[(189, 189)], ANY).when(Extra::Ma(true)),
        form(Op::Vfmax, &[(240, 244)], ANY).a(UnpackField::F16),
    ]
}

/// Rounding, conversion and derivative opcodes of 4.2: the three values carry unpack none, l, h in bits 3:2.
const ROUND: &[(u8, u8)] = &[(245, 245), (249, 249), (253, 253)];
const FLOOR: &[(u8, u8)] = &[(246, 246), (250, 250), (254, 254)];
const DERIVE: &[(u8, u8)] = &[(247, 247), (251, 251), (255, 255)];
const OP186: &[(u8, u8)] = &[(186, 186)];
const OP187: &[(u8, u8)] = &[(187, 187)];
const OP188: &[(u8, u8)] = &[(188, 188)];

/// 4.2: pack in the low bits of the second selector, unpack in opcode bits 3:2.
const fn unary42(name: Op, codes: &'static [(u8, u8)], lo: u32) -> Form {
    form(name, codes, sbs(lo, lo + 2)).pack(PackField::At(3)).a(UnpackField::F32(op(2)))
}

const fn convert42(name: Op, codes: &'static [(u8, u8)], b: u32) -> Form {
    form(name, codes, sb(b)).a(UnpackField::F32(op(2)))
}

static ADD42: &[Form] = &[
    form(Op::Not, OP186, sb(0)),
    form(Op::Neg, OP186, sb(1)),
    form(Op::Flapush, OP186, sb(2)),
    form(Op::Flbpush, OP186, sb(3)),
    form(Op::Flpop, OP186, sb(4)),
    form(Op::Recip, OP186, sb(5)),
    form(Op::Setmsf, OP186, sb(6)),
    form(Op::Setrevf, OP186, sb(7)),
    form(Op::Nop, OP187, sab(0, 0, 0)),
    form(Op::Tidx, OP187, sab(1, 1, 0)),
    form(Op::Eidx, OP187, sab(2, 2, 0)),
    form(Op::Lr, OP187, sab(3, 3, 0)),
    form(Op::Vfla, OP187, sab(4, 4, 0)),
    form(Op::Vflna, OP187, sab(5, 5, 0)),
    form(Op::Vflb, OP187, sab(6, 6, 0)),
    form(Op::Vflnb, OP187, sab(7, 7, 0)),
    form(Op::Fxcd, OP187, sab(0, 2, 1)).pack(PackField::Unverified(0)),
    form(Op::Xcd, OP187, sab(3, 3, 1)),
    form(Op::Fycd, OP187, sab(4, 6, 1)).pack(PackField::Unverified(0)),
    form(Op::Ycd, OP187, sab(7, 7, 1)),
    form(Op::Msf, OP187, sab(0, 0, 2)),
    form(Op::Revf, OP187, sab(1, 1, 2)),
    form(Op::Iid, OP187, sab(2, 2, 2)),
    form(Op::Sampid, OP187, sab(3, 3, 2)),
    form(Op::Barrierid, OP187, sab(4, 4, 2)),
    form(Op::Tmuwt, OP187, sab(5, 5, 2)),
    form(Op::Vpmwt, OP187, sab(6, 6, 2)),
    form(Op::Flafirst, OP187, sab(7, 7, 2)),
    form(Op::Flnafirst, OP187, sab(0, 0, 3)),
    form(Op::Vpmsetup, OP187, sab(1, 7, 3)),
    form(Op::LdvpmvIn, OP188, sb(0)).when(Extra::Ma(false)),
    form(Op::LdvpmvOut, OP188, sb(0)).when(Extra::Ma(true)),
    form(Op::LdvpmdIn, OP188, sb(1)).when(Extra::Ma(false)),
    form(Op::LdvpmdOut, OP188, sb(1)).when(Extra::Ma(true)),
    form(Op::Ldvpmp, OP188, sb(2)),
    form(Op::Rsqrt, OP188, sb(3)),
    form(Op::Exp, OP188, sb(4)),
    form(Op::Log, OP188, sb(5)),
    form(Op::Sin, OP188, sb(6)),
    form(Op::Rsqrt2, OP188, sb(7)),
    form(Op::Fcmp, &[(192, 239)], ANY).float(),
    unary42(Op::Fround, ROUND, 0),
    convert42(Op::Ftoin, ROUND, 3),
    unary42(Op::Ftrunc, ROUND, 4),
    convert42(Op::Ftoiz, ROUND, 7),
    unary42(Op::Ffloor, FLOOR, 0),
    convert42(Op::Ftouz, FLOOR, 3),
    unary42(Op::Fceil, FLOOR, 4),
    convert42(Op::Ftoc, FLOOR, 7),
    unary42(Op::Fdx, DERIVE, 0),
    unary42(Op::Fdy, DERIVE, 4),
    form(Op::Stvpmv, &[(248, 248)], ANY).when(Extra::Waddr(0)),
    form(Op::Stvpmd, &[(248, 248)], ANY).when(Extra::Waddr(1)),
    form(Op::Stvpmp, &[(248, 248)], ANY).when(Extra::Waddr(2)),
    form(Op::Itof, &[(252, 252)], sbs(0, 2)).pack(PackField::Unverified(3)),
    form(Op::Clz, &[(252, 252)], sb(3)),
    form(Op::Utof, &[(252, 252)], sbs(4, 6)).pack(PackField::Unverified(3)),
];

static MUL42: &[Form] = &[
    form(Op::Add, &[(1, 1)], ANY),
    form(Op::Sub, &[(2, 2)], ANY),
    form(Op::Umul24, &[(3, 3)], ANY),
    form(Op::Vfmul, &[(4, 8)], ANY).a(UnpackField::F16),
    form(Op::Smul24, &[(9, 9)], ANY),
    form(Op::Multop, &[(10, 10)], ANY),
    // The pack code straddles opcode bit 0 and the top bit of the second selector; code 3 leaves room for nop and mov.
    form(Op::Fmov, &[(14, 15)], ANY).pack(PackField::At(5)).a(UnpackField::F32(3)),
    form(Op::Nop, &[(15, 15)], sab(0, 0, 4)),
    form(Op::Mov, &[(15, 15)], sb(7)),
    form(Op::Fmul, &[(16, 63)], ANY).pack(PackField::PlusOne(op(4))).ab(),
];

/// 7.1: pack in selector bits 1:0, unpack in bits 3:2.
const fn unary71(name: Op, codes: &'static [(u8, u8)], lo: u32) -> Form {
    form(name, codes, range(lo, lo + 15)).pack(PackField::At(0)).a(UnpackField::F32(2))
}

/// 7.1: the selectors in which the pack field of [`unary71`] would hold 3.
const fn convert71(name: Op, lo: u32) -> Form {
    form(name, &[(245, 245)], 0x8888 << lo).a(UnpackField::F32(2))
}

static ADD71: &[Form] = &[
    form(Op::Not, OP186, one(0)),
    form(Op::Neg, OP186, one(1)),
    form(Op::Flapush, OP186, one(2)),
    form(Op::Flbpush, OP186, one(3)),
    form(Op::Flpop, OP186, one(4)),
    form(Op::Clz, OP186, one(5)),
    form(Op::Setmsf, OP186, one(6)),
    form(Op::Setrevf, OP186, one(7)),
    form(Op::Nop, OP187, one(0)),
    form(Op::Tidx, OP187, one(1)),
    form(Op::Eidx, OP187, one(2)),
    form(Op::Lr, OP187, one(3)),
    form(Op::Vfla, OP187, one(4)),
    form(Op::Vflna, OP187, one(5)),
    form(Op::Vflb, OP187, one(6)),
    form(Op::Vflnb, OP187, one(7)),
    form(Op::Xcd, OP187, one(8)),
    form(Op::Ycd, OP187, one(9)),
    form(Op::Msf, OP187, one(10)),
    form(Op::Revf, OP187, one(11)),
    form(Op::Iid, OP187, one(12)),
    form(Op::Sampid, OP187, one(13)),
    form(Op::Barrierid, OP187, one(14)),
    form(Op::Tmuwt, OP187, one(15)),
    form(Op::Vpmwt, OP187, one(16)),
    form(Op::Flafirst, OP187, one(17)),
    form(Op::Flnafirst, OP187, one(18)),
    form(Op::Fxcd, OP187, range(32, 34)).pack(PackField::Unverified(0)),
    form(Op::Fycd, OP187, range(36, 38)).pack(PackField::Unverified(0)),
    form(Op::SetnnmodeUu, OP187, one(48)),
    form(Op::SetnnmodeSu, OP187, one(49)),
    form(Op::SetnnmodeUs, OP187, one(50)),
    form(Op::SetnnmodeSs, OP187, one(51)),
    form(Op::LdvpmvIn, OP188, one(0)).when(Extra::Ma(false)),
    form(Op::LdvpmvOut, OP188, one(0)).when(Extra::Ma(true)),
    form(Op::LdvpmdIn, OP188, one(1)).when(Extra::Ma(false)),
    form(Op::LdvpmdOut, OP188, one(1)).when(Extra::Ma(true)),
    form(Op::Ldvpmp, OP188, one(2)),
    form(Op::Recip, OP188, one(32)),
    form(Op::Rsqrt, OP188, one(33)),
    form(Op::Exp, OP188, one(34)),
    form(Op::Log, OP188, one(35)),
    form(Op::Sin, OP188, one(36)),
    form(Op::Rsqrt2, OP188, one(37)),
    form(Op::Ballot, OP188, one(38)),
    form(Op::Bcastf, OP188, one(39)),
    form(Op::Alleq, OP188, one(40)),
    form(Op::Allfeq, OP188, one(41)),
    form(Op::Stvpmv, &[(190, 190)], ANY).when(Extra::Waddr(0)),
    form(Op::Stvpmd, &[(190, 190)], ANY).when(Extra::Waddr(1)),
    form(Op::Stvpmp, &[(190, 190)], ANY).when(Extra::Waddr(2)),
    form(Op::Fcmp, &[(192, 207)], ANY).ab(),
    unary71(Op::Fround, &[(245, 245)], 0),
    unary71(Op::Ftrunc, &[(245, 245)], 16),
    unary71(Op::Ffloor, &[(245, 245)], 32),
    unary71(Op::Fceil, &[(245, 245)], 48),
    convert71(Op::Ftoin, 0),
    convert71(Op::Ftoiz, 16),
    convert71(Op::Ftouz, 32),
    convert71(Op::Ftoc, 48),
    unary71(Op::Fdx, &[(246, 246)], 0),
    unary71(Op::Fdy, &[(246, 246)], 16),
    form(Op::Itof, &[(246, 246)], range(32, 34)).pack(PackField::Unverified(0)),
    form(Op::Utof, &[(246, 246)], range(36, 38)).pack(PackField::Unverified(0)),
    form(Op::Vpack, &[(247, 247)], ANY),
    form(Op::V8pack, &[(248, 248)], ANY),
    form(Op::Fmov, &[(249, 249)], range(0, 26)).pack(PackField::At(0)).a(UnpackField::F32Wide(2)),
    form(Op::Mov, &[(249, 249)], 0x8_8888).a(UnpackField::I32(2)),
    form(Op::V10pack, &[(250, 250)], ANY),
    form(Op::V11fpack, &[(251, 251)], ANY),
    form(Op::Rotq, &[(252, 252)], ANY),
    form(Op::Rot, &[(253, 253)], ANY),
    form(Op::Shuffle, &[(254, 254)], ANY),
];

const OP14: &[(u8, u8)] = &[(14, 14)];

static MUL71: &[Form] = &[
    form(Op::Add, &[(1, 1)], ANY),
    form(Op::Sub, &[(2, 2)], ANY),
    form(Op::Umul24, &[(3, 3)], ANY),
    form(Op::Vfmul, &[(4, 8)], ANY).a(UnpackField::F16),
    form(Op::Smul24, &[(9, 9)], ANY),
    form(Op::Multop, &[(10, 10)], ANY),
    form(Op::V8dot, &[(11, 11)], ANY),
    form(Op::Fmov, OP14, range(0, 30)).pack(PackField::At(0)).a(UnpackField::F32Wide(2)),
    form(Op::Mov, OP14, 0x8_8888).a(UnpackField::I32(2)),
    form(Op::Ftounorm16, OP14, one(32)),
    form(Op::Ftosnorm16, OP14, one(33)),
    form(Op::Vftounorm8, OP14, one(34)),
    form(Op::Vftosnorm8, OP14, one(35)),
    form(Op::Funpackunormlo, OP14, one(36)),
    form(Op::Funpackunormhi, OP14, one(37)),
    form(Op::Funpacksnormlo, OP14, one(38)),
    form(Op::Funpacksnormhi, OP14, one(39)),
    form(Op::Vftounorm10lo, OP14, one(48)),
    form(Op::Vftounorm10hi, OP14, one(49)),
    form(Op::Nop, OP14, one(63)),
    form(Op::Fmul, &[(16, 63)], ANY).pack(PackField::PlusOne(op(4))).ab(),
];

/// All forms of one part with their lookup tables.
pub struct UnitTable {
    forms: Vec<Form>,
    /// Base key of each form.
    bases: Vec<u16>,
    /// One past the last form that shares the keys of the form.
    ends: Vec<u8>,
    /// Key to form number plus one; 0 for keys without a meaning.
    by_key: Vec<u8>,
    /// Operation to form number plus one; 0 for operations that the part does not have.
    by_op: Vec<u8>,
}

impl UnitTable {
    fn new(forms: Vec<Form>) -> UnitTable {
        let mut by_key = vec![0u8; 1 << 14];
        let mut by_op = vec![0u8; ops::ALL.len()];
        let mut ends = Vec::new();
        for (i, form) in forms.iter().enumerate() {
            let same = |f: &Form| f.codes == form.codes && f.selectors == form.selectors;
            let first = i > 0 && form.extra != Extra::Always && same(&forms[i - 1]);
            let shared = if form.extra == Extra::Always {
                1
            } else {
                forms[i..].iter().take_while(|f| same(f)).count()
            };
            ends.push((i + shared) as u8);
            debug_assert_eq!(by_op[form.op as usize], 0, "two forms of {}", form.op.name());
            by_op[form.op as usize] = i as u8 + 1;
            if first {
                continue;
            }
            for opcode in form.codes.iter().flat_map(|&(lo, hi)| lo..=hi) {
                for selector in (0..64).filter(|s| form.selectors >> s & 1 != 0) {
                    let key = u16::from(opcode) << 6 | selector;
                    if form.accepts(key) {
                        debug_assert_eq!(by_key[usize::from(key)], 0, "two owners of key {key:#x}");
                        by_key[usize::from(key)] = i as u8 + 1;
                    }
                }
            }
        }
        let bases = forms.iter().map(Form::base).collect();
        UnitTable { forms, bases, ends, by_key, by_op }
    }

    /// The forms that own a key (several only when they differ in [`Extra`]).
    #[inline]
    pub fn lookup(&self, key: u16) -> &[Form] {
        match self.by_key.get(usize::from(key)) {
            None | Some(0) => &[],
            Some(&n) => &self.forms[usize::from(n) - 1..usize::from(self.ends[usize::from(n) - 1])],
        }
    }

    /// The form of an operation and its base key, `None` if the part has no such operation.
    #[inline]
    pub fn of(&self, op: Op) -> Option<(&Form, u16)> {
        let n = usize::from(self.by_op[op as usize]).checked_sub(1)?;
        Some((&self.forms[n], self.bases[n]))
    }

    /// Whether a key belongs to this form or one that shares its keys.
    #[inline]
    pub fn owns(&self, key: u16, op: Op) -> bool {
        self.lookup(key).iter().any(|f| f.op == op)
    }

    /// All forms.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }
}

static TABLES: LazyLock<[UnitTable; 4]> = LazyLock::new(|| {
    let both = |own: &[Form]| UnitTable::new(shared().iter().chain(own).copied().collect());
    let only = |own: &[Form]| UnitTable::new(own.to_vec());
    [both(ADD42), only(MUL42), both(ADD71), only(MUL71)]
});

/// The encodings of one part of one version.
#[inline]
pub fn unit(version: Version, unit: Unit) -> &'static UnitTable {
    &TABLES[(version as usize) * 2 + unit as usize]
}

/// Whether this version has the operation in this part.
pub fn available(version: Version, part: Unit, op: Op) -> bool {
    unit(version, part).of(op).is_some()
}

/// What else the signal field says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Nothing.
    Plain,
    /// A small immediate stands in the address field of source 0 to 3: ADD a, b, MUL a, b. On 4.2 only 1 exists, and
    /// any source may read it.
    Small(u8),
    /// 4.2: the second address field holds a rotation count.
    Rotate,
    /// The code is reserved.
    Reserved,
}

/// One code of the signal field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalCode {
    /// The signals.
    pub set: Signals,
    /// What else it says.
    pub field: Field,
}

const fn sig(set: Signals) -> SignalCode {
    SignalCode { set, field: Field::Plain }
}

const fn small(set: Signals, source: u8) -> SignalCode {
    SignalCode { set, field: Field::Small(source) }
}

const RESERVED: SignalCode = SignalCode { set: Signals::NONE, field: Field::Reserved };

const fn signals(version: Version) -> [SignalCode; 32] {
    const NONE: Signals = Signals::NONE;
    const T: Signals = Signals::THRSW;
    const TMU: Signals = Signals::LDTMU;
    const VARY: Signals = Signals::LDVARY;
    const UNIF: Signals = Signals::LDUNIF;
    const RF: Signals = Signals::LDUNIFRF;
    const MUC: Signals = Signals::WRTMUC;
    let mut table = [
        sig(NONE),
        sig(T),
        sig(UNIF),
        sig(T.with(UNIF)),
        sig(TMU),
        sig(T.with(TMU)),
        sig(TMU.with(UNIF)),
        sig(T.with(TMU).with(UNIF)),
        sig(VARY),
        sig(T.with(VARY)),
        sig(VARY.with(UNIF)),
        sig(T.with(VARY).with(UNIF)),
        sig(RF),
        sig(T.with(RF)),
        small(NONE, 0),
        small(NONE, 1),
        sig(Signals::LDTLB),
        sig(Signals::LDTLBU),
        sig(MUC),
        sig(T.with(MUC)),
        sig(VARY.with(MUC)),
        sig(T.with(VARY).with(MUC)),
        sig(Signals::UCB),
        RESERVED,
        sig(Signals::LDUNIFA),
        sig(Signals::LDUNIFARF),
        sig(TMU.with(MUC)),
        sig(T.with(TMU).with(MUC)),
        RESERVED,
        RESERVED,
        small(NONE, 2),
        small(NONE, 3),
    ];
    if matches!(version, Version::V42) {
        table[14] = small(VARY, 1);
        table[23] = SignalCode { set: NONE, field: Field::Rotate };
        table[26] = RESERVED;
        table[27] = RESERVED;
        table[30] = RESERVED;
        table[31] = small(TMU, 1);
    }
    table
}

static SIGNALS: [[SignalCode; 32]; 2] = [signals(Version::V42), signals(Version::V71)];

/// The meaning of a signal code (5 bits).
#[inline]
pub fn signal_code(version: Version, code: u8) -> SignalCode {
    SIGNALS[version as usize][usize::from(code & 31)]
}

const NO_CODE: u8 = 255;

/// Codes of plain sets by the bits of the set.
static PLAIN_CODES: [[u8; 1 << 11]; 2] = [plain_codes(Version::V42), plain_codes(Version::V71)];

const fn plain_codes(version: Version) -> [u8; 1 << 11] {
    let table = signals(version);
    let mut codes = [NO_CODE; 1 << 11];
    let mut code = 0;
    while code < 32 {
        if matches!(table[code].field, Field::Plain) {
            codes[table[code].set.0 as usize] = code as u8;
        }
        code += 1;
    }
    codes
}

/// The code that says this, `None` if the set does not exist (rule 1).
#[inline]
pub fn find_signal(version: Version, wanted: SignalCode) -> Option<u8> {
    match wanted.field {
        Field::Reserved => None,
        Field::Plain => PLAIN_CODES[version as usize]
            .get(usize::from(wanted.set.0))
            .copied()
            .filter(|&code| code != NO_CODE),
        _ => SIGNALS[version as usize].iter().position(|&s| s == wanted).map(|code| code as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_leads_back_to_itself() {
        for version in Version::ALL {
            for part in [Unit::Add, Unit::Mul] {
                let table = unit(version, part);
                for key in 0..1 << 14 {
                    for form in table.lookup(key) {
                        let (pack, a, b) = form.modifiers(key);
                        let (again, base) = table.of(form.op).unwrap();
                        assert_eq!(again.codes, form.codes);
                        let back = form.key(base, pack, a, b).unwrap();
                        // Operand selectors do not come back: they are zero here.
                        assert_eq!(back & !0x3f, key & !0x3f, "{} {key:#x} {back:#x}", form.op.name());
                    }
                }
            }
        }
    }

    #[test]
    fn unassigned_opcodes_have_no_form() {
        let free = |version, part, codes: &[std::ops::RangeInclusive<u16>]| {
            for opcode in codes.iter().cloned().flatten() {
                for selector in 0..64 {
                    assert!(unit(version, part).lookup(opcode << 6 | selector).is_empty(), "{opcode}");
                }
            }
        };
        free(Version::V42, Unit::Add, &[48..=52, 112..=119, 190..=191]);
        free(Version::V71, Unit::Add, &[48..=52, 112..=119, 191..=191, 208..=239, 255..=255]);
        free(Version::V42, Unit::Mul, &[0..=0, 11..=13]);
        free(Version::V71, Unit::Mul, &[0..=0, 12..=13, 15..=15]);
    }

    #[test]
    fn signal_codes_are_unique() {
        for version in Version::ALL {
            for code in 0..32 {
                let meaning = signal_code(version, code);
                if meaning.field != Field::Reserved {
                    assert_eq!(find_signal(version, meaning), Some(code));
                }
            }
        }
    }
}
