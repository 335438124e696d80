//! Shapes of graphics programs that other compilers got wrong, each as a real shader: compiled for both versions in several
//! configurations, judged by checkers A and B and the validator on the way, run on the simulator. What it gives must be what
//! the interpreter gives for the lowered form, bit for bit; what it stores, and integer colours, also what it gives for the
//! source form. Each test also shows that the shape was there. Names are those of the collection of bug shapes; the shapes of
//! compute programs are in `crates/v3d/tests/shapes.rs`.

#![cfg(feature = "glsl")]

use kempe::exec::{Environment, Inputs, Sizes};
use kempe::inputs::{Usage, Verdict, search};
use kempe::run::{RunOptions, StageRun};
use kempe_front::{Language, Options as FrontOptions};
use kempe_ir::io::{Slot, StageInputs, StageOutputs};
use kempe_ir::{Builtin, Module, Stage, interp};
use kempe_mir::{Artifact, Mir};
use kempe_ra::{Allocation, Edit, Inst, Point};
use kempe_v3d::compile::{Observer, Options, compile};
use kempe_v3d::decode::decode;
use kempe_v3d::instr::{Instr, Op, Signals, Version};
use kempe_v3d::mops::MInst;
use std::ops::RangeInclusive;

/// What one compile went through.
#[derive(Default)]
struct Seen {
    lowered: Option<Module>,
    /// By number of threads: what the allocator was given and what it gave.
    attempts: Vec<(u32, Mir<MInst>, Allocation)>,
}

impl Observer for Seen {
    fn lowered(&mut self, m: &Module) {
        self.lowered = Some(m.clone());
    }

    fn allocated(&mut self, threads: u32, mir: &Mir<MInst>, allocation: &Allocation) {
        self.attempts.push((threads, mir.clone(), allocation.clone()));
    }
}

/// A compile that gave code, and what is known of it.
struct Made {
    version: Version,
    options: Options,
    artifact: Artifact,
    mir: Mir<MInst>,
    allocation: Allocation,
}

impl Made {
    fn block_of(&self, inst: Inst) -> usize {
        let blocks = &self.mir.program.blocks;
        blocks.iter().position(|b| b.insts.contains(&inst.0)).expect("every instruction is in a block")
    }

    /// Loads and stores of spilled values: instruction, block, edit.
    fn edits(&self) -> Vec<(Inst, usize, Edit)> {
        let edits = self.allocation.edits.iter();
        let of_memory = edits.filter(|e| matches!(e.1, Edit::Spill { .. } | Edit::Fill { .. }));
        of_memory
            .map(|&(point, edit)| match point {
                Point::Before(i) | Point::After(i) => (i, self.block_of(i), edit),
            })
            .collect()
    }

    fn spills(&self) -> usize {
        self.edits().iter().filter(|e| matches!(e.2, Edit::Spill { .. })).count()
    }

    /// The loops, as blocks: edges that go back.
    fn loops(&self) -> Vec<RangeInclusive<usize>> {
        let mut all: Vec<RangeInclusive<usize>> = Vec::new();
        for (at, block) in self.mir.program.blocks.iter().enumerate() {
            for edge in block.succs.iter().filter(|e| e.to.0 as usize <= at) {
                all.push(edge.to.0 as usize..=at);
            }
        }
        all
    }

    /// Loads from slots that are stored before all loops only, directly in front of an instruction of this kind behind them.
    fn across_loops(&self, wanted: impl Fn(&MInst) -> bool) -> usize {
        let loops = self.loops();
        let Some(first) = loops.iter().map(|l| *l.start()).min() else { return 0 };
        let last = loops.iter().map(|l| *l.end()).max().unwrap_or(first);
        let edits = self.edits();
        let stored_before = |slot| {
            let mut stores = edits.iter().filter(|e| matches!(e.2, Edit::Spill { slot: s, .. } if s == slot));
            stores.all(|e| e.1 < first)
        };
        let across = |e: &&(Inst, usize, Edit)| matches!(e.2, Edit::Fill { slot, .. } if e.1 > last && stored_before(slot));
        edits.iter().filter(across).filter(|e| wanted(&self.mir.data[e.0.0 as usize])).count()
    }

