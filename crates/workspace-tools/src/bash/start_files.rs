//! Shells that read files of HOME before a command. An earlier command may have written these.

use std::ffi::OsStr;
use std::path::Path;

/// The option that keeps a shell from reading files of HOME before it runs `-c`. `None` where it reads none
/// then, as bash, dash and other shells of the POSIX kind.
pub(super) fn without(shell: &Path) -> Option<&'static OsStr> {
    let option = match shell.file_name()?.to_str()? {
        // ~/.zshenv
        "zsh" => "-f",
        // ~/.config/fish/config.fish
        "fish" => "--no-config",
        // ~/.cshrc, ~/.tcshrc
        "csh" | "tcsh" => "-f",
        _ => return None,
    };
    Some(OsStr::new(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shells_that_read_files_get_an_option() {
        let option = |shell: &str| without(Path::new(shell)).and_then(OsStr::to_str);
        assert_eq!(option("/usr/bin/zsh"), Some("-f"));
        assert_eq!(option("/usr/bin/fish"), Some("--no-config"));
        assert_eq!(option("/bin/tcsh"), Some("-f"));
        assert_eq!(option("/bin/bash"), None);
        assert_eq!(option("/bin/sh"), None);
    }
}
