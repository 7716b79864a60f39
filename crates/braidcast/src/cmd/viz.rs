//! `braidcast viz`: traces as one page.

use crate::args::{Common, VizArgs};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::{json, text};
use braidcast_core::events::{SctpEvent, TraceEvent};
use braidcast_trace::{QlogReader, ReadError};
use braidcast_viz::Exchange;
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Serialize)]
struct Document {
    pages: Vec<Page>,
}

#[derive(Serialize)]
struct Page {
    page: PathBuf,
    /// What it was made of.
    traces: Vec<PathBuf>,
    packets: usize,
}

/// Traces that share an association.
struct Group {
    association: Option<(u32, u32)>,
    traces: Vec<PathBuf>,
}

pub(super) fn run(args: &VizArgs, common: &Common) -> Outcome {
    let live = Live::new(common.quiet);
    let groups = group(&args.files)?;
    if groups.len() > 1 && args.out.is_some() {
        return Err(Failure::usage(
            format!("these traces are of {} associations, and each has a page of its own", groups.len()),
            "leave out --out, or give the traces of one association",
        ));
    }
    let mut pages = Vec::new();
    for group in groups {
        pages.push(show(group.traces, args, &live)?);
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

/// The two numbers of the first association in a trace, the same at both ends.
fn association(path: &Path) -> Outcome<Option<(u32, u32)>> {
    let mut reader = reader(path)?;
    while let Some(record) = reader.next_record().map_err(|e| failed(path, &e))? {
        match record.event {
            TraceEvent::Sctp(SctpEvent::Opened { local_tag, peer_tag }) => {
                return Ok(Some((local_tag.min(peer_tag), local_tag.max(peer_tag))));
            }
            TraceEvent::Dccp(_) => return Ok(Some((record.connection, record.connection))),
            _ => {}
        }
    }
    Ok(None)
}

/// Makes the page of one association.
fn show(traces: Vec<PathBuf>, args: &VizArgs, live: &Live) -> Outcome<Page> {
    let mut exchange = Exchange::default();
    for path in &traces {
        read(path, &mut exchange, live)?;
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
    let beside = beside.unwrap_or_default();
    let page = args.out.clone().unwrap_or(beside);
    let refused = |e: std::io::Error| {
        Failure::new(format!("cannot write {}: {e}", page.display()), "choose another file with --out")
    };
    let out = BufWriter::new(File::create(&page).map_err(refused)?);
    exchange.page(&title, out).map_err(refused)?;
    if args.open {
        open(&page, live);
    }
    Ok(Page { page, traces, packets })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn failed(path: &Path, error: &ReadError) -> Failure {
    let hint = match error {
        ReadError::Io(_) => "check the file's name",
        ReadError::Foreign(_) => "give a file that --trace wrote",
        ReadError::Record { .. } => "the lines before it are good: cut the file there (`head -n`)",
    };
    Failure::new(format!("cannot read {}: {error}", path.display()), hint)
}

fn reader(path: &Path) -> Outcome<QlogReader<BufReader<File>>> {
    let file = File::open(path).map_err(|e| failed(path, &e.into()))?;
    QlogReader::new(BufReader::with_capacity(1 << 18, file)).map_err(|e| failed(path, &e))
}

/// Takes what the trace in `path` tells.
fn read(path: &Path, exchange: &mut Exchange, live: &Live) -> Outcome {
    let mut reader = reader(path)?;
    let end = exchange.add_end(reader.vantage());
    while let Some(record) = reader.next_record().map_err(|e| failed(path, &e))? {
        exchange.take(end, &record);
    }
    if reader.is_cut_off() {
        live.warn(format!("{} breaks off within an event; showing what came before", path.display()));
    }
    if reader.unknown() > 0 {
        live.note(format!("{} has {} events of other kinds, which are left out", path.display(), reader.unknown()));
    }
    Ok(())
}

/// Has the desktop show the page. Where there is none, the user has its name.
fn open(page: &Path, live: &Live) {
    let mut browser = Command::new("xdg-open");
    browser.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = browser.spawn() {
        live.warn(format!("no browser could be opened (xdg-open: {error}); the page is {}", page.display()));
    }
}
