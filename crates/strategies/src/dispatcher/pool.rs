//! Live changes of the pool: members, weights, drains.

use super::{Dispatcher, Options};
use crate::backends::{Backend, Backends, MAX_IDS, MAX_MEMBERS, MAX_WEIGHT, NewBackend};
use crate::registry::Spec;
use crate::replay::new_backend;
use crate::time::Time;
use crate::values::BackendId;
use schema::event::Member;
use std::collections::BTreeSet;

/// Why a change was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PoolError {
    /// No member has this id.
    #[error("no backend has the id {0}")]
    UnknownBackend(BackendId),
    /// A name that a member already has.
    #[error("backend name \"{0}\" is given twice; names are unique")]
    DuplicateName(String),
    /// An empty or overlong name.
    #[error("backend name must have 1 to 255 characters, got {0}")]
    BadName(usize),
    /// A weight out of bounds.
    #[error("weight must be between 1 and 65535, got {0}")]
    BadWeight(u32),
    /// Cores that are no positive number.
    #[error("cores must be above 0, got {0}")]
    BadCores(f64),
    /// Ids that do not grow, or too large ones.
    #[error("backend id {0} is out of order; ids grow with the position, up to 1048575")]
    BadId(BackendId),
    /// More members than the limit.
    #[error("a pool has at most 131072 backends")]
    TooMany,
    /// The strategy cannot serve this pool.
    #[error("{0}")]
    Refused(String),
    /// Something that needs an idle dispatcher.
    #[error("{0} dispatches are still open")]
    InFlight(usize),
}

/// Whether a member gets nothing new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    No,
    Yes,
}

pub(super) fn member_of(backend: &Backend) -> (BackendId, NewBackend, Drained) {
    let new = NewBackend {
        name: backend.name.to_string(),
        url: backend.url.to_string(),
        weight: backend.weight,
        cores: backend.cores,
        memory_mib: backend.memory_mib,
    };
    let drained = if backend.draining {
        Drained::Yes
    } else {
        Drained::No
    };
    (backend.id, new, drained)
}

pub(super) fn pool_of(
    members: &[(BackendId, NewBackend, Drained)],
    panic_percent: Option<u32>,
) -> Result<Backends, PoolError> {
    if members.len() > MAX_MEMBERS {
        return Err(PoolError::TooMany);
    }
    let mut backends = Backends::new(panic_percent);
    let mut names = BTreeSet::new();
    for (id, new, drained) in members {
        check(new)?;
        if !names.insert(new.name.as_str()) {
            return Err(PoolError::DuplicateName(new.name.clone()));
        }
        if id.0 >= MAX_IDS || id.index() < backends.ids_len() {
            return Err(PoolError::BadId(*id));
        }
        let mut backend = Backend::new(*id, new);
        backend.draining = *drained == Drained::Yes;
        backends.push(backend);
    }
    backends.relist();
    Ok(backends)
}

fn check(new: &NewBackend) -> Result<(), PoolError> {
    let length = new.name.chars().count();
    if !(1..=255).contains(&length) {
        return Err(PoolError::BadName(length));
    }
    check_weight(new.weight)?;
    if !(new.cores.is_finite() && new.cores > 0.0) {
        return Err(PoolError::BadCores(new.cores));
    }
    Ok(())
}

fn check_weight(weight: u32) -> Result<(), PoolError> {
    if (1..=MAX_WEIGHT).contains(&weight) {
        Ok(())
    } else {
        Err(PoolError::BadWeight(weight))
    }
}

impl Dispatcher {
    /// A dispatcher for members that have ids already, such as those of a log's first line.
    ///
    /// # Errors
    /// As for [`Dispatcher::new`]; ids that do not grow.
    pub fn from_members(
        spec: &Spec,
        members: &[Member],
        options: Options,
    ) -> Result<Self, PoolError> {
        let drained = |m: &Member| {
            if m.draining {
                Drained::Yes
            } else {
                Drained::No
            }
        };
        let members: Vec<_> = members
            .iter()
            .map(|m| (BackendId(m.id), new_backend(m), drained(m)))
            .collect();
        Self::with_ids(spec, &members, options)
    }

