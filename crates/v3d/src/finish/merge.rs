//! Which operations fit into one instruction word.
//!
//! Rules 1 to 6, 14 to 18 of the reference, and its pairing section 16. The scheduler obeys the `DRV` forms of the
//! peripheral rules (15 on 4.2, 16 on 7.1) except where a chip result allows more: `ldtmu` may stand beside a TMU
//! write on both chips (`H`), rule 14b.

use super::uop::{UOp, flags_fit, for_add, units};
use crate::instr::{Alu, Op, Part, Signals, Source, Version};
use crate::magic;

/// Adds an operation to an instruction, or says that it does not fit.
pub fn merge(version: Version, into: &Alu, op: &UOp) -> Option<Alu> {
    let mut out = *into;
    let signals = into.signals.with(op.signals);
    // A signal cannot be given twice.
    if into.signals.0 & op.signals.0 != 0 {
        return None;
    }
    if op.uniform.is_some() && into.consumes_uniform() {
        return None;
    }
    let sideband = |s: Signals| s.has(Signals::LDUNIFA) || s.has(Signals::LDUNIFARF);
    if (sideband(op.signals) && into.consumes_uniform()) || (op.uniform.is_some() && sideband(into.signals)) {
        return None;
    }
    if into.sig_dest.is_some() && op.sig_dest.is_some() {
        return None;
    }
    out.signals = signals;
    out.sig_dest = into.sig_dest.or(op.sig_dest);
    if op.rotate.is_some() {
        out = place_rotation(version, out, op)?;
    } else if !op.part.is_nop() {
        out = place(version, out, op.part)?;
    }
    // The rotation is in the field of the signals, and its count in that of the second row (section 8.5).
    if out.rotate.is_some() && !signals.is_empty() {
        return None;
    }
    if !signal_set_exists(version, signals) {
        return None;
    }
    // A signal that writes an address takes the field of conditions and flags (rule 2).
    if out.sig_dest.is_some() {
        let plain = |p: &Part| p.cond.is_none() && !p.writes_flags();
        if !plain(&out.add) || !plain(&out.mul) {
            return None;
        }
    }
    if !ports_fit(version, &out) || !peripherals_fit(version, &out) || !destinations_fit(version, &out) {
        return None;
    }
    Some(out)
}

/// Puts an ALU operation into the free part, exchanging the two when that helps.
fn place(version: Version, alu: Alu, part: Part) -> Option<Alu> {
    let try_parts = |add: Option<Part>, mul: Option<Part>| -> Option<Alu> {
        let add = match add {
            Some(p) if !units(version, &p).0 => return None,
            Some(p) => for_add(version, p),
            None => Part::NOP,
        };
        let mul = match mul {
            Some(p) if !units(version, &p).1 => return None,
            Some(p) => p,
            None => Part::NOP,
        };
        flags_fit(&add, &mul).then_some(Alu { add, mul, ..alu })
    };
    if alu.rotate.is_some() {
        // What stands in the MUL part is turned, and nothing else is.
        return if alu.add.is_nop() { try_parts(Some(part), Some(alu.mul)) } else { None };
    }
    match (alu.add.is_nop(), alu.mul.is_nop()) {
        // The ADD part is asked for more often, so what can go to MUL starts there.
        (true, true) => try_parts(None, Some(part)).or_else(|| try_parts(Some(part), None)),
        (false, true) => {
            try_parts(Some(alu.add), Some(part)).or_else(|| try_parts(Some(part), Some(as_mul(alu.add))))
        }
        (true, false) => {
            try_parts(Some(part), Some(alu.mul)).or_else(|| try_parts(Some(alu.mul), Some(part)))
        }
        (false, false) => None,
    }
}

/// Puts a rotated operation into the MUL part.
fn place_rotation(version: Version, alu: Alu, op: &UOp) -> Option<Alu> {
    let add = match (alu.add.is_nop(), alu.mul.is_nop()) {
        (_, true) => alu.add,
        (true, false) if alu.rotate.is_none() && units(version, &alu.mul).0 => for_add(version, alu.mul),
        _ => return None,
    };
    flags_fit(&add, &op.part).then_some(Alu { add, mul: op.part, rotate: op.rotate, ..alu })
}

/// An ADD part in the form for the MUL part: undoes `or x, x`.
fn as_mul(part: Part) -> Part {
    if part.op == Op::Or && part.src[0] == part.src[1] && part.unpack[0] == part.unpack[1] {
        Part { op: Op::Mov, src: [part.src[0], Source::None], ..part }
    } else {
        part
    }
}

