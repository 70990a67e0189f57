//! The ports on which a session listens, in words.

/// How many are named.
const MOST: usize = 6;

/// "port 5173", "ports 3000 and 5173" and so on. `None` where there is none.
pub(crate) fn listed(ports: &[u16]) -> Option<String> {
    let named: Vec<String> = ports.iter().take(MOST).map(u16::to_string).collect();
    match (named.as_slice(), ports.len() > MOST) {
        ([], _) => None,
        ([port], _) => Some(format!("port {port}")),
        (_, true) => Some(format!("ports {} and others", named.join(", "))),
        ([first @ .., last], false) => Some(format!("ports {} and {last}", first.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named() {
        assert_eq!(listed(&[]), None);
        assert_eq!(listed(&[80]).as_deref(), Some("port 80"));
        assert_eq!(listed(&[80, 81, 82]).as_deref(), Some("ports 80, 81 and 82"));
        let many = listed(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(many.as_deref(), Some("ports 1, 2, 3, 4, 5, 6 and others"));
    }
}
