//! Variables and resources: where they live, what they start as.
//!
//! Array variables that only ever hold one constant (look-up tables: front ends write them as a local variable with a
//! constant stored to it) become constant data of the module.

use super::*;
use crate::layout::{Lay, Rule};
use crate::parse::class_name;
use kempe_ir::{ResKind, Resource, UniformWord, Variable};
use spirv::StorageClass;

/// Largest variable in private memory, and all of them together.
const MAX_PRIVATE: u64 = 1 << 20;
/// Largest variable in shared memory, and all constant data.
const MAX_SHARED: u64 = 16 << 20;
/// A local variable of more bytes is the same one in all calls of its function, which never overlap; smaller ones are
/// one for each call, so that what one call leaves behind is not alive in the next.
const OWN_COPY: u64 = 256;
/// What a buffer's start is a multiple of at least, whatever the binding says.
const BUFFER_ALIGN: u32 = 16;
/// Initial values of more scalars than this are copied by a loop.
const MAX_INIT_STORES: u32 = 256;

/// Arrays of resources: arrays of arrays are one array to bindings.
pub(super) struct Array {
    /// The type of an element.
    pub inner: TyId,
    /// The arrays around it with their lengths (0: none), outermost first.
    pub types: SmallVec<[(TyId, u32); 2]>,
    /// In all; 0 without a size, `None` if it is no array.
    pub elements: Option<u32>,
}

impl Lower<'_, '_> {
    // Variables.

    /// Makes a variable of our own layout, with its initial value (0: none) stored here.
    pub(super) fn variable(&mut self, id: u32, ty: TyId, space: Space, init: u32) -> Res<Ptr> {
        let rule = self.shared_rule(space, ty);
        let lay = self.lay.get(self.p, self.at, ty, rule)?;
        let info = self.lay.infos[lay as usize];
        if let Some(&offset) = self.const_vars.get(&id) {
            let base = self.constant_base();
            return Ok(Ptr {
                base: Base::Value(base),
                index: None,
                offset: offset as i32,
                align: 16,
                promised: 1,
                lay,
                space: Space::Constant,
                volatile: false,
                read_only: true,
                buffer: None,
            });
        }
        if info.lay == Lay::Opaque {
            self.err_opaque(lay)?;
        }
        let limit = if space == Space::Private { MAX_PRIVATE } else { MAX_SHARED };
        let large = space == Space::Private && info.size > OWN_COPY;
        if large && let Some(&ptr) = self.large_vars.get(&id) {
            if init != 0 {
                self.initialise(&ptr, init)?;
            }
            return Ok(ptr);
        }
        if space == Space::Private {
            self.private_bytes = self.private_bytes.saturating_add(info.size);
        }
        if info.size > limit || self.private_bytes > MAX_PRIVATE {
            let what = if space == Space::Private { "private" } else { "shared" };
            return error_help(
                self.at,
                format!("variable {} is too large: {} bytes of {what} memory", self.p.label(id), info.size),
                "use a buffer",
            );
        }
        let facts = self.p.facts[id as usize];
        let ptr = self.new_variable(id, lay, space, facts & fact::VOLATILE != 0);
        if large {
            self.large_vars.insert(id, ptr);
        }
        if init != 0 {
            self.initialise(&ptr, init)?;
        }
        Ok(ptr)
    }

    fn new_variable(&mut self, id: u32, lay: LayId, space: Space, volatile: bool) -> Ptr {
        let info = self.lay.infos[lay as usize];
        // Shared blocks with offsets of their own all are the same memory.
        let block = self.shared_rule(space, info.ty) == Rule::EXPLICIT;
        let var = match self.shared_blocks.filter(|_| block) {
            Some(var) => {
                let all = &mut self.m.vars[var];
                all.size = all.size.max(info.size as u32);
                all.align = all.align.max(info.align);
                var
            }
            None => self.m.vars.push(Variable {
                space,
                size: info.size as u32,
                align: info.align,
                name: self.p.name(id).unwrap_or_default(),
            }),
        };
        if block {
            self.shared_blocks = Some(var);
        }
        let base = self.prelude(Op::VarAddr, Type::Ptr(space), Imm::Var(var));
        Ptr {
            base: Base::Value(base),
            index: None,
            offset: 0,
            align: info.align,
            promised: 1,
            lay,
            space,
            volatile,
            read_only: false,
            buffer: None,
        }
    }

