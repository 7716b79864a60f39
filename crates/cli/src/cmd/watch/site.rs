//! `--metrics`, `--web` and `--rate-report sse:`: what the small server answers.

use super::figures::Figures;
use super::metrics;
use super::thumbnail::Gallery;
use crate::failure::{Failure, Outcome};
use crate::process;
use braidcast_driver::http::{Answer, Hosts, Password, Server, Site};
use serde::Serialize;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Figures that a page gets when it is opened: ten minutes, one a second.
const HISTORY: usize = 600;
/// And these may wait for it besides; a reader that is slower than that loses some.
const MOST_WAITING: usize = 64;

const PAGE: &str = include_str!("web/page.html");
const SCRIPT: &str = include_str!("web/page.js");
const STYLE: &str = include_str!("web/style.css");
/// Charts: uPlot 1.6.32 (MIT), as it is released.
const CHARTS: &str = include_str!("web/uplot/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("web/uplot/uPlot.min.css");

/// Who reads lines as they come. One that is too slow loses some. Their number is bounded where they connect
/// (`braidcast_driver::http`).
#[derive(Default)]
struct Readers(Vec<SyncSender<Arc<str>>>);

impl Readers {
    /// Sends the line to everybody.
    fn tell(&mut self, line: &Arc<str>) {
        self.0.retain(|reader| !matches!(reader.try_send(Arc::clone(line)), Err(TrySendError::Disconnected(_))));
    }

    /// One more, who gets what was told before, `most` lines, and all that comes.
    fn add<'a>(&mut self, before: impl Iterator<Item = &'a Arc<str>>, most: usize) -> Answer {
        let (reader, events) = sync_channel(most + MOST_WAITING);
        for line in before {
            // There is room for all of it.
            let _ = reader.try_send(Arc::clone(line));
        }
        self.0.push(reader);
        Answer::Events(events)
    }
}

fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was told last, and who is to be told what comes next.
#[derive(Default)]
pub(crate) struct Hub(Mutex<State>);

#[derive(Default)]
struct State {
    latest: Option<Arc<Figures>>,
    history: VecDeque<Arc<str>>,
    readers: Readers,
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.0)
    }

    /// Sends the figures to everybody.
    pub(crate) fn publish(&self, figures: Figures) {
        let Ok(line) = serde_json::to_string(&figures) else { return };
        let line: Arc<str> = line.into();
        let mut state = self.state();
        if state.history.len() >= HISTORY {
            state.history.pop_front();
        }
        state.history.push_back(Arc::clone(&line));
        state.readers.tell(&line);
        state.latest = Some(Arc::new(figures));
    }

    /// The history, and all that comes.
    fn subscribe(&self) -> Answer {
        let State { history, readers, .. } = &mut *self.state();
        readers.add(history.iter(), HISTORY)
    }
}

/// Lines as they come, of which a new reader gets the latest.
#[derive(Default)]
pub(crate) struct Lines(Mutex<(Option<Arc<str>>, Readers)>);

impl Lines {
    /// Sends the line to everybody.
    pub(crate) fn publish(&self, line: &impl Serialize) {
        let Ok(line) = serde_json::to_string(line) else { return };
        let line: Arc<str> = line.into();
        let (latest, readers) = &mut *locked(&self.0);
        readers.tell(&line);
        *latest = Some(line);
    }

    /// The latest line, and all that come.
    fn subscribe(&self) -> Answer {
        let (latest, readers) = &mut *locked(&self.0);
        readers.add(latest.iter(), 1)
    }
}

/// What one address serves.
pub(crate) enum Pages {
    Lines(Arc<Lines>),
    Metrics(Arc<Hub>),
    Web(Arc<Hub>, Arc<Gallery>),
}

impl Site for Pages {
    fn answer(&self, path: &str, accept: &str) -> Answer {
        let document = |kind, text: &str| Answer::Document(kind, text.as_bytes().to_vec());
        match (self, path) {
            (Self::Metrics(hub), "/metrics") => {
                let latest = hub.state().latest.clone().unwrap_or_default();
                if accept.contains("application/openmetrics-text") {
                    return Answer::Document(metrics::OPEN_METRICS, metrics::open_metrics(&latest).into_bytes());
                }
                Answer::Document(metrics::CLASSIC, metrics::classic(&latest).into_bytes())
            }
            (Self::Web(..), "/") => document("text/html; charset=utf-8", PAGE),
            (Self::Web(..), "/page.js") => document("text/javascript; charset=utf-8", SCRIPT),
            (Self::Web(..), "/style.css") => document("text/css; charset=utf-8", STYLE),
            (Self::Web(..), "/uplot.js") => document("text/javascript; charset=utf-8", CHARTS),
            (Self::Web(..), "/uplot.css") => document("text/css; charset=utf-8", CHARTS_STYLE),
            (Self::Web(hub, _), "/events") => hub.subscribe(),
            (Self::Web(_, gallery), path) => {
                gallery.image(path).map_or(Answer::Nothing, |jpeg| Answer::Document("image/jpeg", jpeg))
            }
            (Self::Lines(lines), "/" | "/events") => lines.subscribe(),
            _ => Answer::Nothing,
        }
    }
}

/// Serves `pages` at `addr`, if need be to those who know `password`; `flag` asked for it.
pub(crate) fn serve(addr: SocketAddr, password: Option<Password>, pages: impl Site, flag: &str) -> Outcome<SocketAddr> {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let names = vec![format!("{node}.local"), node];
    // Capabilities belong to a thread, and those of the server need none: the port is bound.
    let server =
        Server::start(addr, Hosts::new(addr.ip(), names), password, pages, || process::drop_privileges().is_ok());
    let server = server.map_err(|error| {
        Failure::new(
            format!("cannot listen at {addr} for {flag}: {error}"),
            format!("choose another address for {flag}"),
        )
    })?;
    Ok(server.local_addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_takes_nothing_loses_lines_and_holds_up_nobody() {
        let hub = Hub::default();
        let Answer::Events(slow) = hub.subscribe() else { panic!("there is room") };
        for second in 0..2000 {
            hub.publish(Figures { uptime_seconds: f64::from(second), ..Figures::default() });
        }
        assert_eq!(slow.try_iter().count(), HISTORY + MOST_WAITING);
        assert_eq!(hub.state().history.len(), HISTORY);
        let Answer::Events(new) = hub.subscribe() else { panic!("there is room") };
        let first = new.try_recv().unwrap();
        assert!(first.contains("\"uptime_seconds\":1400.0"), "{first}");
        drop((slow, new));
        hub.publish(Figures::default());
        assert!(hub.state().readers.0.is_empty(), "who has gone is forgotten");
        let lines = Lines::default();
        lines.publish(&"before");
        let Answer::Events(late) = lines.subscribe() else { panic!("there is room") };
        (0..200).for_each(|n| lines.publish(&n));
        assert_eq!(late.try_iter().map(|it| it.to_string()).take(2).collect::<Vec<_>>(), ["\"before\"", "0"]);
        drop(late);
        lines.publish(&1);
        assert!(locked(&lines.0).1.0.is_empty(), "who has gone is forgotten");
    }
}
