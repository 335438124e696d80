//! The command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use kempe::data::Element;
use kempe::ir::io::{MAX_TARGETS, TargetFormat};
use kempe::{Level, Stage, Target};
use std::path::PathBuf;
use std::time::Duration;

/// An offline compiler for GPU shaders: machine code, what it costs, and a simulator that runs it.
#[derive(Parser)]
#[command(name = "kempe", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Compile shaders and show what the code costs
    Compile(Compile),
    /// Show where the registers of a shader go, and why
    Explain(Explain),
    /// Run a shader, an artifact or a raw program on the simulator
    Run(Box<Run>),
    /// Show machine code as text
    Disasm(Disasm),
    /// Make machine code from text
    Asm(Asm),
    /// Check machine code against the rules of the hardware
    Validate(Validate),
    /// Compile whole collections of shaders, and compare runs
    Corpus(crate::corpus::Corpus),
    /// List the GPUs that code can be made for
    Targets,
}

/// A target, by its name.
pub fn target_parser() -> impl TypedValueParser<Value = &'static dyn Target> {
    PossibleValuesParser::new(kempe::targets().iter().map(|target| target.name()))
        .try_map(|name| kempe::target(&name).ok_or("not a target"))
}

/// What the front end is told about a source.
#[derive(clap::Args)]
pub struct FrontArgs {
    /// Define a preprocessor macro (GLSL, HLSL)
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = define)]
    pub define: Vec<(String, Option<String>)>,
    /// Look for included files here (GLSL, HLSL)
    #[arg(short = 'I', value_name = "FOLDER")]
    pub include: Vec<PathBuf>,
    /// Entry point; `all` for every one [default: all; of HLSL, `main`]
    #[arg(short, long)]
    pub entry: Option<String>,
    /// Value of a specialisation constant: an integer, a float (with a point) or true/false
    #[arg(long, value_name = "ID=VALUE", value_parser = spec)]
    pub spec: Vec<(u32, u64)>,
    /// What kind of shader it is, where the name does not tell
    #[arg(long, value_enum)]
    pub stage: Option<StageArg>,
}

/// What the compiler is told about the code.
#[derive(clap::Args)]
pub struct CodeArgs {
    /// How much to optimise: 0 not at all, 1 without making code longer, 2 everything
    #[arg(short = 'O', value_name = "LEVEL", default_value = "2", value_parser = level)]
    pub optimise: Level,
    /// Use exactly this number of hardware threads per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// Give out at most this many registers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_registers: Option<u32>,
    /// Spill everything that can be spilled
    #[arg(long)]
    pub force_spill: bool,
    /// How registers are coloured
    #[arg(long, value_enum, default_value = "best")]
    pub colour: Colour,
    /// Leave out parts of the allocator, to see what they bring
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_parser = part)]
    pub without: Vec<String>,
    #[command(flatten)]
    pub state: StateArgs,
}

/// The state of the pipeline that code of vertex and fragment shaders depends on.
#[derive(clap::Args)]
#[command(next_help_heading = "Graphics pipeline")]
pub struct StateArgs {
    /// How a colour target takes what is written: `half` as 16-bit floats, `word` as 32 bits [default: half for floats]
    #[arg(long, value_name = "N=half|word", value_parser = target_format)]
    pub target_format: Vec<(usize, TargetFormat)>,
    /// Depth is neither tested nor written
    #[arg(long)]
    pub no_depth: bool,
    /// Points are drawn, so the vertex shader gives their size
    #[arg(long)]
    pub points: bool,
    /// Samples of each pixel: 1 or 4
    #[arg(long, value_name = "N", default_value = "1", value_parser = samples)]
    pub samples: u8,
}

/// What may be used.
#[derive(clap::Args)]
pub struct LimitArgs {
    /// CPU time for each result
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub time_limit: Duration,
    /// Memory for each result in MiB, or with a suffix K, M or G
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    pub memory_limit: u64,
}

