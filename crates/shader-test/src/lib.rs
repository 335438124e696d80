//! `.shader_test` files, the format of piglit and shader-db: what is needed, the texts of all stages, and a test that draws or
//! dispatches and looks at the result.
//!
//! * [`parse`]: the file as sections, shaders ready to compile
//! * [`command`]: the lines of `[test]`
//! * [`program`]: the stages compiled, for the simulator of a target or the interpreter
//! * [`run`]: carries the lines out and judges
//! * [`state`]: uniforms, textures, buffers between the lines; [`vertices`]: what a draw is given
//!
//! Source of the format: the documentation and the tests of piglit. Only what needs a vertex and a fragment shader, or a compute
//! shader, is run; every other file is skipped with a reason. A stage that does not compile makes a file `refused`, which is
//! neither.

pub mod command;
pub mod parse;
pub mod program;
pub mod run;
pub mod state;
pub mod vertices;

pub use parse::{Shader, ShaderTest};
pub use run::{Options, Verdict};
