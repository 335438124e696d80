//! Rules that one word can break.

use super::{ProgramFacts, Report};
use crate::instr::{
    Alu, Branch, BranchCond, BranchTarget, Dest, Instr, Part, Signals, Source, UniformMove, Unpack, Version,
    small_value,
};
use crate::magic::{self, Class};
use crate::ops::Op;

/// Rules 10 to 17, 22 and 70 on a decoded word.
pub(super) fn check(version: Version, facts: &ProgramFacts, at: usize, instr: &Instr, report: &mut Report) {
    match instr {
        Instr::Alu(alu) => {
            rows(facts, at, alu, report);
            parts(version, at, alu, report);
            // Most instructions touch no peripheral: a row or nothing is written, and no signal is set.
            let plain = |dest| matches!(dest, Dest::Row(_) | Dest::NOP);
            if !alu.signals.is_empty()
                || !plain(alu.add.dest)
                || !plain(alu.mul.dest)
                || alu.add.op.is_vpm_read()
                || alu.add.op.is_vpm_write()
            {
                peripherals(version, at, alu, report);
                signals(version, at, alu, report);
            }
        }
        Instr::Branch(branch) => branch_word(facts, at, branch, report),
    }
}

fn branch_word(facts: &ProgramFacts, at: usize, branch: &Branch, report: &mut Report) {
    if let Some(row) = branch.row()
        && facts.threads == 4
        && row > 31
    {
        report.hw("11", at, format!("rf{row} in a program with 4 threads"));
    }
    if branch.cond == BranchCond::Reserved {
        report.hw("12", at, "reserved branch condition");
    }
    if let Some(UniformMove::Reserved(code)) = branch.uniforms {
        report.hw("12", at, format!("reserved uniform move {code}"));
    }
}

/// Rule 11.
fn rows(facts: &ProgramFacts, at: usize, alu: &Alu, report: &mut Report) {
    if facts.threads != 4 {
        return;
    }
    let mut highest = 0;
    for source in alu.add.src.iter().chain(&alu.mul.src) {
        if let Source::Row(r) = source {
            highest = highest.max(*r);
        }
    }
    for dest in [Some(alu.add.dest), Some(alu.mul.dest), alu.sig_dest] {
        if let Some(Dest::Row(r)) = dest {
            highest = highest.max(r);
        }
    }
    if highest > 31 {
        report.hw("11", at, format!("rf{highest} in a program with 4 threads"));
    }
}

/// Rules 10, 12, 13, 70.
fn parts(version: Version, at: usize, alu: &Alu, report: &mut Report) {
    use Op::*;
    for part in alu.parts() {
        if part.unpack != [Unpack::None; 2] {
            let no_abs = matches!(
                part.op,
                Vfpack | Fround | Ftrunc | Ffloor | Fceil | Fdx | Fdy | Ftoin | Ftoiz | Ftouz | Ftoc
            );
            for (_, unpack) in part.sources() {
                if no_abs && unpack == Unpack::Abs {
                    report.hw("10", at, format!("{} of an absolute value", part.op.name()));
                }
                if unpack == Unpack::Unknown7 {
                    report.hw("10", at, "unpack code 7, whose meaning is not known");
                }
            }
        }
        if part.pack != crate::instr::Pack::None && matches!(part.op, Fxcd | Fycd | Itof | Utof) {
            report.hw("10", at, format!("{} with an output pack", part.op.name()));
        }
        let Some(dest) = part.result() else { continue };
        reserved(version, at, dest, report);
        if (part.op.is_sfu() || part.op.is_vpm_read()) && dest.row().is_none() {
            report.hw("13", at, format!("the result of {} does not go to a row", part.op.name()));
        }
    }
    if let Some(dest) = alu.sig_dest {
        reserved(version, at, dest, report);
    }
    if version == Version::V71 && matches!(alu.add.op, Rot | Rotq | Shuffle) {
        let tmu = |part: &Part| {
            let tmu = [magic::TMUD, magic::TMUA, magic::TMUC].map(Dest::Magic);
            part.result().is_some_and(|d| tmu.contains(&d))
        };
        if tmu(&alu.add) || tmu(&alu.mul) {
            report.hw("70", at, format!("{} with a TMU write in the same instruction", alu.add.op.name()));
        }
    }
}

/// Rule 12.
fn reserved(version: Version, at: usize, dest: Dest, report: &mut Report) {
    if let Dest::Magic(n) = dest
        && magic::class(version, n) == Class::Reserved
    {
        report.hw("12", at, format!("write to reserved address {n}"));
    }
}