#[derive(clap::Args)]
pub struct Compile {
    /// Shaders: .comp, .vert, .tesc, .tese, .geom, .frag (GLSL), .cs.hlsl, .vs.hlsl, .ps.hlsl (HLSL), .wgsl, .spv, .shader_test; `-` is standard input
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// A vertex and a fragment shader (two files, or one with both) belong together: their interface meets by name where
    /// locations are left open, and the vertex shader writes only what the fragment shader reads
    #[arg(long)]
    pub link: bool,
    /// The GPUs, separated by commas
    #[arg(short, long, required = true, value_delimiter = ',', value_parser = target_parser())]
    pub target: Vec<&'static dyn Target>,
    #[command(flatten)]
    pub front: FrontArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How the results are shown
    #[arg(long, value_enum, default_value = "table")]
    pub format: ReportFormat,
    /// Show or write this instead of the table
    #[arg(long, value_enum, value_name = "WHAT")]
    pub emit: Option<Emit>,
    /// Where `--emit` writes: a file, or a folder if there are several results
    #[arg(short, long, requires = "emit")]
    pub output: Option<PathBuf>,
    /// Say how long each pass took
    #[arg(long)]
    pub time_passes: bool,
    /// Compare the final words with the machine code before allocation (checker A and the validator always run)
    #[arg(long)]
    pub verify: bool,
    /// Warn of what is legal and hardly meant: undefined values, constants out of range, loops without a way out
    #[arg(short = 'W', long)]
    pub warn: bool,
}

#[derive(clap::Args)]
pub struct Explain {
    /// A shader: .comp, .vert, .tesc, .tese, .geom, .frag (GLSL), .cs.hlsl, .vs.hlsl, .ps.hlsl (HLSL), .wgsl, .spv; `-` is standard input
    pub file: PathBuf,
    /// The GPUs, separated by commas
    #[arg(short, long, required = true, value_delimiter = ',', value_parser = target_parser())]
    pub target: Vec<&'static dyn Target>,
    #[command(flatten)]
    pub front: FrontArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Text for people, or everything as JSON
    #[arg(long, value_enum, default_value = "text")]
    pub format: ExplainFormat,
    /// Show everything: every stretch of the program, every live value, every decision
    #[arg(long)]
    pub all: bool,
    /// Explain the attempt with this number of threads instead of the one that was taken
    #[arg(long, value_name = "N")]
    pub attempt: Option<u32>,
}

