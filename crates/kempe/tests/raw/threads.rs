//! Several batches: numbers of threads, payload, switches, barriers.

use super::*;

pub fn cases(target: &'static str) -> Vec<Case> {
    let mut all = vec![
        switches(target),
        switch_keeps(target),
        strict_switch(target),
        payload(target, [8, 2, 1], 1),
        payload(target, [16, 1, 1], 4),
        payload(target, [7, 3, 1], 5),
        payload(target, [32, 2, 2], 1),
        neighbours(target, false),
        neighbours(target, true),
        turns(target),
        supergroups(target),
    ];
    for four in [false, true] {
        all.push(thread_numbers(target, four));
    }
    all
}

fn qpus(target: &str) -> u32 {
    if target == "v3d42" { 8 } else { 12 }
}

/// Where the work-group id comes in.
fn id_row(target: &str) -> &'static str {
    if target == "v3d42" { "rf0" } else { "rf3" }
}

/// As many batches as the chip has threads; each stores its number.
fn thread_numbers(target: &'static str, four: bool) -> Case {
    let per_qpu = if four { 4 } else { 2 };
    let batches = qpus(target) * per_qpu;
    // A row per number of a thread.
    let text = format!(
        "{BEGIN} tidx rf5\n shl rf6, rf5, 6\n add rf11, rf11, rf6\n nop; nop; thrsw\n nop\n nop\n{}{FINISH}",
        store("rf5")
    );
    let mut case = Case::new(if four { "thread-numbers-4" } else { "thread-numbers-2" }, target, text);
    case.uniforms = vec![Array("out", 0), Array("out", 0)];
    (case.batches, case.batches_per_supergroup, case.wgs_per_supergroup) = (batches, batches, batches);
    case.four_threads = four;
    let words = (0..4 * qpus(target)).flat_map(|n| {
        let used = four || n % 2 == 0;
        [if used { n } else { 0 }; 16]
    });
    case.array("out", vec![0; 64 * 4 * qpus(target) as usize]).expect("out", bytes(words))
}

/// Switches two instructions apart, loads collected in their slots, an operation started in one.
fn switches(target: &'static str) -> Case {
    let body = format!(
        "nop; mov tmua, rf10; thrsw\n add rf10, rf10, rf13\n nop; nop; thrsw\n nop; mov tmua, rf10\n nop; nop; thrsw\n \
         nop; nop; ldtmu.rf5\n nop; nop; ldtmu.rf6\n{}{}\
         nop; nop; thrsw\n nop; mov tmud, rf5\n nop; mov tmua, rf11\n nop; nop; thrsw\n tmuwt -\n nop\n",
        store("rf5"),
        store("rf6"),
    );
    let (a, b) = (row(|i| i as u32 + 1), row(|i| 100 - i as u32));
    let mut case = Case::rows("switches", target, &body, &[], &[a, b, a]);
    case.arrays[0].1 = bytes([a, b].concat());
    case
}

/// A thread that has its QPU to itself keeps flags, and on 4.2 accumulators.
fn switch_keeps(target: &'static str) -> Case {
    let (set, get) = if target == "v3d42" {
        ("add r2, rf20, 7\n", "add rf6, r2, 1\n")
    } else {
        ("add rf7, rf20, 7\n", "add rf6, rf7, 1\n")
    };
    let body = format!(
        "{set} and.pushz -, rf20, 1\n {SWITCH} {SWITCH} nop; mov rf5, 0\n nop; mov.ifa rf5, 1\n {get}{}{}",
        store("rf5"),
        store("rf6"),
    );
    let a = row(|i| i as u32 * 3);
    Case::rows("switch-keeps", target, &body, &[a], &[row(|i| (a[i] % 2 == 0).into()), row(|i| a[i] + 8)])
}

/// The same rules as for compiled code: what a switch takes is not used.
fn strict_switch(target: &'static str) -> Case {
    let body = format!(
        "add rf7, rf20, 7\n {SWITCH} and.pushz -, rf20, 1\n nop; mov rf5, 0\n nop; mov.ifa rf5, 1\n add rf6, rf7, 1\n{}{}",
        store("rf5"),
        store("rf6"),
    );
    let a = row(|i| i as u32 * 3);
    let mut case = Case::rows(
        "strict-switch",
        target,
        &body,
        &[a],
        &[row(|i| (a[i] % 2 == 0).into()), row(|i| a[i] + 8)],
    );
    case.strict = true;
    case
}

