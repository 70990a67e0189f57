//! What an operator should think twice about: roots that give more away than a project.

use std::path::{Path, PathBuf};

use workspace_fs::Workspace;
use workspace_tools::process::outside;

use crate::config::HostEnv;

/// Of the roots that may be written, one sentence for each that is more than a project's directory.
pub(crate) fn of_roots(
    workspace: &Workspace,
    host_env: &HostEnv,
    state: Option<&Path>,
) -> Vec<String> {
    let variable = |name: &str| host_env.variables.get(std::ffi::OsStr::new(name));
    let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let search_path = variable("PATH").map(std::env::split_paths).into_iter().flatten();
    let search_path: Vec<PathBuf> = search_path.filter(|entry| entry.is_absolute()).collect();
    let program = std::env::current_exe().ok();
    let mut warnings = Vec::new();
    for root in workspace.roots() {
        let root = root.path();
        let shown = root.display();
        let holds = |path: &Path| path.starts_with(root);
        if let Some(home) = home.as_deref().filter(|home| holds(home)) {
            let what = if home == root { "is" } else { "holds" };
            warnings.push(format!(
                "the root {shown} {what} the home directory: keys and tokens in it, such as ~/.ssh, \
                 can be read and changed; name the project's directory instead"
            ));
        }
        if let Some(entry) = search_path.iter().find(|entry| holds(entry)) {
            warnings.push(format!(
                "PATH names {}, in the root {shown}: a program that is written there runs outside the \
                 jail when someone types its name; leave it out of the roots or out of PATH",
                entry.display()
            ));
        }
        let own = [("program", program.as_deref()), ("state", state)];
        for (what, path) in own {
            if let Some(path) = path.filter(|path| holds(path)) {
                warnings.push(format!(
                    "the provider's own {what}, {}, lies in the root {shown}, where commands can \
                     change it; keep it outside the roots",
                    path.display()
                ));
            }
        }
        if let Some(owner) = foreign_owner(root) {
            warnings.push(format!(
                "the root {shown} belongs to another user (uid {owner}): what that user puts there is \
                 run with this one's rights"
            ));
        }
    }
    warnings
}

/// What the provider's own user means for the jail.
pub(crate) fn of_user() -> Option<String> {
    rustix::process::geteuid().is_root().then(|| {
        "the provider runs as root: what the jail leaves open is open to root; an ordinary user can do \
         less"
            .to_owned()
    })
}

/// Who owns a root, if it is somebody else.
fn foreign_owner(root: &Path) -> Option<u32> {
    let owner = outside::owner(root).ok()?;
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}
