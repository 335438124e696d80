//! Addresses of buffers: what goes into an access, and what is computed (reference sections 6, 6.1, 6.2).

mod common;

use common::{bytes, made, module};
use kempe_agx::compile::Options;
use kempe_agx::instr::{Number, Role};
use kempe_agx::ops::Op;
use kempe_ir::exec::Inputs;

/// A kernel of 64 invocations: buffer 0 is read at an address, buffer 1 gets what was there. `%1` is the index of the
/// invocation, `%9` the pointer.
fn reads(body: &str, ty: &str, align: u32) -> String {
    let out = match ty {
        "i8" | "i16" => {
            format!("  %10:{ty} = load.{ty} <storage x1 align {align}> %9\n  %11:i32 = zext.i32 %10")
        }
        _ => format!("  %11:i32 = load.i32 <storage x1 align {align}> %9"),
    };
    format!(
        "module \"main\" compute
workgroup 64 1 1
resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"from\"
resource @1 storage set 0 binding 1 elements 1 size 0 stride 4 \"to\"
func
b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:i32 = builtin.i32 <local_invocation_index>
{body}
{out}
  %20:ptr.storage = resource_addr.ptr.storage <@1>
  %21:ptr.storage = lea.ptr.storage <scale 4 offset 0> %20, %1
  store.i32 <storage x1 align 4> %21, %11
  return
"
    )
}

/// Runs it and gives the read instruction: shift, and whether anything but reads of what the invocation is and the accesses
/// themselves is left.
fn check(body: &str, ty: &str, align: u32, words: usize) -> (u32, usize) {
    let m = module(&reads(body, ty, align));
    let made = made(&m, &Options::default()).expect("it compiles");
    let data: Vec<u32> = (0..words as u32).map(|n| n.wrapping_mul(0x0103_0507) ^ 0x55).collect();
    made.run(&Inputs::new([1, 1, 1]).buffer(0, 0, bytes(&data)).buffer(0, 1, vec![0; 256]));
    let instrs = made.instrs();
    let load = instrs.iter().find(|i| i.op == Op::DeviceLoad).expect("a load");
    assert_eq!(load.operand(Role::Base).as_uniform().map(|u| u.0), Some(0));
    let arithmetic = instrs.iter().filter(|i| {
        !matches!(i.op, Op::GetSr | Op::DeviceLoad | Op::DeviceStore | Op::Wait | Op::Stop | Op::Trap)
    });
    (load.get(Number::Shift), arithmetic.count())
}

#[test]
fn an_index_goes_in_with_its_scale() {
    // Rules 1 and 7: nothing is computed. The invocation's index is below 64, so no shift loses a bit.
    for (scale, shift) in [(4, 0), (8, 1), (16, 2)] {
        let body = format!("  %9:ptr.storage = lea.ptr.storage <scale {scale} offset 0> %0, %1");
        assert_eq!(check(&body, "i32", 4, 256), (shift, 0), "scale {scale}");
    }
    for (scale, shift) in [(2, 0), (4, 1), (8, 2)] {
        let body = format!("  %9:ptr.storage = lea.ptr.storage <scale {scale} offset 0> %0, %1");
        assert_eq!(check(&body, "i16", 2, 256), (shift, 0), "scale {scale}");
    }
    for (scale, shift) in [(1, 0), (2, 1), (4, 2)] {
        let body = format!("  %9:ptr.storage = lea.ptr.storage <scale {scale} offset 0> %0, %1");
        assert_eq!(check(&body, "i8", 1, 256), (shift, 0), "scale {scale}");
    }
}

#[test]
fn strides_that_are_no_shift_take_one_operation() {
    // Rule 8; shape A35: 12, 24 and 64 bytes.
    for (scale, shift) in [(12, 0), (24, 1), (64, 2), (48, 2), (20, 0)] {
        let body = format!("  %9:ptr.storage = lea.ptr.storage <scale {scale} offset 0> %0, %1");
        assert_eq!(check(&body, "i32", 4, 1100), (shift, 1), "scale {scale}");
    }
}

