//! Thread-switch signals, branch positions, and the program end.
//!
//! A switch takes effect after two more instructions (section 13.1), a branch after three (section 10), the program
//! ends after the two that follow its last switch (13.3). All three signals therefore ride on earlier instructions
//! where the rules allow it: 28, 30, 32, 33, 35, 36, 38 for switches; 37, 38, 40 for branches; 47 to 52 at the end.

use super::schedule::{Scheduled, Slot};
use crate::instr::{Alu, Dest, Loc, Op, Part, Signals, Source, Version};

/// Gives every switch point of a block its signal; inserts what cannot ride. With `mark`, the last one becomes the
/// last-section mark (section 13.2).
pub fn place(version: Version, block: Scheduled, mark: bool) -> Placed {
    let mut out: Vec<Slot> = Vec::with_capacity(block.slots.len() + 2 * block.switches.len());
    let mut busy_until = 0; // first index after the slots of the last switch
    let mut next = 0;
    for (n, &at) in block.switches.iter().enumerate() {
        out.extend_from_slice(&block.slots[next..at]);
        next = at;
        let mark = mark && n + 1 == block.switches.len();
        let before = out.len();
        busy_until = place_one(version, &mut out, busy_until, mark);
        // What had to be inserted is time that somebody behind may have waited for.
        let end = block.switches.get(n + 1).map_or(block.slots.len(), |&s| s);
        let new = out.len() - before;
        next += block.slots[next..end].iter().take(new).take_while(|s| s.is_nop()).count();
    }
    out.extend_from_slice(&block.slots[next..]);
    Placed { slots: out, busy_until }
}

/// A block whose switches have their signals.
#[derive(Debug)]
pub struct Placed {
    pub slots: Vec<Slot>,
    /// Instructions before this index are a switch or its slots.
    pub busy_until: usize,
}

fn can_carry(s: &Slot) -> bool {
    let a = &s.alu;
    let small = a.sources().any(|(x, _)| matches!(x, Source::Small(_)));
    // Rules 1 and 35.
    !(small
        || a.rotate.is_some()
        || a.signals.has(Signals::THRSW | Signals::LDUNIFA | Signals::LDUNIFARF)
        || s.writes_unifa)
}

/// May stand in slot `n` (1 or 2) of a switch.
fn can_be_slot(version: Version, s: &Slot, n: usize) -> bool {
    let a = &s.alu;
    // Rule 32 and its like: a late result would reach the other thread.
    // Rules 33 and 34, and the second part of a varying must not meet the switch.
    if s.writes_unifa || a.parts().iter().any(|p| p.op.is_sfu()) || a.signals.has(Signals::LDVARY) {
        return false;
    }
    // Rule 36, in a form that is always safe.
    !(version == Version::V71 && n == 2 && {
        a.sig_dest.is_some() || a.signals.has(Signals::LDUNIF | Signals::LDUNIFA)
    })
}

fn with_thrsw(s: &Slot) -> Slot {
    Slot { alu: Alu { signals: s.alu.signals.with(Signals::THRSW), ..s.alu }, ..*s }
}

