mod pattern;
mod show;
mod spec;
