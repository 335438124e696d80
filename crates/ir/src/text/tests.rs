use super::*;

const SAMPLE: &str = r#"module "main" compute
workgroup 16 2 1
subgroups
file "a \"b\".comp"
loc 0 3 7
resource @0 storage set 0 binding 1 elements 1 size 0 stride 4 "data"
resource @1 push set 0 binding 0 elements 1 size 16 stride 0 readonly ""
var $0 shared size 64 align 16 "tile"
data 00ff10
func
b0:
  %0:ptr.storage = resource_addr.ptr.storage <@0>
  %1:i32 "i" = builtin.i32 <workgroup_id 2>
  %2:ptr.storage = lea.ptr.storage <scale 4 offset -8> %0, %1 {nsw}
  %9:f32, %4:f32 "b" = load.f32 <storage x2 align 4 volatile readonly> %2 #1
  %5:f32 = const.f32 <0x3f800000> ; 1.0
  %6:bool = flt.f32 %9, %4
  branch %6, b7, b3(%5) #1
b7 [flatten]:
  %10:f32 = fadd.f32 %9, %4 {nocontract relaxed fast}
  %11:i32 = atomic.i32 <compare_exchange storage> %2, %1, %1
  barrier.i32 <shared storage>
  fence.i32 <>
  %12:f32 = reduce.f32 <fmax exclusive cluster 4> %10
  %13:i32 = uniform.i32 <buffer_addr @0 0>
  %14:i32 = uniform.i32 <push_word 16>
  %15:i32 = uniform.i32 <shared_addr>
  %16:i32 = payload.i32 <1>
  %17:ptr.shared = var_addr.ptr.shared <$0>
  %18:f16 = const.f16 <15360> ; 1.0
  jump b3(%12)
b3(%7:f32 "x", ) [dontunroll]:
  store.f32 <storage x1 align 4> %2, %7
  return
"#;

#[test]
fn printing_what_was_parsed_gives_the_same_text() {
    let text = SAMPLE.replace("\"x\", )", "\"x\")");
    let m = parse(&text).unwrap();
    assert_eq!(print(&m), text);
    assert_eq!(m.files[0], "a \"b\".comp");
    assert_eq!(m.func.names[&crate::Value(4)], "b");
    assert_eq!(m.constant_data, [0, 255, 16]);
    crate::verify::verify(&m).unwrap();
}

#[test]
fn errors_have_a_place() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(error(SAMPLE), "32:16: expected `%`");
    assert_eq!(error(""), "1:1: expected `module`");
    assert_eq!(error("func"), "1:1: expected `module`");
    assert_eq!(error("module \"m\" pixel"), "1:12: expected a stage");
    assert_eq!(
        error("module \"m\" compute\nworkgroup 1 2 99999999999"),
        "2:15: the number is beyond 32 bits"
    );
    let f = "module \"m\" compute\nfunc\n";
    assert_eq!(error(&format!("{f}return")), "3:1: expected a block");
    assert_eq!(error(&format!("{f}b0:\n")), "3:1: the text ends inside of b0");
    assert_eq!(error(&format!("{f}b0:\nb1:")), "4:1: b0 has no end before this block");
    assert_eq!(error(&format!("{f}b0:\n  nonsense.i32")), "4:3: unknown operation");
    assert_eq!(error(&format!("{f}b0:\n  %0:i32 = iadd.i32 <4> %1")), "4:22: iadd has no immediate");
    assert_eq!(error(&format!("{f}b0:\n  return\nb0:")), "5:1: b0 stands in two places");
    assert_eq!(error(&format!("{f}b99999999:")), "3:1: the number of b99999999 is too large");
    assert_eq!(error(&format!("{f}b0: 5")), "3:5: expected the end of the line");
}

/// Any prefix and any text with a byte changed gives a module or an error, never a panic, and what parses can be
/// printed, verified and printed the same again.
#[test]
fn damaged_texts() {
    let text = SAMPLE.replace("\"x\", )", "\"x\")");
    let try_text = |t: &str| {
        if let Ok(m) = parse(t) {
            let printed = print(&m);
            let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert_eq!(print(&again), printed);
            let _ = crate::verify::verify(&m);
        }
    };
    for n in 0..text.len() {
        try_text(&text[..n]);
        for c in [" ", "9", "%", "b", "\"", "ä", ">", "\n", ";", "0x"] {
            try_text(&format!("{}{c}{}", &text[..n], &text[n + 1..]));
            try_text(&format!("{}{c}{}", &text[..n], &text[n..]));
        }
    }
}
