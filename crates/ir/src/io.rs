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
}

impl Slot {
    /// Names in the text form; locations carry their number behind the name.
    pub const NAMES: [(&'static str, Slot); 10] = [
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
    ];

    /// Scalars that a place has.
    pub fn components(self) -> u8 {
        match self {
            Slot::Location(_) | Slot::Position => 4,
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

/// One scalar of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IoImm {
    pub slot: Slot,
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
            component,
            index: 0,
            interpolation: Interpolation::default(),
            sampling: Sampling::default(),
        }
    }
}

/// What the invocations of a graphics stage are given: 32 bits for each scalar, by invocation.
///
/// Fragments come in quads of four: upper left, upper right, lower left, lower right.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StageInputs {
    pub invocations: u32,
    /// By place and component. What is not there is undefined.
    pub values: BTreeMap<(Slot, u8), Vec<u32>>,
    /// Booleans are 0 and 1.
    pub builtins: BTreeMap<Builtin, Vec<u32>>,
    /// Fragments that only help their quad; the rest of the list is `false`.
    pub helpers: Vec<bool>,
}

/// What they gave.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StageOutputs {
    /// By place, component and index, then by invocation; `None`: nothing, or undefined bits.
    pub values: BTreeMap<(Slot, u8, u8), Vec<Option<u32>>>,
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
