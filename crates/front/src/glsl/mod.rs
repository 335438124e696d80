//! GLSL and HLSL to SPIR-V through the glslang library, in this process.
//!
//! A thin safe wrapper over the C interface: one object owns shader and program, one callback finds included files,
//! and the log is read back into messages. The text is parsed as it is (so that lines and columns are those of the
//! source); only text with `#include` goes through the preprocessor first. The target is Vulkan 1.2 with SPIR-V 1.5.
//!
//! glslang descends recursively and is C++: it runs on a thread with a large stack, and texts beyond
//! [`MAX_SOURCE`] or nested deeper than [`MAX_NESTING`] are refused.
//!
//! Three tries, the first that compiles counts: as Vulkan GLSL; with relaxed rules (loose uniforms are gathered into one
//! block, locations and bindings are given out); and with them the text after the pre-pass ([`lift`]). HLSL has one.

mod hlsl;
mod legacy;
mod lift;
mod limits;
mod opaque;

pub use self::hlsl::to_spirv as hlsl_to_spirv;

use self::limits::limits;
use crate::{Diagnostic, Diagnostics, Options, Severity};
use glslang_sys::*;
use kempe_ir::Stage;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Largest source in bytes, included files counted one by one.
pub const MAX_SOURCE: usize = 4 << 20;
/// Deepest nesting of brackets.
const MAX_NESTING: usize = 1000;
/// Deepest nesting of `#include`.
const MAX_INCLUDES: usize = 64;
/// Most `#include`s of one source: also bounds what includes that double each other can make.
const MAX_INCLUDED_FILES: usize = 10_000;

/// A text that glslang may see, with everything that goes with it.
struct Text {
    source: CString,
    /// In front of it: extensions and macros.
    preamble: CString,
    file: CString,
    stage: glslang_stage_t,
}

/// Checks a text and what is asked of it; `head` comes before the macros.
fn prepare(name: &str, text: &[u8], head: &str, options: &Options) -> Result<Text, Diagnostics> {
    let fail = |message: &str, help: &str| Diagnostics::one(Diagnostic::error(name, message).with_help(help));
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(fail("the source is empty", "a shader needs a main function"));
    }
    check_size(text).map_err(|e| fail(&e, ""))?;
    let Ok(source) = CString::new(text) else {
        return Err(fail("the source contains a zero byte", "is this a text file?"));
    };
    let mut preamble = String::from(head);
    for (key, value) in &options.defines {
        let value = value.as_deref().unwrap_or_default();
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (word, _) = key.split_once('(').unwrap_or((key, ""));
        if word.is_empty()
            || !word.chars().all(good)
            || word.starts_with(|c: char| c.is_ascii_digit())
            || key.contains(['\n', '\r', '\0', '\\'])
            || value.contains(['\n', '\r', '\0'])
        {
            return Err(fail(&format!("`{key}` cannot be defined as a macro"), ""));
        }
        preamble.push_str(&format!("#define {key} {value}\n"));
    }
    let Ok(preamble) = CString::new(preamble) else {
        return Err(fail("a macro contains a zero byte", ""));
    };
    let Ok(file) = CString::new(name.replace('\0', "?")) else {
        return Err(fail("the name of the source contains a zero byte", ""));
    };
    let stage = match options.stage {
        None | Some(Stage::Compute) => glslang_stage_t::Compute,
        Some(Stage::Vertex) => glslang_stage_t::Vertex,
        Some(Stage::Fragment) => glslang_stage_t::Fragment,
        Some(Stage::Geometry) => glslang_stage_t::Geometry,
        Some(Stage::TessControl) => glslang_stage_t::TesselationControl,
        Some(Stage::TessEval) => glslang_stage_t::TesselationEvaluation,
    };
    static PROCESS: OnceLock<bool> = OnceLock::new();
    // SAFETY: called once; never finalised, since other threads may still compile.
    if !*PROCESS.get_or_init(|| unsafe { glslang_initialize_process() != 0 }) {
        return Err(fail("the compiler does not start", ""));
    }
    Ok(Text { source, preamble, file, stage })
}