    /// Loads of spilled values directly in front of an instruction of this kind.
    fn fills_before(&self, wanted: impl Fn(&MInst) -> bool) -> usize {
        let edits = self.edits();
        let fills = edits.iter().filter(|e| matches!(e.2, Edit::Fill { .. }));
        fills.filter(|e| wanted(&self.mir.data[e.0.0 as usize])).count()
    }

    fn count(&self, wanted: impl Fn(&MInst) -> bool) -> usize {
        self.mir.data.iter().filter(|i| wanted(i)).count()
    }

    fn instrs(&self) -> Vec<Instr> {
        kempe_mir::words_of_code(&self.artifact.code)
            .into_iter()
            .map(|w| decode(self.version, w).expect("code decodes"))
            .collect()
    }
}

fn is_derivative(i: &MInst) -> bool {
    matches!(i, MInst::Alu { op: Op::Fdx | Op::Fdy, .. })
}

fn is_lookup(i: &MInst) -> bool {
    matches!(i, MInst::Texture { op, .. } if !op.writes)
}

fn is_tile_write(i: &MInst) -> bool {
    matches!(i, MInst::Tlb { .. })
}

/// A shader: source, and what is to be done with what it gives.
struct Shader {
    module: Module,
    /// Nothing is rounded in another way than in the source form.
    exact: bool,
}

fn shader(stage: Stage, text: &str) -> Shader {
    let name = if stage == Stage::Vertex { "shape.vert" } else { "shape.frag" };
    let text = format!("#version 450\n{text}");
    let options = FrontOptions { stage: Some(stage), ..FrontOptions::default() };
    let modules = kempe_front::compile(name, text.as_bytes(), Language::Glsl, &options);
    let mut module = modules.unwrap_or_else(|e| panic!("{name}: {e}")).remove(0);
    kempe_opt::optimise(&mut module, kempe_opt::Level::O1);
    Shader { module, exact: true }
}

fn fragment(text: &str) -> Shader {
    shader(Stage::Fragment, text)
}

/// Lanes with an effect, by live quad: whole, and each way to have one to three helpers.
const COVERED: [u8; 15] = [15, 1, 2, 4, 8, 3, 5, 9, 6, 10, 12, 7, 11, 13, 14];

/// Every fragment has a pixel of its own, and every kind of quad is there.
fn arrange(stage: &mut StageInputs, turn: usize) {
    let n = stage.invocations as usize;
    let mut live = turn;
    for quad in 0..n / 4 {
        if stage.is_dead(4 * quad) {
            continue;
        }
        let covered = COVERED[live % COVERED.len()];
        live += 1;
        for lane in 0..4 {
            let at = 4 * quad + lane;
            let on = covered >> lane & 1 != 0;
            stage.helpers[at] = !on;
            let x = (2 * (quad % 8) + lane % 2) as f32 + 0.5;
            let y = (2 * (quad / 8) + lane / 2) as f32 + 0.5;
            let words = [(3, x.to_bits()), (4, y.to_bits()), (6, if on { 15 } else { 0 })];
            for (word, v) in words {
                stage.payload.get_mut(&word).expect("start words")[at] = v;
            }
            let builtins = [
                (Builtin::FragCoord(0), x.to_bits()),
                (Builtin::FragCoord(1), y.to_bits()),
                (Builtin::SampleMaskIn, u32::from(on)),
            ];
            for (b, v) in builtins {
                stage.builtins.get_mut(&b).expect("built-ins")[at] = v;
            }
        }
    }
}

type Given = (StageOutputs, Vec<Vec<u8>>);

/// By the interpreter, in source form.
fn interpret(m: &Module, inputs: &Inputs) -> Result<Given, String> {
    let env = Environment::new(m, inputs, Sizes::source())?;
    let options = interp::Options { step_limit: 1_000_000, ..interp::Options::source() };
    let outcome = interp::run(m, &env, &options).map_err(|e| e.to_string())?;
    if !outcome.undefined.is_empty() {
        return Err("it depends on what is undefined".to_owned());
    }
    let memory = env.buffer_contents(&outcome.memory).into_iter().map(<[u8]>::to_vec).collect();
    let mut stage = outcome.stage.expect("a graphics stage");
    // A pixel whose only sample is masked has no effect.
    if let Some(mask) = stage.values.remove(&(Slot::SampleMask, 0, 0)) {
        for (helper, v) in stage.helpers.iter_mut().zip(mask) {
            *helper |= v.is_some_and(|v| v & 1 == 0);
        }
    }
    Ok((stage, memory))
}

