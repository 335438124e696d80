//! What is accessed of every private variable, and the cells it falls into.
//!
//! A variable whose address only feeds `lea`s with constant offsets, loads and stores is a set of bytes at known
//! places. The places that are accessed are cut into *cells*: the coarsest pieces such that every component of
//! every access is a whole number of cells. Where accesses do not overlap partially a cell is just the scalar that
//! is loaded and stored. This is scalar replacement of aggregates by what is used, not by what is declared.

use kempe_ir::*;

pub const NO_VAR: u32 = u32::MAX;

/// What is known about the uses of a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum VarUse {
    /// Loads and stores at constant offsets only.
    Constant,
    /// Some address has an index that is not constant.
    Indexed,
    /// The address goes somewhere else, or an access is volatile.
    Escapes,
}

/// A pointer that is a variable plus a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub var: u32,
    pub offset: i64,
    /// An index was added: the offset is only where it started.
    pub indexed: bool,
}

/// Uses of the private variables.
pub struct Accesses {
    /// By variable; shared variables count as escaping.
    pub uses: Vec<VarUse>,
    /// By value.
    pub place: Vec<Option<Place>>,
}

impl Accesses {
    pub fn new(m: &Module) -> Accesses {
        let f = &m.func;
        let mut uses: Vec<VarUse> = m
            .vars
            .values()
            .map(|v| if v.space == Space::Private { VarUse::Constant } else { VarUse::Escapes })
            .collect();
        let mut place: Vec<Option<Place>> = vec![None; f.values.len()];
        let raise = |uses: &mut Vec<VarUse>, p: Option<Place>, to: VarUse| {
            if let Some(p) = p {
                let u = &mut uses[p.var as usize];
                *u = (*u).max(to);
            }
        };
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                let d = &f.insts[i];
                match (d.op, d.imm) {
                    (Op::VarAddr, Imm::Var(v)) => {
                        place[d.results[0].index()] = Some(Place { var: v.0, offset: 0, indexed: false });
                    }
                    (Op::Lea, Imm::Lea(l)) => {
                        let Some(mut p) = place[d.args[0].index()] else { continue };
                        p.offset += l.offset as i64;
                        if let Some(&index) = d.args.get(1) {
                            match f.as_const(index) {
                                Some(k) => p.offset += (k as u32).wrapping_mul(l.scale) as i32 as i64,
                                None => p.indexed = true,
                            }
                        }
                        place[d.results[0].index()] = Some(p);
                    }
                    (Op::Load | Op::Store, Imm::Mem(mem)) => {
                        let p = place[d.args[0].index()];
                        if mem.volatile {
                            raise(&mut uses, p, VarUse::Escapes);
                        }
                        if p.is_some_and(|p| p.indexed) {
                            raise(&mut uses, p, VarUse::Indexed);
                        }
                        for &a in &d.args[1..] {
                            raise(&mut uses, place[a.index()], VarUse::Escapes);
                        }
                    }
                    _ => {
                        for &a in &d.args {
                            raise(&mut uses, place[a.index()], VarUse::Escapes);
                        }
                    }
                }
            }
            for t in f.blocks[b].term.targets() {
                for &a in &t.args {
                    raise(&mut uses, place[a.index()], VarUse::Escapes);
                }
            }
        }
        Accesses { uses, place }
    }

    /// The variable and offset of a load or store of a variable with constant accesses only.
    pub fn constant_place(&self, d: &InstData) -> Option<(u32, i64)> {
        if !matches!(d.op, Op::Load | Op::Store) {
            return None;
        }
        let p = self.place.get(d.args[0].index()).copied().flatten()?;
        (self.uses[p.var as usize] == VarUse::Constant).then_some((p.var, p.offset))
    }
}

/// A piece of a variable that is always accessed whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub var: u32,
    pub offset: u32,
    pub ty: Type,
}

/// All cells, sorted by variable and offset.
pub struct Cells {
    pub list: Vec<Cell>,
    /// First cell of every variable.
    start: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    var: u32,
    offset: u32,
    /// Larger spans first, so that a span follows those that contain it.
    end: u32,
    /// Order of appearance: the first one gives the type.
    order: u32,
}

