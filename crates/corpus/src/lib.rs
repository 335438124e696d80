//! Collections of shaders: compiling all of them in one go, and judging one run against another.
//!
//! * [`find`]: the shaders below a folder, in a stable order
//! * [`run`]: compiles them in worker processes ([`pool`]) and writes one line for each result; [`worker`] is the other
//!   end. A shader that hangs or takes its process with it costs a row, never the run.
//! * [`mod@file`]: the format of a run, and what a run that was interrupted left behind
//! * [`load`]: runs and tables of reference figures as rows; [`mod@compare`]: two of them, pair by pair; [`figures`]: means
//!   and their confidence; [`report`]: the comparison as text, Markdown or JSON
//!
//! Nothing here knows the compiler or a target: the command hands in what compiles a job, and the results are objects
//! of `docs/formats/compile.schema.json`.

pub mod compare;
pub mod figures;
pub mod file;
pub mod find;
pub mod load;
pub mod pool;
pub mod report;
pub mod run;
pub mod worker;
