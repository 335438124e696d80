//! Findings: each from the smallest program, and none from one that is as it should be.

use kempe_ir::text;
use kempe_opt::lint::lint;

/// Messages of a program in private and storage memory.
fn messages(code: &str) -> Vec<String> {
    let text = format!(
        "module \"main\" compute
workgroup 16 1 1
resource @0 storage set 0 binding 0 elements 1 size 8 stride 0 \"data\"
var $0 private size 16 align 4 \"v\"
func
{code}"
    );
    let m = text::parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("{e:?}"));
    lint(&m).into_iter().map(|f| f.message).collect()
}

/// One block: loads of the buffer are %1 and %2.
fn block(code: &str) -> Vec<String> {
    messages(&format!(
        "b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:i32, %2:i32 = load.i32 <storage x2 align 4> %0
{code}
  return
"
    ))
}

#[test]
fn nothing_to_say() {
    let none: [&str; 0] = [];
    assert_eq!(
        block(
            "  %3:i32 = const.i32 <31>
  %4:i32 = shl.i32 %1, %3
  %5:ptr.private = var_addr.ptr.private <$0>
  store.i32 <private x1 align 4> %5, %4
  %6:i32 = load.i32 <private x1 align 4> %5
  store.i32 <storage x1 align 4> %0, %6"
        ),
        none
    );
}

#[test]
fn undefined_values() {
    assert_eq!(
        block(
            "  %3:ptr.private = var_addr.ptr.private <$0>
  %4:i32 = load.i32 <private x1 align 4> %3
  store.i32 <storage x1 align 4> %0, %4"
        ),
        ["an undefined value is stored"]
    );
    assert_eq!(
        block(
            "  %3:i32 = undef.i32
  %4:i32 = iadd.i32 %3, %1
  store.i32 <storage x1 align 4> %0, %4"
        ),
        ["an undefined value is computed with"]
    );
    // What nobody needs is nobody's mistake.
    assert!(
        block(
            "  %3:i32 = undef.i32
  %4:i32 = iadd.i32 %3, %1"
        )
        .is_empty()
    );
    assert_eq!(
        messages(
            "b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:bool = undef.bool
  %2:i32 = const.i32 <1>
  branch %1, b1, b2
b1:
  store.i32 <storage x1 align 4> %0, %2
  jump b2
b2:
  return
"
        ),
        ["a branch on an undefined value"]
    );
}

#[test]
fn constants_out_of_range() {
    let shift = |op: &str, count: &str| {
        block(&format!(
            "  %3:i32 = const.i32 <{count}>
  %4:i32 = {op}.i32 %1, %3
  store.i32 <storage x1 align 4> %0, %4"
        ))
    };
    assert_eq!(shift("shl", "32"), ["a shift of 32 bits by 32"]);
    assert_eq!(shift("ashr", "4294967295"), ["a shift of 32 bits by -1"]);
    assert!(shift("lshr", "31").is_empty());
    assert_eq!(shift("udiv", "0"), ["an integer is divided by zero"]);
    assert_eq!(
        block(
            "  %3:i32 = const.i32 <30>
  %4:i32 = const.i32 <4>
  %5:i32 = bit_extract_u.i32 %1, %3, %4
  store.i32 <storage x1 align 4> %0, %5"
        ),
        ["a field of 4 bits at bit 30 of 32"]
    );
}

#[test]
fn accesses_out_of_range() {
    assert_eq!(
        block(
            "  %3:ptr.private = var_addr.ptr.private <$0>
  %4:i32 = const.i32 <4>
  %5:ptr.private = lea.ptr.private <scale 4 offset 0> %3, %4
  store.i32 <private x1 align 4> %5, %1
  %6:ptr.storage = lea.ptr.storage <scale 1 offset 8> %0
  %7:i32 = load.i32 <storage x1 align 4> %6
  store.i32 <storage x1 align 4> %0, %7"
        ),
        ["a read at byte 8 of `data`, which has 8 bytes", "a write at byte 16 of `v`, which has 16 bytes"]
    );
}

#[test]
fn a_loop_without_a_way_out() {
    assert_eq!(
        messages(
            "b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:i32 = const.i32 <1>
  jump b1
b1:
  store.i32 <storage x1 align 4> %0, %1
  jump b1
"
        ),
        ["a loop that nothing leads out of"]
    );
}
