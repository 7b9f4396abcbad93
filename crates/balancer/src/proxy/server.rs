//! Accepts connections: one single-threaded runtime per core, all on one listening socket.

use super::forward::{Proxy, RequestIds};
use super::gate::{Clocks, Conn, Gate};
use super::pool::Pool;
use crate::core::Core;
use crate::settings::{MAX_CONNECTIONS, Settings};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

/// How often idle upstream connections are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What every thread of the proxy gets.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) settings: Settings,
    pub(crate) ids: Arc<RequestIds>,
    pub(crate) trusted_peers: Arc<[IpAddr]>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// Whether every request was finished when the proxy stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Finished,
    Cut,
}

/// Starts `threads` threads that serve `listener` until `stop` turns true.
pub(crate) fn start(
    listener: &TcpListener,
    threads: usize,
    shared: &Shared,
) -> io::Result<Vec<JoinHandle<Ending>>> {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    (0..threads)
        .map(|i| {
            let listener = listener.try_clone()?;
            let (shared, permits) = (shared.clone(), Arc::clone(&permits));
            std::thread::Builder::new()
                .name(format!("proxy-{i}"))
                .spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build();
                    match runtime {
                        Ok(runtime) => {
                            LocalSet::new().block_on(&runtime, serve(listener, shared, permits))
                        }
                        Err(e) => {
                            tracing::error!("proxy thread: {e}");
                            Ending::Cut
                        }
                    }
                })
        })
        .collect()
}

async fn serve(listener: TcpListener, shared: Shared, permits: Arc<Semaphore>) -> Ending {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(e) => {
            tracing::error!("proxy thread: {e}");
            return Ending::Cut;
        }
    };
    let proxy = Rc::new(Proxy {
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
    let mut stop = shared.stop;
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &permits) => accepted,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                let (proxy, stop) = (Rc::clone(&proxy), stop.clone());
                connections.spawn_local(async move {
                    connection(stream, peer.ip(), proxy, stop).await;
                    drop(permit);
                });
            }
            Err(e) => {
                // Out of descriptors, most likely: give running requests time to free some.
                tracing::warn!("cannot accept: {e}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    sweeping.abort();
    let all_done = async { while connections.join_next().await.is_some() {} };
    match tokio::time::timeout(proxy.settings.grace, all_done).await {
        Ok(()) => Ending::Finished,
        Err(_) => Ending::Cut,
    }
}

async fn accept(
    listener: &tokio::net::TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(
    tokio::net::TcpStream,
    std::net::SocketAddr,
    tokio::sync::OwnedSemaphorePermit,
)> {
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, peer, permit))
}

async fn connection(
    stream: tokio::net::TcpStream,
    peer: std::net::IpAddr,
    proxy: Rc<Proxy>,
    mut stop: watch::Receiver<bool>,
) {
    let settings = &proxy.settings;
    let clocks = Clocks {
        head: settings.head,
        keep_alive: settings.client_idle,
        write_idle: settings.body_idle,
    };
    let conn = Rc::new(Conn::default());
    let gate = Gate::new(stream, Rc::clone(&conn), clocks, Instant::now());
    let peer = peer.to_canonical();
    let service = service_fn(move |request| {
        let refused = conn.begin();
        let (proxy, conn) = (Rc::clone(&proxy), Rc::clone(&conn));
        async move { Ok::<_, Infallible>(proxy.handle(request, peer, conn, refused).await) }
    });
    let mut http = http1::Builder::new();
    // The gate keeps this clock, and bounds heads, with answers of its own.
    http.header_read_timeout(None);
    let serving = http.serve_connection(TokioIo::new(gate), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        _ = stop.wait_for(|stop| *stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(e) = ended {
        // What became of its requests is counted by their receipts.
        tracing::debug!("client connection: {e}");
    }
}
