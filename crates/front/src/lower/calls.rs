//! Functions: checked for recursion and growth, then emitted in place of their calls.

use super::*;

/// No recursion, and the inlined size stays in bounds: found before anything is emitted.
pub(super) fn check_calls(p: &Parsed, root: u32) -> Res<()> {
    let mut size = vec![0u64; p.funcs.len()];
    // 0 not seen, 1 on the path, 2 done.
    let mut state = vec![0u8; p.funcs.len()];
    let mut stack = vec![(root, 0usize)];
    state[root as usize] = 1;
    while let Some(top) = stack.last_mut() {
        let (f, k) = *top;
        top.1 += 1;
        let func = &p.funcs[f as usize];
        if let Some(&id) = func.calls.get(k) {
            let Def::Func(callee) = p.def(id) else {
                return error(func.at, format!("{} calls id {id}, which is no function", p.label(func.id)));
            };
            match state[callee as usize] {
                0 => {
                    state[callee as usize] = 1;
                    stack.push((callee, 0));
                    if stack.len() > MAX_CALL_DEPTH {
                        return error(func.at, format!("calls nest deeper than {MAX_CALL_DEPTH}"));
                    }
                }
                1 => {
                    return error_help(
                        p.funcs[callee as usize].at,
                        format!("function {} calls itself", p.label(id)),
                        "shaders must not be recursive",
                    );
                }
                _ => {}
            }
            continue;
        }
        let mut total = func.size as u64;
        let mut most = (0, 0u64);
        let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
        for &id in &func.calls {
            if let Def::Func(c) = p.def(id) {
                total = total.saturating_add(size[c as usize]);
                let n = counts.entry(c).or_default();
                *n = n.saturating_add(size[c as usize]);
                if *n > most.1 {
                    most = (c, *n);
                }
            }
        }
        if total > MAX_INSTS as u64 {
            let callee = &p.funcs[most.0 as usize];
            let times = func.calls.iter().filter(|c| **c == callee.id).count();
            return error_help(
                func.at,
                format!("the code grows beyond {MAX_INSTS} instructions when functions are inlined"),
                format!(
                    "{} calls {} {times} times; with everything that calls it is {total} instructions",
                    p.label(func.id),
                    p.label(callee.id)
                ),
            );
        }
        size[f as usize] = total;
        state[f as usize] = 2;
        stack.pop();
    }
    Ok(())
}

impl Lower<'_, '_> {
    pub(super) fn cfg(&mut self, number: u32) -> Res<Rc<Cfg>> {
        if let Some(c) = &self.cfgs[number as usize] {
            return Ok(c.clone());
        }
        let c = Rc::new(cfg::build(self.p, number)?);
        self.cfgs[number as usize] = Some(c.clone());
        Ok(c)
    }