    fn initialise(&mut self, ptr: &Ptr, init: u32) -> Res<()> {
        let ty = self.lay.infos[ptr.lay as usize].ty;
        if let Def::Const(c) = self.p.def(init) {
            let c = self.p.consts[c as usize];
            if c.kind == ConstKind::Undef {
                return Ok(());
            }
            if self.p.leaf_count(ty) > MAX_INIT_STORES && c.ty == ty {
                return self.initialise_large(ptr, c.kind);
            }
        }
        let r = self.leaves(init)?;
        let data = self.slice(r);
        let mut rest = &data[..];
        self.store(ptr, ptr.lay, 0, &mut rest)?;
        if !rest.is_empty() {
            return self.err("an initial value of another type");
        }
        Ok(())
    }

    /// A loop that stores words: zeros, or a copy of constant data.
    fn initialise_large(&mut self, ptr: &Ptr, kind: ConstKind) -> Res<()> {
        let size = self.lay.infos[ptr.lay as usize].size;
        let align = self.lay.infos[ptr.lay as usize].align;
        // Words if the size is a multiple, else bytes.
        let ty = if align >= 4 && size.is_multiple_of(4) { Type::I32 } else { Type::I8 };
        let source = match kind {
            ConstKind::Bits(b) => {
                let offset = self.constant_blob(ptr.lay, b)?;
                let base = self.constant_base();
                Some(Ptr {
                    base: Base::Value(base),
                    offset: offset as i32,
                    space: Space::Constant,
                    read_only: true,
                    ..*ptr
                })
            }
            _ => None,
        };
        let count = (size / ty.bytes() as u64) as u32;
        let zero = self.i32(0);
        let (one, end) = (self.i32(1), self.i32(count));
        self.counted_loop(zero, one, end, |l, k| {
            let v = match source {
                Some(mut s) => {
                    s.index = Some((k, ty.bytes()));
                    s.align = ty.bytes();
                    let mut out = Vec::new();
                    l.load_some(&s, ty, 0, 1, &mut out)?;
                    out[0]
                }
                None => l.konst(ty, 0),
            };
            let mut to = *ptr;
            to.index = Some((k, ty.bytes()));
            to.align = ty.bytes();
            l.store_some(&to, ty, 0, 1, &mut &[v][..])
        })
    }

    /// `for k in (first..end).step_by(step)`, unsigned.
    fn counted_loop(
        &mut self,
        first: Value,
        step: Value,
        end: Value,
        body: impl FnOnce(&mut Self, Value) -> Res<()>,
    ) -> Res<()> {
        use kempe_ir::{Target, Term};
        let (head, inside, after) = (
            self.m.func.add_block_detached(),
            self.m.func.add_block_detached(),
            self.m.func.add_block_detached(),
        );
        let k = self.m.func.add_param(head, Type::I32);
        self.m.func.blocks[self.cur].term = Term::Jump(Target { block: head, args: smallvec![first] });
        self.cur = head;
        let more = self.op(Op::Ult, Type::I32, &[k, end])?;
        self.m.func.blocks[head].term = Term::Branch {
            cond: more,
            then: Target { block: inside, args: smallvec![] },
            els: Target { block: after, args: smallvec![] },
        };
        self.cur = inside;
        body(self, k)?;
        let next = self.op(Op::Iadd, Type::I32, &[k, step])?;
        self.m.func.blocks[inside].term = Term::Jump(Target { block: head, args: smallvec![next] });
        self.m.func.layout.extend([head, inside, after]);
        self.cur = after;
        Ok(())
    }

