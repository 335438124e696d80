//! Decorations, by id and by member.

use super::*;

impl Parsed<'_> {
    pub(super) fn decorate(&mut self, i: &Inst, id: u32, member: Option<u32>, words: &[u32]) -> Res<()> {
        let Some(&d) = words.first() else { return error(i.at, "a decoration is missing") };
        if id >= self.header.bound {
            return error(i.at, format!("id {id} is outside the bound of ids ({})", self.header.bound));
        }
        let Some(d) = Decoration::from_u32(d) else { return Ok(()) };
        let number = || match words.get(1) {
            Some(&n) => Ok(n),
            None => error(i.at, "a decoration lacks its number"),
        };
        let f = match d {
            Decoration::Block => fact::BLOCK,
            Decoration::BufferBlock => fact::BUFFER_BLOCK,
            Decoration::RowMajor => fact::ROW_MAJOR,
            Decoration::NonWritable => fact::NON_WRITABLE,
            Decoration::Volatile | Decoration::Coherent => fact::VOLATILE,
            Decoration::Restrict | Decoration::RestrictPointer => fact::RESTRICT,
            Decoration::NoContraction => fact::NO_CONTRACTION,
            Decoration::RelaxedPrecision => fact::RELAXED,
            Decoration::NoSignedWrap => fact::NO_SIGNED_WRAP,
            Decoration::NoUnsignedWrap => fact::NO_UNSIGNED_WRAP,
            Decoration::Flat => fact::FLAT,
            Decoration::NoPerspective => fact::NO_PERSPECTIVE,
            Decoration::Centroid => fact::CENTROID,
            Decoration::Sample => fact::SAMPLE,
            Decoration::Patch => fact::PATCH,
            Decoration::FPFastMathMode => {
                const ALL: u32 = 1 | 2 | 4; // no NaN, no infinity, no signed zero
                if number()? & ALL == ALL || number()? & 16 != 0 { fact::FAST } else { 0 }
            }
            _ => 0,
        };
        match member {
            None => {
                self.facts[id as usize] |= f;
                let kind = match d {
                    Decoration::ArrayStride => Numbered::ArrayStride,
                    Decoration::SpecId => Numbered::SpecId,
                    Decoration::Binding => Numbered::Binding,
                    Decoration::DescriptorSet => Numbered::Set,
                    Decoration::BuiltIn => Numbered::BuiltIn,
                    Decoration::Location => Numbered::Location,
                    Decoration::Component => Numbered::Component,
                    Decoration::Index => Numbered::Index,
                    _ => return Ok(()),
                };
                self.numbers.insert((id, kind), number()?);
            }
            Some(m) => {
                let decor = self.member_decor.entry((id, m)).or_default();
                decor.facts |= f;
                match d {
                    Decoration::Offset => decor.offset = Some(number()?),
                    Decoration::MatrixStride => decor.matrix_stride = number()?,
                    Decoration::BuiltIn => decor.built_in = Some(number()?),
                    Decoration::Location => decor.location = Some(number()?),
                    Decoration::Component => decor.component = number()?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn decorate_group(&mut self, i: &Inst, op: Op, decorations: &[usize]) -> Res<()> {
        let group = i.w(1)?;
        let own: Vec<usize> =
            decorations.iter().copied().filter(|&at| self.words.get(at + 1) == Some(&group)).collect();
        let step = if op == Op::GroupDecorate { 1 } else { 2 };
        if own.len().saturating_mul(i.words.len()) > MAX_GROUP_DECORATIONS {
            return error(i.at, "a decoration group is applied too often");
        }
        for target in i.rest(2).chunks_exact(step) {
            for &at in &own {
                let d = self.inst(at)?;
                if d.op != Op::Decorate as u16 {
                    continue;
                }
                self.decorate(i, target[0], target.get(1).copied(), d.rest(2))?;
            }
        }
        Ok(())
    }
}