    pub(super) fn call(&mut self, i: &Inst) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let Def::Func(number) = self.p.def(i.w(3)?) else {
            return self.err("a call of something that is no function");
        };
        let f = &self.p.funcs[number as usize];
        let args = i.rest(4);
        if args.len() != f.params.len() || f.ret != ty {
            return self.err(format!("a call of {} does not fit its type", self.p.label(f.id)));
        }
        let mut vals: SmallVec<[Val; 8]> = SmallVec::new();
        for (&a, &(_, want)) in args.iter().zip(&f.params) {
            let v = self.val(a)?;
            // A pointer to a global variable, or an image, is known by what it points to; everything else by its own type.
            if v.len != IS_PTR && v.len != IS_IMAGE && v.ty != want {
                return self.err(format!("a call of {} does not fit its type", self.p.label(f.id)));
            }
            vals.push(v);
        }
        // `check_calls` has refused recursion, but a call it did not see must not loop here.
        if self.active.len() >= MAX_CALL_DEPTH || self.active.contains(&number) {
            return self.err(format!("calls nest deeper than {MAX_CALL_DEPTH}"));
        }
        let outer = (self.epoch, self.loc, self.at);
        self.epochs += 1;
        if self.epochs == EVERYWHERE - 1 {
            return self.err("too many calls");
        }
        self.epoch = self.epochs;
        for (v, &(param, ty)) in vals.iter().zip(&f.params) {
            self.vals[param as usize] = Val { epoch: self.epoch, ty, ..*v };
        }
        self.active.push(number);
        let result = self.body(number, false)?;
        self.active.pop();
        (self.epoch, self.loc, self.at) = outer;
        if self.p.ty(ty) == Ty::Void {
            // The result of a void function may be named but not used.
            return Ok(());
        }
        match result {
            Some(r) => self.set(id, ty, r),
            None => {
                // It never returns: what follows is not reached, but must still be well formed.
                let mut types = Vec::new();
                self.p.leaf_types(self.at, ty, &mut types)?;
                let undef: Vec<Value> = types.into_iter().map(|t| self.undef(t)).collect();
                self.set_all(id, ty, &undef)
            }
        }
    }

    /// Emits the blocks of a function from the current block on; afterwards the current block is what follows the
    /// call. The answer is the result, if the function returns one.
    pub(super) fn body(&mut self, number: u32, top: bool) -> Res<Option<Rng>> {
        let cfg = self.cfg(number)?;
        let p = self.p;
        let f = &p.funcs[number as usize];
        let falls_through = !top && cfg.returns == 1 && cfg.returns_last;
        let mut map: Vec<Block> = Vec::new();
        if cfg.order.len() > 1 {
            map.resize(f.blocks.len(), Block(u32::MAX));
            for &b in &cfg.order[1..] {
                map[b as usize] = self.m.func.add_block_detached();
            }
        }
        let after = (!top && !falls_through).then(|| self.m.func.add_block_detached());
        let mut result = None;
        for (n, &b) in cfg.order.iter().enumerate() {
            if n > 0 {
                self.cur = map[b as usize];
                self.m.func.layout.push(self.cur);
                self.flags = Flags::NONE;
            }
            let blk = &f.blocks[b as usize];
            if blk.cont != 0 {
                self.m.func.blocks[self.cur].loop_hint = match blk.control & 3 {
                    1 => ir::LoopHint::Unroll,
                    2 => ir::LoopHint::DontUnroll,
                    _ => ir::LoopHint::None,
                };
            }
            let mut at = blk.first;
            let mut phis = true;
            while at < blk.term {
                let i = reader::inst(p.words, at)?;
                self.at = at;
                at += i.words.len();
                let Some(op) = S::from_u32(i.op as u32) else {
                    return self.err(format!("unknown instruction: {}", op_name(i.op)));
                };
                match op {
                    S::Phi => {
                        if !phis || n == 0 {
                            return self.err("a phi behind other instructions or in the first block");
                        }
                        self.phi(&i)?;
                    }
                    S::Line => self.line(&i)?,
                    S::NoLine => self.loc = Loc(0),
                    S::Nop => {}
                    _ => {
                        phis = false;
                        self.instruction(&i, op)?;
                    }
                }
            }
            self.at = blk.term;
            let i = reader::inst(p.words, blk.term)?;
            self.terminator(&i, number, blk, &map, after, falls_through, &mut result)?;
        }
        if let Some(after) = after {
            self.cur = after;
            self.m.func.layout.push(after);
            if cfg.returns == 0 {
                self.dead = true;
                result = None;
            }
        }
        Ok(result)
    }

    /// A phi becomes parameters of the block; the arguments come with the jumps.
    fn phi(&mut self, i: &Inst) -> Res<()> {
        let (ty, id) = self.result(i)?;
        let mut types = Vec::new();
        self.p.leaf_types(self.at, ty, &mut types)?;
        let mut params: SmallVec<[Value; 4]> = SmallVec::new();
        for t in types {
            if self.m.func.blocks[self.cur].params.len() > u16::MAX as usize - 1 {
                return self.err("too many phis in a block");
            }
            params.push(self.m.func.add_param(self.cur, t));
        }
        self.set_all(id, ty, &params)
    }
}
