# A whole agent.hcl, with every key of the provider: each has its default unless it is commented out, and
# only `roots` is required. For a short one run `provider-workspace init`, which prints agent-minimal.hcl.
# agent-libraries.hcl adds directories that are only read, agent-network.hcl the network.

required_providers {
  # The blocks below call the provider by this name.
  workspace = {
    source  = "github.com/OWNER/provider-workspace" # Replace OWNER.
    version = "~> 0.1"
  }
}

provider "workspace" {
  # Directories that the tools may read and write. A relative path starts at the host's working
  # directory.
  roots = ["."]

  # Directories that the tools may read and never write. Each must exist.
  read_only_roots = []

  # "enforce" fails if the Linux kernel cannot enforce file rights. "best_effort" enforces what it can
  # and reports what is missing. "off" is no jail at all.
  sandbox = "enforce"

  # "deny": a command has no network outside its own call. "allow": as without a jail.
  network = "deny"

  # "keep": the HOME of commands is there again for later sessions with the same rights. "discard": it is
  # removed when the provider ends.
  home = "keep"

  # More paths that bash, but not the file tools, may read or write. Each must exist.
  bash_read  = []
  bash_write = []

  # "git": nobody but the operator changes the config and hooks that git outside obeys, in the roots' own
  # repositories. "none": commands and the file tools may.
  protect = "git"

  # If /bin/bash is missing, /bin/sh is used.
  shell = "/bin/bash"

  # Plain values for bash, such as { CI = "1" }. Never put a secret here: it would become part of the
  # configuration.
  env = {}

  # Names of variables that bash inherits from the provider's environment.
  env_passthrough = []

  # The same for secrets. Each must be set.
  secret_env = []

  bash_timeout_ms     = 120000
  bash_max_timeout_ms = 600000
  bash_output_bytes   = 16000

  # What all shell_read calls together may write before it is discarded, in bytes of memory.
  shell_read_layer_bytes = 2147483648

  # Resource limits of each bash call; only open_files has a default.
  limits = {
    # memory_bytes    = 4294967296
    # processes       = 512
    # file_size_bytes = 1073741824
    open_files = 4096
  }

  max_concurrent_calls = 64

  # Sessions (session_start): how many run at once, and after how long without a call that names it one is
  # ended.
  max_sessions    = 16
  session_idle_ms = 1800000

  # true: refuse to overwrite a file that the session has not read.
  read_before_write = false
}

agent_profile "default" {
  model {
    primary {
      provider = "MODEL_PROVIDER" # Replace: the name of a model's provider in required_providers.
      id       = "MODEL_ID"       # Replace: the model's own name.
    }
  }

  # A profile without this list has no tools.
  tools = ["workspace.*"]
}

# A profile for a sub-agent that only reads.
agent_profile "reader" {
  model {
    primary {
      provider = "MODEL_PROVIDER"
      id       = "MODEL_ID"
    }
  }

  tools = ["workspace.read_file", "workspace.grep", "workspace.glob"]
}

# What leaves all as it is runs: read_file, grep, glob, shell_read, session_read.
policy "workspace_reads" {
  match  = { provider = "workspace", kind = "data_source" }
  action = "allow"
}

# What may change something waits for a person's yes: edit_file, write_file, bash, session_start and others.
policy "workspace_changes" {
  match  = { provider = "workspace", kind = "resource" }
  action = "ask"
}

# Tells the provider when the session ends, so that it ends what session_start left running.
hook "session-end" {
  provider = "workspace"
  mode     = "observe"
}
