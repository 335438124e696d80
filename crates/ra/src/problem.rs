//! The allocation problem: what the allocator is handed.
//!
//! Everything is a dense table indexed by a `u32` id. The allocator knows no IR and no GPU: a register file is
//! data ([`RegisterFile`]), a program is a view ([`Program`]) with operands, and what memory traffic costs comes
//! in as [`Costs`]. The answer is an [`crate::Allocation`]; the program itself is never edited.

use std::ops::Range;

/// One unit of the register file: the smallest thing that holds a value part (a row, a half register, a lane).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Unit(pub u16);

/// A named set of units (index into [`RegisterFile::sets`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SetId(pub u8);

/// A set of units that an instruction destroys (index into [`RegisterFile::clobbers`]). `0` destroys nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClobberId(pub u8);

/// A virtual register, in SSA form: exactly one operand or block parameter defines it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VReg(pub u32);

/// A block (index into [`Program::blocks`]); the entry is block 0. Blocks stand in the order the machine walks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Block(pub u32);

/// An instruction (index into [`Program::insts`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Inst(pub u32);

/// How a value can be made again without memory; the meaning belongs to the target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Recipe(pub u32);

/// A place in memory that holds one value part for all lanes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

/// A group of virtual registers that must stand side by side where an operand asks for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Group(pub u32);

/// The register file as data.
#[derive(Clone, Debug, Default)]
pub struct RegisterFile {
    /// Names of the units, for messages.
    pub units: Vec<String>,
    /// Sets of units; [`SetId`] is an index into it.
    pub sets: Vec<UnitSet>,
    /// Clobber masks; entry 0 is empty.
    pub clobbers: Vec<Vec<Unit>>,
    /// Units taken out of every set as soon as the program needs memory edits (spill base, edit scratch).
    /// The allocator first tries without memory edits; when it needs one it starts over once without these.
    pub edit_reserved: Vec<Unit>,
    /// What a memory edit destroys besides its own result (for example everything that a thread switch loses).
    pub memory_edit_clobbers: ClobberId,
    /// Units that keep only what belongs into their sets (a register with one word for several lanes): any other value
    /// is lost in them, also on its way through.
    pub narrow: Vec<Unit>,
    /// What it would rather have.
    pub preferences: Preferences,
}

/// What a register file would rather have, where several units would do. Nothing of it is binding.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// Units that values take first, each with its set.
    pub favoured: Vec<Favour>,
    /// Units that are better for values that live at most [`Preferences::brief_life`] instructions, and worse for all others.
    pub brief: Vec<Unit>,
    /// Longest life of a brief value, in instructions.
    pub brief_life: u32,
    /// Units that are in the way at the end of a program: values that its last [`Preferences::late_steps`] instructions
    /// touch rather stand elsewhere.
    pub late: Vec<Unit>,
    /// How many instructions at the end of a program are late.
    pub late_steps: u32,
}

/// Values of `set` take `unit` if it is free and was given out more than `rest` instructions ago.
#[derive(Clone, Copy, Debug)]
pub struct Favour {
    /// Home of the values.
    pub set: SetId,
    /// What they take.
    pub unit: Unit,
    /// Instructions between two of them.
    pub rest: u32,
}

/// A named set of units that operands and virtual registers refer to.
#[derive(Clone, Debug)]
pub struct UnitSet {
    /// For messages.
    pub name: String,
    /// Members in order of preference.
    pub units: Vec<Unit>,
    /// `true`: hand registers out round robin (fewer false dependences); `false`: always the first that is free.
    pub rotate: bool,
    /// Where a value of this set goes under pressure.
    pub backing: Backing,
}

/// Where a value of a set goes when the set is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// A spill slot.
    Memory,
    /// Another set, by a copy (a flag kept in an ordinary register).
    Set(SetId),
    /// Nowhere: only recomputation can make it again.
    None,
}

/// When an operand reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// Read at the start of the instruction.
    Use,
    /// Written at the end: may share a unit with a use that dies here.
    Def,
    /// Written before the uses are read: shares a unit with no use but the one it is tied to, not even an undefined one.
    EarlyDef,
}