    /// What global variables need before the program runs: initial values.
    pub(super) fn start_globals(&mut self, number: u32) -> Res<()> {
        let with_init = |g: &crate::parse::Global| g.init != 0;
        if !self.p.globals.iter().any(with_init) {
            return Ok(());
        }
        let mentioned = self.mentioned_globals(number);
        let mut shared = false;
        for (g, global) in self.p.globals.iter().enumerate() {
            if global.init == 0 || !mentioned[g] {
                continue;
            }
            self.at = global.at;
            match StorageClass::from_u32(global.class) {
                Some(StorageClass::Private) => {
                    // Its address and its initial value are made on the way.
                    self.global_ptr(g as u32)?;
                }
                Some(StorageClass::Workgroup) => {
                    let ptr = match self.global_ptr(g as u32)? {
                        p if p.space == Space::Shared => p,
                        _ => continue,
                    };
                    let null = matches!(self.p.def(global.init), Def::Const(c) if self.p.consts[c as usize].kind == ConstKind::Null);
                    if !null {
                        return self.err("shared memory can only start as zeros");
                    }
                    shared = true;
                    self.clear_shared(&ptr)?;
                }
                _ => {}
            }
        }
        if shared {
            let imm = ir::BarrierImm { shared: true, storage: false };
            self.emit(Op::Barrier, Type::I32, Imm::Barrier(imm), &[], &[])?;
        }
        Ok(())
    }

    /// The invocations of a work-group clear a shared variable together.
    fn clear_shared(&mut self, ptr: &Ptr) -> Res<()> {
        let info = self.lay.infos[ptr.lay as usize];
        let ty = if info.align >= 4 && info.size.is_multiple_of(4) { Type::I32 } else { Type::I8 };
        let count = (info.size / ty.bytes() as u64) as u32;
        let first = self.builtin(ir::Builtin::LocalInvocationIndex);
        let items = self.m.workgroup_size.iter().fold(1u32, |a, &b| a.saturating_mul(b));
        let (step, end) = (self.i32(items), self.i32(count));
        self.counted_loop(first, step, end, |l, k| {
            let mut to = *ptr;
            to.index = Some((k, ty.bytes()));
            to.align = ty.bytes();
            let zero = l.konst(ty, 0);
            l.store_some(&to, ty, 0, 1, &mut &[zero][..])
        })
    }

    /// Which globals the functions mention; literals that look like ids only cost an unused variable.
    pub(super) fn mentioned_globals(&self, number: u32) -> Vec<bool> {
        let mut mentioned = vec![false; self.p.globals.len()];
        for f in self.reachable_functions(number) {
            for blk in &self.p.funcs[f as usize].blocks {
                for &w in &self.p.words[blk.first..blk.term] {
                    if let Def::Global(g) = self.p.def(w) {
                        mentioned[g as usize] = true;
                    }
                }
            }
        }
        mentioned
    }

    /// The functions that an entry point may call, itself included, in order.
    fn reachable_functions(&self, root: u32) -> Vec<u32> {
        let mut seen = vec![false; self.p.funcs.len()];
        let mut work = vec![root];
        seen[root as usize] = true;
        while let Some(f) = work.pop() {
            for &c in &self.p.funcs[f as usize].calls {
                if let Def::Func(c) = self.p.def(c)
                    && !std::mem::replace(&mut seen[c as usize], true)
                {
                    work.push(c);
                }
            }
        }
        (0..seen.len() as u32).filter(|f| seen[*f as usize]).collect()
    }

    pub(super) fn global_ptr(&mut self, g: u32) -> Res<Ptr> {
        if let Some(p) = self.global_ptrs[g as usize] {
            return Ok(p);
        }
        let global = self.p.globals[g as usize];
        let class = StorageClass::from_u32(global.class);
        let ptr = match class {
            Some(StorageClass::Private) => {
                self.variable(global.id, global.ty, Space::Private, global.init)?
            }
            Some(StorageClass::Workgroup) => self.variable(global.id, global.ty, Space::Shared, 0)?,
            Some(StorageClass::Input) if self.m.stage == kempe_ir::Stage::Compute => self.input(&global)?,
            Some(StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PushConstant) => {
                self.resource(&global)?
            }
            Some(StorageClass::UniformConstant) => {
                let what = match self.p.ty(global.ty) {
                    Ty::Opaque { what } => what,
                    _ => "images and samplers",
                };
                return self.err(format!("{what} are not supported yet: {}", self.p.label(global.id)));
            }
            // Those of the interface are there already.
            Some(StorageClass::Input | StorageClass::Output) => {
                let label = self.p.label(global.id);
                return self.err(format!("{label} is not in the interface of the entry point"));
            }
            _ => return self.err(format!("{} are not supported yet", class_name(global.class))),
        };
        self.global_ptrs[g as usize] = Some(ptr);
        Ok(ptr)
    }

