//! Everything that is wrong with a configuration, in one error.

use std::fmt;

use crate::Secrets;
use crate::ToolError;

/// A configuration that was not accepted. Holds at least one fault.
#[derive(Debug)]
pub struct ConfigureError {
    faults: Vec<Fault>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key, or the path to it such as `limits.open_files`; empty for the machine as a whole.
    pub key: String,
    /// What is wrong with it and what would be right.
    pub problem: String,
    /// Whether writing something else would help.
    pub kind: FaultKind,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// What is written is wrong: a misspelt key, a directory that does not exist, a variable that is
    /// not set.
    Written,
    /// What is written makes sense, but this machine cannot do it: a kernel that cannot enforce, a
    /// directory that this user may not open.
    Machine,
}

impl Fault {
    /// A fault of what is written.
    pub fn written(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), kind: FaultKind::Written }
    }

    /// A fault of the machine.
    pub fn machine(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), kind: FaultKind::Machine }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "{}: {}", self.key, self.problem)
        }
    }
}

impl ConfigureError {
    /// An error from its faults; `None` where there are none.
    #[must_use]
    pub fn of(faults: Vec<Fault>) -> Option<Self> {
        (!faults.is_empty()).then_some(Self { faults })
    }

    /// An error with one fault.
    #[must_use]
    pub fn single(fault: Fault) -> Self {
        Self { faults: vec![fault] }
    }

    /// The same, without what `secrets` hide: what is written may hold the value of one.
    #[must_use]
    pub fn masked(mut self, secrets: &Secrets) -> Self {
        for fault in &mut self.faults {
            for text in [&mut fault.key, &mut fault.problem] {
                *text = secrets.mask_text(text).into_owned();
            }
        }
        self
    }

    /// Everything that is wrong.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// [`FaultKind::Written`] as soon as one fault is; that one has to be corrected first.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        if self.faults.iter().any(|fault| fault.kind == FaultKind::Written) {
            FaultKind::Written
        } else {
            FaultKind::Machine
        }
    }

    /// The same in the tools' taxonomy, each fault under its key in the details.
    #[must_use]
    pub fn to_tool_error(&self) -> ToolError {
        let error = match self.kind() {
            FaultKind::Written => ToolError::invalid_arguments(self.to_string()),
            FaultKind::Machine => ToolError::execution_failed(self.to_string()),
        };
        self.faults.iter().fold(error, |error, fault| {
            let key = if fault.key.is_empty() { "machine" } else { &fault.key };
            error.with_detail(key, fault.problem.as_str())
        })
    }
}

impl fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.as_slice() {
            [only] => write!(f, "the configuration is not accepted: {only}"),
            several => {
                write!(f, "the configuration is not accepted, {} faults:", several.len())?;
                several.iter().try_for_each(|fault| write!(f, "\n- {fault}"))
            }
        }
    }
}

impl std::error::Error for ConfigureError {}
