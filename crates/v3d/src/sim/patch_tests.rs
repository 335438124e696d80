//! Hand-written geometry and tessellation programs: what they give, and what stops them.

use super::graphics_tests::{END, MARK};
use super::*;
use crate::asm::assemble;
use std::sync::Arc;

/// Lanes 0 to 8 belong to the primitives 5, 3 and 4, three each; vertex v of primitive p has 100 p + 10 row + v in two rows, a patch
/// 1000 p in one.
fn run(version: Version, body: &str, columns: u32) -> VertexRun {
    let text = format!("{body}{MARK}{END}");
    let words = assemble(version, &text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    let program = Program::graphics(version, words, Vec::new(), 4);
    let of_vertices = |row: u32| (0..6 * 4).map(|n| 100 * (n / 4) + 10 * row + n % 4).collect();
    let primitives = Primitives {
        vertices: 4,
        vertex_rows: (0..2).map(of_vertices).collect(),
        patch_rows: vec![(0..6).map(|p| 1000 * p).collect()],
        columns,
        patch_outputs: 2,
    };
    let draw = Draw { segment_rows: 8, primitives: Some(Arc::new(primitives)), ..Draw::default() };
    let batch = VertexBatch {
        lanes: 0x01ff,
        rows: vec![std::array::from_fn(|k| 7 + k as u32)],
        primitive: std::array::from_fn(|k| [5, 3, 4, u32::MAX][(k / 3).min(3)]),
        invocation: std::array::from_fn(|k| k as u32 % 3),
    };
    Code::new(&program).run_vertices(&[batch], &draw, &mut Memory::new(), &Options::default())
}

fn rows(version: Version, body: &str, columns: u32) -> VertexOutput {
    let out = run(version, body, columns);
    assert_eq!(out.outcome.result, Ok(()), "{body}");
    out.batches.into_iter().next().unwrap_or_default()
}

fn words(row: &VpmRow) -> Vec<Option<u32>> {
    (0..9).map(|lane| row.get(lane)).collect()
}

#[test]
fn vertices_of_primitives() {
    for version in Version::ALL {
        let out = rows(
            version,
            "iid rf1; nop\n ldvpmg_in rf2, 1, rf1; nop\n ldvpmv_in rf3, 0; nop\n and rf4, rf1, 1; nop\n ldvpmg_in rf5, rf4, 2; nop
            stvpmv 0, rf2; nop\n stvpmv 1, rf3; nop\n stvpmv 2, rf5; nop\n ldvpmp rf6, 0; nop\n stvpmv 3, rf6; nop\n vpmwt -; nop\n",
            0,
        );
        let lanes = |of: &dyn Fn(u32, u32) -> u32| -> Vec<Option<u32>> {
            (0..9).map(|k| Some(of([5, 3, 4][k as usize / 3], k % 3))).collect()
        };
        assert_eq!(words(&out.rows[0]), lanes(&|p, i| 100 * p + 10 + i));
        assert_eq!(words(&out.rows[1]), (0..9).map(|k| Some(7 + k)).collect::<Vec<_>>());
        assert_eq!(words(&out.rows[2]), lanes(&|p, i| 100 * p + 10 * (i & 1) + 2));
        assert_eq!(words(&out.rows[3]), lanes(&|p, _| 1000 * p));
    }
}

/// Outputs of a control program: own columns, those of the neighbours, rows of the patch, what lanes do not agree on.
#[test]
fn outputs_of_patches() {
    for version in Version::ALL {
        let out = rows(
            version,
            "iid rf1; nop\n ldvpmg_in rf2, 0, rf1; nop\n stvpmv 4, rf2; nop\n stvpmp 0, rf2; nop\n sub rf3, 2, rf1; nop
            vpmwt -; nop\n ldvpmg_out rf4, 4, rf3; nop\n nop; mov rf9, 0
 ldvpmg_in rf5, 1, rf9; nop\n stvpmp 1, rf5; nop\n vpmwt -; nop
            ldvpmp rf6, 1; nop\n stvpmv 5, rf4; nop\n stvpmv 6, rf6; nop\n vpmwt -; nop\n",
            3,
        );
        let of = |k: u32| [5, 3, 4][k as usize / 3];
        assert_eq!(words(&out.rows[5]), (0..9).map(|k| Some(100 * of(k) + 2 - k % 3)).collect::<Vec<_>>());
        assert_eq!(words(&out.rows[6]), (0..9).map(|k| Some(100 * of(k) + 10)).collect::<Vec<_>>());
        assert_eq!(words(&out.patch[0]), [None; 9]);
        assert_eq!(words(&out.patch[1]), words(&out.rows[6]));
    }
}

#[test]
fn what_stops_them() {
    for version in Version::ALL {
        let stops = |body: &str, columns: u32| run(version, body, columns).outcome.result.map_err(|f| f.rule);
        assert_eq!(stops("nop; mov rf9, 0\n ldvpmg_in rf1, 2, rf9; nop\n", 0), Err("12.3"));
        assert_eq!(
            stops(
                "nop; mov rf2, 15\n add rf2, rf2, rf2; nop\n add rf2, rf2, 2; nop\n ldvpmg_in rf1, 0, rf2; nop\n",
                0
            ),
            Err("12.3")
        );
        assert_eq!(stops("ldvpmp rf1, 1; nop\n", 0), Err("12.3"));
        assert_eq!(stops("nop; mov rf9, 0\n stvpmp 2, rf9; nop\n", 3), Err("12.3"));
        assert_eq!(stops("nop; mov rf9, 3\n ldvpmg_out rf1, 0, rf9; nop\n", 3), Err("12.3"));
        // Reading back without a wait.
        assert_eq!(
            stops("nop; mov rf9, 0\n stvpmv 0, rf9; nop\n ldvpmg_out rf1, 0, rf9; nop\n vpmwt -; nop\n", 3),
            Err("12.3")
        );
        assert_eq!(
            stops("nop; mov rf9, 0\n stvpmv 0, rf9; nop\n vpmwt -; nop\n ldvpmg_out rf1, 0, rf9; nop\n", 3),
            Ok(())
        );
        for other in
            ["nop; mov rf9, 0\n stvpmp 0, rf9; nop\n", "nop; mov rf9, 0\n ldvpmg_out rf1, 0, rf9; nop\n"]
        {
            assert_eq!(stops(other, 0), Err("unsupported"), "{other}");
        }
        // A vertex that the primitive does not have is undefined, and so is a row that nobody has written.
        let used = |read: &str| stops(&format!("{read}\n b.anya 0\n nop\n nop\n nop\n"), 3);
        assert_eq!(
            used("nop; mov rf9, 4\n ldvpmg_in rf1, 0, rf9; nop\n add.pushz rf2, rf1, 0; nop"),
            Err("undefined")
        );
        assert_eq!(used("ldvpmp rf1, 0; nop\n add.pushz rf2, rf1, 0; nop"), Err("undefined"));
    }
}