fn of_run(run: StageRun) -> Given {
    let buffers = run.report.buffers.into_iter().map(|b| b.bytes).collect();
    let mut stage = run.outputs;
    for (n, list) in run.rows.into_values().enumerate() {
        stage.values.insert((Slot::Row(n as u16), 0, 0), list);
    }
    (stage, buffers)
}

/// What the one side defines, the other side must give. How many scalars were compared.
fn same(want: &Given, got: &Given, slots: impl Fn(Slot) -> bool) -> Result<usize, String> {
    for (n, (a, b)) in want.1.iter().zip(&got.1).enumerate() {
        if let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) {
            return Err(format!("buffer {n} differs at byte {at}: {:#04x} for {:#04x}", b[at], a[at]));
        }
    }
    if want.0.helpers != got.0.helpers {
        return Err(format!("other lanes have no effect: {:?} for {:?}", got.0.helpers, want.0.helpers));
    }
    let mut compared = 0;
    for (place, list) in want.0.values.iter().filter(|(p, _)| slots(p.0)) {
        for (n, v) in list.iter().enumerate() {
            let Some(v) = v else { continue };
            if want.0.helpers.get(n) == Some(&true) {
                continue;
            }
            let g = got.0.values.get(place).and_then(|l| l[n]);
            if g != Some(*v) {
                return Err(format!("{place:?} of invocation {n}: {g:?} for {v}"));
            }
            compared += 1;
        }
    }
    Ok(compared)
}

/// Inputs, and what the source form gives for them.
fn inputs_of(m: &Module, count: usize) -> Vec<(Inputs, Given)> {
    let usage = Usage::scan(m);
    let mut all: Vec<(Inputs, Given)> = Vec::new();
    for seed in 0..count {
        let mut found = None;
        let searched = search(m, &usage, seed as u64, |inputs| {
            let mut inputs = inputs.clone();
            if m.stage == Stage::Fragment {
                arrange(inputs.stage.as_mut().expect("fragments"), seed * 5);
            }
            match interpret(m, &inputs) {
                Ok(given) => {
                    found = Some((inputs, given));
                    Verdict::Fine
                }
                Err(why) => Verdict::Useless(why),
            }
        });
        searched.unwrap_or_else(|e| panic!("no inputs: {e}"));
        all.extend(found);
    }
    all
}

/// Compiles and runs in all configurations; gives what was made.
fn judge(shader: &Shader) -> Vec<Made> {
    let m = &shader.module;
    let all = inputs_of(m, 3);
    let variants: &[bool] = if m.stage == Stage::Vertex { &[false, true] } else { &[false] };
    let mut list = Vec::new();
    for version in Version::ALL {
        for &binning in variants {
            let mut natural = Options { verify: true, ..Options::default() };
            natural.shape.binning = binning;
            for options in [
                natural,
                Options { threads: Some(4), ..natural },
                Options { threads: Some(2), ..natural },
                Options { force_spill: true, ..natural },
                Options { threads: Some(2), force_spill: true, ..natural },
                Options { threads: Some(4), max_registers: Some(20), ..natural },
                Options { threads: Some(2), max_registers: Some(24), ..natural },
                Options { threads: Some(4), no_order: true, ..natural },
            ] {
                list.push(judge_one(shader, version, options, &all));
            }
        }
    }
    list
}

fn named(version: Version, o: &Options) -> String {
    format!(
        "{}, threads {:?}, force_spill {}, registers {:?}, no_order {}, binning {}",
        version.name(),
        o.threads,
        o.force_spill,
        o.max_registers,
        o.no_order,
        o.shape.binning
    )
}