impl Cells {
    /// Cuts the variables with constant accesses; `only` restricts to some of them.
    pub fn new(m: &Module, acc: &Accesses) -> Cells {
        let f = &m.func;
        let mut spans: Vec<(Span, Type)> = Vec::new();
        for &b in &f.layout {
            for &i in &f.blocks[b].insts {
                let d = &f.insts[i];
                let Some((var, offset)) = acc.constant_place(d) else { continue };
                let Imm::Mem(mem) = d.imm else { continue };
                for k in 0..mem.count as i64 {
                    if let Some(at) = inside(&m.vars[Var(var)], offset + k * d.ty.bytes() as i64, d.ty) {
                        let order = spans.len() as u32;
                        spans.push((Span { var, offset: at, end: at + d.ty.bytes(), order }, d.ty));
                    }
                }
            }
        }
        spans.sort_unstable_by_key(|(s, _)| *s);
        let mut list = Vec::new();
        let mut at = 0;
        while at < spans.len() {
            // A cluster: spans that overlap each other.
            let (first, ty) = spans[at];
            let mut end = first.end;
            let mut n = at + 1;
            let mut equal = true;
            let mut types = ty;
            while n < spans.len() && spans[n].0.var == first.var && spans[n].0.offset < end {
                let (s, t) = spans[n];
                equal &= s.offset == first.offset && s.end == first.end;
                end = end.max(s.end);
                types = join_types(types, t);
                n += 1;
            }
            if equal {
                list.push(Cell { var: first.var, offset: first.offset, ty: types });
            } else {
                cut(&spans[at..n], end, &mut list);
            }
            at = n;
        }
        let mut start = vec![0u32; m.vars.len() + 1];
        for c in &list {
            start[c.var as usize + 1] += 1;
        }
        for i in 0..m.vars.len() {
            start[i + 1] += start[i];
        }
        Cells { list, start }
    }

    /// The cells that a component covers, as a range of indices (empty when it lies outside the variable).
    pub fn of(&self, var: u32, offset: i64, ty: Type) -> std::ops::Range<usize> {
        let (a, b) = (self.start[var as usize] as usize, self.start[var as usize + 1] as usize);
        let cells = &self.list[a..b];
        let lo = a + cells.partition_point(|c| (c.offset as i64) < offset);
        let end = offset + ty.bytes() as i64;
        let mut hi = lo;
        while hi < b && (self.list[hi].offset as i64) < end {
            hi += 1;
        }
        lo..hi
    }
}

/// The byte offset of a component that lies inside its variable.
pub fn inside(var: &Variable, offset: i64, ty: Type) -> Option<u32> {
    let end = offset + ty.bytes() as i64;
    (offset >= 0 && end <= var.size as i64).then_some(offset as u32)
}

/// One type for a cell that is accessed with several of the same size: the first, but an integer for booleans, which
/// are words in memory.
fn join_types(a: Type, b: Type) -> Type {
    if a == b {
        a
    } else if a == Type::Bool || b == Type::Bool {
        Type::I32
    } else {
        a
    }
}

/// Cuts a cluster at every boundary of its spans, and the pieces into aligned powers of two.
fn cut(spans: &[(Span, Type)], end: u32, list: &mut Vec<Cell>) {
    let var = spans[0].0.var;
    let mut cuts: Vec<u32> = spans.iter().flat_map(|(s, _)| [s.offset, s.end]).collect();
    cuts.push(end);
    cuts.sort_unstable();
    cuts.dedup();
    for w in cuts.windows(2) {
        let (mut at, to) = (w[0], w[1]);
        while at < to {
            let mut size = 8;
            while size > to - at || at % size != 0 {
                size /= 2;
            }
            // `size` is 1, 2, 4 or 8, so there is such a type.
            let ty = Type::int(size * 8).unwrap_or(Type::I8);
            list.push(Cell { var, offset: at, ty });
            at += size;
        }
    }
}
