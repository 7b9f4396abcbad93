//! The proxy's threads: one single-threaded runtime per core, all on one listening socket.

use super::forward::{Proxy, RequestIds};
use super::pool::Pool;
use crate::ask_first::Asker;
use crate::core::Core;
use crate::settings::Settings;
use gate::{Door, Ending, Room, block_on_one_thread};
use hyper::service::service_fn;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// How often idle upstream connections are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What every thread of the proxy gets.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) settings: Settings,
    /// Longest wait for answers before a pick.
    pub(crate) ask_first: Option<Duration>,
    pub(crate) ids: Arc<RequestIds>,
    pub(crate) trusted_peers: Arc<[IpAddr]>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// Starts `threads` threads that serve `listener` until `stop` turns true.
pub(crate) fn start(
    listener: &TcpListener,
    threads: usize,
    shared: &Shared,
) -> io::Result<Vec<JoinHandle<Ending>>> {
    let room = Room::new(shared.settings.max_connections);
    (0..threads)
        .map(|i| {
            let listener = listener.try_clone()?;
            let (shared, room) = (shared.clone(), Arc::clone(&room));
            std::thread::Builder::new()
                .name(format!("proxy-{i}"))
                .spawn(move || {
                    let served = block_on_one_thread(serve(listener, shared, room));
                    served.and_then(|served| served).unwrap_or_else(|e| {
                        tracing::error!("proxy thread: {e}");
                        Ending::Cut
                    })
                })
        })
        .collect()
}

async fn serve(listener: TcpListener, shared: Shared, room: Arc<Room>) -> io::Result<Ending> {
    let door = Door {
        listener: tokio::net::TcpListener::from_std(listener)?,
        room,
        clocks: shared.settings.clocks(),
        grace: shared.settings.grace,
        stop: shared.stop,
    };
    let asker = shared
        .ask_first
        .map(|wait| Asker::new(Arc::clone(&shared.core), wait))
        .transpose()
        .map_err(io::Error::other)?;
    let proxy = Rc::new(Proxy {
        asker,
        core: shared.core,
        settings: shared.settings,
        pool: Rc::new(Pool::default()),
        ids: shared.ids,
        trusted_peers: shared.trusted_peers,
    });
    let pool = Rc::clone(&proxy.pool);
    let sweeping = tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            pool.sweep();
        }
    });
    let ending = door.serve(|conn, peer| {
        let proxy = Rc::clone(&proxy);
        service_fn(move |request| {
            let refused = conn.begin();
            let (proxy, conn) = (Rc::clone(&proxy), Rc::clone(&conn));
            async move { Ok::<_, Infallible>(proxy.handle(request, peer, conn, refused).await) }
        })
    });
    let ending = ending.await;
    sweeping.abort();
    Ok(ending)
}