/// Every item of several work-groups stores its group and its local index at its own place.
fn payload(target: &'static str, size: [u32; 3], wgs: u32) -> Case {
    let count = [3, 2, 2];
    let items: u32 = size.iter().product();
    let n = 6.max(u32::BITS - (items - 1).leading_zeros());
    let groups = 12;
    // Uniforms: 16 - n + 16, 16 - n, mask of w, items * wgs, items.
    let text = format!(
        "nop; nop; ldunifrf.rf10\n nop; nop; ldunifrf.rf14\n nop; nop; ldunifrf.rf15\n nop; nop; ldunifrf.rf16\n nop; nop; ldunifrf.rf17\n \
         shr rf5, rf2, rf14\n shr rf6, rf2, -16\n and rf6, rf6, rf15\n \
         nop; mov rf13, -1\n shr rf13, rf13, -16\n and rf7, {id}, rf13\n shr rf8, {id}, -16\n and rf9, rf2, rf13\n \
         shl rf18, rf9, 1\n add rf18, rf18, rf8\n nop; umul24 rf18, rf18, rf16\n add rf18, rf18, rf7\n \
         nop; umul24 rf19, rf18, rf17\n add rf19, rf19, rf5\n shl rf19, rf19, 2\n add rf19, rf19, rf10\n \
         shl rf6, rf6, 8\n shl rf18, rf18, -16\n or rf6, rf6, rf18\n or rf6, rf6, rf5\n nop; mov tmud, rf6\n nop; mov tmua, rf19\n{FINISH}",
        id = id_row(target),
    );
    let name = format!("payload-{}x{}x{}-by-{wgs}", size[0], size[1], size[2]);
    let mut case = Case::new(&name, target, text);
    case.uniforms =
        vec![Array("out", 0), Word(32 - n), Word((1 << (16 - n)) - 1), Word(count[0]), Word(items)];
    case.size = size;
    case.count = count;
    case.wgs_per_supergroup = wgs;
    case.batches_per_supergroup = (items * wgs).div_ceil(16);
    let supergroups = groups / wgs + u32::from(groups % wgs != 0);
    case.batches = case.batches_per_supergroup * supergroups;
    // Work-groups beyond the programmed counts go on in z.
    let all = supergroups * wgs;
    let words = (0..all).flat_map(|g| {
        let w = (g % wgs) & ((1 << (16 - n)) - 1);
        (0..items).map(move |i| g << 16 | w << 8 | i)
    });
    let out = bytes(words);
    case.array("out", vec![0; out.len()]).expect("out", out)
}

/// Every batch stores a row, waits for all, and reads the row of the next batch.
fn neighbours(target: &'static str, four: bool) -> Case {
    let batches = qpus(target) * if four { 4 } else { 2 };
    // The dense number of the batch comes from the local index of its first lane: 16 items per group, w in the payload.
    let text = format!(
        "{BEGIN} nop; nop; ldunifrf.rf14\n shr rf5, rf2, -16\n nop; mov rf6, 15\n and rf7, rf5, rf6\n \
         nop; mov rf6, -1\n shr rf6, rf6, -16\n and rf8, {id}, rf6\n \
         shl rf9, rf8, 6\n add rf15, rf10, rf9\n shl rf16, rf8, 8\n eidx rf17\n or rf16, rf16, rf17\n \
         nop; mov tmud, rf16\n nop; mov tmua, rf15\n tmuwt -\n barrierid syncb; nop; thrsw\n add rf18, rf8, 1\n nop\n \
         sub.pushz -, rf18, rf14\n nop; mov.ifa rf18, 0\n shl rf18, rf18, 6\n add rf18, rf18, rf10\n \
         nop; mov tmua, rf18; thrsw\n add rf11, rf11, rf9\n nop\n nop; nop; ldtmu.rf5\n nop; mov tmud, rf5\n nop; mov tmua, rf11\n{FINISH}",
        id = id_row(target),
    );
    let mut case = Case::new(if four { "barrier-4" } else { "barrier-2" }, target, text);
    case.uniforms = vec![Array("middle", 0), Array("out", 0), Word(batches)];
    case.four_threads = four;
    // One work-group of 16 items per batch, all in one supergroup.
    (case.batches, case.batches_per_supergroup, case.wgs_per_supergroup) = (batches, batches, batches);
    case.count = [batches, 1, 1];
    let rows = |first: u32| (0..batches).flat_map(move |b| row(|i| ((b + first) % batches) << 8 | i as u32));
    let zeros = vec![0; 64 * batches as usize];
    case.array("middle", zeros.clone())
        .array("out", zeros)
        .expect("middle", bytes(rows(0)))
        .expect("out", bytes(rows(1)))
}

