//! Names of the interface of a SPIR-V module: for those who bind by name, and for two stages that find each other by name.

use crate::layout::{Lay, LayId, Layouts, Rule};
use crate::parse::{Global, Numbered, Parsed, Ty, TyId};
use crate::reader::{self, Res};
use kempe_ir::Type;
use rustc_hash::FxHashMap;
use spirv::{Decoration, Op, StorageClass};
use std::collections::BTreeSet;

/// Most scalars that all named fields together may have.
const MAX_SCALARS: usize = 1 << 16;

/// Locations that there may be.
const MAX_LOCATIONS: u32 = 256;

/// An input or output with a location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// Of a block, the name of the block.
    pub name: String,
    pub location: u32,
    /// Locations that it takes.
    pub count: u32,
}

/// Something that is bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    pub name: String,
    pub set: u32,
    pub binding: u32,
}

/// A field of a uniform buffer or of the push constants that is no structure: a scalar, vector, matrix or an array of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// `member`, `member.part`, `member[2].part`; the variable's own name if the buffer is no structure with names.
    pub name: String,
    /// Name of the variable.
    pub variable: String,
    /// Name of its block.
    pub block: String,
    /// `None`: push constants.
    pub place: Option<(u32, u32)>,
    pub ty: Type,
    /// Byte offsets of its scalars, in the order of the source (matrices by columns).
    pub offsets: Vec<u32>,
}

/// What names a module gives.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    pub inputs: Vec<Located>,
    pub outputs: Vec<Located>,
    pub bound: Vec<Bound>,
    pub fields: Vec<Field>,
}

/// The names of the interface of one entry point. Nothing if the words are no module: compiling it says so better.
pub fn names(words: &[u32], entry: &str, stage: &str) -> Names {
    read(words, entry, stage).unwrap_or_default()
}

fn read(words: &[u32], entry: &str, stage: &str) -> Res<Names> {
    let p = crate::parse::parse(words, &[])?;
    let members = member_names(words)?;
    let mut out = Names::default();
    let Some(entry) =
        p.entries.iter().find(|e| e.name == entry && crate::entry::stage_name(e.model) == stage)
    else {
        return Ok(out);
    };
    let mut fields = Fields {
        p: &p,
        block: String::new(),
        lay: Layouts::default(),
        members,
        left: MAX_SCALARS,
        out: Vec::new(),
    };
    for g in &p.globals {
        let number = |kind| p.numbers.get(&(g.id, kind)).copied();
        match StorageClass::from_u32(g.class) {
            Some(StorageClass::Input) if entry.interface.contains(&g.id) => {
                out.inputs.extend(located(&p, g));
            }
            Some(StorageClass::Output) if entry.interface.contains(&g.id) => {
                out.outputs.extend(located(&p, g));
            }
            Some(class) => {
                let place = number(Numbered::Set).zip(number(Numbered::Binding));
                let name = p.name(g.id).unwrap_or_default();
                if let Some((set, binding)) = place {
                    out.bound.push(Bound { name: name.clone(), set, binding });
                }
                let block = class == StorageClass::Uniform && place.is_some();
                if block || class == StorageClass::PushConstant {
                    fields.of(g, place, &name)?;
                }
            }
            None => {}
        }
    }
    out.fields = fields.out;
    Ok(out)
}

fn located(p: &Parsed, g: &Global) -> Option<Located> {
    let location = *p.numbers.get(&(g.id, Numbered::Location))?;
    let name = match p.ty(g.ty) {
        Ty::Struct { .. } => p.name(p.types[g.ty as usize].id)?,
        _ => p.name(g.id)?,
    };
    Some(Located { name, location, count: locations(p, g.ty) })
}

/// Locations that a type takes.
fn locations(p: &Parsed, ty: TyId) -> u32 {
    match p.ty(ty) {
        Ty::Array { elem, n } | Ty::Matrix { column: elem, n } => n.saturating_mul(locations(p, elem)),
        Ty::Struct { first, n } => (first..first + n)
            .filter_map(|m| p.members.get(m as usize))
            .fold(0, |sum: u32, &m| sum.saturating_add(locations(p, m))),
        _ => 1,
    }
}

