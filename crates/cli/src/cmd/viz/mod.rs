//! `braidcast viz`: traces as one page.

mod input;

use crate::args::{Common, VizArgs};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::{json, text};
use braidcast_trace::FlowName;
use braidcast_viz::Exchange;
use input::{Association, association, name, read};
use serde::Serialize;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Stdio;

#[derive(Serialize)]
struct Document {
    pages: Vec<Page>,
}

#[derive(Serialize)]
pub(super) struct Page {
    pub(super) page: PathBuf,
    /// What it was made of.
    traces: Vec<PathBuf>,
    packets: usize,
}

/// Traces that share an association.
struct Group {
    association: Option<Association>,
    traces: Vec<PathBuf>,
}

pub(super) fn run(args: &VizArgs, common: &Common) -> Outcome {
    let live = Live::new(common.quiet);
    let groups = group(&args.files)?;
    if groups.len() > 1 && (args.out.is_some() || args.perfetto.is_some()) {
        return Err(Failure::usage(
            format!("these traces are of {} associations, and each has a page of its own", groups.len()),
            "leave out --out and --perfetto, or give the traces of one association",
        ));
    }
    let mut pages = Vec::new();
    for group in groups {
        let form = match &args.perfetto {
            Some(path) => Form::Perfetto(path),
            None => Form::Page(args.out.as_deref()),
        };
        let page = show(group.traces, form, args.flow.as_ref(), &live)?;
        if args.open {
            open(&page.page, &live);
        }
        pages.push(page);
    }
    if common.json {
        json::print("viz", &Document { pages })?;
    } else if !common.quiet {
        pages.iter().try_for_each(|it| text::print(&it.page.display().to_string()))?;
    }
    Ok(())
}

/// Which of the traces belong together.
fn group(files: &[PathBuf]) -> Outcome<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for path in files {
        let association = association(path)?;
        match groups.iter_mut().find(|it| it.association.is_some() && it.association == association) {
            Some(group) if group.traces.len() < 2 => group.traces.push(path.clone()),
            Some(group) => {
                let names: Vec<_> = group.traces.iter().chain([path]).map(|path| name(path)).collect();
                return Err(Failure::usage(
                    format!("{} are of the same association, which has two ends", names.join(", ")),
                    "leave one out",
                ));
            }
            None => groups.push(Group { association, traces: vec![path.clone()] }),
        }
    }
    Ok(groups)
}

/// What is made.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    /// A page here, or beside the first trace.
    Page(Option<&'a Path>),
    /// Chrome's trace format.
    Perfetto(&'a Path),
}

/// Shows one association. `flow`: which of a simulator's.
pub(super) fn show(traces: Vec<PathBuf>, form: Form<'_>, flow: Option<&FlowName>, live: &Live) -> Outcome<Page> {
    let mut exchange = Exchange::default();
    let mut simulated = true;
    for path in &traces {
        simulated &= read(path, &mut exchange, flow, live)?;
    }
    if simulated {
        exchange.share_clock();
    }
    let names: Vec<_> = traces.iter().map(|path| name(path)).collect();
    let title = names.join(" and ");
    if exchange.is_empty() {
        return Err(Failure::new(
            format!("there is nothing to show in {title}"),
            "give the trace of a command that had a connection",
        ));
    }
    let packets = exchange.len();
    let beside = traces.first().map(|path| {
        let mut name = path.clone().into_os_string();
        name.push(".html");
        PathBuf::from(name)
    });
    let (page, flag) = match form {
        Form::Page(page) => (page.map(Path::to_owned).or(beside).unwrap_or_default(), "--out"),
        Form::Perfetto(path) => (path.to_owned(), "--perfetto"),
    };
    let refused = |e: std::io::Error| {
        Failure::new(format!("cannot write {}: {e}", page.display()), format!("choose another file with {flag}"))
    };
    let out = BufWriter::new(File::create(&page).map_err(refused)?);
    match form {
        Form::Page(_) => exchange.page(&title, out),
        Form::Perfetto(_) => exchange.perfetto(&title, out),
    }
    .map_err(refused)?;
    Ok(Page { page, traces, packets })
}

/// Has the desktop show the page. If there is none, the user has its name.
pub(super) fn open(page: &Path, live: &Live) {
    let mut browser = crate::process::command("xdg-open");
    browser.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = browser.spawn() {
        live.warn(format!("no browser could be opened (xdg-open: {error}); the page is {}", page.display()));
    }
}
