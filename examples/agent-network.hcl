# With the network: commands may fetch packages and call services. Nothing else is opened.

required_providers {
  # The blocks below call the provider by this name.
  workspace = {
    source  = "github.com/OWNER/provider-workspace" # Replace OWNER.
    version = "~> 0.1"
  }
}

provider "workspace" {
  roots   = ["."]
  network = "allow"

  # Name a secret here but never write its value: the host takes the value from its own environment, and
  # the provider masks it wherever it would show.
  secret_env = ["REGISTRY_TOKEN"]

  environment {
    REGISTRY_TOKEN = env("REGISTRY_TOKEN")
  }
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