#[derive(clap::Args)]
pub struct Run {
    /// A shader, an artifact (JSON), or with --raw the description of a raw program; to draw: a vertex shader, a WGSL file with both
    /// stages, or a scene (JSON)
    pub file: PathBuf,
    /// The fragment shader that is drawn with
    pub fragment: Option<PathBuf>,
    #[command(flatten)]
    pub draw: DrawArgs,
    /// Number of work-groups
    #[arg(short, long, value_name = "X[,Y[,Z]]", default_value = "1,1,1", value_parser = groups)]
    pub groups: [u32; 3],
    /// Contents of a buffer: a file, zero:BYTES, random:BYTES, TYPE:value,value,… or TYPE:first..end
    #[arg(short, long, value_name = "SET:BINDING=CONTENTS", value_parser = binding_is)]
    pub buffer: Vec<BindingIs>,
    /// An image: its size, format (if the shader does not name one) and contents (zeros if not given)
    #[arg(long, value_name = "SET:BINDING=SIZE[:FORMAT[:CONTENTS]]", value_parser = binding_is)]
    pub image: Vec<BindingIs>,
    /// Push constants: contents as for a buffer, or hexadecimal bytes
    #[arg(long, value_name = "CONTENTS")]
    pub push: Option<String>,
    /// Draw contents that are not given with this seed; buffers that are not given at all are made too
    #[arg(long, value_name = "SEED")]
    pub random: Option<u64>,
    /// Show a buffer after the run
    #[arg(long, value_name = "SET:BINDING[:TYPE]", value_parser = binding)]
    pub print: Vec<Binding>,
    /// Write a buffer to a file after the run
    #[arg(long, value_name = "SET:BINDING=FILE", value_parser = binding_is)]
    pub write: Vec<BindingIs>,
    /// What a buffer must hold after the run; exit code 5 if it does not
    #[arg(long, value_name = "SET:BINDING[:TYPE]=CONTENTS", value_parser = binding_is)]
    pub expect: Vec<BindingIs>,
    /// The GPU whose code is made and run; an artifact says it itself
    #[arg(short, long, value_parser = target_parser())]
    pub target: Option<&'static dyn Target>,
    /// Run the source with the interpreter, without making code
    #[arg(long, conflicts_with_all = ["counts", "raw", "target"])]
    pub interpret: bool,
    /// Run the interpreter too, on the program as code was selected from it, and compare all buffers bit for bit; exit
    /// code 5 if they differ
    #[arg(long, conflicts_with_all = ["interpret", "raw"])]
    pub compare: bool,
    /// Show the code with the number of times that each instruction was executed, and what each hardware thread did
    #[arg(long)]
    pub counts: bool,
    /// The file describes machine code that was made elsewhere, its memory and what must come out
    #[arg(long, conflicts_with_all = ["buffer", "image", "push", "random", "print", "write", "expect", "target"])]
    pub raw: bool,
    /// Draw the thread that runs after each thread switch with this seed, instead of taking turns
    #[arg(long, value_name = "SEED", default_value = "0", hide_default_value = true)]
    pub schedule: u64,
    #[command(flatten)]
    pub front: FrontArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// What is drawn.
#[derive(clap::Args)]
#[command(next_help_heading = "Drawing")]
pub struct DrawArgs {
    /// Draw, and write the picture here as PNG
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Size of the picture in pixels [default: 256x256, or what the scene says]
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = picture_size)]
    pub size: Option<[u32; 2]>,
    /// screen (one triangle over everything), quad, triangle, cube, `sphere N`, `torus N`, `grid N`, or a file .obj
    #[arg(long, value_name = "MESH", default_value = "screen")]
    pub mesh: String,
    /// Draw the mesh so often
    #[arg(long, value_name = "N", default_value = "1")]
    pub instances: u32,
    /// A field of a uniform buffer or of the push constants: numbers, or a matrix in words
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub set: Vec<(String, String)>,
    /// A texture, by its name or SET:BINDING: a file .png, or checker, noise, fbm, bricks, … [default: checker]
    #[arg(long, value_name = "NAME=TEXTURE", value_parser = pair)]
    pub texture: Vec<(String, String)>,
    /// What a sampler does: linear, nearest, no-mip, repeat, mirror, clamp, border
    #[arg(long, value_name = "NAME=WORDS", value_parser = pair)]
    pub sampler: Vec<(String, String)>,
    /// What an attribute is given: position, normal, uv, color or tangent
    #[arg(long, value_name = "LOCATION=ATTRIBUTE", value_parser = pair)]
    pub attribute: Vec<(String, String)>,
    /// Triangles that are left out
    #[arg(long, value_enum)]
    pub cull: Option<CullArg>,
    /// Colour of what is not drawn
    #[arg(long, value_name = "R,G,B,A", value_parser = color)]
    pub clear: Option<[f32; 4]>,
    /// Write the picture of this pass of the scene instead of the last one
    #[arg(long, value_name = "NAME")]
    pub pass: Option<String>,
    /// Who runs the shaders
    #[arg(long, value_enum, default_value = "interpreter")]
    pub on: On,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CullArg {
    Back,
    Front,
}

/// Who runs the shaders of a draw.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// The interpreter, on the source
    Interpreter,
    /// The simulator of the target, on its code
    Simulator,
}

#[derive(clap::Args)]
pub struct Disasm {
    /// Words as bytes (little-endian) or as hexadecimal text, or an artifact; `-` is standard input
    pub file: PathBuf,
    /// The GPU; an artifact says it itself
    #[arg(short, long, value_parser = target_parser())]
    pub target: Option<&'static dyn Target>,
    /// Only the text, without number and word of each instruction
    #[arg(long)]
    pub plain: bool,
    /// As the public reference disassembler prints it, with its deviations
    #[arg(long)]
    pub quirks: bool,
}

#[derive(clap::Args)]
pub struct Asm {
    /// Text, one instruction a line; `-` is standard input
    pub file: PathBuf,
    /// The GPU
    #[arg(short, long, value_parser = target_parser())]
    pub target: &'static dyn Target,
    /// Where the words go; standard output if not given
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Bytes (little-endian) or hexadecimal text; a file gets bytes, standard output text
    #[arg(long, value_enum)]
    pub format: Option<WordFormat>,
}