/// Makes a switch take effect after the last instruction of `out`; returns the new `busy_until`.
fn place_one(version: Version, out: &mut Vec<Slot>, busy_until: usize, mark: bool) -> usize {
    let len = out.len();
    // Distance from the carrying instruction to the end: 3 costs nothing, less costs nops.
    let rides = |back: usize| -> bool {
        let Some(p) = len.checked_sub(back) else { return false };
        p >= busy_until
            && can_carry(&out[p])
            && (1..back).all(|n| can_be_slot(version, &out[p + n], n))
            && (!mark || back < 2 || can_carry(&out[p + 1]))
    };
    // A new instruction for the signal, `k` old ones as its slots.
    let inserted = |k: usize| -> bool {
        let Some(p) = len.checked_sub(k) else { return false };
        p >= busy_until
            && (1..=k).all(|n| can_be_slot(version, &out[p + n - 1], n))
            && (!mark || k < 1 || can_carry(&out[p]))
            // The instruction right before must not be a side-band start whose window meets the switch.
            && (p == 0 || k == 0 || !(out[p - 1].writes_unifa || out[p - 1].takes_varying()))
    };
    let carry = |out: &mut Vec<Slot>, p: usize| {
        out[p] = with_thrsw(&out[p]);
        while out.len() < p + 3 {
            out.push(Slot::NOP);
        }
        if mark {
            out[p + 1] = with_thrsw(&out[p + 1]);
        }
        p + 3
    };
    for cost in 0..=3 {
        if cost < 3 && rides(3 - cost) {
            return carry(out, len - (3 - cost));
        }
        if cost >= 1 && inserted(3 - cost) {
            let p = len - (3 - cost);
            out.insert(p, Slot::NOP);
            return carry(out, p);
        }
    }
    // Always possible: three new instructions.
    out.push(Slot::NOP);
    carry(out, len)
}

/// How many of the last instructions may run in the delay slots of a branch that follows them.
pub fn branch_slots(placed: &Placed, conditional: bool) -> usize {
    let slots = &placed.slots;
    let mut k = 0;
    while k < 3 && k < slots.len() {
        let at = slots.len() - 1 - k;
        let s = &slots[at];
        let flags = s.alu.add.writes_flags() || s.alu.mul.writes_flags();
        if at < placed.busy_until
            || s.uniform.is_some()
            || s.writes_unifa
            || s.alu.signals.has(Signals::THRSW | Signals::LDUNIFA | Signals::LDUNIFARF | Signals::LDVARY)
            || s.alu.parts().iter().any(|p| p.op == Op::Setmsf)
            // Rule 42.
            || at.checked_sub(1).is_some_and(|q| slots[q].alu.signals.has(Signals::LDVARY))
            || (conditional && flags)
        {
            break;
        }
        k += 1;
    }
    k
}

/// May stand in slot `n` (0 to 2) of the program end (section 13.3; rules 47 to 52).
fn can_end(version: Version, s: &Slot, n: usize) -> bool {
    let a = &s.alu;
    let alu_rows = a.parts().iter().any(|p| matches!(p.result(), Some(Dest::Row(_))));
    let any_rows = alu_rows || a.writes(version).any(|l| matches!(l, Loc::Row(_)));
    let reads_payload = |low: u8, high: u8| {
        a.sources().any(|(s, _)| matches!(s, Source::Row(r) if (low..=high).contains(&r)))
    };
    if s.writes_unifa
        || a.parts().iter().any(|p| p.op.is_sfu())
        || a.signals.has(Signals::LDUNIFA | Signals::LDUNIFARF | Signals::LDVARY)
        || (n > 0 && s.uniform.is_some())
        || (n == 2 && s.writes_depth)
        || a.parts().iter().any(|p| p.op == Op::Vpmwt)
    {
        return false;
    }
    match version {
        Version::V42 => {
            let wait = a.parts().iter().any(|p| p.op == Op::Tmuwt);
            !(any_rows || reads_payload(0, 2) || (wait && n == 2))
        }
        Version::V71 => {
            let writes_payload = a.writes(version).any(|l| matches!(l, Loc::Row(2 | 3)));
            let slot2 = n == 2 && (a.sig_dest.is_some() || a.signals.has(Signals::LDUNIF));
            !((n == 0 && alu_rows) || writes_payload || reads_payload(2, 3) || slot2)
        }
    }
}

