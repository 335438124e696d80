//! The table of passes and their order.
//!
//! [`optimise`] runs the whole optimiser, [`run_named`] one pass by its name in [`PASSES`]. An [`Observer`] hears of
//! every pass that ran: for `--time-passes`, and for looking at the module in between.

use kempe_ir::Module;
use std::time::{Duration, Instant};

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Only what makes variables values: an unoptimised program, but one whose private scalars are not in memory.
    O0,
    /// Everything that makes code smaller or shorter without duplicating it.
    O1,
    /// Unrolling, if-conversion and the like too.
    O2,
}

/// What the passes may ask about the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    pub level: Level,
    /// Most components of a load or store that `vectorise` makes; 1 turns it off.
    pub vector_components: u8,
    /// A vector access never crosses a 16-byte block.
    pub vector_within_16: bool,
    /// Most work-groups along an axis of a dispatch.
    pub max_workgroups: u32,
    /// Instructions that full unrolling of a loop may come to.
    pub unroll_budget: u32,
    /// Unroll only what private arrays ask for, and what hardly grows: the copies keep more values alive at once.
    pub keep_loops: bool,
    /// Cost of the code that `if_convert` may run for nothing.
    pub if_convert_cost: u32,
}

impl Options {
    pub fn new(level: Level) -> Options {
        Options {
            level,
            vector_components: 4,
            vector_within_16: false,
            max_workgroups: u32::MAX,
            unroll_budget: 416,
            keep_loops: false,
            if_convert_cost: 8,
        }
    }
}

/// A row of the table.
pub struct Pass {
    pub name: &'static str,
    pub run: fn(&mut Module, &Options) -> bool,
}

macro_rules! passes {
    ($($name:literal = $run:expr;)*) => {
        /// Every pass, by name.
        pub const PASSES: &[Pass] = &[$(Pass { name: $name, run: $run },)*];
    };
}

passes! {
    "ssa" = |m, _| crate::ssa::run(m);
    "counters" = |m, _| crate::counters::run(m);
    "fold" = |m, _| crate::fold::run(m);
    "algebra" = |m, o| crate::algebra::run(m, o);
    "gvn" = |m, _| crate::gvn::run(m);
    "cfg" = |m, _| crate::cfg::run(m);
    "dce" = |m, _| crate::dce::run(m);
    "unroll" = |m, o| crate::unroll::run(m, o);
    "if_convert" = |m, o| crate::if_convert::run(m, o);
    "dse" = |m, _| crate::dse::run(m);
    "vectorise" = |m, o| crate::vectorise::run(m, o);
    "split_arrays" = |m, _| crate::split_arrays::run(m);
    "uniform_loads" = |m, _| crate::uniform_loads::run(m);
    "spread" = |m, o| crate::spread::run(m, o);
    "licm" = |m, _| crate::licm::run(m);
    "sink" = |m, _| crate::sink::run(m);
    "localise" = |m, _| crate::localise::run(m);
    "compact" = |m, _| crate::compact::run(m);
}

/// Passes that tidy up after another one. They are repeated while they find something, at most [`TIDY_ROUNDS`] times.
const TIDY: &[&str] = &["algebra", "ssa", "gvn", "cfg", "dce"];
/// Rounds of [`TIDY`]: the third finds something in 1 % of the corpus.
const TIDY_ROUNDS: usize = 3;

/// Rounds of unrolling: deeper nests stay rolled outside.
const UNROLL_ROUNDS: usize = 6;

/// Rounds of if-conversion: nests of short arms deeper than this keep their outer branches.
const IF_CONVERT_ROUNDS: usize = 4;

/// Hears of every pass that ran.
pub trait Observer {
    /// `m` is the module after the pass.
    fn pass(&mut self, name: &'static str, time: Duration, changed: bool, m: &Module);
}

impl Observer for () {
    fn pass(&mut self, _: &'static str, _: Duration, _: bool, _: &Module) {}
}

/// Time and number of runs by pass, in order of first use.
#[derive(Default, Debug)]
pub struct Times {
    pub rows: Vec<(&'static str, Duration, u32)>,
}

impl Observer for Times {
    fn pass(&mut self, name: &'static str, time: Duration, _: bool, _: &Module) {
        match self.rows.iter_mut().find(|r| r.0 == name) {
            Some(r) => {
                r.1 += time;
                r.2 += 1;
            }
            None => self.rows.push((name, time, 1)),
        }
    }
}

/// Runs the optimiser.
pub fn optimise(m: &mut Module, level: Level) {
    optimise_with(m, &Options::new(level), &mut ());
}

/// Runs the optimiser with options.
pub fn optimise_with(m: &mut Module, options: &Options, observer: &mut dyn Observer) {
    let mut r = Runner { m, options, observer };
    r.pass("ssa");
    if options.level == Level::O0 {
        r.pass("dce");
        r.pass("compact");
        return;
    }
    r.pass("counters");
    r.tidy();
    if options.level >= Level::O2 {
        r.pass("spread");
        // Inner loops first: each round simplifies the copies before the next loop out is looked at.
        for _ in 0..UNROLL_ROUNDS {
            if !r.pass("unroll") {
                break;
            }
            r.pass("ssa");
            // The copies' parameters are what their one way in passes.
            r.pass("cfg");
            r.tidy();
        }
        if r.pass("split_arrays") {
            r.pass("ssa");
            r.tidy();
        }
        if r.pass("uniform_loads") {
            r.pass("gvn");
        }
        for _ in 0..IF_CONVERT_ROUNDS {
            if !r.pass("if_convert") {
                break;
            }
            r.tidy();
        }
    }
    r.pass("dse");
    if r.pass("vectorise") {
        r.pass("algebra");
        r.pass("gvn");
    }
    if options.level >= Level::O2 {
        r.pass("licm");
        r.pass("sink");
    }
    r.pass("dce");
    r.pass("localise");
    r.pass("compact");
}

/// Runs one pass with the options of a level. `None`: there is no such pass.
pub fn run_named(m: &mut Module, name: &str) -> Option<bool> {
    let pass = PASSES.iter().find(|p| p.name == name)?;
    let changed = (pass.run)(m, &Options::new(Level::O2));
    check(m, pass.name);
    Some(changed)
}

struct Runner<'a> {
    m: &'a mut Module,
    options: &'a Options,
    observer: &'a mut dyn Observer,
}

impl Runner<'_> {
    fn pass(&mut self, name: &'static str) -> bool {
        let Some(pass) = PASSES.iter().find(|p| p.name == name) else {
            debug_assert!(false, "no pass {name}");
            return false;
        };
        let start = Instant::now();
        let changed = (pass.run)(self.m, self.options);
        self.observer.pass(pass.name, start.elapsed(), changed, self.m);
        check(self.m, pass.name);
        changed
    }

    fn tidy(&mut self) {
        for _ in 0..TIDY_ROUNDS {
            let mut changed = false;
            for &name in TIDY {
                changed |= self.pass(name);
            }
            if !changed {
                break;
            }
        }
    }
}

/// In debug builds every pass leaves a module that the verifier accepts.
fn check(m: &Module, pass: &str) {
    if cfg!(debug_assertions)
        && let Err(errors) = kempe_ir::verify::verify(m)
    {
        panic!("after pass {pass}:\n{}\n{}", errors.join("\n"), kempe_ir::text::print(m));
    }
}
