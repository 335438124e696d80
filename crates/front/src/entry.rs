//! Entry points: which ones, and how large their work-groups are.

use crate::parse::{Entry, Parsed, Ty};
use crate::reader::{Res, error};
use spirv::{ExecutionMode, ExecutionModel};

/// More invocations than any device takes in a work-group.
const MAX_ITEMS: u64 = 4096;

/// Bits of the lane number in which the neighbours of a quad differ in a compute shader with derivatives (0: the second
/// one is not a single bit).
pub fn derivative_steps(p: &Parsed, entry: &Entry, workgroup: [u32; 3]) -> Res<Option<[u32; 2]>> {
    for &at in &p.modes {
        let i = p.inst(at)?;
        if i.w(1)? != entry.func {
            continue;
        }
        match ExecutionMode::from_u32(i.w(2)?) {
            Some(ExecutionMode::DerivativeGroupLinearKHR) => return Ok(Some([1, 2])),
            // Invocations are numbered along x first, so the next row is a fixed step away; inside of a subgroup of 16 it
            // is one bit of the lane number when the row has 2, 4 or 8 of them.
            Some(ExecutionMode::DerivativeGroupQuadsKHR) if matches!(workgroup[0], 2 | 4 | 8) => {
                return Ok(Some([1, workgroup[0]]));
            }
            Some(ExecutionMode::DerivativeGroupQuadsKHR) => return Ok(Some([1, 0])),
            _ => {}
        }
    }
    Ok(None)
}

/// The size of the work-group: the constant that is decorated as such counts before the execution modes.
pub fn workgroup_size(p: &Parsed, entry: &Entry) -> Res<[u32; 3]> {
    let mut size = None;
    for &at in &p.modes {
        let i = p.inst(at)?;
        if i.w(1)? != entry.func {
            continue;
        }
        match ExecutionMode::from_u32(i.w(2)?) {
            Some(ExecutionMode::LocalSize) => size = Some([i.w(3)?, i.w(4)?, i.w(5)?]),
            Some(ExecutionMode::LocalSizeId) => {
                let mut s = [0; 3];
                for (k, s) in s.iter_mut().enumerate() {
                    *s = match p.int_const(i.w(3 + k)?) {
                        Some(n) => n.clamp(0, u32::MAX as i64) as u32,
                        None => return error(at, "the size of a work-group must be constant integers"),
                    };
                }
                size = Some(s);
            }
            _ => {}
        }
    }
    if let Some(id) = p.workgroup_size_const {
        let c = p.const_of_id(entry.at, id)?;
        if let (Ty::Vector { n: 3, .. }, Some(_)) = (p.ty(c.ty), p.component(c.ty)) {
            let mut s = [0; 3];
            if let crate::parse::ConstKind::Bits(b) = c.kind {
                for (k, s) in s.iter_mut().enumerate() {
                    *s = p.bits[b as usize + k] as u32;
                }
            }
            size = Some(s);
        }
    }
    let Some(size) = size else {
        return error(
            entry.at,
            format!("entry point `{}` does not say the size of its work-groups", entry.name),
        );
    };
    let items: u64 = size.iter().map(|&n| n as u64).fold(1, |a, b| a.saturating_mul(b));
    if items == 0 || items > MAX_ITEMS {
        return error(
            entry.at,
            format!(
                "a work-group of {} x {} x {} invocations: there must be 1 to {MAX_ITEMS}",
                size[0], size[1], size[2]
            ),
        );
    }
    Ok(size)
}

/// The name of an execution model as a stage.
pub fn stage_name(model: u32) -> &'static str {
    match ExecutionModel::from_u32(model) {
        Some(ExecutionModel::GLCompute) => "compute",
        Some(ExecutionModel::Vertex) => "vertex",
        Some(ExecutionModel::Fragment) => "fragment",
        Some(ExecutionModel::Geometry) => "geometry",
        Some(ExecutionModel::TessellationControl) => "tess-control",
        Some(ExecutionModel::TessellationEvaluation) => "tess-eval",
        Some(ExecutionModel::Kernel) => "kernel",
        _ => "other",
    }
}

/// The name of an execution model for messages.
pub fn model_name(model: u32) -> String {
    match ExecutionModel::from_u32(model) {
        Some(ExecutionModel::GLCompute) => "compute shaders".to_owned(),
        Some(ExecutionModel::Vertex) => "vertex shaders".to_owned(),
        Some(ExecutionModel::Fragment) => "fragment shaders".to_owned(),
        Some(ExecutionModel::Geometry) => "geometry shaders".to_owned(),
        Some(ExecutionModel::TessellationControl | ExecutionModel::TessellationEvaluation) => {
            "tessellation shaders".to_owned()
        }
        Some(ExecutionModel::Kernel) => "OpenCL kernels".to_owned(),
        Some(
            ExecutionModel::MeshNV
            | ExecutionModel::TaskNV
            | ExecutionModel::MeshEXT
            | ExecutionModel::TaskEXT,
        ) => "mesh shaders".to_owned(),
        Some(_) => "ray tracing shaders".to_owned(),
        None => format!("shaders of the unknown kind {model}"),
    }
}
