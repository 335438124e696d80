//! Writing a problem by hand: values, blocks, instructions and edges in the order they stand.

use kempe_ra::*;

pub use super::generate::plain;

pub const NONE: ClobberId = ClobberId(0);

/// Everything goes to memory that may.
pub fn forced() -> Options {
    Options { force_spill: true, ..Options::default() }
}

pub fn at_most(registers: u32) -> Options {
    Options { max_registers: Some(registers), ..Options::default() }
}

pub fn read(vreg: VReg, set: SetId) -> Operand {
    plain(vreg, OperandKind::Use, set)
}

pub fn write(vreg: VReg, set: SetId) -> Operand {
    plain(vreg, OperandKind::Def, set)
}

pub fn early(vreg: VReg, set: SetId) -> Operand {
    plain(vreg, OperandKind::EarlyDef, set)
}

pub fn fixed(operand: Operand, unit: u16) -> Operand {
    Operand { fixed: Some(Unit(unit)), ..operand }
}

/// As members 0, 1, 2, … of one vector.
pub fn vector(group: u32, align: u8, members: impl IntoIterator<Item = Operand>) -> Vec<Operand> {
    let part = |index: usize| Some(VectorPart { group: Group(group), index: index as u8, align });
    members
        .into_iter()
        .enumerate()
        .map(|(index, operand)| Operand { vector: part(index), ..operand })
        .collect()
}

#[derive(Default)]
pub struct Builder(pub Program);

impl Builder {
    pub fn value(&mut self, home: SetId, undefined: bool) -> VReg {
        self.wide_value(home, 1, undefined)
    }

    pub fn wide_value(&mut self, home: SetId, size: u8, undefined: bool) -> VReg {
        self.0.vregs.push(VRegInfo { home, size, recipe: None, undefined });
        VReg(self.0.vregs.len() as u32 - 1)
    }

    pub fn values(&mut self, home: SetId, count: usize) -> Vec<VReg> {
        (0..count).map(|_| self.value(home, false)).collect()
    }

    /// A value that can be made again, with a recipe of its own.
    pub fn remade(&mut self, home: SetId, size: u8) -> VReg {
        let vreg = self.wide_value(home, size, false);
        self.0.vregs[vreg.0 as usize].recipe = Some(Recipe(self.0.recipe_cost.len() as u32));
        self.0.recipe_cost.push(1.0);
        vreg
    }

    pub fn block(&mut self, params: &[VReg]) -> u32 {
        self.block_at(params, 1.0)
    }

    pub fn block_at(&mut self, params: &[VReg], frequency: f32) -> u32 {
        let at = self.0.insts.len() as u32;
        self.0.blocks.push(BlockInfo {
            insts: at..at,
            params: params.to_vec(),
            frequency,
            ..Default::default()
        });
        self.0.blocks.len() as u32 - 1
    }

    pub fn inst(&mut self, operands: &[Operand], clobbers: ClobberId, no_memory_edit_before: bool) -> u32 {
        let first = self.0.operands.len() as u32;
        self.0.operands.extend_from_slice(operands);
        let operands = first..self.0.operands.len() as u32;
        self.0.insts.push(InstInfo {
            operands,
            clobbers,
            no_memory_edit_before,
            is_move: false,
            repeat: None,
        });
        if let Some(block) = self.0.blocks.last_mut() {
            block.insts.end += 1;
        }
        self.0.insts.len() as u32 - 1
    }

    /// Plain operands in their home sets: what is read, what is written.
    pub fn op(&mut self, uses: &[VReg], defs: &[VReg]) -> u32 {
        let home = |v: &VReg| self.0.vregs[v.0 as usize].home;
        let mut operands: Vec<Operand> = uses.iter().map(|v| read(*v, home(v))).collect();
        operands.extend(defs.iter().map(|v| write(*v, home(v))));
        self.inst(&operands, NONE, false)
    }

    /// A fresh value made of `uses`.
    pub fn make(&mut self, home: SetId, uses: &[VReg]) -> VReg {
        let made = self.value(home, false);
        self.op(uses, &[made]);
        made
    }

    /// An edge out of the last block; its terminator is the caller's.
    pub fn edge(&mut self, to: u32, args: &[VReg]) {
        if let Some(block) = self.0.blocks.last_mut() {
            block.succs.push(Edge { to: Block(to), args: args.to_vec() });
        }
    }

    /// The last block ends with a jump.
    pub fn jump(&mut self, to: u32, args: &[VReg]) {
        self.inst(&[], NONE, false);
        self.edge(to, args);
    }

    /// The last block ends with a branch on `value`.
    pub fn branch(&mut self, value: VReg, to: &[u32]) {
        self.op(&[value], &[]);
        for &to in to {
            self.edge(to, &[]);
        }
    }

    pub fn finish(mut self) -> Program {
        for from in 0..self.0.blocks.len() {
            for edge in self.0.blocks[from].succs.clone() {
                self.0.blocks[edge.to.0 as usize].preds.push(Block(from as u32));
            }
        }
        self.0
    }
}
