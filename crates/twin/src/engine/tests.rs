use super::{Engine, Watch};
use crate::station::Station;

pub(super) fn spoil<S: Station, W: Watch>(_: &mut Engine<'_, S, W>) {}
