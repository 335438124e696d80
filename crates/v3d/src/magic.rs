//! Magic write addresses: the destinations that are not register-file rows (accumulators, queues of the peripherals,
//! broadcasts into the uniform register). Names, classes and side effects, per version.
//!
//! Facts: reference section 3.3. What the peripherals then do is the simulator's business, not this file's.

use crate::instr::Version;

/// 4.2: accumulator r0. Reserved on 7.1.
pub const R0: u8 = 0;
/// 4.2: accumulator r1. Reserved on 7.1.
pub const R1: u8 = 1;
/// 4.2: accumulator r2. Reserved on 7.1.
pub const R2: u8 = 2;
/// 4.2: accumulator r3. Reserved on 7.1.
pub const R3: u8 = 3;
/// 4.2: accumulator r4, where results of SFU magic writes arrive. Reserved on 7.1.
pub const R4: u8 = 4;
/// 4.2 r5, 7.1 `quad`: lane 0 of each quad goes to all lanes of that quad of r5 (4.2) or rf0 (7.1).
pub const QUAD: u8 = 5;
/// Discards the result.
pub const NOP: u8 = 6;
/// Tile-buffer write.
pub const TLB: u8 = 7;
/// Tile-buffer write that takes its configuration from the uniform stream.
pub const TLBU: u8 = 8;
/// Address of the side-band uniform stream, from lane 0.
pub const UNIFA: u8 = 9;
/// TMU, use unknown; not a TMU write in the sense of the peripheral rules.
pub const TMUL: u8 = 10;
/// TMU data.
pub const TMUD: u8 = 11;
/// TMU general address; starts the operation.
pub const TMUA: u8 = 12;
/// TMU general address with the configuration from the uniform stream; starts the operation.
pub const TMUAU: u8 = 13;
/// Old VPM queue.
pub const VPM: u8 = 14;
/// Old VPM queue with a setup word from the uniform stream.
pub const VPMU: u8 = 15;
/// Thread synchroniser.
pub const SYNC: u8 = 16;
/// Thread synchroniser, parameter from the uniform stream.
pub const SYNCU: u8 = 17;
/// Thread synchroniser, barrier.
pub const SYNCB: u8 = 18;
/// 4.2: starts 1/x, result in r4. Reserved on 7.1, as are the other SFU addresses up to [`RSQRT2`].
pub const RECIP: u8 = 19;
/// 4.2: starts 1/sqrt(x), result in r4.
pub const RSQRT: u8 = 20;
/// 4.2: starts 2^x, result in r4.
pub const EXP: u8 = 21;
/// 4.2: starts log2(x), result in r4.
pub const LOG: u8 = 22;
/// 4.2: starts sin(pi x), result in r4.
pub const SIN: u8 = 23;
/// 4.2: starts 1/sqrt(x), second form, result in r4.
pub const RSQRT2: u8 = 24;
/// TMU configuration from a register.
pub const TMUC: u8 = 32;
/// S coordinate; starts the lookup.
pub const TMUS: u8 = 33;
/// T coordinate.
pub const TMUT: u8 = 34;
/// R coordinate.
pub const TMUR: u8 = 35;
/// Array index.
pub const TMUI: u8 = 36;
/// LOD bias or explicit LOD.
pub const TMUB: u8 = 37;
/// Depth reference (general memory: operand of an atomic).
pub const TMUDREF: u8 = 38;
/// Texel offset.
pub const TMUOFF: u8 = 39;
/// S coordinate of a cube map; starts the lookup.
pub const TMUSCM: u8 = 40;
/// S coordinate of a fetch or image access; starts the operation.
pub const TMUSF: u8 = 41;
/// S coordinate with explicit LOD; starts the lookup.
pub const TMUSLOD: u8 = 42;
/// H variant of [`TMUS`].
pub const TMUHS: u8 = 43;
/// H variant of [`TMUSCM`].
pub const TMUHSCM: u8 = 44;
/// H variant of [`TMUSF`].
pub const TMUHSF: u8 = 45;
/// H variant of [`TMUSLOD`].
pub const TMUHSLOD: u8 = 46;
/// 4.2 `r5rep`, 7.1 `rep`: lane 0 of the vector goes to all lanes of r5 (4.2) or rf0 (7.1).
pub const REP: u8 = 55;

