//! Checker B reads vertex and fragment programs: small ones pass, and each hand-made corruption of their final words is
//! objected to, by checker B alone.

use kempe_ir::text;
use kempe_mir::{Mir, UniformSource};
use kempe_ra::Allocation;
use kempe_v3d::checkb::{self, View};
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::decode::decode;
use kempe_v3d::encode::encode_any;
use kempe_v3d::finish::{Finished, Frame};
use kempe_v3d::instr::{
    Alu, Cond, Dest, Instr, MsfIgnore, Op, Part, Signals, Source, Version, small_code, small_value,
};
use kempe_v3d::mops::MInst;

/// Three varyings, a discard that others outlive, a load for helpers too, two targets.
const FRAGMENT: &str = "module \"f\" fragment\nworkgroup 1 1 1\n\
    resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"b\"\nfunc\nb0:\n  \
    %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = input.f32 <location 0 component 1 noperspective>\n  \
    %2:i32 = input.i32 <location 1 component 0 flat>\n  %3:f32 = const.f32 <0x41200000>\n  \
    %4:bool = flt.f32 %3, %0\n  branch %4, b1, b2\n\
    b1:\n  demote.bool\n  jump b2\n\
    b2:\n  %5:ptr.storage = resource_addr.ptr.storage <@0>\n  \
    %6:ptr.storage = lea.ptr.storage <scale 4 offset 0> %5, %2\n  %7:i32 = load.i32 <storage x1 align 4> %6\n  \
    output.f32 <location 0 component 0> %0\n  output.f32 <location 0 component 1> %1\n  \
    output.i32 <location 1 component 0> %7\n  output.i32 <location 1 component 1> %2\n  return\n";

/// A loop that every lane leaves when it wants.
const LOOP: &str = "module \"f\" fragment\nworkgroup 1 1 1\nfunc\nb0:\n  \
    %0:i32 = input.i32 <location 0 component 0 flat>\n  %1:i32 = const.i32 <0>\n  %2:i32 = const.i32 <1>\n  \
    jump b1(%1)\n\
    b1(%3:i32):\n  %4:bool = slt.i32 %3, %0\n  branch %4, b2, b3\n\
    b2:\n  %5:i32 = iadd.i32 %3, %2\n  jump b1(%5)\n\
    b3:\n  output.i32 <location 0 component 0> %3\n  return\n";

const VERTEX: &str = "module \"v\" vertex\nworkgroup 1 1 1\nfunc\nb0:\n  \
    %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = input.f32 <location 0 component 1>\n  \
    %2:f32 = input.f32 <location 0 component 2>\n  %3:f32 = const.f32 <0x3f800000>\n  \
    output.f32 <position component 0> %0\n  output.f32 <position component 1> %1\n  \
    output.f32 <position component 2> %2\n  output.f32 <position component 3> %3\n  \
    output.f32 <location 0 component 0> %2\n  output.f32 <location 0 component 1> %1\n  return\n";

/// A finished program with what it was made from.
struct Made {
    version: Version,
    mir: Mir<MInst>,
    slots: u32,
    frame: Frame,
    code: Finished,
}

#[derive(Default)]
struct Catch(Vec<(Mir<MInst>, u32, Frame, Finished)>);

impl Observer for Catch {
    fn finished(&mut self, mir: &Mir<MInst>, allocation: &Allocation, frame: &Frame, code: &Finished) {
        self.0.push((mir.clone(), allocation.slots, *frame, code.clone()));
    }
}

impl Made {
    fn new(source: &str, version: Version, options: &Options) -> Made {
        let m = text::parse(source).unwrap_or_else(|e| panic!("{e:?}"));
        let mut catch = Catch::default();
        let options = Options { verify: true, ..*options };
        compile(m, version, &options, &mut catch).unwrap_or_else(|e| panic!("{}: {e}", version.name()));
        let (mir, slots, frame, code) = catch.0.pop().expect("an attempt");
        Made { version, mir, slots, frame, code }
    }

