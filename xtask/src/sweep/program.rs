//! One program at many register limits.

use super::failure::{Failure, Kind};
use crate::corpus::Entry;
use crate::stages::Variant;
use kempe::clock::thread_time;
use kempe::limits::{Limits, Stopped, guarded};
use kempe_ir::Module;
use kempe_mir::{Artifact, Mir};
use kempe_opt::Level;
use kempe_ra::{Allocation, Engine};
use kempe_v3d::compile::{self, CompileError, Observer, Ready};
use kempe_v3d::instr::Version;
use kempe_v3d::lower::Shape;
use kempe_v3d::mops::MInst;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Registers of a program with most of them; a higher limit is none.
pub const MOST: u32 = 64;

/// Limits that every program is made at, beside the three around its smallest.
pub const FIXED: [u32; 5] = [64, 48, 32, 24, 16];

/// A refusal may take this many times a normal compile of the program (reading, optimiser and lowering included), and
/// [`GRACE`]. Of 1,309 modules (scan) the worst takes 1.9 times, 99 of 100 less than 1.6, the median 0.8 to 1.0.
const REFUSAL: f64 = 3.0;
/// Below this nobody waits, and clocks are coarse.
const GRACE: Duration = Duration::from_millis(20);

/// What a compile at a limit gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Answer {
    Made {
        threads: u32,
        /// Spills and fills.
        traffic: u32,
    },
    Refused,
    /// Anything else; there is a failure that tells.
    Failed,
}

/// A program before registers matter: read, optimised, lowered once.
pub struct Program {
    pub version: Version,
    pub variant: Variant,
    pub engine: Engine,
    pub lowered: Arc<Module>,
    ready: Arc<Ready>,
    verify: bool,
    /// CPU time until here.
    before: Duration,
    /// Who it is.
    pub name: String,
    /// The command that compiles it, without a limit.
    command: String,
}

/// What the command line of the product says for an engine.
pub fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Best => "best",
        Engine::Scan => "scan",
        Engine::Graph => "graph",
    }
}

/// How often answers were what, and what they are called.
pub struct Swept {
    pub natural: Answer,
    /// Most registers that the program wants at once.
    pub pressure: u32,
    /// The smallest limit at which it allocates; `None` if it does at none.
    pub least: Option<u32>,
    pub answers: BTreeMap<u32, Answer>,
    pub refusals: Refusals,
    pub failures: Vec<Failure>,
    /// The code at the natural limit, in the middle and at the smallest, if it was asked for.
    pub code: Vec<(Option<u32>, Artifact)>,
}

/// How programs were refused.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    pub count: u32,
    pub with_line: u32,
    /// Time of each just below the smallest limit, in normal compiles of the program.
    pub times: Vec<f64>,
}

/// What is wanted of the programs.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Every limit from the pressure down.
    pub every: bool,
    /// The code at three limits.
    pub code: bool,
}

#[derive(Default)]
struct Watch {
    lowered: Option<Module>,
    pressure: u32,
}

impl Observer for Watch {
    fn lowered(&mut self, m: &Module) {
        self.lowered = Some(m.clone());
    }
    fn allocated(&mut self, _threads: u32, _mir: &Mir<MInst>, allocation: &Allocation) {
        self.pressure = self.pressure.max(allocation.max_pressure);
    }
}

/// One compile.
struct Run {
    result: Result<Artifact, (Kind, String)>,
    time: Duration,
    pressure: u32,
}

fn stopped(why: Stopped) -> (Kind, String) {
    let kind = match why {
        Stopped::Panic(_) => Kind::Panic,
        Stopped::Time(_) | Stopped::Memory(_) => Kind::Limit,
    };
    (kind, why.to_string())
}

fn told(e: CompileError) -> (Kind, String) {
    let kind = match e.internal {
        true => Kind::Bug,
        false if e.message.starts_with("out of registers") => Kind::Refused,
        false => Kind::Unsupported,
    };
    (kind, e.message)
}