/// Compiles the text of one shader. Also tells whether it says all its locations itself.
pub fn to_spirv(name: &str, text: &[u8], options: &Options) -> Result<(Vec<u32>, bool), Diagnostics> {
    let head = "#extension GL_GOOGLE_include_directive : enable\n";
    let Text { source, preamble, file, stage } = prepare(name, text, head, options)?;
    let run = |source: &CStr, relaxed: bool| {
        let includes =
            Includes { dirs: &options.include_dirs, root: Path::new(name), opened: 0, missing: None };
        let language = Dialect::Glsl { relaxed };
        let job = Job { name, source, preamble: &preamble, file: &file, stage, language, includes };
        let mut words = crate::on_large_stack(name, move || job.run())?;
        if relaxed {
            crate::names::keep_apart(&mut words, "main", &source.to_string_lossy());
        }
        match opaque::mistake(&words, &source.to_string_lossy()).filter(|_| relaxed) {
            None => Ok(words),
            Some(what) => Err(Diagnostics::one(
                Diagnostic::error(name, format!("{what}: this is not supported"))
                    .with_help("arrays of samplers outside of structures can be indexed"),
            )),
        }
    };
    let first = match run(&source, false) {
        Ok(words) => return Ok((words, true)),
        Err(e) => e,
    };
    let second = match run(&source, true) {
        Ok(words) => return Ok((words, false)),
        Err(e) => e,
    };
    let lossy = source.to_string_lossy();
    let lifted = lift::lift(&lossy, options.stage.unwrap_or(Stage::Compute));
    let Ok(lifted) = CString::new(lifted) else { return Err(first) };
    match run(&lifted, true) {
        Ok(words) => Ok((words, false)),
        Err(third) => {
            // The messages of the try that the text was most likely written for.
            let version = lift::version(&lossy);
            Err(if version.may_be_vulkan() {
                first
            } else if version.number >= 330 && !version.es {
                second
            } else {
                third
            })
        }
    }
}

/// Refuses what the recursive descent of a compiler should not see.
fn check_size(text: &[u8]) -> Result<(), String> {
    if text.len() > MAX_SOURCE {
        return Err(format!("the source has {} bytes; more than {MAX_SOURCE} are refused", text.len()));
    }
    let (mut depth, mut deepest) = (0usize, 0);
    let mut run = 0usize;
    for &b in text {
        match b {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Prefix operators nest too.
        run = if matches!(b, b'-' | b'+' | b'!' | b'~') {
            run + 1
        } else if b.is_ascii_whitespace() {
            run
        } else {
            0
        };
        deepest = deepest.max(depth + run);
    }
    if deepest > MAX_NESTING {
        return Err(format!("the source nests deeper than {MAX_NESTING}"));
    }
    Ok(())
}

/// What glslang is to read.
enum Dialect<'a> {
    Glsl {
        /// The rules of OpenGL where Vulkan's are stricter.
        relaxed: bool,
    },
    Hlsl {
        entry: &'a CStr,
    },
}

struct Job<'a> {
    name: &'a str,
    source: &'a CStr,
    preamble: &'a CStr,
    file: &'a CStr,
    stage: glslang_stage_t,
    language: Dialect<'a>,
    includes: Includes<'a>,
}

/// A shader of glslang; freed when it goes.
struct Shader(NonNull<glslang_shader_t>);

impl Drop for Shader {
    fn drop(&mut self) {
        // SAFETY: made by glslang_shader_create and deleted once.
        unsafe { glslang_shader_delete(self.0.as_ptr()) }
    }
}

/// A program of glslang; freed when it goes, before its shader.
struct Program(NonNull<glslang_program_t>);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by glslang_program_create and deleted once.
        unsafe { glslang_program_delete(self.0.as_ptr()) }
    }
}

/// A string that glslang owns.
///
/// # Safety
/// `s` is null or a C string that lives through the call.
unsafe fn text(s: *const c_char) -> String {
    if s.is_null() {
        return String::new();
    }
    // SAFETY: see above.
    unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned()
}