fn judge_one(shader: &Shader, version: Version, options: Options, all: &[(Inputs, Given)]) -> Made {
    let what = named(version, &options);
    let mut seen = Seen::default();
    let artifact = compile(shader.module.clone(), version, &options, &mut seen)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let lowered = seen.lowered.expect("the lowered form");
    let target = kempe::target(version.name()).expect("a target");
    let mut compared = 0;
    for (n, (inputs, source)) in all.iter().enumerate() {
        let run = RunOptions { step_limit: 2_000_000, schedule: 7 * n as u64 };
        let want = target.interpret_stage(&lowered, &artifact, inputs, &run);
        let want = of_run(want.unwrap_or_else(|e| panic!("{what}: interpreter: {e}")));
        let got = target.run_stage(&artifact, inputs, &run);
        let got = of_run(got.unwrap_or_else(|e| panic!("{what}: simulator: {e}")));
        compared += same(&want, &got, |_| true).unwrap_or_else(|e| panic!("{what}: {e}"));
        if shader.exact && shader.module.stage == Stage::Fragment {
            let facts = artifact.graphics.as_ref().expect("facts of a graphics program");
            let wide = |slot| match slot {
                Slot::Location(l) => facts.targets.iter().any(|t| t.target == l && t.wide),
                Slot::FragDepth => facts.writes_depth,
                _ => false,
            };
            let e = same(source, &got, wide);
            e.unwrap_or_else(|e| panic!("{what}: source form: {e}"));
        }
    }
    assert!(compared > 0, "{what}: nothing was given");
    let (_, mir, allocation) =
        seen.attempts.into_iter().find(|a| a.0 == artifact.threads).expect("the attempt that was kept");
    let made = Made { version, options, artifact, mir, allocation };
    assert_eq!(made.artifact.stats.spills as usize, made.spills(), "{what}");
    made
}

/// The shape must be there for both versions, in at least so many configurations of each.
fn provoked(made: &[Made], at_least: usize, what: &str, shape: impl Fn(&Made) -> bool) {
    for version in Version::ALL {
        let n = made.iter().filter(|m| m.version == version && shape(m)).count();
        assert!(n >= at_least, "{what}: only in {n} configurations of {}", version.name());
    }
}

/// Twelve varyings of four components, and a number for the pixel.
const VARYINGS: &str = "
    layout(location = 0) in vec4 v[12];
    layout(push_constant) uniform P { int n; int k; float f; } p;
    uint pixel() { return uint(gl_FragCoord.x) + 16u * uint(gl_FragCoord.y); }
    float all_of_them() {
        vec4 s = vec4(0.0);
        s = s * 0.5 + v[0]; s = s * 0.5 + v[1]; s = s * 0.5 + v[2]; s = s * 0.5 + v[3];
        s = s * 0.5 + v[4]; s = s * 0.5 + v[5]; s = s * 0.5 + v[6]; s = s * 0.5 + v[7];
        s = s * 0.5 + v[8]; s = s * 0.5 + v[9]; s = s * 0.5 + v[10]; s = s * 0.5 + v[11];
        return s.x + s.y + s.z + s.w;
    }
";

/// Values from before nested loops, in scratch across them, of which derivatives and implicit levels are made behind. What
/// helpers hold counts: a spill that left them out would change what their neighbours get.
#[test]
fn a02_derivatives_after_nested_loops() {
    let s = fragment(&format!(
        "{VARYINGS}
        layout(set = 0, binding = 0) uniform sampler2D t;
        layout(location = 0) out uvec4 o;
        layout(location = 1) out uvec4 o1;
        void main() {{
            float a = v[0].x * v[1].y + v[2].z, b = v[3].x * v[4].w;
            vec2 uv = v[5].xy * v[6].zw;
            int limit = (int(pixel()) + p.n) & 3;
            float total = 0.0;
            for (int i = 0; i <= limit; i++) {{
                // So that they cannot be computed behind the loops.
                total += a - b + uv.x * uv.y;
                for (int j = 0; j <= i + p.k; j++) total = total * 0.5 + float(j);
            }}
            vec4 c = texture(t, uv);
            o = uvec4(floatBitsToUint(dFdx(a)), floatBitsToUint(dFdy(b)), floatBitsToUint(total),
                      floatBitsToUint(all_of_them()));
            o1 = floatBitsToUint(c);
        }}"
    ));
    let made = judge(&s);
    provoked(&made, 2, "an operand of a derivative in scratch across the loops", |m| {
        m.artifact.stats.loops == 2 && m.across_loops(is_derivative) > 0
    });
    provoked(&made, 4, "values in scratch across the loops", |m| m.across_loops(|_| true) >= 4);
    provoked(&made, 1, "a coordinate in scratch across the loops", |m| m.across_loops(is_lookup) > 0);
}

