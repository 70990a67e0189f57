# The provider's block in a host's agent.hcl: three common setups, then every key. An agent has one of these
# blocks. Each works as written, once the directories that it names exist.

# 1. One project. Tools read and write the directory in which the host runs. Commands may also read what
#    they need to run: system directories and toolchains.
provider "workspace" {
  roots = ["."]
}

# 2. A project and its dependencies. The file tools and commands can read and search the directories
#    below, and never change them.
provider "workspace" {
  roots           = ["."]
  read_only_roots = ["~/src/library", "~/src/handbook"]

  # Commands may write a cache that other projects share. The file tools do not see it.
  bash_write = ["~/.cache/build"]
}

# 3. With the network: commands may fetch packages and call services. Nothing else is opened.
#    Name a secret here but never write its value: the host takes the value from its own environment,
#    and the provider masks it wherever it would show.
provider "workspace" {
  roots      = ["."]
  network    = "allow"
  secret_env = ["REGISTRY_TOKEN"]

  environment {
    REGISTRY_TOKEN = env("REGISTRY_TOKEN")
  }
}

# Every key, with its default unless it is commented out. Only `roots` is required.
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

  # More paths that bash, but not the file tools, may read or write. Each must exist.
  bash_read  = []
  bash_write = []

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
  bash_output_bytes   = 30000

  # Resource limits of each bash call; only open_files has a default.
  limits = {
    # memory_bytes    = 4294967296
    # processes       = 512
    # file_size_bytes = 1073741824
    open_files = 4096
  }

  max_concurrent_calls = 64

  # true: refuse to overwrite a file that the session has not read.
  read_before_write = false
}
