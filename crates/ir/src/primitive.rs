//! Primitives and patches: what geometry and tessellation shaders declare.

/// What a geometry shader is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum InputPrimitive {
    #[default]
    Points,
    Lines,
    LinesAdjacency,
    Triangles,
    TrianglesAdjacency,
}

impl InputPrimitive {
    pub const NAMES: [(&'static str, InputPrimitive); 5] = [
        ("points", InputPrimitive::Points),
        ("lines", InputPrimitive::Lines),
        ("lines_adjacency", InputPrimitive::LinesAdjacency),
        ("triangles", InputPrimitive::Triangles),
        ("triangles_adjacency", InputPrimitive::TrianglesAdjacency),
    ];

    pub fn vertices(self) -> u32 {
        match self {
            InputPrimitive::Points => 1,
            InputPrimitive::Lines => 2,
            InputPrimitive::LinesAdjacency => 4,
            InputPrimitive::Triangles => 3,
            InputPrimitive::TrianglesAdjacency => 6,
        }
    }
}

/// What a geometry shader gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum OutputPrimitive {
    #[default]
    Points,
    LineStrip,
    TriangleStrip,
}

impl OutputPrimitive {
    pub const NAMES: [(&'static str, OutputPrimitive); 3] = [
        ("points", OutputPrimitive::Points),
        ("line_strip", OutputPrimitive::LineStrip),
        ("triangle_strip", OutputPrimitive::TriangleStrip),
    ];
}

/// What the coordinates of a tessellated patch run over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Domain {
    #[default]
    Triangles,
    Quads,
    Isolines,
}

impl Domain {
    pub const NAMES: [(&'static str, Domain); 3] =
        [("triangles", Domain::Triangles), ("quads", Domain::Quads), ("isolines", Domain::Isolines)];
}

/// How edges of a patch are divided.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Spacing {
    #[default]
    Equal,
    FractionalEven,
    FractionalOdd,
}

impl Spacing {
    pub const NAMES: [(&'static str, Spacing); 3] = [
        ("equal", Spacing::Equal),
        ("fractional_even", Spacing::FractionalEven),
        ("fractional_odd", Spacing::FractionalOdd),
    ];
}

/// Most vertices of a patch, and of what a geometry shader gives, in any API.
pub const MAX_PATCH_VERTICES: u32 = 32;
pub const MAX_OUTPUT_VERTICES: u32 = 1024;

/// Modes of geometry and tessellation shaders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrimitiveModes {
    /// Of a geometry shader, as `output`.
    pub input: InputPrimitive,
    pub output: OutputPrimitive,
    /// Most vertices that an invocation of a geometry shader gives; vertices of the patch that a control shader gives.
    pub vertices: u32,
    /// Of a geometry shader: invocations for each primitive.
    pub invocations: u32,
    /// Of tessellation; an evaluation shader mostly says it.
    pub domain: Domain,
    pub spacing: Spacing,
    pub clockwise: bool,
    pub point_mode: bool,
}

impl Default for PrimitiveModes {
    fn default() -> PrimitiveModes {
        PrimitiveModes {
            input: InputPrimitive::default(),
            output: OutputPrimitive::default(),
            vertices: 0,
            invocations: 1,
            domain: Domain::default(),
            spacing: Spacing::default(),
            clockwise: false,
            point_mode: false,
        }
    }
}
