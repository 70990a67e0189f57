//! The constants by which a host and its tool providers know each other, for go-plugin's handshake.

/// The variable by which a plugin knows that a host launched it.
pub const COOKIE_KEY: &str = "PLUGGABLEHARNESS_AGENT_PLUGIN";

/// What [`COOKIE_KEY`] holds then.
pub const COOKIE_VALUE: &str = "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake";

/// The version of the application's side of the handshake.
pub const PROTOCOL_VERSION: u32 = 1;

/// The broker id under which a host serves its callbacks. A plugin dials it from inside a call,
/// never while it starts.
pub const HOST_CALLBACKS: u32 = 1;