/// One operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// What is read or written.
    pub vreg: VReg,
    /// Whether and when it is read or written.
    pub kind: OperandKind,
    /// The set this operand must lie in (a subset of, or equal to, the home set of the register).
    pub set: SetId,
    /// For a def: it must take the unit of this use (index within the instruction's operands). A write under a
    /// predicate is a def tied to the previous version, which may be undefined ([`VRegInfo::undefined`]).
    pub tied: Option<u8>,
    /// Exactly this unit.
    pub fixed: Option<Unit>,
    /// A soft wish for a unit.
    pub hint: Option<Unit>,
    /// Member `index` of a vector operand: all operands of this instruction with the same `group` take
    /// consecutive units, the first at a multiple of `align`.
    pub vector: Option<VectorPart>,
}

/// Position of an operand inside a vector operand of its instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VectorPart {
    /// The vector, a number within the instruction.
    pub group: Group,
    /// Position in the vector, from 0 without holes.
    pub index: u8,
    /// The first unit of the vector is a multiple of this, a power of two.
    pub align: u8,
}

/// One instruction as the allocator sees it.
#[derive(Clone, Debug)]
pub struct InstInfo {
    /// Range in [`Program::operands`]. Uses and defs in any order.
    pub operands: Range<u32>,
    /// Destroyed at the instruction, after the uses were read and before the defs are written.
    pub clobbers: ClobberId,
    /// No edit that touches memory may stand directly before this instruction (inside a region).
    pub no_memory_edit_before: bool,
    /// A register-to-register move: the allocator tries to give both operands the same unit.
    pub is_move: bool,
    /// The instruction may be executed once more anywhere where its inputs are at hand, with the same result, for this cost in cycles:
    /// [`Edit::Repeat`]. It has one def and one to [`MAX_REPEAT_USES`] uses, of one unit, backed by memory, neither fixed nor tied nor
    /// in vectors, and destroys nothing.
    pub repeat: Option<f32>,
}

/// Most uses of an instruction that may be repeated.
pub const MAX_REPEAT_USES: usize = 2;

/// One block. Its last instruction is the terminator; edge moves at the end stand before it. A terminator defines
/// nothing, and the terminator of a block with one successor has no operands and no clobbers.
#[derive(Clone, Debug, Default)]
pub struct BlockInfo {
    /// Range in [`Program::insts`], not empty; the ranges of the blocks follow each other.
    pub insts: Range<u32>,
    /// Defined where the block begins, by the arguments of the edge that is taken.
    pub params: Vec<VReg>,
    /// Successors with their arguments, one per parameter of the successor. Critical edges are not allowed:
    /// a block with several successors has only successors with one predecessor.
    pub succs: Vec<Edge>,
    /// Predecessors, one entry for every edge.
    pub preds: Vec<Block>,
    /// Estimated executions (1.0 for the entry).
    pub frequency: f32,
    /// Loops around it.
    pub loop_depth: u32,
}

/// An edge of the control-flow graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where it leads.
    pub to: Block,
    /// What the parameters there become, all at once.
    pub args: Vec<VReg>,
}

/// What is known of one virtual register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VRegInfo {
    /// The set it may live in between its operands.
    pub home: SetId,
    /// Number of units (consecutive, aligned to the next power of two); nearly always 1.
    pub size: u8,
    /// How it can be made again anywhere, from nothing but uniforms and constants.
    pub recipe: Option<Recipe>,
    /// Never written: reading it is allowed and gives anything. It takes no register and is never spilled.
    pub undefined: bool,
}

/// The program view.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// By [`Block`]; the entry, without predecessors and parameters, first.
    pub blocks: Vec<BlockInfo>,
    /// By [`Inst`], block after block.
    pub insts: Vec<InstInfo>,
    /// Operands of all instructions.
    pub operands: Vec<Operand>,
    /// By [`VReg`].
    pub vregs: Vec<VRegInfo>,
    /// What a recomputation costs, by recipe, in cycles.
    pub recipe_cost: Vec<f32>,
}