impl Job<'_> {
    fn run(mut self) -> Result<Vec<u32>, Diagnostics> {
        let resource = limits();
        let common = glslang_messages_t::SPV_RULES
            | glslang_messages_t::VULKAN_RULES
            | glslang_messages_t::DISPLAY_ERROR_COLUMN
            | glslang_messages_t::ENHANCED;
        let (language, messages) = match self.language {
            Dialect::Glsl { .. } => (glslang_source_t::GLSL, common),
            Dialect::Hlsl { .. } => {
                let own = glslang_messages_t::READ_HLSL | glslang_messages_t::HLSL_OFFSETS;
                (glslang_source_t::HLSL, common | own)
            }
        };
        let has_includes = self.source.to_bytes().windows(7).any(|w| w == b"include");
        let input = glslang_input_t {
            language,
            stage: self.stage,
            client: glslang_client_t::Vulkan,
            client_version: glslang_target_client_version_t::Vulkan1_2,
            target_language: glslang_target_language_t::SPIRV,
            target_language_version: glslang_target_language_version_t::SPIRV1_5,
            code: self.source.as_ptr(),
            default_version: 100,
            default_profile: glslang_profile_t::None,
            force_default_version_and_profile: 0,
            forward_compatible: 0,
            messages,
            resource: &resource,
            callbacks: glsl_include_callbacks_t {
                include_system: Some(include_system),
                include_local: Some(include_local),
                free_include_result: Some(free_include),
            },
            callbacks_ctx: (&raw mut self.includes).cast(),
        };
        let fail = |job: &Self, log: String| Err(job.diagnostics(&log));
        // SAFETY: `input` and everything it points to outlive the shader; the handles are checked for null and used
        // on this thread only; the strings that are read belong to live objects.
        unsafe {
            let Some(shader) = NonNull::new(glslang_shader_create(&input)).map(Shader) else {
                return fail(&self, "ERROR: the compiler does not start".to_owned());
            };
            let s = shader.0.as_ptr();
            glslang_shader_set_preamble(s, self.preamble.as_ptr());
            let given_out =
                glslang_shader_options_t::AUTO_MAP_BINDINGS | glslang_shader_options_t::AUTO_MAP_LOCATIONS;
            match self.language {
                Dialect::Glsl { relaxed: false } => {}
                Dialect::Glsl { relaxed: true } => {
                    let options = given_out | glslang_shader_options_t::VULKAN_RULES_RELAXED;
                    glslang_shader_set_options(s, options.0 as c_int);
                }
                Dialect::Hlsl { entry } => {
                    glslang_shader_set_options(s, given_out.0 as c_int);
                    // What it is called in the source, and in the module.
                    glslang_shader_set_source_entry_point(s, entry.as_ptr());
                    glslang_shader_set_entry_point(s, entry.as_ptr());
                }
            }
            if has_includes {
                if glslang_shader_preprocess(s, &input) == 0 {
                    return fail(&self, text(glslang_shader_get_info_log(s)));
                }
                let code = text(glslang_shader_get_preprocessed_code(s));
                let code = match self.language {
                    Dialect::Glsl { .. } => self.version_first(&code),
                    Dialect::Hlsl { .. } => code,
                };
                let Ok(code) = CString::new(code) else {
                    return fail(&self, "ERROR: an included file contains a zero byte".to_owned());
                };
                // The macros are in the text now.
                glslang_shader_set_preamble(s, c"".as_ptr());
                glslang_shader_set_preprocessed_code(s, code.as_ptr());
            } else {
                glslang_shader_set_preprocessed_code(s, self.source.as_ptr());
            }
            if glslang_shader_parse(s, &input) == 0 {
                return fail(&self, text(glslang_shader_get_info_log(s)));
            }
            let Some(program) = NonNull::new(glslang_program_create()).map(Program) else {
                return fail(&self, "ERROR: the compiler does not start".to_owned());
            };
            let p = program.0.as_ptr();
            glslang_program_add_shader(p, s);
            if glslang_program_link(p, messages.0) == 0 {
                return fail(&self, text(glslang_program_get_info_log(p)));
            }
            let mapped = !matches!(self.language, Dialect::Glsl { relaxed: false });
            if mapped && glslang_program_map_io(p) == 0 {
                return fail(&self, text(glslang_program_get_info_log(p)));
            }
            glslang_program_set_source_file(p, self.stage, self.file.as_ptr());
            let mut spv = glslang_spv_options_t {
                generate_debug_info: true,
                strip_debug_info: false,
                disable_optimizer: true,
                optimize_size: false,
                optimize_performance: false,
                disassemble: false,
                validate: false,
                emit_nonsemantic_shader_debug_info: false,
                emit_nonsemantic_shader_debug_source: false,
                compile_only: false,
                optimize_allow_expanded_id_bound: false,
                compiler_signature: std::ptr::null(),
                command_line_arguments: std::ptr::null(),
                current_working_directory: std::ptr::null(),
            };
            glslang_program_SPIRV_generate_with_options(p, self.stage, &mut spv);
            let n = glslang_program_SPIRV_get_size(p);
            let words = glslang_program_SPIRV_get_ptr(p);
            if n == 0 || words.is_null() {
                return fail(&self, text(glslang_program_SPIRV_get_messages(p)));
            }
            let out = std::slice::from_raw_parts(words, n).to_vec();
            drop(program);
            drop(shader);
            Ok(out)
        }
    }

    /// Preprocessed text starts with what the preamble left, but `#version` must come first; the lines behind it keep
    /// their numbers.
    fn version_first(&self, code: &str) -> String {
        let is_version =
            |l: &str| l.trim_start().strip_prefix('#').is_some_and(|l| l.trim_start().starts_with("version"));
        let enable = "#extension GL_GOOGLE_include_directive : enable";
        let original = self.source.to_string_lossy();
        let Some((_, behind)) =
            original.lines().enumerate().find(|l| is_version(l.1)).map(|l| (l.1, l.0 + 2))
        else {
            return code.to_owned();
        };
        let mut lines = code.lines().skip_while(|l| !is_version(l));
        let version = lines.next().unwrap_or("#version 450").trim();
        let mut out = format!("{version}\n{enable}\n#line {behind}\n");
        for l in lines {
            out.push_str(l);
            out.push('\n');
        }
        out
    }

    /// The log as messages: `ERROR: FILE:LINE:COLUMN: TEXT`, FILE being 0 for the source itself.
    fn diagnostics(&self, log: &str) -> Diagnostics {
        let mut out: Vec<Diagnostic> = Vec::new();
        for line in log.lines() {
            let (severity, rest) = if let Some(rest) = line.strip_prefix("ERROR: ") {
                (Severity::Error, rest)
            } else if let Some(rest) = line.strip_prefix("WARNING: ") {
                (Severity::Warning, rest)
            } else {
                continue;
            };
            // The last line only counts.
            if rest.contains("compilation errors.  No code generated") {
                continue;
            }
            let rest =
                rest.strip_prefix("Linking ").and_then(|r| r.split_once("stage: ")).map_or(rest, |r| r.1);
            let (file, line, column, message) = place(rest);
            let file = if file == "0" || file.is_empty() { self.name } else { file };
            let mut d = Diagnostic::error(file, tidy(message)).with_line(line, column);
            d.severity = severity;
            if (message.contains("include") || message.contains("Could not process"))
                && let Some(missing) = &self.includes.missing
            {
                d.message = format!("cannot include `{missing}`");
                d.help =
                    "look-up is relative to the including file, then in the folders given with -I".to_owned();
            }
            out.push(d);
        }
        if !out.iter().any(|d| d.severity == Severity::Error) {
            let text = log.trim();
            let text = if text.is_empty() { "the compiler gives up without a message" } else { text };
            out.push(Diagnostic::error(self.name, text));
        }
        Diagnostics(out)
    }
}

