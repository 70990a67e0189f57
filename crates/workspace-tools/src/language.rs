//! Which language a file is written in, for highlighting.

/// The language's usual short name, by the file's name, quoted or not.
pub(super) fn language_of(path: &str) -> Option<&'static str> {
    let path = path.strip_suffix('"').unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        "Makefile" | "makefile" | "GNUmakefile" => return Some("makefile"),
        "Dockerfile" | "Containerfile" => return Some("dockerfile"),
        "CMakeLists.txt" => return Some("cmake"),
        "Cargo.lock" => return Some("toml"),
        _ => {}
    }
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "bash" | "sh" | "zsh" => "bash",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => "cpp",
        "clj" => "clojure",
        "cs" => "csharp",
        "css" => "css",
        "dart" => "dart",
        "diff" | "patch" => "diff",
        "ex" | "exs" => "elixir",
        "erl" => "erlang",
        "go" => "go",
        "graphql" => "graphql",
        "hcl" | "tf" => "hcl",
        "hs" => "haskell",
        "htm" | "html" => "html",
        "ini" | "cfg" => "ini",
        "java" => "java",
        "cjs" | "js" | "mjs" => "javascript",
        "jsx" => "jsx",
        "json" | "jsonl" => "json",
        "jl" => "julia",
        "kt" | "kts" => "kotlin",
        "lua" => "lua",
        "markdown" | "md" => "markdown",
        "ml" | "mli" => "ocaml",
        "nix" => "nix",
        "php" => "php",
        "pl" | "pm" => "perl",
        "proto" => "protobuf",
        "ps1" => "powershell",
        "py" | "pyi" => "python",
        "r" => "r",
        "rb" => "ruby",
        "rs" => "rust",
        "scala" => "scala",
        "scss" => "scss",
        "sql" => "sql",
        "svelte" => "svelte",
        "swift" => "swift",
        "toml" => "toml",
        "ts" | "mts" | "cts" => "typescript",
        "tsx" => "tsx",
        "vue" => "vue",
        "svg" | "xml" => "xml",
        "yaml" | "yml" => "yaml",
        "zig" => "zig",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_then_by_ending() {
        assert_eq!(language_of("/w/src/main.rs"), Some("rust"));
        assert_eq!(language_of("a/Makefile"), Some("makefile"));
        assert_eq!(language_of("A.PY"), Some("python"));
        assert_eq!(language_of("\"a\\377.rs\""), Some("rust"));
        assert_eq!(language_of("src.rs/noextension"), None);
        assert_eq!(language_of(""), None);
    }
}