    fn input(&mut self, global: &crate::parse::Global) -> Res<Ptr> {
        let Some(b) = number(self.p, global.id, Numbered::BuiltIn) else {
            return self.err(format!("{} is an input of graphics stages", self.p.label(global.id)));
        };
        let lay = self.lay.get(self.p, self.at, global.ty, Rule::Own)?;
        if self.p.component(global.ty) != Some(Type::I32) {
            return self
                .err(format!("built-in variable {} must be of 32-bit integers", self.p.label(global.id)));
        }
        Ok(Ptr {
            base: Base::Builtin(b),
            index: None,
            offset: 0,
            align: 4,
            promised: 1,
            lay,
            space: Space::Private,
            volatile: false,
            read_only: true,
            buffer: None,
        })
    }

    /// Takes the arrays off the type of a resource.
    pub(super) fn array_of_resources(&self, ty: TyId) -> Res<Array> {
        let mut out = Array { inner: ty, types: SmallVec::new(), elements: None };
        loop {
            let (elem, n) = match self.p.ty(out.inner) {
                Ty::Array { elem, n } => (elem, n),
                Ty::RuntimeArray { elem } => (elem, 0),
                _ => return Ok(out),
            };
            if n == 0 && !out.types.is_empty() {
                return self.err("an array of resources without a size inside of another one");
            }
            let Some(elements) = out.elements.unwrap_or(1).max(1).checked_mul(n.max(1)) else {
                return self.err("an array of more than 2^32 resources");
            };
            // Without a size outside means without a size.
            out.elements = Some(if n == 0 || out.elements == Some(0) { 0 } else { elements });
            out.types.push((out.inner, n));
            out.inner = elem;
        }
    }

    /// All resources are declared when the first is used, so that they are in the order of the module.
    fn resource(&mut self, global: &crate::parse::Global) -> Res<Ptr> {
        let p = self.p;
        let Array { inner: block, types, elements } = self.array_of_resources(global.ty)?;
        let push = global.class == StorageClass::PushConstant as u32;
        let facts = p.facts[global.id as usize];
        let storage = global.class == StorageClass::StorageBuffer as u32 || p.is_buffer_block(block);
        let Ty::Struct { first: _, n } = p.ty(block) else {
            return self.err(format!("buffer {} must be a structure", p.label(global.id)));
        };
        if push && elements.is_some() {
            return self.err("an array of push constant blocks");
        }
        let lay = self.lay.get(p, self.at, block, Rule::EXPLICIT)?;
        let info = self.lay.infos[lay as usize];
        let tail_stride = match info.lay {
            Lay::Struct { first, n } if n > 0 => {
                match self.lay.infos[self.lay.fields[(first + n - 1) as usize].lay as usize].lay {
                    Lay::Array { n: 0, stride, .. } => stride,
                    _ => 0,
                }
            }
            _ => 0,
        };
        let block_id = p.types[block as usize].id;
        let all_members = n > 0
            && (0..n).all(|m| {
                p.member_decor.get(&(block_id, m)).is_some_and(|d| d.facts & fact::NON_WRITABLE != 0)
            });
        let (space, kind) = match (push, storage) {
            (true, _) => (Space::Push, ResKind::PushConstants),
            (_, true) => (Space::Storage, ResKind::StorageBuffer),
            _ => (Space::Uniform, ResKind::UniformBuffer),
        };
        let read_only = space != Space::Storage || facts & fact::NON_WRITABLE != 0 || all_members;
        let name = p.name(global.id).or_else(|| p.name(block_id)).unwrap_or_default();
        let res = Resource {
            kind,
            set: number(p, global.id, Numbered::Set).unwrap_or(0),
            binding: number(p, global.id, Numbered::Binding).unwrap_or(0),
            elements: elements.unwrap_or(1),
            size: info.size.min(u32::MAX as u64) as u32,
            tail_stride,
            name,
            read_only,
            image: None,
        };
        let res = self.m.resources.push(res);
        let (base, buffer, lay) = match elements {
            None => {
                let v = self.prelude(Op::ResourceAddr, Type::Ptr(space), Imm::Res(res));
                (Base::Value(v), Some((res, None)), lay)
            }
            Some(_) => {
                // Layouts of the arrays, so that an access chain finds their types.
                let mut elem = lay;
                for &(ty, n) in types.iter().rev() {
                    let lay = Lay::Array { elem, n, stride: 0 };
                    self.lay.infos.push(crate::layout::LayInfo { lay, ty, size: 0, align: 1 });
                    elem = self.lay.infos.len() as LayId - 1;
                }
                (Base::Buffers(res), None, elem)
            }
        };
        // Another binding may be the same buffer, unless the source promises that it is not.
        let never_changes = space.is_read_only() || (read_only && facts & fact::RESTRICT != 0);
        Ok(Ptr {
            base,
            index: None,
            offset: 0,
            align: BUFFER_ALIGN,
            promised: 1,
            lay,
            space,
            volatile: facts & fact::VOLATILE != 0,
            read_only: never_changes,
            buffer,
        })
    }

