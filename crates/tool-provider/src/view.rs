//! What a person sees: the tree that Preview and Render return, free of any wire type.

use crate::Payload;

/// A node of a rendered tree.
#[derive(Clone, Debug, PartialEq)]
pub enum View {
    /// A run of text.
    Text {
        /// The text.
        content: String,
        /// How it is meant.
        style: Style,
    },
    /// Preformatted text.
    Code {
        /// The language for highlighting, where known.
        language: Option<String>,
        /// The text.
        content: String,
    },
    /// Changes to one file.
    Diff(Vec<Hunk>),
    /// A table.
    Table {
        /// The column heads.
        headers: Vec<String>,
        /// The rows, each with one cell a column.
        rows: Vec<Vec<String>>,
    },
    /// A list.
    List {
        /// The items.
        items: Vec<View>,
        /// Whether the items are numbered.
        order: ListOrder,
    },
    /// Several nodes, one below the other.
    Group(Vec<View>),
    /// Nodes that can be folded away.
    Collapsible {
        /// What stays visible.
        summary: String,
        /// What folds away.
        children: Vec<View>,
        /// How it starts.
        initially: Fold,
    },
    /// A link. Our tools make none; other providers may.
    Link {
        /// What is shown.
        text: String,
        /// Where it leads.
        url: String,
    },
    /// A link to another session. Our tools make none.
    SubSession {
        /// The session.
        session: String,
        /// What it is about.
        summary: String,
    },
    /// Something to click that calls a tool. Our tools make none.
    Action {
        /// What is shown.
        label: String,
        /// The tool.
        tool: String,
        /// The call's arguments.
        arguments: Payload,
    },
    /// A node of a kind that this build does not know: it came from a later one.
    Unknown,
}

/// How a text is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Plain.
    Normal,
    /// Bold.
    Bold,
    /// Italic.
    Italic,
    /// A name or a piece of code.
    Code,
    /// Dim.
    Dim,
    /// Something failed.
    Error,
    /// Something needs attention.
    Warning,
    /// Something went well.
    Success,
}

/// Whether a list is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    /// Bullets.
    Unordered,
    /// Numbers.
    Ordered,
}

/// How a collapsible node starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Folded away.
    Closed,
    /// Shown.
    Open,
}

impl View {
    /// Text in the given style.
    pub fn text(content: impl Into<String>, style: Style) -> Self {
        View::Text { content: content.into(), style }
    }

    /// Plain text.
    pub fn plain(content: impl Into<String>) -> Self {
        View::text(content, Style::Normal)
    }

    /// A code block.
    pub fn code(language: Option<&str>, content: impl Into<String>) -> Self {
        View::Code { language: language.map(str::to_owned), content: content.into() }
    }
}

/// A run of changed lines with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old text, 1-based; where the hunk has no old lines, the line before it.
    pub old_start: u32,
    /// Number of old lines.
    pub old_lines: u32,
    /// First line in the new text, counted like `old_start`.
    pub new_start: u32,
    /// Number of new lines.
    pub new_lines: u32,
    /// The lines, in order.
    pub lines: Vec<DiffLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Whether the line stays, comes or goes.
    pub op: DiffOp,
    /// The line without its LF and without any marker.
    pub text: String,
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffOp {
    /// It stays.
    Context,
    /// It is new.
    Add,
    /// It goes.
    Remove,
}
