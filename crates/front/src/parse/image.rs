//! Types of images.

use super::{Parsed, Ty};
use crate::reader::{Inst, Res};
use kempe_ir::ImageInfo;
use kempe_ir::image::{Component, Dim, Format};

/// Dimension of attachments (SPIR-V 3.8).
const SUBPASS: u32 = 6;

/// An image type.
#[derive(Clone, Copy, Debug)]
pub struct ImageTy {
    /// What the program declares, or what is not supported about it.
    pub info: Result<ImageInfo, &'static str>,
    /// Read and written texel by texel, without a sampler.
    pub storage: bool,
    /// An attachment of the pass, read where the fragment is.
    pub subpass: bool,
    /// Coordinates of lookups count texels (rectangles).
    pub pixels: bool,
}

impl Parsed<'_> {
    /// OpTypeImage: sampled type, dimension, depth, arrayed, multisampled, sampled, format.
    pub(super) fn image_type(&self, i: &Inst) -> Res<ImageTy> {
        let sampled = self.type_of_id(i.at, i.w(2)?)?;
        let subpass = i.w(3)? == SUBPASS;
        // An attachment is only read.
        let storage = i.w(7)? == 2 && !subpass;
        let component = match self.ty(sampled) {
            Ty::Float { bits: 32 } => Some(Component::F32),
            Ty::Int { bits: 32, signed: true } => Some(Component::I32),
            Ty::Int { bits: 32, signed: false } => Some(Component::U32),
            _ => None,
        };
        let dim = match i.w(3)? {
            0 => Some(Dim::D1),
            1 | 4 => Some(Dim::D2),
            2 => Some(Dim::D3),
            3 => Some(Dim::Cube),
            5 => Some(Dim::Buffer),
            SUBPASS => Some(Dim::D2),
            _ => None,
        };
        // 0: none.
        let format = match i.w(8)? {
            0 => Some(None),
            n => Format::ALL.get(n as usize - 1).map(|&f| Some(f)),
        };
        let info = match (component, dim, format) {
            (None, ..) => Err("images of components that are not 32 bits wide"),
            (_, None, _) => Err("images of this shape"),
            (.., None) => Err("images of this format"),
            (Some(component), Some(dim), Some(format)) => {
                if format.is_some_and(|f| f.component() != component) {
                    Err("images whose format is of another component type")
                } else {
                    Ok(ImageInfo {
                        dim,
                        arrayed: i.w(5)? != 0,
                        multisampled: i.w(6)? != 0,
                        depth: i.w(4)? == 1,
                        component,
                        format,
                    })
                }
            }
        };
        Ok(ImageTy { info, storage, subpass, pixels: i.w(3)? == 4 })
    }
}
