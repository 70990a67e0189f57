//! Any bytes as a call: they are read, checked against the tool's schema, and refused with a message.

use tonic::Code;

use super::requests::ask;

pub(super) fn body(data: &[u8]) {
    // A provider that is not configured checks the arguments and does no more.
    let status = ask("Preview", data).expect("nothing can be previewed without a root");
    let known = [Code::InvalidArgument, Code::NotFound, Code::PermissionDenied];
    assert!(known.contains(&status.code()), "{status:?}");
    // The same bytes mean the same.
    let again = ask("Preview", data).expect("nothing can be previewed without a root");
    assert_eq!((status.code(), status.message()), (again.code(), again.message()));
}