/// Splits `FILE:LINE:COLUMN: TEXT` (the column may be absent; FILE may contain colons).
fn place(s: &str) -> (&str, u32, u32, &str) {
    // Without a number in front of the first ": " there is no place.
    for (k, _) in s.match_indices(": ") {
        let mut numbers = s[..k].rsplitn(3, ':');
        let last = numbers.next().and_then(|n| n.parse::<u32>().ok());
        let middle = numbers.next();
        let Some(last) = last else { continue };
        let text = &s[k + 2..];
        return match (middle.and_then(|n| n.parse::<u32>().ok()), numbers.next()) {
            (Some(line), Some(file)) => (file, line, last, text),
            _ => (middle.unwrap_or_default(), last, 0, text),
        };
    }
    ("", 0, 0, s)
}

/// `'token' : text` with the token in our quotes; an empty token says nothing.
fn tidy(message: &str) -> String {
    let message = message.trim();
    if let Some(rest) = message.strip_prefix('\'')
        && let Some((token, text)) = rest.split_once("' : ")
    {
        let text = text.trim();
        return if token.is_empty() { text.to_owned() } else { format!("`{token}`: {text}") };
    }
    message.to_owned()
}

/// Finds included files.
struct Includes<'a> {
    dirs: &'a [PathBuf],
    root: &'a Path,
    opened: usize,
    /// The last one that was not found.
    missing: Option<String>,
}