/// The signal table of section 5, without what compute programs never use.
fn signal_set_exists(version: Version, s: Signals) -> bool {
    const T: Signals = Signals::THRSW;
    let base = s.without(T);
    if base.is_empty() {
        return true;
    }
    let only = |sig: Signals| base == sig;
    if s.has(Signals::LDVARY) {
        return !s.has(T)
            && (only(Signals::LDVARY)
                || only(Signals::LDVARY.with(Signals::LDUNIF))
                || only(Signals::LDVARY.with(Signals::WRTMUC)));
    }
    if only(Signals::LDUNIF)
        || only(Signals::LDTMU)
        || only(Signals::LDTMU.with(Signals::LDUNIF))
        || only(Signals::LDUNIFRF)
        || only(Signals::WRTMUC)
    {
        return true;
    }
    if s.has(T) {
        return version == Version::V71 && only(Signals::LDTMU.with(Signals::WRTMUC));
    }
    only(Signals::LDUNIFA)
        || only(Signals::LDUNIFARF)
        || (version == Version::V71 && only(Signals::LDTMU.with(Signals::WRTMUC)))
}

/// Register ports and small immediates: rules 4 to 6.
fn ports_fit(version: Version, alu: &Alu) -> bool {
    let mut small: Option<u8> = None;
    let mut smalls = 0;
    let mut rows = [None::<u8>; 2];
    for (s, _) in alu.sources() {
        match s {
            Source::Small(code) => {
                if small.is_some_and(|c| c != code) {
                    return false;
                }
                small = Some(code);
                smalls += 1;
            }
            Source::Row(r) => {
                if rows[0] == Some(r) || rows[1] == Some(r) {
                } else if rows[0].is_none() {
                    rows[0] = Some(r);
                } else if rows[1].is_none() {
                    rows[1] = Some(r);
                } else if version == Version::V42 {
                    return false;
                }
            }
            Source::Acc(_) | Source::None => {}
        }
    }
    match version {
        Version::V42 => {
            if small.is_some() && rows[1].is_some() {
                return false;
            }
            if alu.rotate.is_some() && (small.is_some() || rows[1].is_some()) {
                return false;
            }
            // The immediate's signal goes with ldtmu alone, or with nothing.
            small.is_none()
                || alu.signals.is_empty()
                || alu.signals == Signals::LDTMU
                || alu.signals == Signals::LDVARY
        }
        Version::V71 => smalls <= 1 && (small.is_none() || alu.signals.is_empty()),
    }
}

/// One peripheral access per instruction: rules 14 to 16.
fn peripherals_fit(version: Version, alu: &Alu) -> bool {
    let mut tmu_write = 0;
    let mut sfu = 0;
    let mut sync = 0;
    let mut wait = 0;
    let mut tlb = 0;
    let mut vpm = 0;
    for p in alu.parts() {
        if p.op.is_sfu() {
            sfu += 1;
        }
        if p.op == Op::Tmuwt {
            wait += 1;
        }
        vpm += (p.op.is_vpm_read() || p.op.is_vpm_write() || p.op == Op::Vpmwt) as u32;
        if let Some(d) = p.result() {
            if d.is_tmu_write() {
                tmu_write += 1;
            }
            if d.magic().is_some_and(|n| (magic::SYNC..=magic::SYNCB).contains(&n)) {
                sync += 1;
            }
            tlb += d.magic().is_some_and(|n| n == magic::TLB || n == magic::TLBU) as u32;
        }
    }
    if alu.sig_dest.is_some_and(|d| d.is_tmu_write()) {
        tmu_write += 1;
    }
    // A configuration word beside a register of the same operation is allowed (tmuc is never written here).
    let wrtmuc = (alu.signals.has(Signals::WRTMUC) && tmu_write == 0) as u32;
    let exclusive = tmu_write + sfu + sync + wrtmuc + tlb + vpm;
    match version {
        Version::V42 => exclusive + wait <= 1 && (wait + tlb == 0 || !alu.signals.has(Signals::LDTMU)),
        // tmuwt may accompany others; keep it apart from what it waits for.
        Version::V71 => exclusive <= 1 && wait <= 1 && (wait == 0 || tmu_write + sync == 0),
    }
}

/// No register is written twice.
fn destinations_fit(version: Version, alu: &Alu) -> bool {
    let mut seen = [None; 4];
    for (n, loc) in alu.writes(version).enumerate() {
        if seen[..n.min(4)].contains(&Some(loc)) {
            return false;
        }
        if n < 4 {
            seen[n] = Some(loc);
        }
    }
    // The same magic address twice (two nop addresses are fine).
    match (alu.add.result(), alu.mul.result()) {
        (Some(a), Some(b)) => a != b || a.magic() == Some(magic::NOP),
        _ => true,
    }
}