    // Constant data.

    fn constant_base(&mut self) -> Value {
        match self.constant_base {
            Some(v) => v,
            None => {
                let word = Imm::Uniform(UniformWord::ConstantAddr);
                let v = self.prelude(Op::Uniform, Type::Ptr(Space::Constant), word);
                self.constant_base = Some(v);
                v
            }
        }
    }

    /// Puts the bits of a constant into the constant data (once) and says where.
    fn constant_blob(&mut self, lay: LayId, bits: u32) -> Res<u32> {
        let size = self.lay.infos[lay as usize].size;
        if size + self.m.constant_data.len() as u64 > MAX_SHARED {
            return self.err("the constants of this shader are too large");
        }
        let mut blob = vec![0u8; size as usize];
        let mut next = bits as usize;
        self.fill(lay, 0, &mut next, &mut blob)?;
        if let Some(&offset) = self.const_blobs.get(&blob) {
            return Ok(offset);
        }
        let data = &mut self.m.constant_data;
        data.resize(data.len().next_multiple_of(16), 0);
        let offset = data.len() as u32;
        data.extend_from_slice(&blob);
        self.const_blobs.insert(blob, offset);
        Ok(offset)
    }

    fn fill(&self, lay: LayId, offset: usize, next: &mut usize, out: &mut [u8]) -> Res<()> {
        if self.is_nothing(lay) {
            return Ok(());
        }
        let mut put = |ty: Type, offset: usize| {
            let n = ty.bytes() as usize;
            out[offset..offset + n].copy_from_slice(&self.p.bits[*next].to_le_bytes()[..n]);
            *next += 1;
        };
        match self.lay.infos[lay as usize].lay {
            Lay::Scalar(ty) => put(ty, offset),
            Lay::Vector { ty, n, stride } => (0..n).for_each(|k| put(ty, offset + (k * stride) as usize)),
            Lay::Array { elem, n, stride } => {
                for k in 0..n {
                    self.fill(elem, offset + (k * stride) as usize, next, out)?;
                }
            }
            Lay::Struct { first, n } => {
                for k in first..first + n {
                    let f = self.lay.fields[k as usize];
                    self.fill(f.lay, offset + f.offset as usize, next, out)?;
                }
            }
            Lay::Opaque => self.err_opaque(lay)?,
        }
        Ok(())
    }

    /// A variable that is constant data needs no stores.
    pub(super) fn is_constant_variable(&self, id: u32) -> bool {
        !self.const_vars.is_empty() && self.const_vars.contains_key(&id)
    }