/// Vectors put together component by component between the coordinates of lookups, then in scratch.
#[test]
fn a06_components_between_coordinates() {
    let s = fragment(&format!(
        "{VARYINGS}
        layout(set = 0, binding = 0) uniform sampler2D t;
        layout(set = 0, binding = 1) uniform sampler3D t3;
        layout(location = 0) out uvec4 o;
        void main() {{
            vec4 c, d;
            c.x = v[0].x * v[1].x;
            float r0 = textureLod(t, vec2(c.x, v[2].x), 0.0).x;
            c.y = v[1].y + r0;
            float r1 = textureLod(t, vec2(v[3].x, c.y), 0.0).y;
            c.z = v[2].z - r1;
            d.x = c.x + r1;
            float r2 = textureLod(t3, vec3(c.z, c.x, v[4].y), 0.0).z;
            c.w = v[3].w * r2;
            d.y = c.w;
            d.z = r2 - v[5].x;
            float x = 0.0;
            if (c.w > v[6].x) {{
                for (int i = 0; i <= p.n + int(pixel() & 3u); i++) x = x * 0.5 + v[7].y;
            }}
            vec4 e = textureLod(t3, c.xyz, 0.0) + textureLod(t3, d.zyx, 0.0) + texture(t, c.wx) + texture(t, d.xz);
            o = uvec4(floatBitsToUint(e.x + e.y), floatBitsToUint(e.z + e.w), floatBitsToUint(x + c.w),
                      floatBitsToUint(all_of_them()));
        }}"
    ));
    let made = judge(&s);
    provoked(&made, 8, "seven lookups", |m| m.count(is_lookup) == 7);
    provoked(&made, 2, "coordinates in scratch", |m| m.fills_before(is_lookup) >= 3);
    provoked(&made, 2, "components in scratch across the loop", |m| m.across_loops(is_lookup) >= 2);
}

/// Everything is wanted at the very end: four colours of four words, packed in the last block.
#[test]
fn a07_four_targets_at_the_end() {
    let s = fragment(&format!(
        "{VARYINGS}
        layout(location = 0) out uvec4 o0;
        layout(location = 1) out uvec4 o1;
        layout(location = 2) out uvec4 o2;
        layout(location = 3) out uvec4 o3;
        uvec4 pack(vec4 a, vec4 b, vec4 c, float x) {{
            return floatBitsToUint(a * x + b) ^ (floatBitsToUint(c) << 3);
        }}
        void main() {{
            float x = v[0].x;
            if (v[1].y > v[2].z) {{
                for (int i = 0; i <= p.n + int(pixel() & 1u); i++) x = x * 0.5 + v[3].w;
            }}
            o0 = pack(v[0], v[1], v[2], x);
            o1 = pack(v[3], v[4], v[5], x);
            o2 = pack(v[6], v[7], v[8], x);
            o3 = pack(v[9], v[10], v[11], x);
        }}"
    ));
    let made = judge(&s);
    provoked(&made, 8, "sixteen words for the tile buffer", |m| m.count(is_tile_write) == 16);
    provoked(&made, 3, "the last block loads from scratch", |m| {
        let last = m.mir.program.blocks.len() - 1;
        m.edits().iter().filter(|e| matches!(e.2, Edit::Fill { .. }) && e.1 == last).count() >= 10
    });
    for m in &made {
        // No access to memory behind the last switch, which comes before the first word for the tile buffer.
        let instrs = m.instrs();
        let switches: Vec<usize> =
            (0..instrs.len()).filter(|&at| instrs[at].signals().has(Signals::THRSW)).collect();
        let what = named(m.version, &m.options);
        let [.., mark, _end] = switches[..] else { panic!("{what}: no last switch") };
        let asks = |i: &Instr| i.alu().is_some_and(|a| a.dests().any(|d| d.is_tmu_write()));
        let behind = (mark + 3..instrs.len()).find(|&at| asks(&instrs[at]));
        assert_eq!(behind, None, "{what}");
        assert_eq!(m.fills_before(|i| matches!(i, MInst::Tlb { first: false, .. })), 0, "{what}");
    }
}

