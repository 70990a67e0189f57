//! `provider-workspace mcp` as a client of the Model Context Protocol sees it.

mod calls;
mod client;
mod faults;
mod listing;
mod roots;

use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    [calls::trials(), faults::trials(), listing::trials(), roots::trials()]
        .into_iter()
        .flatten()
        .collect()
}