/// Eight rounds with a barrier each: every batch adds what its two neighbours had, from one array to the other.
fn turns(target: &'static str) -> Case {
    let batches = 8u32;
    let id = id_row(target);
    let text = format!(
        "{BEGIN} nop; mov rf14, 7\n nop; mov rf6, -1\n shr rf6, rf6, -16\n and rf8, {id}, rf6\n nop; mov rf15, 8\n \
         sub rf16, rf8, 1\n and rf16, rf16, rf14\n shl rf16, rf16, 6\n add rf17, rf8, 1\n and rf17, rf17, rf14\n shl rf17, rf17, 6\n shl rf18, rf8, 6\n \
         top: add rf5, rf10, rf16\n nop; mov tmua, rf5\n add rf5, rf10, rf17\n nop; mov tmua, rf5; thrsw\n nop\n nop\n \
         nop; nop; ldtmu.rf5\n nop; nop; ldtmu.rf7\n add rf5, rf5, rf7\n add rf7, rf11, rf18\n nop; mov tmud, rf5\n nop; mov tmua, rf7\n tmuwt -\n \
         barrierid syncb; nop; thrsw\n or rf10, rf11, rf11; mov rf11, rf10\n nop\n \
         sub.pushz rf15, rf15, 1\n b.na0 top\n nop\n nop\n nop\n{FINISH}"
    );
    let mut case = Case::new("turns", target, text);
    case.uniforms = vec![Array("a", 0), Array("b", 0)];
    (case.batches, case.batches_per_supergroup, case.wgs_per_supergroup) = (batches, batches, batches);
    case.count = [batches, 1, 1];
    let mut a: Vec<Row> = (0..batches).map(|b| row(|i| 1 + b * 16 + i as u32)).collect();
    let start = bytes(a.concat());
    let mut b = vec![[0; 16]; 8];
    for _ in 0..8 {
        for k in 0..8 {
            b[k] = row(|i| a[(k + 7) % 8][i].wrapping_add(a[(k + 1) % 8][i]));
        }
        std::mem::swap(&mut a, &mut b);
    }
    let zeros = vec![0; start.len()];
    case.array("a", start).array("b", zeros).expect("a", bytes(a.concat())).expect("b", bytes(b.concat()))
}

/// Supergroups wait only for their own batches.
fn supergroups(target: &'static str) -> Case {
    let id = id_row(target);
    // Counts arrivals per pair of batches with an atomic, waits, and stores the count.
    let text = format!(
        "{BEGIN} nop; mov rf6, -1\n shr rf6, rf6, -16\n and rf8, {id}, rf6\n shr rf9, rf8, 1\n shl rf9, rf9, 6\n add rf15, rf10, rf9\n \
         nop; mov tmuau, rf15\n nop; nop; ldtmu.rf5\n barrierid syncb; nop; thrsw\n nop\n nop\n \
         nop; mov tmua, rf15; thrsw\n shl rf9, rf8, 6\n add rf11, rf11, rf9\n nop; nop; ldtmu.rf5\n nop; mov tmud, rf5\n nop; mov tmua, rf11\n{FINISH}"
    );
    let mut case = Case::new("supergroups", target, text);
    // Increment: operation 8 without data.
    case.uniforms = vec![Array("counts", 0), Array("out", 0), Word(0xffff_ff00 | 0x80 | 8 << 3 | 7)];
    (case.batches, case.batches_per_supergroup, case.wgs_per_supergroup) = (10, 2, 2);
    case.count = [10, 1, 1];
    case.array("counts", vec![0; 64 * 5])
        .array("out", vec![0; 64 * 10])
        .expect("counts", bytes([2; 16 * 5]))
        .expect("out", bytes([2; 16 * 10]))
}