/// Varyings and uniform words taken directly in front of a divergent jump and used behind it.
#[test]
fn a08_varyings_and_uniforms_across_a_jump() {
    let s = fragment(&format!(
        "{VARYINGS}
        layout(location = 0) out uvec4 o;
        void main() {{
            float x = v[11].w;
            int n = p.n;
            if (x > p.f) {{
                for (int i = 0; i <= n + p.k; i++) x = x * 0.5 + v[11].z;
            }} else {{
                for (int i = 0; i <= n; i++) x = x * 0.25 + v[11].y + p.f;
            }}
            if (x > v[10].x + p.f) {{
                for (int i = 0; i <= p.k; i++) x = x * 0.5 + v[10].y;
            }}
            o = uvec4(floatBitsToUint(x), n, p.k, floatBitsToUint(all_of_them()));
        }}"
    ));
    let made = judge(&s);
    provoked(&made, 6, "uniform words close to a branch on both sides", |m| {
        let instrs = m.instrs();
        let loads = |i: &Instr| i.signals().has(Signals::LDUNIF | Signals::LDUNIFRF);
        (4..instrs.len()).any(|at| {
            instrs[at].branch().is_some()
                && instrs[at - 4..at].iter().any(loads)
                && instrs[at + 1..].iter().take(12).any(loads)
        })
    });
    provoked(&made, 6, "varyings in the block of a branch", |m| {
        let first = &m.mir.program.blocks[0].insts;
        let is_varying = |i: &u32| matches!(m.mir.data[*i as usize], MInst::Varying { .. });
        first.clone().filter(is_varying).count() == 48
            && matches!(m.mir.data[first.end as usize - 1], MInst::Branch { .. })
    });
    provoked(&made, 3, "with scratch in use", |m| m.spills() > 0);
}

/// A store, then at once a break, a return or a discard inside nested conditions of a loop; what was stored is read behind it.
#[test]
fn a09_stores_before_early_exits() {
    let s = fragment(&format!(
        "{VARYINGS}
        layout(set = 0, binding = 0) buffer B {{ uint b[]; }};
        layout(location = 0) out uvec4 o;
        void main() {{
            uint at = pixel() * 4u;
            o = uvec4(1u, 2u, 3u, 4u);
            for (int i = 0; i < 10; i++) {{
                if (i + int(pixel() & 3u) > p.n) {{
                    if ((pixel() & 4u) != 0u) {{
                        b[at] = uint(i) + 1u;
                        break;
                    }}
                    if (v[0].x > v[1].x) {{
                        b[at + 1u] = uint(i) + 2u;
                        return;
                    }}
                    if (v[0].y > v[1].y) {{
                        b[at + 2u] = uint(i) + 3u;
                        discard;
                    }}
                }}
            }}
            uint c = b[at] + b[at + 1u];
            b[at + 3u] = c * 3u + 1u;
            o = uvec4(c, pixel(), floatBitsToUint(all_of_them()), 7u);
        }}"
    ));
    let made = judge(&s);
    let is_store = |i: &MInst| matches!(i, MInst::TmuStore { .. });
    provoked(&made, 8, "four stores, of which three leave the loop, and lanes that are discarded", |m| {
        let before_the_end = m.loops().iter().map(|l| *l.end()).max().unwrap_or(0);
        let stores = (0..m.mir.data.len()).filter(|&i| is_store(&m.mir.data[i]));
        let early = stores.filter(|&i| m.block_of(Inst(i as u32)) <= before_the_end).count();
        early >= 1 && m.count(is_store) >= 4 && m.count(|i| matches!(i, MInst::SetSamples { .. })) == 1
    });
    provoked(&made, 3, "with scratch in use", |m| m.spills() > 0);
}

