//! Where the parts of a value lie in memory.
//!
//! Two rules. *Explicit*: buffers and push constants lie as the module's decorations say. *Own*: private and shared
//! memory is ours to lay out: every scalar aligned to its size, vectors of two and four components to theirs (so
//! that they never straddle the aligned block that a target may want), nothing else padded. The same SPIR-V type
//! may be used under both rules, and a matrix type under several strides, so layouts are their own tree beside the
//! types.

use crate::parse::{NO_TYPE, Numbered, Parsed, Ty, TyId, fact};
use crate::reader::{Res, error};
use kempe_ir::{Space, Type};
use rustc_hash::FxHashMap;

/// Index into [`Layouts::infos`].
pub type LayId = u32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lay {
    Scalar(Type),
    /// Components `stride` bytes apart (more than their size in a row-major matrix).
    Vector {
        ty: Type,
        n: u32,
        stride: u32,
    },
    /// Arrays and the columns of matrices; `n` is 0 for a run-time array.
    Array {
        elem: LayId,
        n: u32,
        stride: u32,
    },
    /// Members are `Layouts::fields[first..first + n]`.
    Struct {
        first: u32,
        n: u32,
    },
    /// Cannot be loaded or stored.
    Opaque,
}

#[derive(Clone, Copy, Debug)]
pub struct LayInfo {
    pub lay: Lay,
    pub ty: TyId,
    /// Bytes, without a run-time array at the end.
    pub size: u64,
    pub align: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub offset: u32,
    pub lay: LayId,
    pub facts: u16,
}

#[derive(Default)]
pub struct Layouts {
    pub infos: Vec<LayInfo>,
    pub fields: Vec<Field>,
    known: FxHashMap<(TyId, Rule), LayId>,
}

/// How to lay out a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    Own,
    /// Matrices (possibly inside arrays) have this stride and order.
    Explicit {
        matrix_stride: u32,
        row_major: bool,
    },
}

impl Rule {
    pub const EXPLICIT: Rule = Rule::Explicit { matrix_stride: 0, row_major: false };
}

impl Layouts {
    pub fn get(&mut self, p: &Parsed, at: usize, ty: TyId, rule: Rule) -> Res<LayId> {
        if let Some(&l) = self.known.get(&(ty, rule)) {
            return Ok(l);
        }
        let info = self.make(p, at, ty, rule)?;
        let l = self.infos.len() as LayId;
        self.infos.push(info);
        self.known.insert((ty, rule), l);
        Ok(l)
    }

