//! What the front ends run: the table "What front ends run" of `docs/architecture.md` is what they
//! are held to, each by a test beside it. Crates of other workspaces have this file as a module.

/// Compares what a front end runs with its row. `$options`: of `braidcast_sctp`. `$redundancy`: what
/// it sends without being told, which a session decides above them.
#[macro_export]
macro_rules! assert_runs_as_documented {
    ($front_end:expr, $options:expr, $redundancy:expr) => {{
        let (options, redundancy) = (&$options, $redundancy);
        let queue = options.queue.method.map_or_else(|| "none".to_owned(), |it| it.to_string());
        let reinjects = if options.redundancy.reinject { "yes" } else { "no" };
        let (scheduler, congestion) = (options.paths.scheduler.to_string(), options.congestion.algorithm.to_string());
        let runs = [scheduler, congestion, queue, reinjects.to_owned(), redundancy.to_string()];
        assert_eq!(runs, $crate::front_ends::documented_row($front_end), "{}", $front_end);
    }};
}

/// The row of a front end: scheduler, congestion control, queue, reinjection, redundancy.
///
/// # Panics
/// If there is no such row, or it has another form.
#[must_use]
pub fn documented_row(front_end: &str) -> [String; 5] {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/architecture.md");
    let text = std::fs::read_to_string(path).expect(path);
    let (_, section) = text.split_once("\n### What front ends run\n").expect("the section");
    let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows = table.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let row = rows.skip(2).find(|row| row[0].split(", ").any(|it| it == front_end));
    let row = row.unwrap_or_else(|| panic!("{path} does not say what {front_end} runs"));
    let cells: Vec<_> = row[1..].iter().map(|cell| cell.trim_matches('`').to_owned()).collect();
    cells.try_into().unwrap_or_else(|cells| panic!("{front_end}: five columns, not {cells:?}"))
}
