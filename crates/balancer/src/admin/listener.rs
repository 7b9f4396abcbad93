//! The admin listener: its connections are read by the same gate as the proxy's, with the same limits
//! of time and size for a head, and make room for each other in the same way.

use super::{Guard, Refused, router};
use crate::core::Core;
use crate::settings::{MAX_ADMIN_CONNECTIONS, Settings};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use gate::{Door, Ending, Exchange, Room, until_sent};
use hyper::service::{Service as _, service_fn};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A request must have come whole and be answered within this; streams may then go on.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Serves the admin routes until the stop.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    core: Arc<Core>,
    guard: Guard,
    settings: Settings,
    stop: watch::Receiver<bool>,
) -> std::io::Result<Ending> {
    let door = Door {
        listener: tokio::net::TcpListener::from_std(listener)?,
        room: Room::new(MAX_ADMIN_CONNECTIONS),
        clocks: settings.clocks(),
        grace: settings.grace,
        stop,
    };
    let routes = TowerToHyperService::new(router(core, guard));
    let ending = door.serve(|conn, _| {
        let routes = routes.clone();
        service_fn(move |request| {
            let refused = conn.begin();
            let exchange = Exchange(conn.clone());
            let routes = routes.clone();
            async move {
                let answer = match refused {
                    Some((status, reason)) => refuse(status, reason),
                    None => match tokio::time::timeout(ANSWER_LIMIT, routes.call(request)).await {
                        Ok(Ok(answer)) => answer,
                        Ok(Err(never)) => match never {},
                        Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "body_timeout"),
                    },
                };
                Ok::<_, Infallible>(answer.map(|body| until_sent(exchange, body)))
            }
        })
    });
    Ok(ending.await)
}

/// What is left of such a request cannot be told from the next one.
fn refuse(status: StatusCode, reason: &str) -> Response {
    let mut answer = Refused(status, reason.to_string()).into_response();
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(CONNECTION, close);
    answer
}
