//! Printing modules.

use super::*;
use crate::image::{Axis, Component, Dim, ImageInfo};
use crate::io::{DepthMode, FragmentModes, Interpolation, Owner, Sampling, Slot};
use crate::module::*;
use crate::ops::Op;
use crate::primitive::{Domain, InputPrimitive, OutputPrimitive, PrimitiveModes, Spacing};
use crate::sample::{Level, Lookup};
use crate::types::Type;
use std::fmt::Write;

/// The text of a module. Ids that point nowhere are printed as they are, so broken modules can be looked at too.
pub fn print(m: &Module) -> String {
    let mut s = String::new();
    put(&mut s, m);
    s
}

/// The text of one instruction, without indentation and line end.
pub fn print_inst(m: &Module, i: Inst) -> String {
    let mut s = String::new();
    inst(&mut s, &m.func, i);
    s
}

// `write!` to a string cannot fail, so its results are dropped throughout.
fn put(s: &mut String, m: &Module) {
    let _ = writeln!(s, "module {} {}", quoted(&m.name), name_of(STAGES, m.stage));
    let [x, y, z] = m.workgroup_size;
    let _ = writeln!(s, "workgroup {x} {y} {z}");
    if m.fragment != FragmentModes::default() {
        let early = if m.fragment.early_tests { " early_tests" } else { "" };
        let _ = writeln!(s, "fragment{early} depth {}", name_of(&DepthMode::NAMES, m.fragment.depth));
    }
    if m.primitive != PrimitiveModes::default() {
        let p = &m.primitive;
        let _ = write!(
            s,
            "primitive input {} output {} vertices {} invocations {} domain {} spacing {}",
            name_of(&InputPrimitive::NAMES, p.input),
            name_of(&OutputPrimitive::NAMES, p.output),
            p.vertices,
            p.invocations,
            name_of(&Domain::NAMES, p.domain),
            name_of(&Spacing::NAMES, p.spacing)
        );
        s.push_str(if p.clockwise { " clockwise" } else { "" });
        s.push_str(if p.point_mode { " point_mode\n" } else { "\n" });
    }
    if m.uses_subgroups {
        s.push_str("subgroups\n");
    }
    for f in &m.files {
        let _ = writeln!(s, "file {}", quoted(f));
    }
    for l in &m.locs {
        let _ = writeln!(s, "loc {} {} {}", l.file, l.line, l.column);
    }
    for (id, r) in m.resources.iter() {
        let _ = write!(
            s,
            "resource {id} {} set {} binding {} elements {} size {} stride {}",
            name_of(RES_KINDS, r.kind),
            r.set,
            r.binding,
            r.elements,
            r.size,
            r.tail_stride
        );
        if r.read_only {
            s.push_str(" readonly");
        }
        if let Some(i) = &r.image {
            image_info(s, i);
        }
        let _ = writeln!(s, " {}", quoted(&r.name));
    }
    for (id, v) in m.vars.iter() {
        let _ =
            writeln!(s, "var {id} {} size {} align {} {}", v.space.name(), v.size, v.align, quoted(&v.name));
    }
    for line in m.constant_data.chunks(32) {
        s.push_str("data ");
        for b in line {
            let _ = write!(s, "{b:02x}");
        }
        s.push('\n');
    }
    s.push_str("func\n");
    for &b in &m.func.layout {
        block(s, &m.func, b);
    }
}

/// What stands behind the other facts of a resource.
fn image_info(s: &mut String, i: &ImageInfo) {
    let _ = write!(s, " {} {}", name_of(&Component::ALL, i.component), name_of(&Dim::ALL, i.dim));
    for (flag, name) in [(i.arrayed, "array"), (i.multisampled, "ms"), (i.depth, "depth")] {
        if flag {
            let _ = write!(s, " {name}");
        }
    }
    if let Some(f) = i.format {
        let _ = write!(s, " format {}", f.name());
    }
}

