//! The rules of selection by name, and how often each was used: what a set of programs covers is a number, not a hope.
//!
//! A rule is a decision: an operation that becomes a certain machine operation (counted by operation and type, as
//! `ops.rs` maps them), or a pattern, a form of access, a way in which a block ends (named here). Messages about what is
//! not supported or malformed are no rules.

use super::ops;
use kempe_ir::{Op, Type};
use std::collections::BTreeMap;

macro_rules! rules {
    ($($name:ident = $text:literal,)*) => {
        /// A rule that is not just an operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Rule { $($name,)* }

        impl Rule {
            const NAMES: &[&str] = &[$($text,)*];
        }
    };
}

rules! {
    // Float arithmetic with modifiers.
    AddOfNegated = "fadd with a negated operand: fsub",
    SubOfNegated = "fsub of a negated operand: fadd",
    MulOfNegated = "fmul of two negated operands: fmul",
    MaxOfSame = "fmax of a value and itself: fmin",
    AbsSource = "an absolute value as a modifier",
    LowSource = "a low half as a modifier",
    HighSource = "a high half as a modifier",
    // Operands.
    SmallImmediate = "a constant as a small immediate",
    ConstantMove = "a small constant moved into a register",
    ConstantWord = "a constant from the uniform stream",
    DriverWord = "a word of the driver",
    DriverWordPlus = "a word of the driver plus a constant",
    LaneId = "the lane number",
    ThreadId = "the thread number",
    StartWord = "a start word that an operation gives",
    SharedWord = "a word made again is shared with a near use",
    Payload0 = "payload word 0",
    Payload1 = "payload word 1",
    Undefined = "an undefined register",
    // Conditions.
    CompareZero = "a comparison with zero as a test of the value",
    CompareValue = "a comparison as a value",
    CompareSwapped = "a comparison with its operands swapped",
    TestComparison = "a comparison inside its use",
    TestNot = "a negation inside its use",
    TestRegister = "a boolean from a register",
    ChooseOne = "a choice by one test",
    TestTwo = "a test of two comparisons",
    TestThree = "a test of three comparisons",
    TestInverted = "a test of several comparisons, inverted",
    ChooseAnd = "a choice by `and` of conditions that one test cannot hold",
    ChooseOr = "a choice by `or` of conditions that one test cannot hold",
    LogicTest = "`and`, `or` of a boolean with a test",
    LogicTests = "`and`, `or` of comparisons as one choice",
    LogicPlain = "`and`, `or` of two booleans",
    // Under masks.
    InPlace = "an operation written under the mask as the next version",
    // Memory.
    Load8 = "load of a byte",
    Load16 = "load of 16 bits",
    Load1 = "load of one word",
    Load2 = "load of two words",
    Load3 = "load of three words",
    Load4 = "load of four words",
    LoadGuarded = "load under a mask",
    SideBandWord = "side-band load from an address of the driver",
    SideBandValue = "side-band load from a computed address",
    SideBandGroup = "side-band load for several loads",
    SideBandAgain = "one side-band word for two loads",
    SideBandSmall = "side-band address by adding a small constant",
    SideBandLarge = "side-band address by adding a large constant",
    SideBandMember = "side-band address that another load has",
    Store8 = "store of a byte",
    Store16 = "store of 16 bits",
    Store1 = "store of one word",
    Store2 = "store of two words",
    Store3 = "store of three words",
    Store4 = "store of four words",
    StoreGuarded = "store under a mask",
    StoreSplitWord = "a long store cut in two, address of the driver",
    StoreSplitValue = "a long store cut in two, computed address",
    AtomicIncrement = "atomic increment",
    AtomicDecrement = "atomic decrement",
    AtomicAdd = "atomic add",
    AtomicSub = "atomic sub",
    AtomicExchange = "atomic exchange",
    AtomicCompare = "atomic compare-exchange",
    AtomicUmin = "atomic umin",
    AtomicUmax = "atomic umax",
    AtomicSmin = "atomic smin",
    AtomicSmax = "atomic smax",
    AtomicAnd = "atomic and",
    AtomicOr = "atomic or",
    AtomicXor = "atomic xor",
    AtomicLoad = "atomic load",
    AtomicStore = "atomic store",
    AtomicGuarded = "atomic operation under a mask",
    Barrier = "barrier",
    Fence = "fence",
    // Variables.
    ReadVersion = "a value read as a version of its variable",
    AssignMasked = "a variable written under the mask",
    AssignRemade = "a variable that becomes a constant or a word of the driver",
    AssignWhole = "a variable that becomes a value",
    AssignInPlace = "a variable that was written in place",
    DefinedMasked = "a value of a loop that lanes leave one by one, written under the mask",
    DefinedRenamed = "a value whose definition the walk may skip",
    VersionsMeet = "versions of a variable meet",
    MasksMeet = "execution values meet",
    // Walk.
    Resume = "waiting lanes run again under a mask",
    ResumeAll = "waiting lanes run again and all run",
    Arm = "a short arm that all lanes walk through",
    WaitJump = "all lanes that run wait for a block",
    WaitOneSide = "lanes of one side wait, all ran",
    WaitBothSides = "lanes of both sides wait, all ran",
    WaitMasked = "lanes of one side wait under a mask",
    WaitMaskedBoth = "lanes of both sides wait under a mask",
    WaitTwice = "lanes wait by one of the conditions that one test cannot hold",
    End = "end of the program",
    JumpOn = "on into the next block without a jump",
    Jump = "jump",
    UniformTaken = "branch on a uniform condition",
    UniformNotTaken = "branch on a uniform condition that fails",
    UniformOfRunning = "branch on a uniform condition that only running lanes know",
    SkipByFlags = "branch over code that no lane runs, by the condition",
    SkipByMask = "branch over code that no lane runs, by the execution value",
    Latch = "back to the header while some lane runs",
    EdgeTaken = "a block on the taken edge",
    EdgeOther = "a block on the other edge",
}

/// Types that operations have here.
const TYPES: [Type; 3] = [Type::Bool, Type::I32, Type::F32];

/// How often each rule was used.
#[derive(Clone, Debug)]
pub struct Counts {
    rules: Vec<u64>,
    /// By operation and type.
    ops: Vec<[u64; TYPES.len()]>,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { rules: vec![0; Rule::NAMES.len()], ops: vec![[0; TYPES.len()]; Op::ALL.len()] }
    }
}

impl Counts {
    pub(super) fn hit(&mut self, rule: Rule) {
        self.rules[rule as usize] += 1;
    }

    /// An operation got its machine instruction.
    pub(super) fn made(&mut self, op: Op, ty: Type) {
        if let Some(t) = TYPES.iter().position(|&t| t == ty) {
            self.ops[op as usize][t] += 1;
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Counts) {
        for (a, b) in self.rules.iter_mut().zip(&other.rules) {
            *a += b;
        }
        for (a, b) in self.ops.iter_mut().zip(&other.ops) {
            for (a, b) in a.iter_mut().zip(b) {
                *a += b;
            }
        }
    }

    /// Every rule with its count, also those never used.
    pub fn all(&self) -> BTreeMap<String, u64> {
        let mut list: BTreeMap<String, u64> =
            Rule::NAMES.iter().map(|n| (*n).to_owned()).zip(self.rules.iter().copied()).collect();
        for &op in Op::ALL {
            for (t, &ty) in TYPES.iter().enumerate() {
                if ops::has_rule(op, ty) {
                    list.insert(format!("{}.{ty}", op.name()), self.ops[op as usize][t]);
                }
            }
        }
        list
    }
}
