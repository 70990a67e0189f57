//! What one session has read and written.

/// What one session has read and written, so that another program's change is noticed.
#[derive(Debug, Default)]
pub struct Session {}