fn member_names(words: &[u32]) -> Res<FxHashMap<(u32, u32), String>> {
    let mut out = FxHashMap::default();
    let mut at = 5;
    while at < words.len() {
        let i = reader::inst(words, at)?;
        at += i.words.len();
        if i.op == Op::Function as u16 {
            break;
        }
        if i.op == Op::MemberName as u16 {
            out.insert((i.w(1)?, i.w(2)?), i.string(3)?.0);
        }
    }
    Ok(out)
}

struct Fields<'a> {
    p: &'a Parsed<'a>,
    /// Name of the block that is walked.
    block: String,
    lay: Layouts,
    members: FxHashMap<(u32, u32), String>,
    left: usize,
    out: Vec<Field>,
}

impl Fields<'_> {
    fn of(&mut self, g: &Global, place: Option<(u32, u32)>, variable: &str) -> Res<()> {
        let Ok(lay) = self.lay.get(self.p, g.at, g.ty, Rule::EXPLICIT) else { return Ok(()) };
        self.block = self.p.types.get(g.ty as usize).and_then(|ty| self.p.name(ty.id)).unwrap_or_default();
        self.walk(lay, 0, "", variable, place);
        Ok(())
    }

    fn walk(&mut self, lay: LayId, offset: u32, name: &str, variable: &str, place: Option<(u32, u32)>) {
        if self.left == 0 {
            return;
        }
        let info = self.lay.infos[lay as usize];
        match info.lay {
            Lay::Struct { first, n } => {
                let id = self.p.types[info.ty as usize].id;
                for m in 0..n {
                    let field = self.lay.fields[(first + m) as usize];
                    let own = self.members.get(&(id, m)).map_or("", |s| s.as_str());
                    let name = match (name, own) {
                        ("", own) => own.to_owned(),
                        (name, "") => name.to_owned(),
                        (name, own) => format!("{name}.{own}"),
                    };
                    self.walk(field.lay, offset.saturating_add(field.offset), &name, variable, place);
                }
            }
            Lay::Array { elem, n, stride } if self.holds_struct(elem) => {
                for k in 0..n {
                    if self.left == 0 {
                        return;
                    }
                    let at = offset.saturating_add(k.saturating_mul(stride));
                    self.walk(elem, at, &format!("{name}[{k}]"), variable, place);
                }
            }
            _ => {
                let mut offsets = Vec::new();
                let Some(ty) = self.scalars(lay, offset, &mut offsets) else { return };
                self.left = self.left.saturating_sub(offsets.len().max(1));
                let name = if name.is_empty() { variable } else { name };
                let (name, variable) = (name.to_owned(), variable.to_owned());
                self.out.push(Field { name, variable, block: self.block.clone(), place, ty, offsets });
            }
        }
    }

    fn holds_struct(&self, lay: LayId) -> bool {
        match self.lay.infos[lay as usize].lay {
            Lay::Struct { .. } => true,
            Lay::Array { elem, .. } => self.holds_struct(elem),
            _ => false,
        }
    }

    fn scalars(&self, lay: LayId, offset: u32, out: &mut Vec<u32>) -> Option<Type> {
        if out.len() > self.left {
            return None;
        }
        match self.lay.infos[lay as usize].lay {
            Lay::Scalar(ty) => {
                out.push(offset);
                Some(ty)
            }
            Lay::Vector { ty, n, stride } => {
                out.extend((0..n).map(|k| offset.saturating_add(k * stride)));
                Some(ty)
            }
            Lay::Array { elem, n, stride } => {
                let mut ty = None;
                for k in 0..n {
                    ty = self.scalars(elem, offset.saturating_add(k.saturating_mul(stride)), out);
                    ty?;
                }
                ty
            }
            _ => None,
        }
    }
}

/// Names of what a source in GLSL says the location of, with the qualifier `in` or `out`; of blocks and structures, the name of the
/// block or structure.
pub fn said_locations(text: &str, qualifier: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    for (at, word) in text.match_indices("layout") {
        let before = text[..at].ends_with(is_word);
        let list = text[at + word.len()..].trim_start().strip_prefix('(').and_then(|r| r.split_once(')'));
        let Some((list, rest)) = list else { continue };
        let end = rest.find([';', '{', '=']).unwrap_or(rest.len());
        let words: Vec<&str> = rest[..end].split(|c| !is_word(c)).filter(|w| !w.is_empty()).collect();
        let says = list.split(',').any(|p| p.trim_start().starts_with("location"));
        if before || !says || !words.contains(&qualifier) {
            continue;
        }
        // Without the sizes of an array behind the name.
        let named = words.iter().rfind(|w| !w.starts_with(|c: char| c.is_ascii_digit()));
        out.extend(named.map(|w| (*w).to_owned()));
    }
    out
}