    /// The members as a log's first line lists them.
    pub fn members(&self) -> Vec<Member> {
        let member = |b: &Backend| Member {
            id: b.id.0,
            name: b.name.to_string(),
            url: b.url.to_string(),
            weight: b.weight,
            cores: b.cores,
            memory_mib: b.memory_mib,
            draining: b.draining,
        };
        self.backends.members().map(member).collect()
    }

    /// Adds a member, last in position order, with an id never given before.
    ///
    /// # Errors
    /// Bad values, a name in use, the limit of members or ids, a pool the strategy refuses.
    pub fn add(&mut self, now: Time, new: &NewBackend) -> Result<BackendId, PoolError> {
        check(new)?;
        if self.backends.members().any(|b| *b.name == *new.name) {
            return Err(PoolError::DuplicateName(new.name.clone()));
        }
        let id = BackendId(self.backends.ids_len() as u32);
        if id.0 >= MAX_IDS || self.backends.members().len() >= MAX_MEMBERS {
            return Err(PoolError::TooMany);
        }
        let mut after = self.backends.clone();
        after.push(Backend::new(id, new));
        after.relist();
        self.replace(now, after)?;
        self.warm_up(id, self.now);
        Ok(id)
    }

    /// Removes a member. Its late responses are still accounted to it, and to nobody else.
    ///
    /// # Errors
    /// No member has this id.
    pub fn remove(&mut self, now: Time, id: BackendId) -> Result<(), PoolError> {
        let now = self.advance(now);
        let backend = self.member(id)?;
        backend.member = false;
        backend.ejected_until = None;
        backend.reports = [None, None, None, None];
        self.told.forget(id);
        self.ejections.forget(now, id);
        self.keep_the_cap();
        self.changed(now);
        Ok(())
    }

    /// Sets a member's weight.
    ///
    /// # Errors
    /// No member has this id; the weight is out of bounds; a pool the strategy refuses.
    pub fn set_weight(&mut self, now: Time, id: BackendId, weight: u32) -> Result<(), PoolError> {
        check_weight(weight)?;
        self.member(id)?;
        let mut after = self.backends.clone();
        if let Some(backend) = after.get_mut(id) {
            backend.weight = weight;
        }
        self.replace(now, after)
    }

    /// Gives a member nothing new until it is undrained; what it holds may finish.
    ///
    /// # Errors
    /// No member has this id.
    pub fn drain(&mut self, now: Time, id: BackendId) -> Result<(), PoolError> {
        let now = self.advance(now);
        self.member(id)?.draining = true;
        self.changed(now);
        Ok(())
    }

    /// Ends a drain.
    ///
    /// # Errors
    /// No member has this id.
    pub fn undrain(&mut self, now: Time, id: BackendId) -> Result<(), PoolError> {
        let now = self.advance(now);
        self.member(id)?.draining = false;
        self.changed(now);
        Ok(())
    }

    /// Takes a changed pool if the strategy can serve it.
    fn replace(&mut self, now: Time, after: Backends) -> Result<(), PoolError> {
        self.spec
            .check(&after, &self.options.context)
            .map_err(PoolError::Refused)?;
        self.backends = after;
        let now = self.advance(now);
        self.changed(now);
        Ok(())
    }

    /// Rebuilds the lists and tells the strategy.
    pub(super) fn changed(&mut self, now: Time) {
        self.backends.relist();
        self.strategy.on_backends_changed(now, &self.backends);
    }

    /// Starts a backend's slow start, if that is on.
    pub(super) fn warm_up(&mut self, id: BackendId, now: Time) {
        let Some(backend) = self.backends.get_mut(id) else {
            return;
        };
        backend.warm_from = Some(now);
        if self.options.slow_start_ns.is_some() && !self.warming.contains(&id) {
            self.warming.push(id);
        }
    }
}
