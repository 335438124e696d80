//! Control flow on the mask: programs whose lanes go different ways, against the interpreter.

mod common;

use common::{bytes, made, module};
use kempe_agx::compile::Options;
use kempe_ir::exec::Inputs;

const HEAD: &str = "module \"main\" compute
workgroup 96 1 1
resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"data\"
func
b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:i32 = builtin.i32 <local_invocation_index>
  %2:ptr.storage = lea.ptr.storage <scale 4 offset 0> %0, %1
  %3:i32 = const.i32 <0>
  %4:i32 = const.i32 <1>
  %5:i32 = load.i32 <storage x1 align 4> %2
  jump b1(%3, %3)
";

fn run(body: &str) {
    let m = module(&format!("{HEAD}{body}"));
    for options in [Options::default(), Options { force_spill: true, ..Options::default() }] {
        let made = made(&m, &options).expect("it compiles");
        for seed in 0..4u32 {
            let data: Vec<u32> = (0..192u32).map(|n| n.wrapping_mul(seed + 1) % 11).collect();
            made.run(&Inputs::new([2, 1, 1]).buffer(0, 0, bytes(&data)));
        }
    }
}

#[test]
fn breaks_and_continues_of_two_loops() {
    // Outer: rounds up to the lane's number; inner: leaves both, the inner one, or goes on, by the values.
    run("b1(%10:i32, %11:i32):
  %12:bool = ult.i32 %10, %5
  branch %12, b2(%3, %11), b8
b2(%13:i32, %14:i32):
  %15:i32 = iadd.i32 %14, %13
  %16:i32 = const.i32 <3>
  %17:i32 = and.i32 %15, %16
  %18:bool = ieq.i32 %17, %16
  branch %18, b5, b3
b3:
  %19:i32 = const.i32 <40>
  %20:bool = ult.i32 %19, %15
  branch %20, b7, b4
b4:
  %21:bool = ult.i32 %5, %13
  branch %21, b6, b5
b5:
  %22:i32 = iadd.i32 %13, %4
  %23:i32 = iadd.i32 %15, %10
  %24:i32 = const.i32 <9>
  %25:bool = ult.i32 %22, %24
  branch %25, b2(%22, %23), b6
b6:
  %26:i32 = iadd.i32 %10, %4
  jump b1(%26, %15)
b7:
  %27:i32 = const.i32 <1000>
  %28:i32 = iadd.i32 %15, %27
  jump b9(%28)
b8:
  jump b9(%11)
b9(%30:i32):
  store.i32 <storage x1 align 4> %2, %30
  return
");
}

#[test]
fn returns_out_of_a_loop() {
    run("b1(%10:i32, %11:i32):
  %12:bool = ult.i32 %10, %5
  branch %12, b2, b5
b2:
  %13:i32 = iadd.i32 %11, %10
  %14:i32 = const.i32 <7>
  %15:bool = ult.i32 %14, %13
  branch %15, b3, b4
b3:
  store.i32 <storage x1 align 4> %2, %13
  return
b4:
  %16:i32 = iadd.i32 %10, %4
  jump b1(%16, %13)
b5:
  store.i32 <storage x1 align 4> %2, %10
  return
");
}

#[test]
fn values_swap_on_the_way_round() {
    run("b1(%10:i32, %11:i32):
  %12:i32 = iadd.i32 %10, %4
  %13:bool = ult.i32 %12, %5
  branch %13, b1(%11, %12), b2
b2:
  %14:i32 = isub.i32 %10, %11
  store.i32 <storage x1 align 4> %2, %14
  return
");
}

/// Two halves go into one word: between the two writes the register holds one of them only, which no spill may see.
#[test]
fn a_packed_word_is_never_seen_half() {
    run("b1(%10:i32, %11:i32):
  %12:f32 = sitof.f32 %5
  %13:f16 = fconv.f16 %12
  %14:f32 = sitof.f32 %1
  %15:f16 = fconv.f16 %14
  %16:f16 = fsub.f16 %13, %15
  %17:i16 = bitcast.i16 %16
  %18:i32 = zext.i32 %17
  store.i32 <storage x1 align 4> %2, %18
  return
");
}