/// Eight lights, their number a uniform word, those that are off left early, ten varyings.
#[test]
fn a54_lights() {
    let s = fragment(
        "layout(location = 0) in vec4 v[10];
        struct Light { vec4 place; vec4 colour; vec4 fall; };
        layout(set = 0, binding = 0) uniform U { Light lights[8]; int number; };
        layout(location = 0) out vec4 o;
        void main() {
            vec3 at = v[0].xyz, normal = normalize(v[1].xyz), eye = normalize(v[2].xyz - at);
            vec3 sum = v[3].xyz * v[4].w;
            for (int i = 0; i < 8; i++) {
                if (i >= number) break;
                if (lights[i].colour.w == 0.0) break;
                vec3 to = lights[i].place.xyz - at;
                float d = length(to);
                vec3 l = to / max(d, 0.001);
                float fall = 1.0 / (lights[i].fall.x + lights[i].fall.y * d + lights[i].fall.z * d * d + 0.5);
                vec3 h = normalize(l + eye);
                float diffuse = max(dot(normal, l), 0.0), shine = exp2(max(dot(normal, h), 0.0) * v[5].x);
                sum += fall * (v[6].xyz * diffuse + v[7].xyz * shine) * lights[i].colour.xyz;
            }
            o = vec4(sum + v[8].xyz * v[9].w, v[9].x + v[8].w);
        }",
    );
    let made = judge(&Shader { exact: false, ..s });
    provoked(&made, 8, "forty varyings around a loop", |m| {
        m.artifact.stats.loops >= 1 || m.artifact.code.len() > 3200
    });
    provoked(&made, 2, "spills", |m| m.spills() > 0 && m.artifact.stats.spills > 0);
    // With 2 threads everything fits.
    for m in made.iter().filter(|m| m.options.threads == Some(2) && m.options.max_registers.is_none()) {
        assert!(m.options.force_spill || m.artifact.stats.spills == 0, "{}", m.version.name());
    }
}

/// Outputs that are known at once, and high pressure behind them.
#[test]
fn vertex_outputs_early_and_pressure_late() {
    let s = shader(
        Stage::Vertex,
        "layout(location = 0) in vec4 a[8];
        layout(location = 0) out vec4 o[8];
        layout(push_constant) uniform P { int n; int k; float f; } p;
        void main() {
            for (int i = 0; i < 4; i++) o[i] = a[i];
            o[4] = vec4(p.f, float(gl_VertexIndex), float(gl_InstanceIndex), 1.0);
            float x = a[0].x;
            if (a[0].y > a[1].y) {
                for (int i = 0; i <= p.n; i++) x = x * 0.5 + a[2].x;
            }
            vec4 m = vec4(0.0);
            mat4 b = mat4(a[4], a[5], a[6], a[7]), c = mat4(a[0], a[1], a[2], a[3]);
            mat4 d = b * c + c * x, e = d * b;
            o[5] = d[0] + e[1];
            o[6] = d[2] * e[3];
            o[7] = e * a[3];
            gl_Position = d * a[1] + e * a[2] + vec4(0.0, 0.0, 0.0, 8.0);
        }",
    );
    let made = judge(&s);
    let render = |m: &&Made| !m.options.shape.binning;
    let is_output = |i: &MInst| matches!(i, MInst::VertexOutput { .. });
    let list: Vec<Made> = made;
    for version in Version::ALL {
        let of = list.iter().filter(|m| m.version == version).filter(render);
        // Rows are written before spilled values are stored or loaded again.
        let early = of
            .filter(|m| {
                let first = (0..m.mir.data.len()).find(|&i| is_output(&m.mir.data[i]));
                let last = m.edits().iter().map(|e| e.0.0 as usize).max();
                first.zip(last).is_some_and(|(f, l)| f < l)
            })
            .count();
        assert!(early >= 2, "{}: only in {early} configurations", version.name());
    }
}

/// Lanes die one by one or all together in a loop; a store and a derivative come later.
#[test]
fn discard_in_a_loop() {
    for (kind, cond) in [("divergent", "i + int(pixel() & 7u) > 6"), ("uniform", "i == 1 && (p.k & 1) == 1")]
    {
        for leave in ["discard", "demote"] {
            let s = fragment(&format!(
                "#extension GL_EXT_demote_to_helper_invocation : require
                {VARYINGS}
                layout(set = 0, binding = 0) buffer B {{ uint b[]; }};
                layout(location = 0) out uvec4 o;
                void main() {{
                    float x = v[0].x * v[1].x;
                    int i = 0;
                    for (; i <= p.n + 1; i++) {{
                        if ({cond}) {leave};
                        x = x * 0.5 + v[2].x;
                    }}
                    b[pixel()] = floatBitsToUint(x) | 1u;
                    o = uvec4(floatBitsToUint(dFdx(x)), floatBitsToUint(dFdy(v[3].x * x)), i,
                              floatBitsToUint(all_of_them()));
                }}"
            ));
            let made = judge(&s);
            provoked(&made, 8, &format!("{kind} {leave} in a loop"), |m| {
                let inside = |i: usize| m.loops().iter().any(|l| l.contains(&m.block_of(Inst(i as u32))));
                let sets = |i: usize| matches!(m.mir.data[i], MInst::SetSamples { .. });
                m.count(is_derivative) >= 2 && (0..m.mir.data.len()).any(|i| sets(i) && inside(i))
            });
            provoked(&made, 3, "with scratch in use", |m| m.spills() > 0);
        }
    }
}

