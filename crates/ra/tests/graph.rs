//! The graph engine on problems small enough to know the answer.

use kempe_ra::*;

const SET: SetId = SetId(0);

fn file(units: u16) -> RegisterFile {
    RegisterFile {
        units: (0..units).map(|k| format!("r{k}")).collect(),
        sets: vec![UnitSet {
            name: "r".into(),
            units: (0..units).map(Unit).collect(),
            rotate: false,
            backing: Backing::Memory,
        }],
        clobbers: vec![Vec::new()],
        ..RegisterFile::default()
    }
}

fn operand(vreg: u32, kind: OperandKind) -> Operand {
    Operand { vreg: VReg(vreg), kind, set: SET, tied: None, fixed: None, hint: None, vector: None }
}

/// A program of plain instructions `(uses, defs)`; every block with its successors, its last instruction the terminator.
/// Instructions (reads, writes) of a block, its successors, how often it runs.
type BlockOf<'a> = (&'a [(&'a [u32], &'a [u32])], &'a [u32], f32);

fn program(blocks: &[BlockOf<'_>], recipes: &[u32]) -> Program {
    let mut program = Program::default();
    let mut count = 0;
    for &(insts, succs, frequency) in blocks {
        let start = program.insts.len() as u32;
        for (uses, defs) in insts {
            let first = program.operands.len() as u32;
            program.operands.extend(uses.iter().map(|&vreg| operand(vreg, OperandKind::Use)));
            program.operands.extend(defs.iter().map(|&vreg| operand(vreg, OperandKind::Def)));
            count = defs.iter().fold(count, |most, &vreg| most.max(vreg + 1));
            program.insts.push(InstInfo {
                operands: first..program.operands.len() as u32,
                clobbers: ClobberId(0),
                no_memory_edit_before: false,
                is_move: false,
                repeat: None,
            });
        }
        program.blocks.push(BlockInfo {
            insts: start..program.insts.len() as u32,
            succs: succs.iter().map(|&to| Edge { to: Block(to), args: Vec::new() }).collect(),
            frequency,
            ..BlockInfo::default()
        });
    }
    for block in 0..program.blocks.len() {
        for edge in program.blocks[block].succs.clone() {
            program.blocks[edge.to.0 as usize].preds.push(Block(block as u32));
        }
    }
    program.vregs = (0..count)
        .map(|vreg| VRegInfo {
            home: SET,
            size: 1,
            recipe: recipes.contains(&vreg).then_some(Recipe(0)),
            undefined: false,
        })
        .collect();
    program.recipe_cost = vec![1.0; !recipes.is_empty() as usize];
    program
}

/// Three values live through a loop that reads two of them and needs a third register.
fn around_a_loop(recipes: &[u32]) -> Program {
    program(
        &[
            (&[(&[], &[0]), (&[], &[1]), (&[], &[2]), (&[], &[])], &[1], 1.0),
            (&[(&[1, 2], &[3]), (&[3, 1], &[4]), (&[4], &[])], &[2, 3], 10.0),
            (&[(&[], &[])], &[1], 10.0),
            (&[(&[0, 1], &[]), (&[2], &[])], &[], 1.0),
        ],
        recipes,
    )
}

fn run(program: &Program, units: u16) -> Allocation {
    let options = Options { engine: Engine::Graph, ..Options::default() };
    allocate(&file(units), program, &Costs::default(), &options).unwrap()
}

#[test]
fn what_only_lives_through_a_loop_is_spilled_around_it() {
    let program = around_a_loop(&[]);
    assert!(run(&program, 4).edits.is_empty());
    let allocation = run(&program, 3);
    assert_eq!(allocation.engine, Engine::Graph);
    assert_eq!(allocation.slots, 1);
    let loop_insts = program.blocks[1].insts.start..program.blocks[2].insts.end;
    for &(point, edit) in &allocation.edits {
        let (Point::Before(inst) | Point::After(inst)) = point;
        assert!(!loop_insts.contains(&inst.0), "{edit:?} in the loop");
        assert!(matches!(edit, Edit::Spill { .. } | Edit::Fill { .. }), "{edit:?}");
    }
    assert_eq!(allocation.edits.len(), 2);
}

#[test]
fn what_has_a_recipe_is_made_again_and_not_stored() {
    let allocation = run(&around_a_loop(&[0]), 3);
    assert_eq!(allocation.engine, Engine::Graph);
    assert!(!allocation.memory_edits);
    assert!(matches!(allocation.edits[..], [(_, Edit::Recompute { .. })]), "{:?}", allocation.edits);
    // Its only reader got it back, so that its definition is of no use any more.
    assert_eq!(allocation.unused_defs.len(), 1);
}

#[test]
fn the_same_problem_gives_the_same_answer() {
    let (a, b) = (run(&around_a_loop(&[]), 3), run(&around_a_loop(&[]), 3));
    assert_eq!((a.places, a.edits), (b.places, b.edits));
}