/// Appends the program end: the last switch and its two slots.
pub fn end(version: Version, placed: &mut Placed) {
    let len = placed.slots.len();
    for cost in 0..3 {
        // The end rides on an instruction that is there, or on a new one in front of some.
        let back = 3 - cost;
        if let Some(p) = len.checked_sub(back)
            && p >= placed.busy_until
            && can_carry(&placed.slots[p])
            && (0..back).all(|n| can_end(version, &placed.slots[p + n], n))
        {
            return finish_end(placed, p);
        }
        if cost >= 1
            && let Some(p) = len.checked_sub(back)
            && p >= placed.busy_until
            && (0..back).all(|n| can_end(version, &placed.slots[p + n], n + 1))
            && (p == 0 || !(placed.slots[p - 1].writes_unifa || placed.slots[p - 1].takes_varying()))
        {
            placed.slots.insert(p, Slot::NOP);
            return finish_end(placed, p);
        }
    }
    let p = placed.slots.len();
    placed.slots.push(Slot::NOP);
    finish_end(placed, p);
}

fn finish_end(placed: &mut Placed, p: usize) {
    placed.slots[p] = with_thrsw(&placed.slots[p]);
    while placed.slots.len() < p + 3 {
        placed.slots.push(Slot::NOP);
    }
    placed.busy_until = p + 3;
}

