# Read by the host that runs in this directory.

required_providers {
  # The blocks below call the provider by this name.
  workspace = {
    source  = "github.com/OWNER/provider-workspace" # Replace OWNER.
    version = "~> 0.1"
  }
}

provider "workspace" {
  # Directories that the tools may use, and nothing else. A relative one starts where the host runs.
  roots = ["."]
}

agent_profile "default" {
  model {
    primary {
      provider = "MODEL_PROVIDER" # Replace: the name of a model's provider in required_providers.
      id       = "MODEL_ID"       # Replace: the model's own name.
    }
  }

  # A profile without this list has no tools. A single one is "workspace.read_file".
  tools = ["workspace.*"]
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
