//! README shows the figures that are stored, and nothing else.

#[path = "../../benches/report/table.rs"]
mod table;

use table::{Figure, Report, with_tables};

use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_tables_of_readme_come_out_of_the_stored_figures_unchanged,
        a_figure_that_changes_changes_the_table_and_a_goal_is_judged,
        what_is_no_figure_is_told_from_one_that_is_broken,
    ]
}

fn of_the_repository(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn the_tables_of_readme_come_out_of_the_stored_figures_unchanged() {
    let stored = of_the_repository("docs/figures.tsv");
    let report = Report::parse(&stored).unwrap();
    assert!(!report.benches.is_empty());
    assert_eq!(report.to_string(), stored, "docs/figures.tsv was written by hand");
    let readme = of_the_repository("README.md");
    let shown = with_tables(&readme, &report).unwrap();
    assert!(shown == readme, "README is old: cargo bench --bench report -- --table");
}

fn a_figure_that_changes_changes_the_table_and_a_goal_is_judged() {
    let stored = |ratio: &str| {
        let figure = format!("figure\tstart\t2.5\tms\ta peer\t5.0\t{ratio}\tratio <= 0.5");
        Report::parse(&format!("bench\tx\t2026-01-01\tone\tcargo bench\n{figure}\n")).unwrap()
    };
    let readme = "a\n<!-- figures: written by `cargo bench --bench report` -->\nold\n\
                  <!-- figures: end -->\nb\n";
    let met = with_tables(readme, &stored("0.50")).unwrap();
    assert!(met.starts_with("a\n") && met.ends_with("\nb\n") && !met.contains("old"), "{met}");
    assert!(met.contains("| start | 2.5 ms | a peer, 5.0 ms | 0.50 | ≤ 0.5 × |"), "{met}");
    assert_eq!(with_tables(&met, &stored("0.50")).unwrap(), met);
    let missed = with_tables(readme, &stored("0.51")).unwrap();
    assert!(missed.contains("≤ 0.5 ×, **not met** |"), "{missed}");
    assert!(with_tables("no marks", &stored("0.5")).is_err());
}

fn what_is_no_figure_is_told_from_one_that_is_broken() {
    assert_eq!(Figure::parse("  plain  2.5 ms"), Ok(None));
    for broken in [
        "figure\tname\t1\tms",
        "figure\tname\tfast\tms\t-\t-\t-\t-",
        "figure\tname\t1\tms\t-\t-\t-\tratio < 2",
        "figure\ta|b\t1\tms\t-\t-\t-\t-",
    ] {
        assert!(Figure::parse(broken).is_err(), "{broken}");
    }
}