    fn make(&mut self, p: &Parsed, at: usize, ty: TyId, rule: Rule) -> Res<LayInfo> {
        if ty == NO_TYPE {
            return Ok(LayInfo { lay: Lay::Opaque, ty, size: 0, align: 1 });
        }
        Ok(match p.ty(ty) {
            Ty::Vector { n, .. } => match p.component(ty) {
                Some(s) => vector(ty, s, n, s.bytes(), rule),
                None => LayInfo { lay: Lay::Opaque, ty, size: 0, align: 1 },
            },
            Ty::Matrix { column, n } => {
                let (Some(s), Ty::Vector { n: rows, .. }) = (p.component(column), p.ty(column)) else {
                    return Ok(LayInfo { lay: Lay::Opaque, ty, size: 0, align: 1 });
                };
                match rule {
                    Rule::Own => {
                        let elem = self.get(p, at, column, Rule::Own)?;
                        self.array(ty, elem, n, None)
                    }
                    Rule::Explicit { matrix_stride: 0, .. } => {
                        return error(at, "a matrix in a buffer has no MatrixStride");
                    }
                    Rule::Explicit { matrix_stride, row_major } => {
                        let (between, along) =
                            if row_major { (s.bytes(), matrix_stride) } else { (matrix_stride, s.bytes()) };
                        let elem = self.infos.len() as LayId;
                        self.infos.push(vector(column, s, rows, along, rule));
                        let mut info = self.array(ty, elem, n, Some(between));
                        // Interleaved columns: the last one reaches further than its stride.
                        let last = (n as u64 - 1) * between as u64 + self.infos[elem as usize].size;
                        info.size = info.size.max(last);
                        info
                    }
                }
            }
            Ty::Array { elem, n } => {
                let e = self.get(p, at, elem, rule)?;
                let stride = self.stride(p, at, ty, rule)?;
                self.array(ty, e, n, stride)
            }
            Ty::RuntimeArray { elem } => {
                let e = self.get(p, at, elem, rule)?;
                let stride = self.stride(p, at, ty, rule)?;
                self.array(ty, e, 0, stride)
            }
            Ty::Struct { first, n } => {
                let mut fields = Vec::with_capacity(n as usize);
                let (mut size, mut align) = (0u64, 1);
                for m in 0..n {
                    let t = p.members[(first + m) as usize];
                    let decor =
                        p.member_decor.get(&(p.types[ty as usize].id, m)).copied().unwrap_or_default();
                    let (lay, offset) = match rule {
                        Rule::Own => {
                            let lay = self.get(p, at, t, Rule::Own)?;
                            (lay, size.next_multiple_of(self.infos[lay as usize].align as u64))
                        }
                        Rule::Explicit { .. } => {
                            let Some(offset) = decor.offset else {
                                return error(
                                    at,
                                    format!("member {m} of a structure in a buffer has no Offset"),
                                );
                            };
                            let matrix_stride = decor.matrix_stride;
                            let row_major = decor.facts & fact::ROW_MAJOR != 0;
                            // Only matrices care: keep one layout for everything else.
                            let inner = match holds_matrix(p, t) {
                                true => Rule::Explicit { matrix_stride, row_major },
                                false => Rule::EXPLICIT,
                            };
                            (self.get(p, at, t, inner)?, offset as u64)
                        }
                    };
                    let info = self.infos[lay as usize];
                    size = size.max(offset.saturating_add(info.size));
                    align = align.max(info.align);
                    if offset > i32::MAX as u64 {
                        return error(at, "a structure of more than 2 GB");
                    }
                    fields.push(Field { offset: offset as u32, lay, facts: decor.facts });
                }
                if rule == Rule::Own {
                    size = size.next_multiple_of(align as u64);
                }
                let first = self.fields.len() as u32;
                self.fields.extend(fields);
                LayInfo { lay: Lay::Struct { first, n }, ty, size, align }
            }
            _ => match p.scalar(ty) {
                // The 64 bits that the source knows, of which 32 count.
                Some(s @ Type::Ptr(Space::Global)) => LayInfo { lay: Lay::Scalar(s), ty, size: 8, align: 8 },
                Some(s) => LayInfo { lay: Lay::Scalar(s), ty, size: s.bytes() as u64, align: s.bytes() },
                None => LayInfo { lay: Lay::Opaque, ty, size: 0, align: 1 },
            },
        })
    }

    fn stride(&self, p: &Parsed, at: usize, ty: TyId, rule: Rule) -> Res<Option<u32>> {
        match rule {
            Rule::Own => Ok(None),
            Rule::Explicit { .. } => match p.numbers.get(&(p.types[ty as usize].id, Numbered::ArrayStride)) {
                Some(&s) if s != 0 => Ok(Some(s)),
                _ => error(at, "an array in a buffer has no ArrayStride"),
            },
        }
    }

    fn array(&self, ty: TyId, elem: LayId, n: u32, stride: Option<u32>) -> LayInfo {
        let e = self.infos[elem as usize];
        let stride = stride.map_or_else(|| e.size.next_multiple_of(e.align as u64), u64::from);
        LayInfo {
            lay: Lay::Array { elem, n, stride: stride.min(u32::MAX as u64) as u32 },
            ty,
            size: stride.saturating_mul(n as u64),
            align: e.align,
        }
    }
}

fn vector(ty: TyId, s: Type, n: u32, stride: u32, rule: Rule) -> LayInfo {
    let size = stride as u64 * (n as u64 - 1) + s.bytes() as u64;
    let align = match rule {
        Rule::Own if n.is_power_of_two() => (s.bytes() * n).min(16),
        _ => s.bytes(),
    };
    LayInfo { lay: Lay::Vector { ty: s, n, stride }, ty, size, align }
}

fn holds_matrix(p: &Parsed, t: TyId) -> bool {
    match p.ty(t) {
        Ty::Matrix { .. } => true,
        Ty::Array { elem, .. } | Ty::RuntimeArray { elem } => holds_matrix(p, elem),
        _ => false,
    }
}
