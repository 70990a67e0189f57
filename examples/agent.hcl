# The provider's block in a kernel's agent.hcl. It works as it is: every key but `roots` may be left
# out, and what is not commented out is the default. What is commented out is an example.

provider "workspace" {
  # Folders that the tools may read and write. A relative one is taken from the kernel's own working
  # directory.
  roots = ["."]

  # Folders that the tools may read and never write; each must exist. The default is none.
  # read_only_roots = ["~/reference"]

  # "enforce" fails where the kernel of this machine cannot enforce file rights; "best_effort"
  # enforces what there is and says what is missing; "off" is no jail at all.
  sandbox = "enforce"

  # "deny": a command reaches nothing beyond its own call. "allow": as without a jail.
  network = "deny"

  # What bash, but not the file tools, may reach besides; each must exist. The default is none.
  # bash_read  = ["/opt/toolchain"]
  # bash_write = ["~/.cache/build"]

  shell = "/bin/bash"

  # Plain values for bash. Never put a secret here: it would be part of the configuration.
  # env = {
  #   CI = "1"
  # }

  # Variables that bash takes over from the provider's environment, by name.
  # env_passthrough = ["GOPATH"]

  # The same for secrets: each must be set, and its value is masked wherever it would show.
  # secret_env = ["GITHUB_TOKEN"]

  # The kernel sets these variables in the provider's environment; only here can a secret be named.
  # environment {
  #   GITHUB_TOKEN = env("GITHUB_TOKEN")
  #   GOPATH       = env("GOPATH")
  # }

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
