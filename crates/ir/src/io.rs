//! What a stage of the graphics pipeline is given and gives: the place of a scalar in its interface.
//!
//! An `input` or `output` instruction moves one scalar. Vectors, matrices, arrays and blocks of the source are taken apart
//! by the front end, which also knows what is never written; a target puts neighbours together again.

use crate::module::Builtin;
use std::collections::BTreeMap;

/// A place in an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Slot {
    /// Attributes, varyings, colours: by number.
    Location(u8),
    /// Position in clip space, components x, y, z, w.
    Position,
    PointSize,
    /// Component k is distance k.
    ClipDistance,
    CullDistance,
    /// Depth that replaces that of the primitive.
    FragDepth,
    /// Samples that are written, a bit each.
    SampleMask,
    Layer,
    ViewportIndex,
    PrimitiveId,
    /// How finely the edges of a patch are divided, and its inside.
    TessLevelOuter,
    TessLevelInner,
    /// A row of the memory that the machine gives outputs in (lowered programs).
    Row(u16),
}

impl Slot {
    /// Names in the text form; locations carry their number behind the name.
    pub const NAMES: [(&'static str, Slot); 13] = [
        ("location", Slot::Location(0)),
        ("position", Slot::Position),
        ("point_size", Slot::PointSize),
        ("clip_distance", Slot::ClipDistance),
        ("cull_distance", Slot::CullDistance),
        ("frag_depth", Slot::FragDepth),
        ("sample_mask", Slot::SampleMask),
        ("layer", Slot::Layer),
        ("viewport_index", Slot::ViewportIndex),
        ("primitive_id", Slot::PrimitiveId),
        ("tess_level_outer", Slot::TessLevelOuter),
        ("tess_level_inner", Slot::TessLevelInner),
        ("row", Slot::Row(0)),
    ];

    /// Scalars that a place has.
    pub fn components(self) -> u8 {
        match self {
            Slot::Location(_) | Slot::Position | Slot::TessLevelOuter => 4,
            Slot::TessLevelInner => 2,
            Slot::ClipDistance | Slot::CullDistance => 8,
            _ => 1,
        }
    }
}

/// How an input of a fragment shader comes from the corners of its primitive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Interpolation {
    /// In perspective.
    #[default]
    Smooth,
    /// The value of one corner.
    Flat,
    /// Linear on the screen.
    NoPerspective,
}

impl Interpolation {
    pub const NAMES: [(&'static str, Interpolation); 3] = [
        ("smooth", Interpolation::Smooth),
        ("flat", Interpolation::Flat),
        ("noperspective", Interpolation::NoPerspective),
    ];
}

/// Where in the pixel an input is interpolated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Sampling {
    #[default]
    Center,
    /// At a place that the primitive covers.
    Centroid,
    /// At the sample that the invocation is for.
    Sample,
}

impl Sampling {
    pub const NAMES: [(&'static str, Sampling); 3] =
        [("center", Sampling::Center), ("centroid", Sampling::Centroid), ("sample", Sampling::Sample)];
}

/// Whose a scalar of an interface is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Owner {
    /// The invocation's.
    #[default]
    Invocation,
    /// That of a vertex of its primitive or patch, whose number is an operand.
    Vertex,
    /// The patch's.
    Patch,
}

impl Owner {
    pub const NAMES: [(&'static str, Owner); 3] =
        [("invocation", Owner::Invocation), ("vertex", Owner::Vertex), ("patch", Owner::Patch)];
}

/// One scalar of an interface, or one of several that operands choose from.
///
/// Operands, in this order and each where it is asked for: the value (of an output), the number of the vertex, the number of
/// the location (or row) from the named one on, that of the component. A number beyond its range counts as the last one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IoImm {
    pub slot: Slot,
    pub owner: Owner,
    /// An operand chooses one of so many locations or rows; 0: no operand.
    pub locations: u16,
    /// An operand chooses one of so many components; 0: no operand.
    pub components: u8,
    pub component: u8,
    /// Of a colour: the second one, for blending with two sources, if 1.
    pub index: u8,
    /// Of inputs of fragment shaders.
    pub interpolation: Interpolation,
    pub sampling: Sampling,
}

impl IoImm {
    pub fn new(slot: Slot, component: u8) -> IoImm {
        IoImm {
            slot,
            owner: Owner::default(),
            locations: 0,
            components: 0,
            component,
            index: 0,
            interpolation: Interpolation::default(),
            sampling: Sampling::default(),
        }
    }