/// A block without a switch gets one that nothing needs, to carry the last-section mark: near its start, where the
/// instructions before it serve as slots, or else at the first place where nothing is live that a switch destroys. At
/// the end of the program nothing is.
pub fn mark_somewhere(version: Version, block: &mut Scheduled) {
    let len = block.slots.len();
    // Accumulators, one bit each, and the flags as bit 6: read later before they are written.
    let mut live = vec![0u8; len + 1];
    for n in (0..len).rev() {
        let alu = &block.slots[n].alu;
        let acc = |l: Loc| if let Loc::Acc(k) = l { 1u8 << k } else { 0 };
        let whole = |p: &Part| !p.is_partial_write();
        let mut writes = 0;
        for p in alu.parts() {
            if let Some(l) = p.result().and_then(|d| d.loc(version)).filter(|_| whole(p)) {
                writes |= acc(l);
            }
            writes |= (p.push.is_some() as u8) << 6;
        }
        writes |= alu.sig_dest.and_then(|d| d.loc(version)).map_or(0, acc);
        if version == Version::V42 && alu.signals.has(Signals::LDUNIF | Signals::LDUNIFA) {
            writes |= acc(Loc::uniform(version));
        }
        let mut reads = alu.reads().chain(alu.merged(version)).fold(0, |m, l| m | acc(l));
        if alu.parts().iter().any(|p| p.cond.is_some() || p.update.is_some() || p.op.reads_flag_a()) {
            reads |= 1 << 6;
        }
        live[n] = live[n + 1] & !writes | reads;
    }
    let mut open = false;
    let mut clean = vec![false; len + 1];
    for n in 0..=len {
        let before = &block.slots[n.saturating_sub(4)..n];
        let rtop = n > 0
            && block.slots[..n].iter().rev().find_map(|s| match s.alu.mul.op {
                Op::Multop => Some(true),
                Op::Umul24 => Some(false),
                _ => None,
            }) == Some(true);
        clean[n] = live[n] == 0 && !open && !rtop && !before.iter().any(|s| s.writes_unifa);
        if let Some(s) = block.slots.get(n)
            && (s.alu.has_tmu_write() || s.alu.signals.has(Signals::WRTMUC))
        {
            open = !s.alu.starts_tmu();
        }
    }
    let near = len.min(3);
    let at = (0..=near).rev().chain(near + 1..=len).find(|&n| clean[n]).unwrap_or(len);
    block.switches.insert(0, at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::assemble;
    use crate::decode::decode;

    fn block(version: Version, text: &str) -> Scheduled {
        let words = assemble(version, text).unwrap();
        let slots = words.iter().map(|&w| {
            let alu = *decode(version, w).unwrap().alu().unwrap();
            let writes_unifa = alu.writes_magic(crate::magic::UNIFA);
            Slot { alu, writes_unifa, ..Slot::NOP }
        });
        Scheduled { slots: slots.collect(), switches: Vec::new() }
    }

    /// Where the switch for the mark is put.
    fn mark(version: Version, text: &str) -> usize {
        let mut block = block(version, text);
        mark_somewhere(version, &mut block);
        assert_eq!(block.switches.len(), 1);
        block.switches[0]
    }

    /// What a switch destroys must not be live where the mark goes, also when an earlier block has set it.
    #[test]
    fn the_mark_spares_what_is_live() {
        let row = "add rf9, rf9, 1\n";
        let tail = row.repeat(3);
        // Nothing is live: behind three instructions, which serve as slots.
        for version in Version::ALL {
            assert_eq!(mark(version, &row.repeat(8)), 3);
            assert_eq!(mark(version, row), 1);
            assert_eq!(mark(version, ""), 0);
            // A flag from before the block, read early, read late, and set again first.
            assert_eq!(mark(version, &format!("add.ifa rf9, rf8, 1\n{}", row.repeat(5))), 3);
            assert_eq!(mark(version, &format!("{}add.ifa rf9, rf8, 1\n{tail}", row.repeat(5))), 6);
            assert_eq!(
                mark(version, &format!("{row}add.pushz -, rf9, 1\n{row}add.ifa rf9, rf8, 1\n{tail}")),
                1
            );
            // An update reads the flag it changes.
            assert_eq!(
                mark(
                    version,
                    &format!(
                        "add.pushz -, rf9, 1\n{row}add.andz -, rf8, 1\n{row}add.ifa rf9, rf8, 1\n{tail}"
                    )
                ),
                0
            );
            // Between the halves of a product, and between data and address of a store, there is no place.
            assert_eq!(
                mark(
                    version,
                    &format!("{row}nop; multop -, rf9, rf8\n{row}nop; umul24 rf7, rf9, rf8\n{tail}")
                ),
                1
            );
            assert_eq!(
                mark(version, &format!("{row}nop; mov tmud, rf9\n{row}nop; mov tmua, rf8\n{tail}")),
                1
            );
            assert_eq!(
                mark(version, &format!("nop; mov tmud, rf9\n{row}{row}{row}nop; mov tmua, rf8\n{tail}")),
                0
            );
            // Not within the window of a side-band address.
            assert_eq!(mark(version, &format!("nop; mov unifa, rf9\n{}", row.repeat(6))), 0);
        }
        // 4.2: an accumulator from before the block.
        for read in ["add rf9, r1, rf8\n", "nop; mov tmud, r1\n nop; mov tmua, rf8\n"] {
            let words = read.lines().count();
            assert_eq!(mark(Version::V42, &format!("{}{read}{tail}", row.repeat(5))), 5 + words, "{read}");
        }
        assert_eq!(
            mark(Version::V42, &format!("{row}add r1, rf9, rf8\n{row}{row}add rf9, r1, rf8\n{tail}")),
            1
        );
        // Written under a condition it is live before, too; so it is when only half of it is written.
        assert_eq!(
            mark(Version::V42, &format!("{row}add.ifa r1, rf9, rf8\n{row}{row}add rf9, r1, rf8\n{tail}")),
            5
        );
        assert_eq!(
            mark(Version::V42, &format!("{row}fadd r1.l, rf9, rf8\n{row}{row}add rf9, r1, rf8\n{tail}")),
            5
        );
        // r5 comes with ldunif, and a load may write an accumulator.
        assert_eq!(
            mark(Version::V42, &format!("{row}nop; nop; ldunif\n{row}{row}add rf9, r5, rf8\n{tail}")),
            1
        );
        assert_eq!(
            mark(Version::V42, &format!("{row}nop; nop; ldtmu.r2\n{row}{row}add rf9, r2, rf8\n{tail}")),
            1
        );
        // Read at the very end of the block.
        assert_eq!(mark(Version::V42, &format!("{}add rf9, r1, rf8\n", row.repeat(5))), 6);
    }
}
