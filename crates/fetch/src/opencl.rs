//! Kernels in OpenCL C to SPIR-V, by tools that have to be installed: clang 15, its `opt`, and llvm-spirv 15.
//!
//! At its first level of optimisation clang 15 marks every loop as not to be unrolled. llvm-spirv turns the mark into a merge
//! instruction, which is wrong where the control flow is not structured: the marks are taken out of the text in between.

use std::path::Path;
use std::process::{Command, Stdio};

/// What is done between the two compilers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passes {
    /// Nothing: clang optimises by itself.
    Clang,
    /// Everything becomes one function for each kernel, with little optimisation.
    Inline,
}

/// Names of the tools.
pub struct Tools {
    clang: &'static str,
    opt: &'static str,
    spirv: &'static str,
}

fn starts(name: &str) -> bool {
    let mut command = Command::new(name);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|l| l.contains("error")).or(said.lines().next()).unwrap_or("it fails");
    Err(line.trim().to_owned())
}

/// `line` without `, !llvm.loop !N`.
fn without_mark(line: &str) -> &str {
    line.find(", !llvm.loop !").map_or(line, |at| &line[..at])
}

/// Names that follow `KERNEL_FQ void`, after preprocessing what a kernel is declared as.
fn kernels(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let after = |rest: &'_ str| rest.trim_start().strip_prefix("void").map(|r| r.len());
    let mut out = Vec::new();
    for (at, word) in text.match_indices("KERNEL_FQ") {
        let rest = &text[at + word.len()..];
        let Some(left) = after(rest) else { continue };
        let name = rest[rest.len() - left..].trim_start();
        let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
        out.push(&name[..end]);
    }
    out
}

impl Tools {
    /// # Errors
    /// What is not installed.
    pub fn find() -> Result<Tools, String> {
        let tools = Tools { clang: "clang-15", opt: "opt-15", spirv: "llvm-spirv-15" };
        for (name, package) in
            [(tools.clang, "clang-15"), (tools.opt, "llvm-15"), (tools.spirv, "llvm-spirv-15")]
        {
            if !starts(name) {
                return Err(format!("{name} is not installed (Debian's package {package})"));
            }
        }
        Ok(tools)
    }

    /// Compiles one file. `options` are those of clang.
    ///
    /// # Errors
    /// What the tools say.
    pub fn compile(
        &self,
        text: &Path,
        options: &[String],
        include: &Path,
        passes: Passes,
        target: &Path,
    ) -> Result<(), String> {
        let next = |extension: &str| target.with_extension(extension);
        let (ll, bc, smaller) = (next("ll"), next("bc"), next("inline.bc"));
        let result = self.steps(text, options, include, passes, [&ll, &bc, &smaller, target]);
        for path in [&ll, &bc, &smaller] {
            // Not all of them need be there.
            let _ = std::fs::remove_file(path);
        }
        result
    }

    fn steps(
        &self,
        text: &Path,
        options: &[String],
        include: &Path,
        passes: Passes,
        [ll, bc, smaller, target]: [&Path; 4],
    ) -> Result<(), String> {
        let mut clang = Command::new(self.clang);
        clang.args(["-x", "cl", "-target", "spir64", "-O1", "-emit-llvm", "-S", "-w"]);
        clang.args(["-Xclang", "-finclude-default-header"]).args(options);
        clang.arg("-I").arg(include);
        if let Some(above) = include.parent() {
            clang.arg("-I").arg(above);
        }
        if passes == Passes::Inline {
            clang.args(["-Xclang", "-disable-llvm-passes"]);
        }
        run(clang.arg(text).arg("-o").arg(ll))?;
        let read = std::fs::read_to_string(ll).map_err(|e| e.to_string())?;
        let bare: String = read.lines().flat_map(|l| [without_mark(l), "\n"]).collect();
        std::fs::write(ll, bare).map_err(|e| e.to_string())?;
        let mut back = Command::new(self.clang);
        back.args([
            "-x",
            "ir",
            "-target",
            "spir64",
            "-c",
            "-emit-llvm",
            "-w",
            "-Xclang",
            "-disable-llvm-passes",
        ]);
        run(back.arg(ll).arg("-o").arg(bc))?;
        let mut last = bc;
        if passes == Passes::Inline {
            let text = std::fs::read_to_string(text).map_err(|e| e.to_string())?;
            let mut opt = Command::new(self.opt);
            opt.arg("-passes=internalize,always-inline,function(sroa,early-cse,simplifycfg),globaldce");
            opt.arg(format!("-internalize-public-api-list={}", kernels(&text).join(",")));
            run(opt.arg(bc).arg("-o").arg(smaller))?;
            last = smaller;
        }
        run(Command::new(self.spirv).arg("--spirv-max-version=1.2").arg(last).arg("-o").arg(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_things() {
        assert_eq!(
            without_mark("  br i1 %1, label %2, label %3, !llvm.loop !7"),
            "  br i1 %1, label %2, label %3"
        );
        assert_eq!(without_mark("  ret void"), "  ret void");
        assert_eq!(
            kernels("KERNEL_FQ void m1_init (X)\nKERNEL_FQ  void m1_loop(\nKERNEL_FQ int x"),
            ["m1_init", "m1_loop"]
        );
    }
}