/// Costs of edits in estimated cycles.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// [`Edit::Copy`].
    pub copy: f32,
    /// [`Edit::Swap`].
    pub swap: f32,
    /// [`Edit::Spill`].
    pub spill: f32,
    /// [`Edit::Fill`].
    pub fill: f32,
}

/// Options that every front of the allocator offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// At most this many units of each set backed by memory (after `edit_reserved`). Units that memory edits
    /// destroy are not counted and stay; units that a fixed operand names are kept first, and all that
    /// the sets within the set keep; the others in order of preference.
    pub max_registers: Option<u32>,
    /// Nothing may go to memory: where that is not enough, the answer is [`Failure::NeedsMemory`], before any place is given out.
    pub no_memory: bool,
    /// Spill every value that may be spilled (for tests): as if the limit were the smallest that still works.
    pub force_spill: bool,
    /// What gives out the registers.
    pub engine: Engine,
    /// What is switched off, to measure what it brings.
    pub without: Without,
    /// Keep what was seen and decided ([`Allocation::report`]).
    pub explain: bool,
}

/// How places are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The cheaper result of the two, where memory edits are needed; else [`Engine::Scan`]. What one refuses the other may do.
    #[default]
    Best,
    /// Spill by next use, then a walk in dominance order.
    Scan,
    /// Simplify and select on the interference graph.
    Graph,
}

/// Parts of the allocator that can be left out: ablations (`docs/allocator.md` has what each brings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Without {
    /// Recipes ([`VRegInfo::recipe`]): such a value goes to memory as any other.
    pub recipes: bool,
    /// Operations made again from inputs at hand ([`InstInfo::repeat`]).
    pub repeats: bool,
    /// Splitting of live ranges: a value that goes to memory once is there for good. ([`Engine::Scan`] only: the other engine
    /// spills whole ranges anyway.)
    pub splitting: bool,
    /// Round robin within a set: the first free unit is taken instead.
    pub rotation: bool,
    /// [`Preferences::favoured`].
    pub favours: bool,
    /// [`Preferences::late`].
    pub avoids: bool,
    /// [`Preferences::brief`].
    pub lifespan: bool,
}

impl Without {
    /// Every part with its name, in the order of the fields.
    pub fn parts(&mut self) -> [(&'static str, &mut bool); 7] {
        [
            ("recipes", &mut self.recipes),
            ("repeats", &mut self.repeats),
            ("splitting", &mut self.splitting),
            ("rotation", &mut self.rotation),
            ("favours", &mut self.favours),
            ("avoids", &mut self.avoids),
            ("lifespan", &mut self.lifespan),
        ]
    }
}

/// A point between instructions. Edits of one point happen in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Point {
    /// Directly before this instruction.
    Before(Inst),
    /// Directly after this instruction (never a terminator).
    After(Inst),
}

/// Something the allocator wants inserted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of the fields say it")]
pub enum Edit {
    /// One unit becomes what another one is.
    Copy { from: Unit, to: Unit },
    /// Two units change their contents.
    Swap { a: Unit, b: Unit },
    /// A unit goes to memory, for all lanes; the memory-edit clobbers are lost.
    Spill { from: Unit, slot: Slot },
    /// A unit comes from memory, for all lanes; the memory-edit clobbers are lost.
    Fill { slot: Slot, to: Unit },
    /// A value is made again: as many units as it has, from `to` on.
    Recompute { recipe: Recipe, to: Unit },
    /// An instruction is executed once more ([`InstInfo::repeat`]): its uses in their order stand in `from` (without a second use the
    /// second is the first), its def in `to`.
    Repeat { inst: Inst, from: [Unit; MAX_REPEAT_USES], to: Unit },
}