/// Tests that come early do not see what happens to depth and samples later.
#[test]
fn early_tests_with_discard_and_depth() {
    for early in [true, false] {
        let modes = if early { "layout(early_fragment_tests) in;" } else { "" };
        let s = fragment(&format!(
            "{modes}{VARYINGS}
            layout(location = 0) out uvec4 o;
            void main() {{
                gl_FragDepth = v[0].x * 0.5;
                if (v[1].x > v[2].x) discard;
                o = uvec4(floatBitsToUint(all_of_them()), pixel(), 1u, 2u);
            }}"
        ));
        let made = judge(&s);
        provoked(&made, 8, "depth is written unless tests come early", |m| {
            let facts = m.artifact.graphics.as_ref().expect("facts");
            facts.writes_depth != early && m.count(|i| matches!(i, MInst::SetSamples { .. })) == 1
        });
        provoked(&made, 2, "with scratch in use", |m| m.spills() > 0);
    }
}

/// The mask of samples, from a value that is in scratch when it is wanted.
#[test]
fn sample_masks_from_scratch() {
    let s = fragment(&format!(
        "{VARYINGS}
        layout(location = 0) out uvec4 o;
        void main() {{
            int mask = v[0].x > v[1].x ? gl_SampleMaskIn[0] : int(pixel());
            float x = v[2].x;
            for (int i = 0; i <= p.n + int(pixel() & 3u); i++) x = x * 0.5 + v[3].x;
            gl_SampleMask[0] = mask;
            o = uvec4(floatBitsToUint(x), floatBitsToUint(all_of_them()), 1u, 2u);
        }}"
    ));
    let made = judge(&s);
    provoked(&made, 8, "a mask of samples", |m| m.count(|i| matches!(i, MInst::MaskSamples)) == 1);
    provoked(&made, 2, "the mask was in scratch", |m| {
        // It, or what it is made of.
        m.spills() > 0 && m.across_loops(|_| true) > 0
    });
    provoked(&made, 1, "it is loaded in front of its use", |m| {
        m.fills_before(|i| matches!(i, MInst::MaskSamples)) > 0
    });
}

/// A loop that only dead lanes would go on with: it ends. What Vulkan calls a helper may end with its quad, but the
/// interpreter lets it go on after `demote`, so both are compared with what `discard` gives.
#[test]
fn all_quads_die_in_a_loop() {
    let with = |leave: &str| {
        fragment(&format!(
            "#extension GL_EXT_demote_to_helper_invocation : require
            {VARYINGS}
            layout(set = 0, binding = 0) buffer B {{ uint b[]; }};
            layout(location = 0) out uvec4 o;
            void main() {{
                uint i = 0u;
                while (p.n >= 0) {{
                    b[pixel()] = ++i;
                    if (i > (pixel() & 7u) + uint(p.k)) {leave};
                }}
                o = uvec4(floatBitsToUint(all_of_them()));
            }}"
        ))
    };
    let discard = with("discard").module;
    let all = inputs_of(&discard, 2);
    for (_, given) in &all {
        assert!(given.0.helpers.iter().all(|&h| h), "a lane is alive at the end");
    }
    for (leave, m) in [("demote", with("demote").module), ("discard", discard)] {
        for version in Version::ALL {
            for force_spill in [false, true] {
                let options = Options { force_spill, ..Options::default() };
                let what = format!("{leave}, {}", named(version, &options));
                let artifact = compile(m.clone(), version, &options, &mut ());
                let artifact = artifact.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(artifact.stats.loops >= 1, "{what}");
                let target = kempe::target(version.name()).expect("a target");
                for (inputs, given) in &all {
                    let run = RunOptions { step_limit: 200_000, schedule: 3 };
                    let got = target.run_stage(&artifact, inputs, &run);
                    let got = of_run(got.unwrap_or_else(|e| panic!("{what}: {e}")));
                    same(given, &got, |_| false).unwrap_or_else(|e| panic!("{what}: {e}"));
                }
            }
        }
    }
}
