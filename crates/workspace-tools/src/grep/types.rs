//! The argument `type`: ripgrep's names of file types, and what else languages are called.

use std::borrow::Cow;

use crate::wildcards;
use tool_provider::ToolError;
use workspace_fs::tree::Selection;

/// What languages are called that ripgrep calls otherwise, in lower case.
const CALLED: &[(&str, &str)] = &[
    ("assembler", "asm"),
    ("assembly", "asm"),
    ("bash", "sh"),
    ("c#", "csharp"),
    ("c++", "cpp"),
    ("coffee", "coffeescript"),
    ("common-lisp", "lisp"),
    ("commonlisp", "lisp"),
    ("cplusplus", "cpp"),
    ("cxx", "cpp"),
    ("docker-compose", "dockercompose"),
    ("dockerfile", "docker"),
    ("emacs-lisp", "elisp"),
    ("f#", "fsharp"),
    ("golang", "go"),
    ("handlebars", "hbs"),
    ("javascript", "js"),
    ("jsx", "js"),
    ("latex", "tex"),
    ("makefile", "make"),
    ("objc++", "objcpp"),
    ("objective-c", "objc"),
    ("objective-c++", "objcpp"),
    ("objectivec", "objc"),
    ("plaintext", "txt"),
    ("purescript", "purs"),
    ("python3", "py"),
    ("restructuredtext", "rst"),
    ("scss", "sass"),
    ("shell", "sh"),
    ("systemverilog", "sv"),
    ("terraform", "tf"),
    ("text", "txt"),
    ("tsx", "ts"),
    ("vb.net", "vb"),
    ("visualbasic", "vb"),
    ("yml", "yaml"),
];

/// Selects the files of the types that an argument names: one, several between commas, or a list in JSON.
///
/// # Errors
/// `invalid_arguments` for a name of no type.
pub(super) fn select(selection: Selection, text: &str) -> Result<Selection, ToolError> {
    let listed = wildcards::json_list(text);
    let given = match &listed {
        Some(list) => list.iter().map(String::as_str).collect(),
        None => text.split(',').collect::<Vec<_>>(),
    };
    let names: Vec<&str> = given.into_iter().map(str::trim).collect();
    let known: Vec<Cow<'_, str>> = names.iter().map(|name| ripgreps(name)).collect();
    selection.with_types(&known).map_err(|unknown| unknown_type(names[unknown]))
}

/// What ripgrep calls a type.
fn ripgreps(name: &str) -> Cow<'_, str> {
    // Names of types are short; what is longer is refused as it came.
    if name.len() > LONGEST_NEAR {
        return name.into();
    }
    let name = name.to_lowercase();
    match CALLED.iter().find(|(called, _)| *called == name) {
        Some((_, known)) => (*known).into(),
        None => name.into(),
    }
}

/// How many similar type names are suggested, and how long a name may be to get a suggestion. To
/// compare takes time and memory by both their lengths.
const NEAR: usize = 3;
const LONGEST_NEAR: usize = 32;

fn unknown_type(name: &str) -> ToolError {
    let may_be_near = name.len() <= LONGEST_NEAR;
    let mut near: Vec<(usize, String)> = Selection::type_names()
        .into_iter()
        .filter(|_| may_be_near)
        .map(|known| (strsim::damerau_levenshtein(&name.to_lowercase(), &known), known))
        .filter(|(distance, known)| *distance <= 2 || known.starts_with(name))
        .collect();
    near.sort();
    // A file's ending, which is what everybody tries first, says more than likeness.
    let of_ending = Selection::types_of_ending(name.trim_start_matches('.'));
    let alike = near.into_iter().map(|(_, known)| known).filter(|known| !of_ending.contains(known));
    let near: Vec<String> = of_ending.iter().cloned().chain(alike).take(NEAR).collect();
    let shown: String = name.chars().take(64).collect();
    let error =
        ToolError::invalid_arguments(format!("type {:?} is no file type of ripgrep's", shown));
    if near.is_empty() {
        return error.with_hint("use glob instead, such as *.rs");
    }
    error.with_hint(format!("did you mean {}?", near.join(" or "))).with_detail("similar", near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use workspace_fs::tree::IgnoreRules;

    fn selected(text: &str) -> Result<Selection, ToolError> {
        select(Selection::new(IgnoreRules::Honour), text)
    }

    #[test]
    fn what_a_language_is_called_is_no_type_and_means_one() {
        let types = Selection::type_names();
        for (called, known) in CALLED {
            assert!(types.iter().any(|name| name == known), "{known}");
            assert!(!types.iter().any(|name| name == called), "{called}");
            assert_eq!(*called, called.to_lowercase());
            assert!(selected(called).is_ok(), "{called}");
        }
    }

    #[test]
    fn several_types_are_each_looked_up() {
        for several in ["python,ts", "Python, C++", r#"["golang", "rust"]"#, "all"] {
            assert!(selected(several).is_ok(), "{several}");
        }
        for (several, wrong) in [("py,pyhton", "pyhton"), (r#"["go", "gp"]"#, "gp"), ("py,", "")] {
            let error = selected(several).err().unwrap();
            let named = format!("type {wrong:?} is no file type of ripgrep's");
            assert_eq!(error.message(), named, "{several}");
        }
    }
}
