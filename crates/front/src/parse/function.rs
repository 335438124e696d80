//! Finds the blocks of function bodies; what is in them is read when they are lowered.

use super::*;

impl Parsed<'_> {
    /// Finds the blocks of a function; returns the word behind its end.
    pub(super) fn function(&mut self, f: &Inst) -> Res<usize> {
        let ret = self.type_of_id(f.at, f.w(1)?)?;
        let number = self.funcs.len() as u32;
        self.define(f.at, f.w(2)?, Def::Func(number))?;
        let mut func = Func {
            id: f.w(2)?,
            ret,
            params: SmallVec::new(),
            blocks: Vec::new(),
            calls: Vec::new(),
            size: 0,
            at: f.at,
        };
        let mut open = false;
        let mut at = f.at + f.words.len();
        while at < self.words.len() {
            let i = inst(self.words, at)?;
            at += i.words.len();
            let Some(op) = Op::from_u32(i.op as u32) else {
                return error(i.at, format!("unknown instruction: {}", op_name(i.op)));
            };
            func.size += 1;
            match op {
                Op::FunctionEnd => {
                    if open {
                        return error(i.at, "a block without a terminator");
                    }
                    self.funcs.push(func);
                    return Ok(at);
                }
                Op::FunctionParameter => {
                    let ty = self.type_of_id(i.at, i.w(1)?)?;
                    if !func.blocks.is_empty() || open {
                        return error(i.at, "a parameter inside a block");
                    }
                    self.define(i.at, i.w(2)?, Def::Local(ty))?;
                    func.params.push((i.w(2)?, ty));
                }
                Op::Label => {
                    if open {
                        return error(i.at, "a label inside a block");
                    }
                    open = true;
                    let n = func.blocks.len() as u32;
                    self.define(i.at, i.w(1)?, Def::Label(number, n))?;
                    func.blocks.push(Blk {
                        label: i.w(1)?,
                        first: at,
                        term: 0,
                        merge: 0,
                        cont: 0,
                        control: 0,
                    });
                }
                Op::Line | Op::NoLine | Op::Nop => {}
                _ if !open => return error(i.at, format!("Op{op:?} outside a block")),
                Op::SelectionMerge | Op::LoopMerge => {
                    let merge = i.w(1)?;
                    let (cont, control) = match op {
                        Op::LoopMerge => (i.w(2)?, i.w(3)?),
                        _ => (0, i.w(2)?),
                    };
                    if let Some(b) = func.blocks.last_mut() {
                        (b.merge, b.cont, b.control) = (merge, cont, control);
                    }
                }
                _ if is_terminator(op) => {
                    open = false;
                    if let Some(b) = func.blocks.last_mut() {
                        b.term = i.at;
                    }
                }
                _ => {
                    if op == Op::FunctionCall {
                        func.calls.push(i.w(3)?);
                    }
                    if has_result(op) {
                        let ty = self.type_of_id(i.at, i.w(1)?)?;
                        self.define(i.at, i.w(2)?, Def::Local(ty))?;
                    }
                }
            }
        }
        error(at, "the module ends inside a function")
    }
}

pub fn is_terminator(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Branch
            | BranchConditional
            | Switch
            | Return
            | ReturnValue
            | Unreachable
            | Kill
            | TerminateInvocation
            | IgnoreIntersectionKHR
            | TerminateRayKHR
            | EmitMeshTasksEXT
    )
}

/// The instruction starts with a result type and a result (true for everything that may stand in a block but for
/// this list; an unknown instruction is refused when it is reached, whatever this says).
fn has_result(op: Op) -> bool {
    use Op::*;
    !matches!(
        op,
        Store
            | CopyMemory
            | CopyMemorySized
            | ImageWrite
            | ControlBarrier
            | MemoryBarrier
            | AtomicStore
            | AtomicFlagClear
            | EmitVertex
            | EndPrimitive
            | EmitStreamVertex
            | EndStreamPrimitive
            | LifetimeStart
            | LifetimeStop
            | DemoteToHelperInvocation
            | BeginInvocationInterlockEXT
            | EndInvocationInterlockEXT
            | AssumeTrueKHR
            | TraceRayKHR
            | ExecuteCallableKHR
            | RayQueryInitializeKHR
            | RayQueryTerminateKHR
            | RayQueryGenerateIntersectionKHR
            | RayQueryConfirmIntersectionKHR
            | CooperativeMatrixStoreKHR
            | CooperativeMatrixStoreNV
            | SetMeshOutputsEXT
            | GroupWaitEvents
            | CommitReadPipe
            | CommitWritePipe
            | ControlBarrierArriveINTEL
            | ControlBarrierWaitINTEL
            | SubgroupBlockWriteINTEL
            | SubgroupImageBlockWriteINTEL
    )
}