/// Inputs and outputs of a module made of GLSL by relaxed rules: glslang gives out locations without looking at those that the source
/// says, so what it gave out moves away from them.
pub fn keep_apart(words: &mut [u32], entry: &str, text: &str) {
    let Ok(p) = crate::parse::parse(words, &[]) else { return };
    let Some(entry) = p.entries.iter().find(|e| e.name == entry) else { return };
    let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
    for (class, qualifier) in [(StorageClass::Input, "in"), (StorageClass::Output, "out")] {
        let said = said_locations(text, qualifier);
        let here = p.globals.iter().filter(|g| g.class == class as u32 && entry.interface.contains(&g.id));
        let (fixed, given): (Vec<_>, Vec<_>) =
            here.filter_map(|g| Some((g.id, located(&p, g)?))).partition(|(_, l)| said.contains(&l.name));
        let range = |first: u32, count: u32| first..first.saturating_add(count.min(MAX_LOCATIONS));
        let mut taken: BTreeSet<u32> = fixed.iter().flat_map(|(_, l)| range(l.location, l.count)).collect();
        for (id, l) in given {
            let free = |first: &u32| range(*first, l.count).all(|k| !taken.contains(&k));
            let Some(first) = (l.location..MAX_LOCATIONS).find(free) else { continue };
            if first != l.location {
                moved.insert(id, first);
            }
            taken.extend(range(first, l.count));
        }
    }
    drop(p);
    put_locations(words, &moved);
}

/// Changes locations of variables.
fn put_locations(words: &mut [u32], moved: &FxHashMap<u32, u32>) {
    let mut at = 5;
    while at < words.len() && !moved.is_empty() {
        let Ok(i) = reader::inst(words, at) else { return };
        let (op, len) = (i.op, i.words.len());
        let here = (i.w(1).ok(), i.w(2).ok());
        if op == Op::Function as u16 {
            return;
        }
        if let (Some(id), Some(decoration)) = here
            && op == Op::Decorate as u16
            && decoration == Decoration::Location as u32
            && let Some(&location) = moved.get(&id)
            && let Some(word) = words.get_mut(at + 3)
        {
            *word = location;
        }
        at += len;
    }
}

/// What a vertex shader of old versions of GLSL calls what is an input of this name of the fragment shader.
fn front_of(input: &str) -> Option<&'static str> {
    match input.strip_prefix(crate::LEGACY_PREFIX)? {
        "Color" => Some("kempe_FrontColor"),
        "SecondaryColor" => Some("kempe_FrontSecondaryColor"),
        _ => None,
    }
}

/// Gives the inputs of a fragment shader the locations of the outputs with the same name of a vertex shader: for sources
/// whose locations were given out for each stage alone. Inputs without such an output move behind all outputs; those that `said` names
/// stay where their source puts them.
pub fn agree(vertex: &[u32], fragment: &mut [u32], entries: [&str; 2], said: &[String]) {
    let outputs = names(vertex, entries[0], "vertex").outputs;
    let Ok(p) = crate::parse::parse(fragment, &[]) else { return };
    let Some(entry) =
        p.entries.iter().find(|e| e.name == entries[1] && crate::entry::stage_name(e.model) == "fragment")
    else {
        return;
    };
    let mut next = outputs.iter().map(|o| o.location.saturating_add(o.count)).max().unwrap_or(0);
    let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
    for g in p.globals.iter().filter(|g| g.class == StorageClass::Input as u32) {
        if !entry.interface.contains(&g.id) {
            continue;
        }
        let Some(input) = located(&p, g) else { continue };
        if said.contains(&input.name) {
            continue;
        }
        let given = |o: &&Located| o.name == input.name || Some(o.name.as_str()) == front_of(&input.name);
        let location = match outputs.iter().find(given) {
            Some(output) => output.location,
            None => {
                let here = next;
                next = next.saturating_add(input.count);
                here
            }
        };
        moved.insert(g.id, location);
    }
    drop(p);
    put_locations(fragment, &moved);
}