    fn check(&self) -> Result<(), String> {
        let Frame { stage, threads, private_bytes, .. } = self.frame;
        let view = View::new(&self.code, self.slots);
        checkb::check(&self.mir, &view, self.version, stage, threads, private_bytes)
            .map_err(|e| e.to_string())
    }

    fn alu(&self, n: usize) -> Option<Alu> {
        match decode(self.version, self.code.words[n]) {
            Ok(Instr::Alu(alu)) => Some(alu),
            _ => None,
        }
    }

    fn find(&self, is: impl Fn(&Alu) -> bool) -> Vec<usize> {
        (0..self.code.words.len()).filter(|&n| self.alu(n).is_some_and(|a| is(&a))).collect()
    }

    fn with_op(&self, op: Op) -> Vec<usize> {
        self.find(|a| a.add.op == op)
    }

    fn change(&mut self, n: usize, how: impl FnOnce(&mut Alu)) {
        let mut alu = self.alu(n).expect("an ALU word");
        how(&mut alu);
        self.code.words[n] = encode_any(self.version, &Instr::Alu(alu)).expect("it can be encoded");
    }

    /// What is said of it contains this.
    #[track_caller]
    fn objected(&self, what: &str) {
        match self.check() {
            Ok(()) => panic!("{}: nobody objects", self.version.name()),
            Err(e) => assert!(e.contains(what), "{}: {e}", self.version.name()),
        }
    }
}

#[track_caller]
fn each(source: &str, how: impl Fn(Made)) {
    for version in Version::ALL {
        for threads in [2, 4] {
            how(Made::new(source, version, &Options { threads: Some(threads), ..Options::default() }));
        }
    }
}

#[test]
fn right_code_passes() {
    for source in [FRAGMENT, LOOP, VERTEX] {
        each(source, |m| m.check().expect("it is right"));
        for version in Version::ALL {
            let tight = Options { force_spill: true, ..Options::default() };
            Made::new(source, version, &tight).check().expect("it is right");
        }
    }
}

#[test]
fn varyings() {
    each(FRAGMENT, |mut m| {
        let list = m.find(|a| a.signals.has(Signals::LDVARY));
        assert_eq!(list.len(), 3);
        // Parts change places.
        let dest = |n: usize| m.alu(n).and_then(|a| a.sig_dest);
        let (a, b) = (dest(list[0]), dest(list[1]));
        assert_ne!(a, b);
        m.change(list[0], |alu| alu.sig_dest = b);
        m.change(list[1], |alu| alu.sig_dest = a);
        m.check().expect_err("parts in the wrong places");
    });
    each(FRAGMENT, |mut m| {
        let last = *m.find(|a| a.signals.has(Signals::LDVARY)).last().expect("a varying");
        m.change(last, |alu| (alu.signals, alu.sig_dest) = (alu.signals.without(Signals::LDVARY), None));
        m.check().expect_err("one varying less");
    });
}

/// A constant is where it arrives until the instruction behind the next varying has run, and no longer.
#[test]
fn constants_of_varyings_arrive_late() {
    each(FRAGMENT, |mut m| {
        let first = m.find(|a| a.signals.has(Signals::LDVARY))[0];
        let reader = (first + 1..m.code.words.len())
            .find(|&n| {
                let c = match m.version {
                    Version::V42 => Source::Acc(5),
                    Version::V71 => Source::Row(0),
                };
                m.alu(n).is_some_and(|a| a.parts().iter().any(|p| !p.is_nop() && p.src.contains(&c)))
            })
            .expect("a reader of a constant");
        let word = m.code.words.remove(reader);
        m.code.words.insert(first + 1, word);
        m.check().expect_err("a constant read too early");
    });
}