/// Rules 14 to 16.
fn peripherals(version: Version, at: usize, alu: &Alu, report: &mut Report) {
    let (mut tmu, mut tmuc, mut sfu, mut vpm, mut tlb, mut tsy) = (0, 0, 0, 0, 0, 0);
    for dest in alu.dests() {
        let Dest::Magic(n) = dest else { continue };
        match magic::class(version, n) {
            Class::Tmu => {
                tmu += 1;
                tmuc += u32::from(n == magic::TMUC);
            }
            Class::Sfu => sfu += 1,
            Class::Vpm => vpm += 1,
            Class::Tlb => tlb += 1,
            Class::Tsy => tsy += 1,
            _ => {}
        }
    }
    let tlb_reads = u32::from(alu.signals.has(Signals::LDTLB)) + u32::from(alu.signals.has(Signals::LDTLBU));
    let ldtmu = u32::from(alu.signals.has(Signals::LDTMU));
    let wrtmuc = u32::from(alu.signals.has(Signals::WRTMUC));
    let accesses = tmu + sfu + vpm + tlb + tsy + tlb_reads;
    if accesses > 1 {
        report.hw("14", at, format!("{accesses} peripheral accesses in one instruction"));
    }
    if version == Version::V42 && ldtmu != 0 && accesses != 0 {
        report.drv("14b", at, "ldtmu together with a peripheral access");
    }
    // The stricter count of the scheduler.
    sfu += u32::from(alu.add.op.is_sfu());
    let vpm_reads = u32::from(alu.add.op.is_vpm_read());
    let vpm_writes = u32::from(alu.add.op.is_vpm_write()) + vpm;
    let config = u32::from(wrtmuc != 0 && (tmu == 0 || tmuc != 0));
    let common = tmu + config + tsy + tlb_reads + sfu + vpm_reads + vpm_writes;
    match version {
        Version::V42 => {
            let waits = u32::from(matches!(alu.add.op, Op::Tmuwt | Op::Vpmwt));
            let with_vpm = vpm_reads + vpm_writes != 0 && common == vpm_reads + vpm_writes;
            let loads = if with_vpm && waits + tlb == 0 { 0 } else { ldtmu };
            if common + waits + tlb + loads > 1 {
                report.drv("15", at, "more than one peripheral access");
            }
        }
        Version::V71 => {
            if common > 1 {
                report.drv("16", at, "more than one peripheral access");
            } else if tlb + tlb_reads > 1 {
                report.drv("16", at, "more than one tile-buffer access");
            }
        }
    }
}

/// Rules 17 and 22.
fn signals(version: Version, at: usize, alu: &Alu, report: &mut Report) {
    let uniforms = alu.uniforms();
    if uniforms > 1 {
        report.hw("17", at, format!("{uniforms} words of the uniform stream in one instruction"));
    } else if uniforms == 1 && alu.signals.has(Signals::LDUNIFA | Signals::LDUNIFARF) {
        report.hw("17", at, "a uniform together with a side-band word");
    }
    let to_rf0 =
        matches!(alu.sig_dest, Some(Dest::Row(0) | Dest::Magic(magic::QUAD) | Dest::Magic(magic::REP)));
    if version == Version::V71 && alu.signals.has(Signals::LDVARY) && to_rf0 {
        report.hw("22", at, "ldvary to rf0");
    }
}

/// Rule 7: the signal of a small immediate that nothing reads is visible in the bits only.
pub(super) fn check_bits(version: Version, at: usize, word: u64, instr: &Instr, report: &mut Report) {
    let Instr::Alu(alu) = instr else { return };
    if version == Version::V42 {
        return;
    }
    let (part, name) = match word >> 53 & 31 {
        14 => (&alu.add, "small_imm_a"),
        15 => (&alu.add, "small_imm_b"),
        30 => (&alu.mul, "small_imm_c"),
        31 => (&alu.mul, "small_imm_d"),
        _ => return,
    };
    if part.op == Op::Nop {
        report.drv("7", at, format!("{name} without an operation that could read it"));
    }
}

/// Rules 2 to 6 and 8 on an instruction that may not be encodable.
pub(super) fn check_encodable(version: Version, instr: &Instr, report: &mut Report) {
    let alu = match instr {
        Instr::Alu(alu) => alu,
        Instr::Branch(branch) => {
            // One register field serves both moves; Instr can name two rows.
            if let (BranchTarget::Row(a), Some(UniformMove::Row(b))) = (branch.target, branch.uniforms)
                && a != b
            {
                report.hw("12", 0, format!("a branch that reads both rf{a} and rf{b}"));
            }
            return;
        }
    };
    let touches_cond = |p: &Part| p.cond.is_some() || p.push.is_some() || p.update.is_some();
    let addressed = Signals(alu.signals.0 & Signals::ADDRESSED.0).count();
    if addressed > 1 {
        report.hw("2", 0, "two signals that write an address");
    }
    if addressed != 0 && (touches_cond(&alu.add) || touches_cond(&alu.mul)) {
        report.hw("2", 0, "a condition or flag operation beside a signal that writes an address");
    }
    let (add, mul) = (&alu.add, &alu.mul);
    let twice = |p: &Part| u32::from(p.push.is_some()) + u32::from(p.update.is_some());
    let bad = twice(add) + twice(mul) > 1
        || [add, mul].iter().any(|p| p.cond.is_some() && p.push.is_some())
        || mul.update.is_some() && (add.cond.is_some() || mul.cond.is_some())
        || add.update.is_some() && add.cond.is_some();
    if bad {
        report.hw("3", 0, "a combination of conditions and flag operations that has no code");
    }
    let (mut rows, mut codes) = (Vec::new(), Vec::new());
    let mut small = 0;
    for (source, _) in alu.sources() {
        match source {
            Source::Row(r) if !rows.contains(&r) => rows.push(r),
            Source::Small(code) => {
                small += 1;
                if small_value(code).is_none() {
                    report.hw("8", 0, format!("small immediate code {code}"));
                }
                if !codes.contains(&code) {
                    codes.push(code);
                }
            }
            _ => {}
        }
    }
    match version {
        Version::V42 => {
            if rows.len() + codes.len() > 2 {
                report.hw("4", 0, "more rows and small immediates than read ports");
            } else if codes.len() > 1 {
                report.hw("5", 0, "two small immediates, but only raddr_b can hold one");
            }
        }
        Version::V71 if small > 1 => report.hw("6", 0, "two small immediates"),
        Version::V71 => {}
    }
}
