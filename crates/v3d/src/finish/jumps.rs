//! Branches to branches: an empty block that only jumps on is not gone through.
//!
//! Edges that needed a block for moves, and then needed no moves, end here: "branch to the next block but one, jump to
//! X" becomes "branch to X the other way". Blocks that nothing leads to any more give no code.

use super::expand::{Exit, Expanded};
use crate::mops::When;
use kempe_ra::Block;

/// Makes every exit go where it really leads.
pub fn thread(blocks: &mut [Expanded]) {
    for b in 0..blocks.len() {
        blocks[b].exit = match blocks[b].exit {
            Exit::End => Exit::End,
            Exit::Jump(to) => Exit::Jump(destination(blocks, to)),
            Exit::Branch { when, inverted, taken, next } => {
                let (far, near) = (destination(blocks, taken), destination(blocks, next));
                if far == near {
                    Exit::Jump(far)
                } else if only_empty(blocks, b, near) {
                    Exit::Branch { when, inverted, taken: far, next: near }
                } else if only_empty(blocks, b, far) {
                    Exit::Branch { when: opposite(when), inverted, taken: near, next: far }
                } else {
                    // The block that jumps on stays.
                    Exit::Branch { when, inverted, taken: far, next }
                }
            }
        };
    }
    let mut reached = vec![false; blocks.len()];
    let mut work = vec![0usize];
    while let Some(b) = work.pop() {
        if b >= blocks.len() || std::mem::replace(&mut reached[b], true) {
            continue;
        }
        match blocks[b].exit {
            Exit::End => {}
            Exit::Jump(to) => work.push(to.0 as usize),
            Exit::Branch { taken, next, .. } => work.extend([taken.0 as usize, next.0 as usize]),
        }
    }
    for b in 0..blocks.len() {
        if !reached[b] && b + 1 < blocks.len() {
            blocks[b] =
                Expanded { ops: Vec::new(), exit: Exit::Jump(Block(b as u32 + 1)), words: Vec::new() };
        }
    }
}

/// Where one comes out behind empty blocks.
fn destination(blocks: &[Expanded], from: Block) -> Block {
    let mut to = from;
    for _ in 0..blocks.len() {
        match blocks.get(to.0 as usize) {
            Some(Expanded { ops, exit: Exit::Jump(on), .. }) if ops.is_empty() => to = *on,
            _ => break,
        }
    }
    to
}

/// Whether nothing with code lies between a block and a later one.
fn only_empty(blocks: &[Expanded], from: usize, to: Block) -> bool {
    let to = to.0 as usize;
    to > from && blocks[from + 1..to].iter().all(|b| b.ops.is_empty() && matches!(b.exit, Exit::Jump(_)))
}

fn opposite(when: When) -> When {
    match when {
        When::Lane0 => When::NotLane0,
        When::NotLane0 => When::Lane0,
        When::Any => When::NoLane,
        When::NoLane => When::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finish::uop::UOp;
    use crate::instr::Part;

    fn block(full: bool, exit: Exit) -> Expanded {
        let ops = if full { vec![UOp::alu(Part::NOP)] } else { Vec::new() };
        Expanded { ops, exit, words: Vec::new() }
    }

    fn branch(when: When, taken: u32, next: u32) -> Exit {
        Exit::Branch { when, inverted: false, taken: Block(taken), next: Block(next) }
    }

    #[test]
    fn a_branch_over_a_jump_goes_there_itself() {
        // A loop: the edge block that goes back needed no moves.
        let mut list = vec![
            block(true, Exit::Jump(Block(1))),
            block(true, branch(When::NoLane, 3, 2)),
            block(false, Exit::Jump(Block(1))),
            block(true, Exit::End),
        ];
        thread(&mut list);
        assert_eq!(list[1].exit, branch(When::Any, 1, 3));
        assert_eq!(list[2].exit, Exit::Jump(Block(3)));
    }

    #[test]
    fn an_edge_with_moves_stays() {
        let mut list = vec![
            block(true, branch(When::Lane0, 2, 1)),
            block(true, Exit::Jump(Block(3))),
            block(false, Exit::Jump(Block(3))),
            block(true, Exit::End),
        ];
        thread(&mut list);
        assert_eq!(list[0].exit, branch(When::Lane0, 3, 1));
        assert_eq!(list[2].exit, Exit::Jump(Block(3)));
    }

    #[test]
    fn both_ways_to_one_place_are_a_jump() {
        let mut list = vec![
            block(true, branch(When::Lane0, 2, 1)),
            block(false, Exit::Jump(Block(2))),
            block(false, Exit::Jump(Block(3))),
            block(true, Exit::End),
        ];
        thread(&mut list);
        assert_eq!(list[0].exit, Exit::Jump(Block(3)));
    }

    #[test]
    fn empty_loops_end() {
        let mut list = vec![block(false, Exit::Jump(Block(1))), block(false, Exit::Jump(Block(1)))];
        thread(&mut list);
        assert_eq!(list[1].exit, Exit::Jump(Block(1)));
    }
}