impl Program {
    /// Everything up to register allocation. The error says what stands in the way, and [`Kind::Unsupported`] is no failure.
    pub fn new(
        e: &Entry,
        m: &Arc<Module>,
        version: Version,
        variant: Variant,
        engine: Engine,
        verify: bool,
    ) -> Result<Program, Failure> {
        let shape = Shape { binning: variant == Variant::Binning, ..Shape::default() };
        let source = Arc::clone(m);
        let name = format!(
            "{} `{}` {}{}, {}",
            e.file,
            m.name,
            version.name(),
            if shape.binning { ", binning" } else { "" },
            engine_name(engine)
        );
        let mut command = format!("kempe compile {} --target {}", e.path.display(), version.name());
        command += &format!(" --entry {} --colour {} --verify", m.name, engine_name(engine));
        for (id, bits) in &e.suggested {
            command += &format!(" --spec {id}={bits:#x}");
        }
        let work = move || {
            let start = thread_time();
            let mut m = (*source).clone();
            let mut choices = match kempe::target(version.name()) {
                Some(target) => target.opt_options(),
                None => kempe_opt::Options::new(Level::O2),
            };
            choices.level = Level::O2;
            kempe_opt::optimise_with(&mut m, &choices, &mut ());
            let mut watch = Watch::default();
            let ready = compile::ready(m, version, &shape, &mut watch)?;
            Ok((ready, watch.lowered, thread_time() - start))
        };
        let made = guarded(Limits::default(), work).map_err(stopped);
        let made = made.and_then(|made: Result<_, CompileError>| made.map_err(told)).and_then(|made| {
            let (ready, lowered, time) = made;
            Ok((ready, lowered.ok_or((Kind::Bug, "no lowered form was seen".to_owned()))?, time))
        });
        match made {
            Ok((ready, lowered, before)) => Ok(Program {
                version,
                variant,
                engine,
                lowered: Arc::new(lowered),
                ready: Arc::new(ready),
                verify,
                before,
                name,
                command,
            }),
            Err((kind, message)) => Err(Failure { kind, message, name, command, size: usize::MAX }),
        }
    }

    fn run(&self, limit: Option<u32>) -> Run {
        let ready = Arc::clone(&self.ready);
        let options = compile::Options {
            max_registers: limit,
            engine: self.engine,
            shape: Shape { binning: self.variant == Variant::Binning, ..Shape::default() },
            verify: self.verify,
            ..compile::Options::default()
        };
        let work = move || {
            let start = thread_time();
            let mut watch = Watch::default();
            let result = compile::finish_ready(&ready, &options, &mut watch).map_err(told);
            Run { result, time: thread_time() - start, pressure: watch.pressure }
        };
        let none = |why| Run { result: Err(stopped(why)), time: Duration::ZERO, pressure: 0 };
        guarded(Limits::default(), work).unwrap_or_else(none)
    }

    /// Without a limit.
    pub fn compiles(&self) -> bool {
        self.run(None).result.is_ok()
    }

    /// Compiles at every limit that is wanted, and judges the answers.
    ///
    /// # Errors
    /// What stands in the way at the natural limit, where [`Kind::Unsupported`] and [`Kind::Refused`] are no failure.
    pub fn sweep(&self, wanted: Wanted) -> Result<Swept, Failure> {
        let run = self.run(None);
        let size = self.lowered.func.insts.len();
        let failure = |limit: Option<u32>, kind: Kind, message: String| Failure {
            kind,
            message: match limit {
                Some(n) => format!("at {n}: {message}"),
                None => message,
            },
            name: self.name.clone(),
            command: match limit {
                Some(n) => format!("{} --max-registers {n}", self.command),
                None => self.command.clone(),
            },
            size,
        };
        let mut sweep = Sweep {
            program: self,
            failure: &failure,
            normal: self.before + run.time,
            answers: BTreeMap::new(),
            refusals: Refusals::default(),
            failures: Vec::new(),
        };
        let artifact = run.result.map_err(|(kind, message)| failure(None, kind, message))?;
        let natural = made(&artifact);
        let least = sweep.least();
        let around = least.map(|n| [n + 1, n + 2]).into_iter().flatten();
        for limit in FIXED.into_iter().chain(around).filter(|&n| n <= MOST) {
            sweep.ask(limit);
        }
        let top = run.pressure.min(MOST);
        if wanted.every {
            for limit in least.unwrap_or(MOST)..top {
                sweep.ask(limit);
            }
        }
        sweep.judge(least);
        let mut code = Vec::new();
        if let (true, Some(least)) = (wanted.code, least) {
            code.push((None, artifact));
            let middle = least + top.saturating_sub(least) / 2;
            for limit in [Some(middle), Some(least)] {
                match self.run(limit).result {
                    Ok(a) => code.push((limit, a)),
                    Err((kind, message)) if kind != Kind::Refused => {
                        sweep.failures.push(failure(limit, kind, message));
                    }
                    // A hole, which the sweep has seen.
                    Err(_) => {}
                }
            }
        }
        let Sweep { answers, refusals, failures, .. } = sweep;
        Ok(Swept { natural, pressure: run.pressure, least, answers, refusals, failures, code })
    }
}

