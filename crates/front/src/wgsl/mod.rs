//! WGSL to SPIR-V through naga: parsed, validated, overrides resolved, written.
//!
//! A text with the imports, macros and conditions of engines goes through a library of theirs first ([`imports`]).
//!
//! Bounds checks and loop counters that naga can add are off: they would be code that the source does not have.

mod imports;

use crate::{Diagnostic, Diagnostics, Options};
use naga::back::PipelineConstants;
use naga::back::spv;
use naga::proc::BoundsCheckPolicies;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Compiles the text of one module.
pub fn to_spirv(name: &str, text: &[u8], options: &Options) -> Result<Vec<u32>, Diagnostics> {
    let fail = |message: &str| Diagnostics::one(Diagnostic::error(name, message));
    if text.len() > crate::MAX_TEXT {
        return Err(fail(&format!(
            "the source has {} bytes; more than {} are refused",
            text.len(),
            crate::MAX_TEXT
        )));
    }
    let source = match std::str::from_utf8(text) {
        Ok(s) => s,
        Err(e) => return Err(fail(&format!("the source is not UTF-8 from byte {} on", e.valid_up_to()))),
    };
    crate::on_large_stack(name, || {
        if imports::is_used(source) {
            return write(name, &imports::combine(name, source, options)?, None, options);
        }
        let module = naga::front::wgsl::parse_str(source)
            .map_err(|e| Diagnostics::one(at(name, source, e.location(source), e.message().to_owned())))?;
        write(name, &module, Some(source), options)
    })
}

fn at(name: &str, source: &str, location: Option<naga::SourceLocation>, message: String) -> Diagnostic {
    let mut d = Diagnostic::error(name, message);
    if let Some(l) = location {
        // Columns of naga count bytes; ours count characters.
        let line = source.lines().nth((l.line_number as usize).saturating_sub(1)).unwrap_or_default();
        let column =
            line.get(..(l.line_position as usize).saturating_sub(1)).map_or(0, |s| s.chars().count()) + 1;
        d = d.with_line(l.line_number, column as u32);
        let rest = line.chars().count().saturating_sub(column - 1).max(1);
        d.span = (l.length as usize).clamp(1, rest) as u32;
    }
    d
}

/// A message and the causes below it.
fn chain(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut next = e.source();
    while let Some(e) = next {
        out.push_str(": ");
        out.push_str(&e.to_string());
        next = e.source();
    }
    out
}

/// A module as SPIR-V; with lines if there is the source that its places are of.
fn write(
    name: &str,
    module: &naga::Module,
    source: Option<&str>,
    options: &Options,
) -> Result<Vec<u32>, Diagnostics> {
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(module).map_err(|e| {
        let message = chain(e.as_inner());
        Diagnostics::one(match source {
            Some(source) => at(name, source, e.location(source), message),
            None => Diagnostic::error(name, message),
        })
    })?;
    let fail = |e: &dyn std::error::Error| Diagnostics::one(Diagnostic::error(name, chain(e)));
    let constants = overrides(module, options);
    let (module, info) = naga::back::pipeline_constants::process_overrides(module, &info, None, &constants)
        .map_err(|e| fail(&e))?;
    let spv_options = spv::Options {
        lang_version: (1, 3),
        flags: spv::WriterFlags::DEBUG,
        bounds_check_policies: BoundsCheckPolicies::default(),
        force_loop_bounding: false,
        debug_info: source.map(|source_code| spv::DebugInfo {
            source_code,
            file_name: name,
            language: spv::SourceLanguage::WGSL,
        }),
        ..spv::Options::default()
    };
    spv::write_vec(&module, &info, &spv_options, None).map_err(|e| fail(&e))
}

/// Values for `override` declarations: specialisation constants by their `@id`.
fn overrides(module: &naga::Module, options: &Options) -> PipelineConstants {
    let mut out = PipelineConstants::default();
    for (_, o) in module.overrides.iter() {
        let Some(id) = o.id else { continue };
        let Some(&(_, bits)) = options.spec.iter().rev().find(|s| s.0 == id as u32) else { continue };
        let value = match module.types[o.ty].inner {
            naga::TypeInner::Scalar(s) => match (s.kind, s.width) {
                (naga::ScalarKind::Float, 4) => f32::from_bits(bits as u32) as f64,
                (naga::ScalarKind::Float, 2) => kempe_ir::eval::f16_to_f64(bits as u16),
                (naga::ScalarKind::Float, _) => f64::from_bits(bits),
                (naga::ScalarKind::Sint, _) => bits as u32 as i32 as f64,
                _ => bits as u32 as f64,
            },
            _ => continue,
        };
        out.insert(id.to_string(), value);
    }
    out
}
