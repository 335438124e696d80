//! Machine code in SSA form over virtual registers.
//!
//! The operands, blocks and registers *are* the allocator's [`Program`]; beside every instruction stands the
//! target's own description of it. Nothing is converted on the way to the allocator.

use kempe_ir::Loc;
use kempe_ra::{Block, BlockInfo, ClobberId, Edge, Inst, InstInfo, Operand, Program, Recipe, VReg, VRegInfo};

/// A function of machine instructions of type `I`.
#[derive(Clone, Debug)]
pub struct Mir<I> {
    pub program: Program,
    /// One per entry of `program.insts`.
    pub data: Vec<I>,
    /// Source of each instruction.
    pub locs: Vec<Loc>,
    /// Names of virtual registers from the source, where known (empty string otherwise).
    pub names: Vec<String>,
    /// What a recipe means: the instruction (without register uses) that makes the value again. One per entry of
    /// `program.recipe_cost`.
    pub recipes: Vec<I>,
}

impl<I> Default for Mir<I> {
    fn default() -> Self {
        Mir {
            program: Program::default(),
            data: Vec::new(),
            locs: Vec::new(),
            names: Vec::new(),
            recipes: Vec::new(),
        }
    }
}

impl<I> Mir<I> {
    /// Operands of an instruction.
    pub fn operands(&self, i: Inst) -> &[Operand] {
        let r = &self.program.insts[i.0 as usize].operands;
        &self.program.operands[r.start as usize..r.end as usize]
    }
}

/// Appends blocks and instructions in walking order.
#[derive(Debug)]
pub struct MirBuilder<I> {
    pub mir: Mir<I>,
    /// Given to every instruction made.
    pub loc: Loc,
}

impl<I> Default for MirBuilder<I> {
    fn default() -> Self {
        MirBuilder { mir: Mir::default(), loc: Loc(0) }
    }
}

impl<I> MirBuilder<I> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares `count` blocks; they are filled in order with [`MirBuilder::start_block`].
    pub fn declare_blocks(&mut self, count: usize) {
        self.mir.program.blocks = vec![BlockInfo::default(); count];
    }

    pub fn start_block(&mut self, b: Block) {
        let at = self.mir.data.len() as u32;
        self.mir.program.blocks[b.0 as usize].insts = at..at;
    }

    /// Ends a block: its instructions are everything since [`MirBuilder::start_block`].
    pub fn end_block(&mut self, b: Block, succs: Vec<Edge>) {
        let end = self.mir.data.len() as u32;
        let info = &mut self.mir.program.blocks[b.0 as usize];
        info.insts.end = end;
        info.succs = succs;
    }

    pub fn vreg(&mut self, info: VRegInfo, name: String) -> VReg {
        self.mir.program.vregs.push(info);
        self.mir.names.push(name);
        VReg(self.mir.program.vregs.len() as u32 - 1)
    }

    /// A recipe: how a value can be made again anywhere, at this cost in cycles.
    pub fn recipe(&mut self, data: I, cost: f32) -> Recipe {
        self.mir.recipes.push(data);
        self.mir.program.recipe_cost.push(cost);
        Recipe(self.mir.recipes.len() as u32 - 1)
    }

    pub fn inst(&mut self, data: I, operands: &[Operand], clobbers: ClobberId, is_move: bool) -> Inst {
        let start = self.mir.program.operands.len() as u32;
        self.mir.program.operands.extend_from_slice(operands);
        let end = self.mir.program.operands.len() as u32;
        self.mir.program.insts.push(InstInfo {
            operands: start..end,
            clobbers,
            no_memory_edit_before: false,
            is_move,
            repeat: None,
        });
        self.mir.data.push(data);
        self.mir.locs.push(self.loc);
        Inst(self.mir.data.len() as u32 - 1)
    }

    /// Fills in the predecessors and returns the function.
    pub fn finish(mut self) -> Mir<I> {
        for b in 0..self.mir.program.blocks.len() {
            for s in 0..self.mir.program.blocks[b].succs.len() {
                let to = self.mir.program.blocks[b].succs[s].to;
                self.mir.program.blocks[to.0 as usize].preds.push(Block(b as u32));
            }
        }
        self.mir
    }
}