fn block(s: &mut String, f: &Function, b: Block) {
    let Some(data) = f.blocks.get(b) else {
        let _ = writeln!(s, "; {b} does not exist");
        return;
    };
    let _ = write!(s, "{b}");
    if !data.params.is_empty() {
        s.push('(');
        for (n, &p) in data.params.iter().enumerate() {
            s.push_str(if n == 0 { "" } else { ", " });
            definition(s, f, p);
        }
        s.push(')');
    }
    match data.loop_hint {
        LoopHint::None => {}
        LoopHint::Unroll => s.push_str(" [unroll]"),
        LoopHint::DontUnroll => s.push_str(" [dontunroll]"),
    }
    match data.branch_hint {
        BranchHint::None => {}
        BranchHint::Flatten => s.push_str(" [flatten]"),
        BranchHint::DontFlatten => s.push_str(" [dontflatten]"),
    }
    s.push_str(":\n");
    for &i in &data.insts {
        s.push_str("  ");
        inst(s, f, i);
        s.push('\n');
    }
    s.push_str("  ");
    match &data.term {
        Term::Jump(t) => {
            s.push_str("jump ");
            target(s, t);
        }
        Term::Branch { cond, then, els } => {
            let _ = write!(s, "branch {cond}, ");
            target(s, then);
            s.push_str(", ");
            target(s, els);
        }
        Term::Return => s.push_str("return"),
        Term::Unreachable => s.push_str("unreachable"),
    }
    location(s, data.term_loc);
    s.push('\n');
}

fn target(s: &mut String, t: &Target) {
    let _ = write!(s, "{}", t.block);
    if !t.args.is_empty() {
        s.push('(');
        values(s, &t.args);
        s.push(')');
    }
}

fn values(s: &mut String, vs: &[Value]) {
    for (n, v) in vs.iter().enumerate() {
        let _ = write!(s, "{}{v}", if n == 0 { "" } else { ", " });
    }
}

fn definition(s: &mut String, f: &Function, v: Value) {
    let _ = write!(s, "{v}");
    if let Some(d) = f.values.get(v) {
        let _ = write!(s, ":{}", d.ty);
    }
    if let Some(name) = f.names.get(&v) {
        let _ = write!(s, " {}", quoted(name));
    }
}

fn location(s: &mut String, loc: Loc) {
    if loc.0 != 0 {
        let _ = write!(s, " #{}", loc.0);
    }
}

fn inst(s: &mut String, f: &Function, i: Inst) {
    let Some(d) = f.insts.get(i) else {
        let _ = write!(s, "; {i} does not exist");
        return;
    };
    for (n, &r) in d.results.iter().enumerate() {
        s.push_str(if n == 0 { "" } else { ", " });
        definition(s, f, r);
    }
    if !d.results.is_empty() {
        s.push_str(" = ");
    }
    let _ = write!(s, "{}.{}", d.op.name(), d.ty);
    immediate(s, &d.imm);
    if !d.args.is_empty() {
        s.push(' ');
        values(s, &d.args);
    }
    if d.flags != Flags::NONE {
        let names: Vec<&str> = FLAGS.iter().filter(|(_, f)| d.flags.has(*f)).map(|(n, _)| *n).collect();
        let _ = write!(s, " {{{}}}", names.join(" "));
    }
    location(s, d.loc);
    // What the bits of a float constant mean, for the reader.
    if let (Op::Const, Imm::Int(bits)) = (d.op, d.imm) {
        match d.ty {
            Type::F16 => _ = write!(s, " ; {:?}", crate::eval::f16_to_f64(bits as u16)),
            Type::F32 => _ = write!(s, " ; {:?}", f32::from_bits(bits as u32)),
            Type::F64 => _ = write!(s, " ; {:?}", f64::from_bits(bits)),
            _ => {}
        }
    }
}