/// The answer.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    /// One unit (the first one, for wide registers) per entry of [`Program::operands`]. An undefined use has a
    /// unit too (any that is legal there).
    pub places: Vec<Unit>,
    /// In order of points; edge moves stand before the terminator of a block with one successor, or before the
    /// first instruction of a block with one predecessor.
    pub edits: Vec<(Point, Edit)>,
    /// Number of spill slots.
    pub slots: u32,
    /// Whether `edit_reserved` units were taken out (any memory edit exists).
    pub memory_edits: bool,
    /// Highest pressure that was seen in any set before spilling, for statistics.
    pub max_pressure: u32,
    /// Defs (indices into [`Program::operands`], ascending) whose value nothing reads, neither an operand nor an
    /// edit: it was never used, or every use got it back from its recipe. An instruction all of whose defs stand
    /// here and that has no other effect may be removed.
    pub unused_defs: Vec<u32>,
    /// What made it: [`Engine::Scan`] also where [`Engine::Graph`] was asked for and found no colouring.
    pub engine: Engine,
    /// What [`Options::explain`] asks for.
    pub report: Option<Box<crate::report::Report>>,
    /// What it took to find.
    pub work: Work,
}

/// What an allocation took, counted: the same problem gives the same numbers on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Times that everything was tried from the beginning.
    pub attempts: u32,
    /// Blocks visited by data flow: liveness, in all attempts.
    pub live_visits: u64,
    /// Blocks visited by checker A.
    pub check_visits: u64,
    /// Instructions and edits given places, in all attempts.
    pub placed: u64,
    /// Of these, points where everything that was live had to be placed anew.
    pub settled: u64,
}

impl Allocation {
    /// What the edits cost in estimated cycles: each weighs as often as its block runs.
    pub fn cost(&self, program: &Program, costs: &Costs) -> f64 {
        let mut frequency = vec![0.0f64; program.insts.len()];
        for block in &program.blocks {
            let insts = block.insts.start as usize..block.insts.end as usize;
            frequency[insts].fill(f64::from(block.frequency));
        }
        let each = |&(point, edit): &(Point, Edit)| {
            let (Point::Before(inst) | Point::After(inst)) = point;
            f64::from(costs.of(&edit, program)) * frequency[inst.0 as usize]
        };
        // (The sum of nothing would be -0.)
        self.edits.iter().map(each).fold(0.0, |sum, cost| sum + cost)
    }
}

/// Why there is no allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// More is live at once than fits, even after spilling everything: the instruction, what is live there, and how many
    /// units the set would have to have at least ([`Options::max_registers`], where that is what it is short of).
    #[expect(missing_docs, reason = "the names of the fields say it")]
    OutOfRegisters { at: Inst, set: SetId, live: Vec<VReg>, needed: u32 },
    /// It does not fit without memory, which [`Options::no_memory`] rules out; the highest pressure of any set.
    #[expect(missing_docs, reason = "the name of the field says it")]
    NeedsMemory { pressure: u32 },
    /// The problem itself is malformed (a critical edge, a use without definition, an operand outside its set).
    Malformed(String),
    /// The allocator made a mistake and checker A saw it: instruction, operand, what was expected, what was found.
    /// No code may be made from it.
    CheckFailed(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::OutOfRegisters { at, set, live, needed } => {
                write!(
                    f,
                    "out of registers at instruction {} in set {}: {} values at once, at least {needed} units needed",
                    at.0,
                    set.0,
                    live.len()
                )
            }
            Failure::NeedsMemory { pressure } => {
                write!(f, "not without memory: {pressure} units are needed at once")
            }
            Failure::Malformed(text) => write!(f, "malformed allocation problem: {text}"),
            Failure::CheckFailed(text) => write!(f, "register allocation is wrong: {text}"),
        }
    }
}

impl std::error::Error for Failure {}

impl Costs {
    /// Of one edit, each time it happens.
    pub fn of(&self, edit: &Edit, program: &Program) -> f32 {
        match *edit {
            Edit::Copy { .. } => self.copy,
            Edit::Swap { .. } => self.swap,
            Edit::Spill { .. } => self.spill,
            Edit::Fill { .. } => self.fill,
            Edit::Recompute { recipe, .. } => program.recipe_cost[recipe.0 as usize],
            Edit::Repeat { inst, .. } => program.insts[inst.0 as usize].repeat.unwrap_or(0.0),
        }
    }
}

impl Default for Costs {
    fn default() -> Costs {
        Costs { copy: 1.0, swap: 3.0, spill: 10.0, fill: 10.0 }
    }
}
