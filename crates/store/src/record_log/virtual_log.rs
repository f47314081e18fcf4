//! A log of records on a virtual host's disk: the records themselves.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use world::{Env, VirtualDisk};

use super::record::{GENERATION_BYTES, Location, Record, bytes_of, gone};
use crate::Result;
use crate::synthetic::space;

type Records<R> = BTreeMap<u32, Vec<R>>;

struct State<R> {
    /// Not yet synced: a generation's records after its durable ones.
    tail: Records<R>,
    newest: u32,
    bytes: u32,
}

pub(super) struct VirtualLog<R: Record> {
    dir: PathBuf,
    durable: Rc<RefCell<Records<R>>>,
    state: RefCell<State<R>>,
}

impl<R: Record> VirtualLog<R> {
    pub(super) fn open(disk: &VirtualDisk, dir: &Path) -> VirtualLog<R> {
        let durable = disk.get::<Records<R>>(&format!("{}/records", dir.display()));
        let newest = durable.borrow().keys().next_back().map_or(1, |last| last + 1);
        let state = RefCell::new(State { tail: BTreeMap::new(), newest, bytes: 0 });
        VirtualLog { dir: dir.to_owned(), durable, state }
    }

    /// Shows every record; answers their bytes.
    pub(super) fn visit(&self, visit: &mut impl FnMut(Location, R)) -> u64 {
        let mut sum = 0;
        for (generation, records) in self.durable.borrow().iter() {
            for (number, record) in records.iter().enumerate() {
                let bytes = bytes_of(record);
                sum += u64::from(bytes);
                let location = Location { generation: *generation, offset: number as u32, bytes };
                visit(location, record.clone());
            }
        }
        sum
    }

    pub(super) fn take_space(&self, env: &Env, bytes: u64) -> Result<()> {
        space::take(env, &self.dir, bytes)
    }

    pub(super) fn append(&self, records: Vec<R>) -> Vec<Location> {
        let mut state = self.state.borrow_mut();
        if state.bytes >= GENERATION_BYTES {
            state.newest += 1;
            state.bytes = 0;
        }
        let generation = state.newest;
        let durable = self.durable.borrow().get(&generation).map_or(0, Vec::len);
        let State { tail, bytes: sum, .. } = &mut *state;
        let tail = tail.entry(generation).or_default();
        let mut locations = Vec::with_capacity(records.len());
        for record in records {
            let (offset, bytes) = ((durable + tail.len()) as u32, bytes_of(&record));
            *sum = sum.saturating_add(bytes);
            locations.push(Location { generation, offset, bytes });
            tail.push(record);
        }
        locations
    }

    /// How many records of each generation wait for a sync.
    pub(super) fn appended(&self) -> BTreeMap<u32, usize> {
        self.state
            .borrow()
            .tail
            .iter()
            .map(|(generation, tail)| (*generation, tail.len()))
            .collect()
    }

    pub(super) fn synced(&self, appended: BTreeMap<u32, usize>) {
        let mut state = self.state.borrow_mut();
        let mut durable = self.durable.borrow_mut();
        for (generation, count) in appended {
            let Some(tail) = state.tail.get_mut(&generation) else { continue };
            let count = count.min(tail.len());
            durable.entry(generation).or_default().extend(tail.drain(..count));
            if tail.is_empty() {
                state.tail.remove(&generation);
            }
        }
    }

    pub(super) fn read(&self, locations: &[Location]) -> Result<Vec<R>> {
        let (state, durable) = (self.state.borrow(), self.durable.borrow());
        let find = |location: &Location| {
            let records = durable.get(&location.generation);
            let at = location.offset as usize;
            let len = records.map_or(0, Vec::len);
            match at.checked_sub(len) {
                None => records?.get(at).cloned(),
                Some(at) => state.tail.get(&location.generation)?.get(at).cloned(),
            }
        };
        let one = |location| find(location).ok_or_else(|| gone(&self.dir, location.generation));
        locations.iter().map(one).collect()
    }

    pub(super) fn newest(&self) -> u32 {
        self.state.borrow().newest
    }

    pub(super) fn remove(&self, generation: u32) {
        if generation != self.newest() {
            self.durable.borrow_mut().remove(&generation);
            self.state.borrow_mut().tail.remove(&generation);
        }
    }
}
