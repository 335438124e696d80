//! Broadcom V3D behind [`Target`].

use crate::target::{Target, TextError};
use kempe_v3d::asm;
use kempe_v3d::instr::Version;

/// One generation.
pub struct V3d(Version);

/// V3D 4.2.
pub static V42: V3d = V3d(Version::V42);
/// V3D 7.1.
pub static V71: V3d = V3d(Version::V71);

impl Target for V3d {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn description(&self) -> &'static str {
        match self.0 {
            Version::V42 => "Broadcom V3D 4.2, VideoCore VI (BCM2711: Raspberry Pi 4)",
            Version::V71 => "Broadcom V3D 7.1, VideoCore VII (BCM2712: Raspberry Pi 5)",
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (registers, cores) = match self.0 {
            Version::V42 => ("64 rows at 2 threads, 32 at 4; accumulators r0 to r5", 8),
            Version::V71 => ("64 rows at 2 threads, 32 at 4", 12),
        };
        vec![
            ("stages", "compute".to_owned()),
            ("lanes", "16".to_owned()),
            ("threads", "2 or 4 on each of ".to_owned() + &cores.to_string() + " cores"),
            ("registers", registers.to_owned()),
            ("word", "64 bits: an ADD and a MUL operation and signals".to_owned()),
        ]
    }

    fn disassemble(&self, word: u64, quirks: bool) -> String {
        asm::disassemble(self.0, word, quirks)
    }

    fn assemble(&self, text: &str) -> Result<Vec<u64>, TextError> {
        asm::assemble(self.0, text).map_err(|e| TextError {
            line: e.line,
            column: e.column,
            message: e.message,
        })
    }
}