fn immediate(s: &mut String, imm: &Imm) {
    let _ = match imm {
        Imm::None => Ok(()),
        // Small numbers are easier to read in decimal, addresses and bit patterns in hexadecimal.
        Imm::Int(n) if *n < 0x1_0000 => write!(s, " <{n}>"),
        Imm::Int(n) => write!(s, " <{n:#x}>"),
        Imm::Lea(l) => write!(s, " <scale {} offset {}>", l.scale, l.offset),
        Imm::Mem(m) => write!(
            s,
            " <{} x{} align {}{}{}>",
            m.space.name(),
            m.count,
            m.align,
            if m.volatile { " volatile" } else { "" },
            if m.read_only { " readonly" } else { "" }
        ),
        Imm::Atomic(a) => write!(s, " <{} {}>", name_of(ATOMIC_OPS, a.op), a.space.name()),
        Imm::Var(v) => write!(s, " <{v}>"),
        Imm::Res(r) => write!(s, " <{r}>"),
        Imm::Builtin(b) => {
            let (zero, component) = match b.component() {
                Some((zero, c, _)) => (zero, Some(c)),
                None => (*b, None),
            };
            let name = BUILTINS.iter().find(|(_, b, _)| *b == zero).map_or("?", |(n, ..)| n);
            match component {
                Some(c) => write!(s, " <{name} {c}>"),
                None => write!(s, " <{name}>"),
            }
        }
        Imm::Uniform(w) => match w {
            UniformWord::BufferAddr { res, element } => write!(s, " <buffer_addr {res} {element}>"),
            UniformWord::BufferSize { res, element } => write!(s, " <buffer_size {res} {element}>"),
            UniformWord::TextureState { res, element } => write!(s, " <texture_state {res} {element}>"),
            UniformWord::SamplerState { res, element } => write!(s, " <sampler_state {res} {element}>"),
            UniformWord::ViewportScale { axis, steps } => write!(s, " <viewport_scale {axis} {steps}>"),
            UniformWord::ImageSize { res, element, axis } => {
                write!(s, " <image_size {res} {element} {}>", name_of(&Axis::ALL, *axis))
            }
            UniformWord::PushWord(n) => write!(s, " <push_word {n}>"),
            UniformWord::NumWorkgroups(n) => write!(s, " <num_workgroups {n}>"),
            other => write!(s, " <{}>", name_of(PLAIN_WORDS, *other)),
        },
        Imm::Image(i) => {
            let _ = write!(s, " <{}", i.res);
            match i.atomic {
                Some(op) => _ = write!(s, " {}", name_of(ATOMIC_OPS, op)),
                None => _ = write!(s, " {}", name_of(TEXEL_FORMS, i.form)),
            }
            if i.mask != 0 {
                let _ = write!(s, " mask {}", i.mask);
            }
            for (flag, name) in [(i.element, "element"), (i.lod, "lod"), (i.volatile, "volatile")] {
                if flag {
                    let _ = write!(s, " {name}");
                }
            }
            write!(s, ">")
        }
        Imm::Sample(i) => {
            let _ = write!(s, " <{}", i.res);
            if let Some(sampler) = i.sampler {
                let _ = write!(s, " sampler {sampler}");
            }
            let _ = write!(
                s,
                " {} {} mask {}",
                name_of(&Lookup::NAMES, i.lookup),
                name_of(&Level::NAMES, i.level),
                i.mask
            );
            let flags = [
                (i.element, "element"),
                (i.sampler_element, "sampler_element"),
                (i.dref, "dref"),
                (i.offset, "offset"),
                (i.pixels, "pixels"),
            ];
            for (_, name) in flags.iter().filter(|f| f.0) {
                let _ = write!(s, " {name}");
            }
            if i.machine {
                let [x, y, z] = i.texels;
                let _ = write!(s, " machine {x} {y} {z}");
            }
            write!(s, ">")
        }
        Imm::Io(io) => {
            let (slot, number) = match io.slot {
                Slot::Location(n) => (Slot::Location(0), Some(u16::from(n))),
                Slot::Row(n) => (Slot::Row(0), Some(n)),
                other => (other, None),
            };
            let _ = write!(s, " <{}", name_of(&Slot::NAMES, slot));
            if let Some(n) = number {
                let _ = write!(s, " {n}");
            }
            let _ = write!(s, " component {}", io.component);
            if io.index != 0 {
                let _ = write!(s, " index {}", io.index);
            }
            if io.interpolation != Interpolation::default() {
                let _ = write!(s, " {}", name_of(&Interpolation::NAMES, io.interpolation));
            }
            if io.sampling != Sampling::default() {
                let _ = write!(s, " {}", name_of(&Sampling::NAMES, io.sampling));
            }
            if io.owner != Owner::default() {
                let _ = write!(s, " {}", name_of(&Owner::NAMES, io.owner));
            }
            if io.locations != 0 {
                let _ = write!(s, " locations {}", io.locations);
            }
            if io.components != 0 {
                let _ = write!(s, " components {}", io.components);
            }
            write!(s, ">")
        }
        Imm::Stream(n) => write!(s, " <stream {n}>"),
        Imm::Barrier(b) => {
            let mut names = Vec::new();
            if b.shared {
                names.push("shared");
            }
            if b.storage {
                names.push("storage");
            }
            write!(s, " <{}>", names.join(" "))
        }
        Imm::Reduce(r) => {
            write!(s, " <{} {} cluster {}>", r.op.name(), name_of(REDUCE_KINDS, r.kind), r.cluster)
        }
    };
}

/// A string in quotes; the quote, the backslash and control characters are escaped.
fn quoted(text: &str) -> String {
    let mut s = String::with_capacity(text.len() + 2);
    s.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                s.push('\\');
                s.push(c);
            }
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => {
                let _ = write!(s, "\\u{{{:x}}}", c as u32);
            }
            c => s.push(c),
        }
    }
    s.push('"');
    s
}