#[derive(clap::Args)]
pub struct Validate {
    /// Words as bytes (little-endian) or as hexadecimal text, or an artifact; `-` is standard input
    pub file: PathBuf,
    /// The GPU; an artifact says it itself
    #[arg(short, long, value_parser = target_parser())]
    pub target: Option<&'static dyn Target>,
    /// Hardware threads per core that the code is for; an artifact says it itself [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// The code is started in its final section; an artifact says it itself
    #[arg(long)]
    pub single_section: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WordFormat {
    Bin,
    Hex,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Table,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// Machine code as text
    Asm,
    /// Machine code as bytes, little-endian words
    Bin,
    /// The program after optimisation
    Ir,
    /// Machine instructions before register allocation
    Mir,
    /// Everything that a driver needs, as JSON
    Artifact,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// The cheaper of the other two, where something goes to memory
    Best,
    /// In dominance order, after spilling by next use
    Scan,
    /// Simplify and select on the interference graph
    Graph,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    #[value(alias = "comp")]
    Compute,
    #[value(alias = "vert")]
    Vertex,
    #[value(alias = "tesc")]
    TessControl,
    #[value(alias = "tese")]
    TessEval,
    #[value(alias = "geom")]
    Geometry,
    #[value(alias = "frag")]
    Fragment,
}

impl From<StageArg> for Stage {
    fn from(stage: StageArg) -> Stage {
        match stage {
            StageArg::Compute => Stage::Compute,
            StageArg::Vertex => Stage::Vertex,
            StageArg::TessControl => Stage::TessControl,
            StageArg::TessEval => Stage::TessEval,
            StageArg::Geometry => Stage::Geometry,
            StageArg::Fragment => Stage::Fragment,
        }
    }
}

/// A buffer, and how to look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    pub set: u32,
    pub binding: u32,
    /// Element of an array of buffers.
    pub element: u32,
    pub ty: Option<Element>,
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.set, self.binding)?;
        if self.element != 0 { write!(f, ".{}", self.element) } else { Ok(()) }
    }
}

/// A buffer with what it holds or where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingIs {
    pub binding: Binding,
    pub value: String,
}

/// `SET:BINDING[.ELEMENT][:TYPE]`.
fn binding(text: &str) -> Result<Binding, String> {
    let mut parts = text.split(':');
    let number = |part: Option<&str>| part.and_then(|p| p.parse::<u32>().ok());
    let set = number(parts.next());
    let (binding, element) = match parts.next().map(|part| part.split_once('.').unwrap_or((part, "0"))) {
        Some((binding, element)) => (number(Some(binding)), number(Some(element))),
        None => (None, None),
    };
    let ty = parts.next();
    match (set, binding, element, parts.next()) {
        (Some(set), Some(binding), Some(element), None) => {
            let ty = match ty {
                None => None,
                Some(name) => Some(Element::from_name(name).ok_or_else(|| {
                    format!("`{name}` is no type; there are {}", kempe::data::ELEMENT_NAMES)
                })?),
            };
            Ok(Binding { set, binding, element, ty })
        }
        _ => Err("a buffer is written SET:BINDING, for example 0:0".to_owned()),
    }
}

fn binding_is(text: &str) -> Result<BindingIs, String> {
    let (left, right) = text.split_once('=').ok_or("there is no `=`")?;
    Ok(BindingIs { binding: binding(left)?, value: right.to_owned() })
}

fn groups(text: &str) -> Result<[u32; 3], String> {
    let mut groups = [1; 3];
    for (i, part) in text.split(',').enumerate() {
        match (groups.get_mut(i), part.trim().parse()) {
            (Some(slot), Ok(n)) => *slot = n,
            _ => return Err("one to three numbers, separated by commas".to_owned()),
        }
    }
    Ok(groups)
}

pub fn define(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let mut chars = name.chars();
    let good = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if good { Ok((name.to_owned(), value)) } else { Err(format!("`{name}` is not a name")) }
}

/// `ID=VALUE` to the bits of the value: integers as they are, with a point an f32, `d` behind it an f64.
pub fn spec(text: &str) -> Result<(u32, u64), String> {
    let wrong = || "written ID=VALUE: 3=64, 3=-1, 3=0x10, 3=0.5 (f32), 3=0.5d (f64) or 3=true".to_owned();
    let (id, value) = text.split_once('=').ok_or_else(wrong)?;
    let id = id.trim().parse().map_err(|_| wrong())?;
    let value = value.trim();
    let bits = match value {
        "true" => 1,
        "false" => 0,
        _ => {
            let integer = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => value.parse::<u64>().ok().or_else(|| value.parse::<i64>().ok().map(|v| v as u64)),
            };
            let float = || match value.strip_suffix('d') {
                Some(double) => double.parse::<f64>().ok().map(f64::to_bits),
                None => value.parse::<f32>().ok().map(|v| v.to_bits().into()),
            };
            integer.or_else(float).ok_or_else(wrong)?
        }
    };
    Ok((id, bits))
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "0" => Ok(Level::O0),
        "1" => Ok(Level::O1),
        "2" => Ok(Level::O2),
        _ => Err("0, 1 or 2".to_owned()),
    }
}

