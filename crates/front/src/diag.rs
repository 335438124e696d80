//! Messages for the person who wrote the shader: where, what, and what to do about it.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One message. Lines and columns count from 1; 0 is "unknown".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// Number of columns that the message is about (at least 1 where the column is known).
    pub span: u32,
    pub message: String,
    /// What to do about it; empty if there is nothing to say.
    pub help: String,
}

/// Everything that is wrong with one input; never empty when returned as an error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostic {
    pub fn error(file: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            file: file.to_owned(),
            line: 0,
            column: 0,
            span: 0,
            message: message.into(),
            help: String::new(),
        }
    }

    pub fn warning(file: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(file, message) }
    }

    pub fn with_line(mut self, line: u32, column: u32) -> Diagnostic {
        self.line = line;
        self.column = column;
        self.span = (column != 0) as u32;
        self
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = help.into();
        self
    }

    /// Plain text: position, message, the source line with a caret below it, help. `source` is the text of
    /// `self.file` where it is at hand.
    pub fn render(&self, source: Option<&str>) -> String {
        let mut out = String::new();
        out.push_str(&self.file);
        if self.line != 0 {
            out.push_str(&format!(":{}", self.line));
            if self.column != 0 {
                out.push_str(&format!(":{}", self.column));
            }
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        out.push_str(&format!(": {severity}: {}\n", self.message));
        let text = (self.line != 0).then_some(source).flatten();
        if let Some(text) = text.and_then(|s| s.lines().nth(self.line as usize - 1)) {
            // Control characters would spoil the alignment of the caret (and the terminal).
            let shown: String =
                text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c }).collect();
            let number = self.line.to_string();
            out.push_str(&format!(" {number} | {}\n", shown.trim_end()));
            let before = self.column.saturating_sub(1) as usize;
            if self.column != 0 && before <= shown.chars().count() {
                let carets =
                    (self.span.max(1) as usize).min(shown.chars().count().saturating_sub(before).max(1));
                out.push_str(&format!(
                    " {} | {}{}\n",
                    " ".repeat(number.len()),
                    " ".repeat(before),
                    "^".repeat(carets)
                ));
            }
        }
        if !self.help.is_empty() {
            out.push_str(&format!("  help: {}\n", self.help));
        }
        out
    }
}

impl Diagnostics {
    pub fn one(d: Diagnostic) -> Diagnostics {
        Diagnostics(vec![d])
    }

    /// All messages one after another; `source` as in [`Diagnostic::render`], used for messages about `name`.
    pub fn render(&self, name: &str, source: Option<&str>) -> String {
        self.0.iter().map(|d| d.render(source.filter(|_| d.file == name))).collect()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for d in &self.0 {
            f.write_str(&d.render(None))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