fn made(a: &Artifact) -> Answer {
    Answer::Made { threads: a.threads, traffic: a.stats.spills + a.stats.fills }
}

struct Sweep<'a> {
    program: &'a Program,
    failure: &'a dyn Fn(Option<u32>, Kind, String) -> Failure,
    normal: Duration,
    answers: BTreeMap<u32, Answer>,
    refusals: Refusals,
    failures: Vec<Failure>,
}

impl Sweep<'_> {
    fn fail(&mut self, limit: u32, kind: Kind, message: String) {
        self.failures.push((self.failure)(Some(limit), kind, message));
    }

    fn ask(&mut self, limit: u32) -> Answer {
        if let Some(&known) = self.answers.get(&limit) {
            return known;
        }
        let answer = match self.program.run(Some(limit)).result {
            Ok(a) => made(&a),
            Err((Kind::Refused, message)) => {
                self.refused(limit, &message);
                Answer::Refused
            }
            Err((kind, message)) => {
                self.fail(limit, kind, message);
                Answer::Failed
            }
        };
        self.answers.insert(limit, answer);
        answer
    }

    /// The smallest limit at which the program allocates, by bisection: [`Sweep::judge`] sees to what that takes for granted.
    fn least(&mut self) -> Option<u32> {
        if self.ask(MOST) == Answer::Refused {
            return None;
        }
        let (mut refused, mut made) = (0, MOST);
        while made - refused > 1 {
            let middle = (made + refused) / 2;
            match self.ask(middle) {
                Answer::Refused => refused = middle,
                _ => made = middle,
            }
        }
        Some(made)
    }

    /// A refusal says what does not fit: how many values, and which; their lines, too, where the module has them.
    fn refused(&mut self, limit: u32, message: &str) {
        self.refusals.count += 1;
        self.refusals.with_line += u32::from(message.starts_with("out of registers at line "));
        let count = message.split(": ").nth(1).and_then(|rest| rest.split(' ').next());
        let counted = count.and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n > 0);
        if !counted || !message.contains(" registers are needed") {
            self.fail(limit, Kind::Words, message.to_owned());
        }
    }

    fn judge(&mut self, least: Option<u32>) {
        let least = match least {
            Some(n) => n,
            None => {
                let message = format!("refused at {MOST}, where no limit is one");
                return self.fail(MOST, Kind::Hole, message);
            }
        };
        let holes: Vec<u32> =
            self.answers.range(least..).filter(|(_, a)| **a == Answer::Refused).map(|(n, _)| *n).collect();
        for limit in holes {
            self.fail(limit, Kind::Hole, format!("refused, and at {least} it is not"));
        }
        let Some(below) = least.checked_sub(1).filter(|&n| n > 0) else { return };
        // Timed once more: what was asked first has cold caches.
        let normal = self.normal.as_secs_f64();
        let time = (self.program.before + self.program.run(Some(below)).time).as_secs_f64();
        self.refusals.times.push(time / normal.max(1e-6));
        if time > REFUSAL * normal + GRACE.as_secs_f64() {
            let message = format!("a refusal takes {:.1} ms, a compile {:.1} ms", 1e3 * time, 1e3 * normal);
            self.fail(below, Kind::SlowRefusal, message);
        }
    }
}