#[test]
fn a_constant_joins_the_index_or_stands_alone() {
    // Rules 2, 5 and 9.
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 16 offset 32> %0, %1";
    assert_eq!(check(body, "i32", 4, 300), (2, 1));
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 16 offset 4> %0, %1";
    assert_eq!(check(body, "i32", 4, 300), (0, 1));
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 0 offset 64> %0";
    assert_eq!(check(body, "i32", 4, 300), (2, 0));
    // Beyond the immediate: a register.
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 0 offset 524292> %0";
    assert_eq!(check(body, "i32", 4, 131_080), (0, 1));
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 0 offset 524288> %0";
    assert_eq!(check(body, "i32", 4, 131_080), (2, 1));
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 0 offset 524272> %0";
    assert_eq!(check(body, "i32", 4, 131_080), (2, 0));
}

#[test]
fn negative_indices_are_right() {
    // Shape A34: p[63 - i] and p[64 + (-1 - i)].
    let body = "  %2:i32 = const.i32 <0>
  %3:i32 = isub.i32 %2, %1
  %9:ptr.storage = lea.ptr.storage <scale 4 offset 252> %0, %3";
    check(body, "i32", 4, 64);
    let body = "  %2:i32 = const.i32 <4294967295>
  %3:i32 = isub.i32 %2, %1
  %9:ptr.storage = lea.ptr.storage <scale 8 offset 512> %0, %3";
    check(body, "i32", 4, 128);
    let body = "  %2:i32 = const.i32 <4294967295>
  %3:i32 = isub.i32 %2, %1
  %9:ptr.storage = lea.ptr.storage <scale 12 offset 768> %0, %3";
    check(body, "i32", 4, 256);
}

#[test]
fn a_product_that_wraps_is_not_moved_across_the_extension() {
    // Shape A35: the byte offset is taken modulo 2^32, the shift of the hardware is not.
    for scale in [4u32, 8, 16, 12, 24, 64] {
        let wrap = 0x4000_0000u32;
        let body = format!(
            "  %2:i32 = const.i32 <{wrap}>
  %3:i32 = iadd.i32 %1, %2
  %9:ptr.storage = lea.ptr.storage <scale {scale} offset 0> %0, %3"
        );
        check(&body, "i32", 4, 1100);
    }
    // The product of the source itself, just below and above 2^32.
    let body = "  %2:i32 = const.i32 <1073741823>
  %3:i32 = iadd.i32 %1, %2
  %4:i32 = const.i32 <4>
  %5:i32 = imul.i32 %3, %4
  %9:ptr.storage = lea.ptr.storage <scale 1 offset 4> %0, %5";
    check(body, "i32", 4, 128);
}

#[test]
fn narrow_elements_at_odd_places_are_not_merged() {
    // Shape A37: 16-bit elements at a multiple of 2 only.
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 6 offset 2> %0, %1";
    check(body, "i16", 2, 128);
    let body = "  %9:ptr.storage = lea.ptr.storage <scale 3 offset 5> %0, %1";
    check(body, "i8", 1, 128);
}

#[test]
fn vectors_of_words_stand_at_any_word() {
    let m = module(
        "module \"main\" compute
workgroup 64 1 1
resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"from\"
resource @1 storage set 0 binding 1 elements 1 size 0 stride 4 \"to\"
func
b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:i32 = builtin.i32 <local_invocation_index>
  %2:ptr.storage = lea.ptr.storage <scale 12 offset 4> %0, %1
  %3:i32, %4:i32, %5:i32 = load.i32 <storage x3 align 4> %2
  %6:ptr.storage = resource_addr.ptr.storage <@1>
  %7:ptr.storage = lea.ptr.storage <scale 12 offset 0> %6, %1
  store.i32 <storage x3 align 4> %7, %5, %3, %4
  return
",
    );
    let made = made(&m, &Options::default()).expect("it compiles");
    let data: Vec<u32> = (0..200).collect();
    let out = made.run(&Inputs::new([1, 1, 1]).buffer(0, 0, bytes(&data)).buffer(0, 1, vec![0; 768]));
    assert_eq!(out[1][..12], bytes(&[3, 1, 2]));
    assert_eq!(made.instrs().iter().filter(|i| i.op == Op::DeviceLoad).count(), 1);
}
