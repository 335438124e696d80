//! Modules of any size, each with what it makes of a word.

use super::{body, shader};
use std::fmt::Write;

/// Name, module, and what `main` computes from its word of the input.
pub type Sized = (String, Vec<u32>, Box<dyn Fn(u32) -> u32>);

/// One block with a chain of `n` additions, exclusive ors and products.
pub fn long_block(n: usize) -> Sized {
    let mut code = "%v0 = OpIAdd %uint %a %u1\n".to_owned();
    for k in 0..n {
        let op = ["OpIAdd", "OpBitwiseXor", "OpIMul"][k % 3];
        writeln!(code, "%v{} = {op} %uint %v{k} %u{}", k + 1, [3, 10, 3][k % 3]).unwrap();
    }
    writeln!(code, "%r = OpCopyObject %uint %v{n}").unwrap();
    let step = |v: u32, k: usize| match k % 3 {
        0 => v.wrapping_add(3),
        1 => v ^ 10,
        _ => v.wrapping_mul(3),
    };
    let value = move |a: u32| (0..n).fold(a.wrapping_add(1), step);
    (format!("a block of {n}"), shader("", &body(&code)), Box::new(value))
}

/// `n` selections inside of each other: 10 for words above 3, 1 for the others.
pub fn nest(n: usize) -> Sized {
    let (mut open, mut close) = (String::new(), String::new());
    for k in 0..n {
        write!(
            open,
            "%c{k} = OpUGreaterThan %bool %a %u{}
            OpSelectionMerge %m{k} 0
            OpBranchConditional %c{k} %t{k} %m{k}
            %t{k} = OpLabel
            ",
            k % 4
        )
        .unwrap();
        let last = n - 1 - k;
        let from = if last == 0 { "entry".to_owned() } else { format!("t{}", last - 1) };
        let innermost = last == n - 1;
        let inner = if innermost { "u10".to_owned() } else { format!("p{}", last + 1) };
        let way = if innermost { format!("t{last}") } else { format!("m{}", last + 1) };
        write!(
            close,
            "OpBranch %m{last}
            %m{last} = OpLabel
            %p{last} = OpPhi %uint %u1 %{from} %{inner} %{way}
            "
        )
        .unwrap();
    }
    let code = format!("{open}{close}%r = OpCopyObject %uint %p0");
    let value = |a| if a > 3 { 10 } else { 1 };
    (format!("{n} selections inside of each other"), shader("", &body(&code)), Box::new(value))
}

/// `n` functions that `main` calls one after the other.
pub fn functions(n: u32) -> Sized {
    let mut functions = String::new();
    for k in 0..n {
        write!(
            functions,
            "%g{k} = OpFunction %uint 0 %fnuu
            %z{k} = OpFunctionParameter %uint
            %l{k} = OpLabel
            %s{k} = OpIAdd %uint %z{k} %u{}
            OpReturnValue %s{k}
            OpFunctionEnd
            ",
            1 + k % 3
        )
        .unwrap();
    }
    let mut code = "%v0 = OpCopyObject %uint %a\n".to_owned();
    for k in 0..n {
        writeln!(code, "%v{} = OpFunctionCall %uint %g{k} %v{k}", k + 1).unwrap();
    }
    writeln!(code, "%r = OpCopyObject %uint %v{n}").unwrap();
    let words = shader("%fnuu = OpTypeFunction %uint %uint", &(functions + &body(&code)));
    let sum: u32 = (0..n).map(|k| 1 + k % 3).sum();
    (format!("{n} functions"), words, Box::new(move |a| a.wrapping_add(sum)))
}