/// What the callback hands out: the result first, so that a pointer to it is a pointer to this.
#[repr(C)]
struct Included {
    result: glsl_include_result_t,
    name: CString,
    data: Vec<u8>,
}

impl Includes<'_> {
    fn find(&mut self, name: &str, includer: Option<&str>, depth: usize) -> Option<Included> {
        self.opened += 1;
        if depth > MAX_INCLUDES || self.opened > MAX_INCLUDED_FILES {
            self.missing = Some(format!("{name}` (includes nest too deep or are too many: `{name}"));
            return None;
        }
        let beside = includer.map(|i| {
            let from = if i.is_empty() || i == "0" { self.root } else { Path::new(i) };
            from.parent().unwrap_or(Path::new("")).to_owned()
        });
        for dir in beside.iter().chain(self.dirs) {
            let path = dir.join(name);
            let small = std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= MAX_SOURCE as u64);
            if !small {
                continue;
            }
            let Ok(data) = std::fs::read(&path) else { continue };
            if check_size(&data).is_err() || data.contains(&0) {
                continue;
            }
            let Ok(name) = CString::new(path.to_string_lossy().into_owned()) else { continue };
            let result = glsl_include_result_t {
                header_name: name.as_ptr(),
                header_data: data.as_ptr().cast(),
                header_length: data.len(),
            };
            return Some(Included { result, name, data });
        }
        self.missing = Some(name.to_owned());
        None
    }
}

/// # Safety
/// Called by glslang with the context of [`Job::run`] and C strings.
unsafe fn include(
    ctx: *mut c_void,
    name: *const c_char,
    includer: Option<*const c_char>,
    depth: usize,
) -> *mut glsl_include_result_t {
    // SAFETY: the context is the `Includes` of the job that runs on this very thread, and nothing else uses it now.
    let includes = unsafe { &mut *ctx.cast::<Includes<'static>>() };
    // SAFETY: see above.
    let (name, includer) = unsafe { (text(name), includer.map(|i| text(i))) };
    match includes.find(&name, includer.as_deref(), depth) {
        Some(found) => Box::into_raw(Box::new(found)).cast(),
        None => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn include_local(
    ctx: *mut c_void,
    name: *const c_char,
    includer: *const c_char,
    depth: usize,
) -> *mut glsl_include_result_t {
    // SAFETY: the contract of the callback is that of `include`.
    unsafe { include(ctx, name, Some(includer), depth) }
}

unsafe extern "C" fn include_system(
    ctx: *mut c_void,
    name: *const c_char,
    _includer: *const c_char,
    depth: usize,
) -> *mut glsl_include_result_t {
    // SAFETY: the contract of the callback is that of `include`.
    unsafe { include(ctx, name, None, depth) }
}

unsafe extern "C" fn free_include(_ctx: *mut c_void, result: *mut glsl_include_result_t) -> c_int {
    if !result.is_null() {
        // SAFETY: made by `include` as an `Included`, whose first field the result is; freed once.
        let included = unsafe { Box::from_raw(result.cast::<Included>()) };
        debug_assert_eq!(included.result.header_length, included.data.len());
        drop(included.name);
    }
    0
}