    /// Numbers that are operands.
    pub fn numbers(&self) -> usize {
        [self.owner == Owner::Vertex, self.locations != 0, self.components != 0]
            .iter()
            .filter(|n| **n)
            .count()
    }

    /// The place that numbers of the location and of the component lead to.
    pub fn place(&self, location: u32, component: u32) -> (Slot, u8) {
        let step = location.min(u32::from(self.locations.saturating_sub(1)));
        let slot = match self.slot {
            Slot::Location(l) => Slot::Location((u32::from(l) + step).min(255) as u8),
            Slot::Row(r) => Slot::Row((u32::from(r) + step).min(u32::from(u16::MAX)) as u16),
            other => other,
        };
        (slot, self.component + component.min(u32::from(self.components.saturating_sub(1))) as u8)
    }
}

/// Numbers of the start words of graphics programs in lowered form (`docs/graphics.md`).
pub mod start {
    /// Of a fragment program.
    pub const W: u64 = 0;
    pub const CENTROID_W: u64 = 1;
    pub const DEPTH: u64 = 2;
    /// As f32; y follows.
    pub const X: u64 = 3;
    pub const FACING: u64 = 5;
    pub const SAMPLES: u64 = 6;
    pub const SAMPLE: u64 = 7;
    /// All sample flags of a pixel: with one sample each stands for it.
    pub const COVERED: u32 = 15;
    /// Of a vertex program.
    pub const INSTANCE: u64 = 0;
    pub const BASE_INSTANCE: u64 = 1;
    pub const VERTEX: u64 = 2;
    /// Of geometry and tessellation: number of the primitive or patch; number of the invocation in it.
    pub const PRIMITIVE: u64 = 0;
    pub const INVOCATION: u64 = 1;
    /// Of an evaluation program, as f32; y and z follow.
    pub const TESS_X: u64 = 2;
}

/// What the invocations of a graphics stage are given: 32 bits for each scalar, by invocation.
///
/// Fragments come in quads of four: upper left, upper right, lower left, lower right. Geometry and tessellation: the
/// invocations of a primitive or patch come one after the other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StageInputs {
    pub invocations: u32,
    /// By place and component. What is not there is undefined. Geometry and tessellation: by primitive, then by vertex.
    pub values: BTreeMap<(Slot, u8), Vec<u32>>,
    /// Geometry and tessellation: vertices of a primitive or patch, and which one an invocation belongs to.
    pub vertices: u32,
    pub primitives: Vec<u32>,
    /// What a patch has besides its vertices, by patch.
    pub patch_values: BTreeMap<(Slot, u8), Vec<u32>>,
    /// Booleans are 0 and 1.
    pub builtins: BTreeMap<Builtin, Vec<u32>>,
    /// Fragments that only help their quad; the rest of the list is `false`. A quad of four helpers is dead: it does not run, and
    /// whatever it is given is undefined.
    pub helpers: Vec<bool>,
    /// Of fragments: what `values` was made from, by place and component, for those who interpolate themselves.
    pub planes: BTreeMap<(Slot, u8), Plane>,
    /// Start words of the machine, by number (lowered programs).
    pub payload: BTreeMap<u32, Vec<u32>>,
    /// Most invocations that share a batch; 0: as many as there are lanes. The machine gives geometry programs fewer where each needs
    /// much room (lowered programs).
    pub width: u32,
}

impl StageInputs {
    /// Fragment `n` is in a dead quad.
    pub fn is_dead(&self, n: usize) -> bool {
        let first = n & !3;
        (first..first + 4).all(|n| self.helpers.get(n) == Some(&true))
    }
}

/// An input of fragments as a plane: what the hardware interpolates and what remains to be added, 32 bits for each fragment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Plane {
    pub part: Vec<u32>,
    pub constant: Vec<u32>,
}