fn picture_size(text: &str) -> Result<[u32; 2], String> {
    let size = text.split_once('x').and_then(|(w, h)| Some([w.parse().ok()?, h.parse().ok()?]));
    size.ok_or_else(|| "written WIDTHxHEIGHT, for example 256x256".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or("there is no `=`")?;
    Ok((left.to_owned(), right.to_owned()))
}

fn color(text: &str) -> Result<[f32; 4], String> {
    let list: Option<Vec<f32>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    list.and_then(|list| list.try_into().ok()).ok_or_else(|| "four numbers, separated by commas".to_owned())
}

fn target_format(text: &str) -> Result<(usize, TargetFormat), String> {
    let wrong = || format!("written N=half or N=word, with N below {MAX_TARGETS}");
    let (number, format) = text.split_once('=').ok_or_else(wrong)?;
    let number = number.parse().ok().filter(|n| *n < MAX_TARGETS).ok_or_else(wrong)?;
    match format {
        "half" => Ok((number, TargetFormat::Half)),
        "word" => Ok((number, TargetFormat::Word)),
        _ => Err(wrong()),
    }
}

fn samples(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "4" => Ok(4),
        _ => Err("1 or 4".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds")?;
    if seconds > 0.0 && seconds <= 1e6 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("more than 0 and at most 1000000 seconds".to_owned())
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 20),
    };
    let number: u64 = digits.parse().map_err(|_| "a number of MiB, or with K, M or G behind it")?;
    if number == 0 || number > u64::MAX >> (shift + 1) {
        return Err("out of range".to_owned());
    }
    Ok(number << shift)
}

fn part(text: &str) -> Result<String, String> {
    let names = kempe::compile::CodeOptions::parts();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the parts are {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn small_languages() {
        let plain = |set, binding| Binding { set, binding, element: 0, ty: None };
        assert_eq!(binding("0:3"), Ok(plain(0, 3)));
        let typed = Binding { element: 2, ty: Some(Element::Float(4)), ..plain(1, 7) };
        assert_eq!(binding("1:7.2:f32"), Ok(typed));
        assert_eq!(typed.to_string(), "1:7.2");
        for bad in ["", "0", "0:", "0:x", "0:1:f33", "0:1:f32:u8", "-1:0", "0:1."] {
            assert!(binding(bad).is_err(), "{bad}");
        }
        assert_eq!(binding_is("0:1=a=b").map(|b| b.value), Ok("a=b".to_owned()));
        assert_eq!(groups("4"), Ok([4, 1, 1]));
        assert_eq!(groups("4,5,6"), Ok([4, 5, 6]));
        assert!(groups("1,2,3,4").is_err() && groups("").is_err() && groups("-1").is_err());
        assert_eq!(spec("3=-1"), Ok((3, u64::MAX)));
        assert_eq!(spec("0=0.5"), Ok((0, 0x3f00_0000)));
        assert_eq!(spec("0=0.5d"), Ok((0, 0x3fe0_0000_0000_0000)));
        assert_eq!(spec("9=true"), Ok((9, 1)));
        assert!(spec("9").is_err() && spec("x=1").is_err() && spec("1=y").is_err());
        assert_eq!(define("A=1=2"), Ok(("A".to_owned(), Some("1=2".to_owned()))));
        assert!(define("1A").is_err() && define("").is_err());
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("16"), Ok(16 << 20));
        assert!(size("0").is_err() && size("").is_err() && size("99999999999999G").is_err());
        assert_eq!(target_format("1=word"), Ok((1, TargetFormat::Word)));
        assert!(["1", "8=half", "1=byte", "=half"].iter().all(|text| target_format(text).is_err()));
        assert!(samples("4") == Ok(4) && samples("2").is_err());
        assert!(seconds("0").is_err() && seconds("nan").is_err() && seconds("0.5").is_ok());
    }
}