    /// Finds array variables that hold one constant whenever they are read, and are indexed dynamically. Reading
    /// before the only store is undefined, so it may as well see the constant.
    pub(super) fn find_constant_variables(&mut self, number: u32) -> Res<()> {
        let p = self.p;
        let is_array =
            |t: TyId| matches!(p.ty(t), Ty::Array { .. }) && p.leaf_count(t) <= crate::parse::MAX_LEAVES;
        /// What is known of a candidate.
        struct State {
            /// The constant that it holds, 0 if none yet.
            constant: u32,
            id: u32,
            ty: TyId,
            alive: bool,
            dynamic: bool,
        }
        let mut states: Vec<State> = Vec::new();
        // By id: candidate plus one that it is, or points into.
        let mut root: FxHashMap<u32, u32> = FxHashMap::default();
        let constant = |id: u32| matches!(p.def(id), Def::Const(c) if matches!(p.consts[c as usize].kind, ConstKind::Bits(_)));
        for g in &p.globals {
            if g.class == StorageClass::Private as u32 && is_array(g.ty) && (g.init == 0 || constant(g.init))
            {
                root.insert(g.id, states.len() as u32);
                states.push(State { constant: g.init, id: g.id, ty: g.ty, alive: true, dynamic: false });
            }
        }
        let functions = self.reachable_functions(number);
        for &f in &functions {
            let Some(first) = p.funcs[f as usize].blocks.first() else { continue };
            let mut at = first.first;
            while at < first.term {
                let i = reader::inst(p.words, at)?;
                at += i.words.len();
                if i.op != S::Variable as u16 {
                    continue;
                }
                let Def::Type(t) = p.def(i.w(1)?) else { continue };
                let Ty::Pointer { pointee, .. } = p.ty(t) else { continue };
                let init = i.words.get(4).copied().unwrap_or(0);
                if is_array(pointee) && (init == 0 || constant(init)) {
                    root.insert(i.w(2)?, states.len() as u32);
                    states.push(State {
                        constant: init,
                        id: i.w(2)?,
                        ty: pointee,
                        alive: true,
                        dynamic: false,
                    });
                }
            }
        }
        if states.is_empty() {
            return Ok(());
        }
        for &f in &functions {
            for blk in &p.funcs[f as usize].blocks {
                let mut at = blk.first;
                while at < blk.term {
                    let i = reader::inst(p.words, at)?;
                    at += i.words.len();
                    let op = S::from_u32(i.op as u32);
                    // The operand that may be used without harm.
                    let harmless = match op {
                        Some(S::Variable) => continue,
                        Some(S::Load) => 3,
                        Some(S::AccessChain | S::InBoundsAccessChain) => {
                            if let Some(&r) = root.get(&i.w(3)?) {
                                root.insert(i.w(2)?, r);
                                states[r as usize].dynamic |=
                                    i.rest(4).iter().any(|k| !matches!(p.def(*k), Def::Const(_)));
                            }
                            3
                        }
                        Some(S::Store) => {
                            if let Some(&r) = root.get(&i.w(1)?) {
                                let s = &mut states[r as usize];
                                let object = i.w(2)?;
                                // Of the whole variable, and the same constant as ever.
                                if s.id == i.w(1)?
                                    && constant(object)
                                    && (s.constant == 0 || s.constant == object)
                                {
                                    s.constant = object;
                                } else {
                                    s.alive = false;
                                }
                            }
                            1
                        }
                        _ => 0,
                    };
                    let skip = if matches!(op, Some(S::Store)) { 1 } else { 3 };
                    for (n, w) in i.words.iter().enumerate().skip(skip) {
                        if n != harmless
                            && let Some(&r) = root.get(w)
                        {
                            states[r as usize].alive = false;
                        }
                    }
                }
                // A terminator may return or pass on a pointer.
                for w in p.inst(blk.term)?.rest(1) {
                    if let Some(&r) = root.get(w) {
                        states[r as usize].alive = false;
                    }
                }
            }
        }
        for s in states {
            if !s.alive || !s.dynamic || s.constant == 0 {
                continue;
            }
            let c = p.const_of_id(self.at, s.constant)?;
            let ConstKind::Bits(bits) = c.kind else { continue };
            if c.ty != s.ty {
                continue;
            }
            let lay = self.lay.get(p, self.at, s.ty, Rule::Own)?;
            let offset = self.constant_blob(lay, bits)?;
            self.const_vars.insert(s.id, offset);
        }
        Ok(())
    }
}
