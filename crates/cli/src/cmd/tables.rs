//! What this machine's routing tables lack for a path, and the command that adds it.

use braidcast_driver::{Interfaces, Missing, Routing};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The main table.
pub(super) const MAIN: u32 = 254;

/// What is missing, in words that begin a sentence, and the command.
pub(super) struct Lack {
    pub(super) what: String,
    pub(super) command: String,
}

/// What packets from `local`, bound to `device`, lack to get to `remote`; `None` if a route leads there.
pub(super) fn lack(routing: &Routing, device: &str, local: IpAddr, remote: IpAddr) -> Option<Lack> {
    let six = if remote.is_ipv4() { "" } else { " -6" };
    match routing.missing(device, local, remote)? {
        Missing::Rule { table, mark } => {
            let only = mark.map_or_else(String::new, |mark| format!(": only packets with mark {mark} are led there"));
            let what =
                format!("the route from {device} to {remote} is in table {table}, and no rule leads there{only}");
            Some(Lack { what, command: format!("ip{six} rule add from {local} lookup {table}") })
        }
        Missing::Route { gateway } => {
            let router = gateway.map_or_else(|| "ROUTER".into(), |it| it.to_string());
            let table = free_table(routing);
            let command = format!(
                "ip{six} route add default via {router} dev {device} table {table} && ip{six} rule add from {local} lookup {table}"
            );
            Some(Lack { what: format!("no route leads from {device} to {remote}"), command })
        }
        _ => None,
    }
}

/// The same of this machine as it is now, for a path that leaves from `local`.
pub(super) fn lack_now(local: IpAddr, remote: IpAddr) -> Option<Lack> {
    let interfaces = Interfaces::list().ok()?;
    let (device, _) = interfaces.iter().find(|(_, addrs)| addrs.contains(&local))?;
    lack(&Routing::list().ok()?, device, local, remote)
}

/// A table that nothing is in, from 100 on.
fn free_table(routing: &Routing) -> u32 {
    let used: BTreeSet<u32> = routing.routes.iter().map(|it| it.table).collect();
    (100..MAIN).find(|table| !used.contains(table)).unwrap_or(100)
}
