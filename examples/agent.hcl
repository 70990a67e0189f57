# The provider's block in a kernel's agent.hcl: the three usual setups, then every key. An agent has one of
# these blocks; each works as it is, once the folders that it names are there.

# 1. One project. Tools read and write the folder that the kernel runs in, and nothing else of the
#    machine but what commands need to run: system folders and toolchains, to be read.
provider "workspace" {
  roots = ["."]
}

# 2. A project and what it depends on. The folders below can be read and searched, by the file tools
#    and by commands, and never be changed.
provider "workspace" {
  roots           = ["."]
  read_only_roots = ["~/src/library", "~/src/handbook"]

  # Commands may write a cache that other projects share; the file tools do not see it.
  bash_write = ["~/.cache/build"]
}

# 3. The network allowed: commands may fetch packages and call services. Nothing else is opened.
#    A secret is named here and never written here: the kernel takes it from its own environment, and
#    its value is masked wherever it would show.
provider "workspace" {
  roots      = ["."]
  network    = "allow"
  secret_env = ["REGISTRY_TOKEN"]

  environment {
    REGISTRY_TOKEN = env("REGISTRY_TOKEN")
  }
}

# Every key. What is not commented out is the default; `roots` is the only one that must be there.
provider "workspace" {
  # Folders that the tools may read and write. A relative one is taken from the kernel's own working
  # directory.
  roots = ["."]

  # Folders that the tools may read and never write; each must exist.
  read_only_roots = []

  # "enforce" fails where the kernel of this machine cannot enforce file rights; "best_effort"
  # enforces what there is and says what is missing; "off" is no jail at all.
  sandbox = "enforce"

  # "deny": a command reaches nothing beyond its own call. "allow": as without a jail.
  network = "deny"

  # What bash, but not the file tools, may reach besides; each must exist.
  bash_read  = []
  bash_write = []

  # Where it is missing, /bin/sh takes its place.
  shell = "/bin/bash"

  # Plain values for bash, such as { CI = "1" }. Never put a secret here: it would be part of the
  # configuration.
  env = {}

  # Variables that bash takes over from the provider's environment, by name.
  env_passthrough = []

  # The same for secrets: each must be set.
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

  # true: overwriting a file that the session has not read is refused.
  read_before_write = false
}