impl Plane {
    /// The value at fragment `n`, each step rounded to f32; `w` is that of the fragment or of its centroid.
    pub fn value(&self, n: usize, how: Interpolation, w: u32) -> u32 {
        let at = |list: &[u32]| list.get(n).copied().unwrap_or(0);
        let (part, constant) = (f32::from_bits(at(&self.part)), f32::from_bits(at(&self.constant)));
        match how {
            Interpolation::Flat => at(&self.constant),
            Interpolation::NoPerspective => crate::eval::f32_result(part + constant),
            Interpolation::Smooth => {
                let product = f32::from_bits(crate::eval::f32_result(part * f32::from_bits(w)));
                crate::eval::f32_result(product + constant)
            }
        }
    }
}

/// The viewport of a draw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Viewport {
    /// Pixels.
    pub extent: [f32; 2],
    /// Near and far.
    pub depth: [f32; 2],
}

impl Default for Viewport {
    fn default() -> Viewport {
        Viewport { extent: [256.0, 256.0], depth: [0.0, 1.0] }
    }
}

impl Viewport {
    /// See [`crate::UniformWord::ViewportScale`].
    pub fn scale(&self, axis: u8, steps: u32) -> f32 {
        match axis {
            0 | 1 => self.extent[axis as usize] * 0.5 * steps as f32,
            _ => self.depth[1] - self.depth[0],
        }
    }
}

/// How a colour target takes what a fragment shader writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum TargetFormat {
    /// RGBA8 and the like: 16-bit floats on their way, or 32-bit integers if the output is an integer.
    #[default]
    ByOutput,
    /// 16-bit floats are enough.
    Half,
    /// 32 bits for each component.
    Word,
}

impl TargetFormat {
    pub const NAMES: [(&'static str, TargetFormat); 3] =
        [("by-output", TargetFormat::ByOutput), ("half", TargetFormat::Half), ("word", TargetFormat::Word)];
}

/// Most colour targets of any API.
pub const MAX_TARGETS: usize = 8;

/// What code of a graphics stage depends on besides its shader. The default: RGBA8 targets, no blending with a second
/// source, one sample, a depth test that writes, no points.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PipelineState {
    pub targets: [TargetFormat; MAX_TARGETS],
    /// Depth is tested or written, so what a shader does to it counts.
    pub depth: bool,
    /// Points are drawn: the vertex shader gives their size.
    pub points: bool,
    /// 1 or 4.
    pub samples: u8,
}

impl Default for PipelineState {
    fn default() -> PipelineState {
        PipelineState { targets: Default::default(), depth: true, points: false, samples: 1 }
    }
}

/// What they gave.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StageOutputs {
    /// By place, component and index, then by invocation; `None`: nothing, or undefined bits. A geometry shader: by invocation,
    /// then by vertex, as many as it may give.
    pub values: BTreeMap<(Slot, u8, u8), Vec<Option<u32>>>,
    /// Of a control shader: what belongs to the patch, by patch.
    pub patch_values: BTreeMap<(Slot, u8), Vec<Option<u32>>>,
    /// Of a geometry shader, by invocation: the vertices it gave; `true`: a primitive begins with it.
    pub emitted: Vec<Vec<bool>>,
    /// Fragments without effect at the end: helpers from the start or by `demote`.
    pub helpers: Vec<bool>,
}

/// What a fragment shader promises about the depth that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum DepthMode {
    #[default]
    Any,
    Greater,
    Less,
    Unchanged,
}

impl DepthMode {
    pub const NAMES: [(&'static str, DepthMode); 4] = [
        ("any", DepthMode::Any),
        ("greater", DepthMode::Greater),
        ("less", DepthMode::Less),
        ("unchanged", DepthMode::Unchanged),
    ];
}

/// Modes of a fragment shader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct FragmentModes {
    /// Depth and stencil are tested before it runs, whatever it does.
    pub early_tests: bool,
    pub depth: DepthMode,
}
