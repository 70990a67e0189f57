//! Text as bytes: encodings, line endings, matching, patches, diffs. Pure: nothing here touches a
//! file, and nothing here knows of tools.

pub mod cut;
pub mod diagnose;
pub mod diff;
pub mod disguise;
pub mod edit;
pub mod encoding;
pub mod endings;
pub mod hidden;
pub mod lines;
pub mod matching;
pub mod name;
pub mod patch;
pub mod window;
