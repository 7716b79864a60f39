//! Ctrl-C during work that waits for no network.

#[cfg(target_os = "linux")]
pub(super) use braidcast_driver::interrupt_flag;

/// A flag that Ctrl-C and SIGTERM set; the second one ends the process.
#[cfg(not(target_os = "linux"))]
pub(super) fn interrupt_flag() -> std::io::Result<std::sync::Arc<std::sync::atomic::AtomicBool>> {
    use signal_hook::consts::signal::{SIGINT, SIGTERM};
    let seen = std::sync::Arc::default();
    for signal in [SIGINT, SIGTERM] {
        // In this order, so that the first one does not meet the flag that it sets itself.
        signal_hook::flag::register_conditional_shutdown(signal, 1, std::sync::Arc::clone(&seen))?;
        signal_hook::flag::register(signal, std::sync::Arc::clone(&seen))?;
    }
    Ok(seen)
}