#[test]
fn the_tile_buffer() {
    let is_config = |u: &UniformSource| matches!(u, UniformSource::Const(c) if c | 0xff == u32::MAX);
    each(FRAGMENT, |mut m| {
        let at = m.code.uniforms.iter().rposition(is_config).expect("a configuration");
        // One component more, then another target.
        for bit in [0, 3] {
            let UniformSource::Const(byte) = m.code.uniforms[at] else { unreachable!() };
            m.code.uniforms[at] = UniformSource::Const(byte ^ 1 << bit);
            m.objected("configuration");
            m.code.uniforms[at] = UniformSource::Const(byte);
        }
    });
}

#[test]
fn sample_flags() {
    each(FRAGMENT, |mut m| {
        let n = m.with_op(Op::Setmsf)[0];
        let old = m.code.words[n];
        m.change(n, |alu| {
            alu.add.cond = match alu.add.cond {
                Some(Cond::IfA) => Some(Cond::IfNa),
                _ => Some(Cond::IfA),
            };
        });
        m.objected("other lanes");
        m.code.words[n] = old;
        m.change(n, |alu| alu.add = Part::NOP);
        m.objected("overtakes");
    });
}

#[test]
fn quads() {
    // A load that leaves helpers out.
    each(FRAGMENT, |mut m| {
        let quad = UniformSource::Const(0xffff_ff7f);
        let at = m.code.uniforms.iter().position(|&u| u == quad).expect("a load of quads");
        m.code.uniforms[at] = UniformSource::Const(u32::MAX);
        m.objected("another operation");
    });
    // A branch that leaves them out.
    each(LOOP, |mut m| {
        let mut seen = 0;
        for n in 0..m.code.words.len() {
            let old = m.code.words[n];
            let Ok(Instr::Branch(mut b)) = decode(m.version, old) else { continue };
            if b.msfign != MsfIgnore::Quads {
                continue;
            }
            b.msfign = MsfIgnore::Lanes;
            m.code.words[n] = encode_any(m.version, &Instr::Branch(b)).expect("it can be encoded");
            m.objected("asks other lanes");
            m.code.words[n] = old;
            seen += 1;
        }
        assert!(seen > 0);
    });
}

#[test]
fn rows() {
    let row = |a: &Alu| match a.add.src[0] {
        Source::Small(code) => small_value(code),
        _ => None,
    };
    each(VERTEX, |mut m| {
        let n = m.find(|a| a.add.op == Op::Stvpmv && row(a).is_some())[1];
        let old = m.code.words[n];
        let other = m.alu(n).as_ref().and_then(row).map_or(0, |r| r + 1);
        m.change(n, |alu| alu.add.src[0] = Source::Small(small_code(other).expect("a small row")));
        m.check().expect_err("another row");
        m.code.words[n] = old;
        m.change(n, |alu| alu.add = Part::NOP);
        m.check().expect_err("a row less");
    });
    // An input row is read behind the output that was put over it, for nothing.
    each(VERTEX, |mut m| {
        let read = m.with_op(Op::LdvpmvIn).into_iter().find_map(|n| m.alu(n).filter(|a| row(a).is_some()));
        let read = read.expect("a read of a row");
        let over = m.find(|a| a.add.op == Op::Stvpmv && row(a) == row(&read));
        // In front of the end, where there is room, after all the writes.
        let behind = m.code.words.len() - 3;
        assert!(over[0] < behind);
        let word = encode_any(
            m.version,
            &Instr::Alu(Alu { add: Part { dest: Dest::Row(20), ..read.add }, ..Alu::NOP }),
        );
        m.code.words.insert(behind, word.expect("it can be encoded"));
        m.objected("after an output was put over it");
    });
    each(VERTEX, |mut m| {
        let waits = m.with_op(Op::Vpmwt);
        assert_eq!(waits.len(), usize::from(m.version == Version::V42));
        for n in waits {
            m.change(n, |alu| alu.add = Part::NOP);
            m.check().expect_err("a wait less");
        }
    });
}