/// What kind of thing a magic address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Class {
    /// 4.2: r0 to r4.
    Accumulator,
    /// r5 / rf0, with a broadcast inside quads or over the vector.
    Broadcast,
    /// The result is dropped.
    Nop,
    /// Tile buffer.
    Tlb,
    /// Side-band uniform address.
    Unifa,
    /// `tmul`: named, meaning unknown.
    Other,
    /// Texture and memory unit.
    Tmu,
    /// Old VPM queue.
    Vpm,
    /// Thread synchroniser.
    Tsy,
    /// 4.2: special function unit, result in r4.
    Sfu,
    /// Must not be used (rule 12).
    Reserved,
}

/// The class of address `n` (anything above 63 is reserved).
pub fn class(version: Version, n: u8) -> Class {
    match n {
        0..=4 if version == Version::V42 => Class::Accumulator,
        5 | REP => Class::Broadcast,
        6 => Class::Nop,
        7 | 8 => Class::Tlb,
        9 => Class::Unifa,
        10 => Class::Other,
        11..=13 | 32..=46 => Class::Tmu,
        14 | 15 => Class::Vpm,
        16..=18 => Class::Tsy,
        19..=24 if version == Version::V42 => Class::Sfu,
        _ => Class::Reserved,
    }
}

/// Whether writing address `n` takes a word from the uniform stream (section 11).
pub fn consumes_uniform(n: u8) -> bool {
    matches!(n, TLBU | TMUAU | VPMU | SYNCU)
}

/// Whether writing address `n` starts a TMU operation (section 12.2). The H variants are left out: the reference does
/// not say that they do.
pub fn starts_tmu(n: u8) -> bool {
    matches!(n, TMUA | TMUAU | TMUS | TMUSCM | TMUSF | TMUSLOD)
}

/// The name of address `n` in assembly text, `None` for addresses without a meaning on this version.
pub fn name(version: Version, n: u8) -> Option<&'static str> {
    let v42 = version == Version::V42;
    Some(match n {
        0..=4 if v42 => ["r0", "r1", "r2", "r3", "r4"][n as usize],
        QUAD => {
            if v42 {
                "r5"
            } else {
                "quad"
            }
        }
        NOP => "-",
        TLB => "tlb",
        TLBU => "tlbu",
        UNIFA => "unifa",
        TMUL => "tmul",
        TMUD => "tmud",
        TMUA => "tmua",
        TMUAU => "tmuau",
        VPM => "vpm",
        VPMU => "vpmu",
        SYNC => "sync",
        SYNCU => "syncu",
        SYNCB => "syncb",
        19..=24 if v42 => ["recip", "rsqrt", "exp", "log", "sin", "rsqrt2"][n as usize - 19],
        TMUC => "tmuc",
        TMUS => "tmus",
        TMUT => "tmut",
        TMUR => "tmur",
        TMUI => "tmui",
        TMUB => "tmub",
        TMUDREF => "tmudref",
        TMUOFF => "tmuoff",
        TMUSCM => "tmuscm",
        TMUSF => "tmusf",
        TMUSLOD => "tmuslod",
        TMUHS => "tmuhs",
        TMUHSCM => "tmuhscm",
        TMUHSF => "tmuhsf",
        TMUHSLOD => "tmuhslod",
        REP => {
            if v42 {
                "r5rep"
            } else {
                "rep"
            }
        }
        _ => return None,
    })
}

/// The address that has this name on this version.
pub fn from_name(version: Version, text: &str) -> Option<u8> {
    (0..64).find(|&n| name(version, n) == Some(text))
}
