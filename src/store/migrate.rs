//! Bringing a store of an older version up to today's: every value, in one commit.

use super::error::StoreError;
use super::records::RECORD_VERSION;
use super::records::upgrade::upgrade;
use super::tables::{DEVICES, DROPS, EVENTS, JOBS, LEASES, META, Numbered, SUBMISSIONS, database, record};
use redb::{Database, Durability, ReadableTable, TableHandle, WriteTransaction};
use std::path::Path;

const DOING: &str = "upgrade";

/// Upgrades all values from `version`. All or nothing.
pub(super) fn migrate(path: &Path, db: &Database, version: u32) -> Result<(), StoreError> {
    let mut txn = db.begin_write().map_err(database(path, DOING))?;
    txn.set_durability(Durability::Immediate).map_err(database(path, DOING))?;
    txn.set_quick_repair(true);
    for table in [EVENTS, JOBS, LEASES, SUBMISSIONS, DROPS] {
        upgrade_numbered(path, &txn, table, version)?;
    }
    upgrade_devices(path, &txn, version)?;
    txn.open_table(META)
        .map_err(database(path, DOING))?
        .insert("record_version", RECORD_VERSION.to_string().as_str())
        .map_err(database(path, DOING))?;
    txn.commit().map_err(database(path, DOING))
}

/// Replaces every value in place, one at a time, so that a long log is never in memory as a whole.
fn upgrade_numbered(
    path: &Path,
    txn: &WriteTransaction,
    definition: Numbered,
    version: u32,
) -> Result<(), StoreError> {
    let mut table = txn.open_table(definition).map_err(database(path, DOING))?;
    let mut from = 0;
    loop {
        let (id, value) = {
            let mut rows = table.range(from..).map_err(database(path, DOING))?;
            let Some(row) = rows.next() else { return Ok(()) };
            let (id, bytes) = row.map_err(database(path, DOING))?;
            let id = id.value();
            let value = upgrade(version, definition.name(), bytes.value());
            (id, value.map_err(record(path, "value of an older version:", &id))?)
        };
        table.insert(id, value.as_slice()).map_err(database(path, DOING))?;
        let Some(next) = id.checked_add(1) else { return Ok(()) };
        from = next;
    }
}

fn upgrade_devices(path: &Path, txn: &WriteTransaction, version: u32) -> Result<(), StoreError> {
    let mut table = txn.open_table(DEVICES).map_err(database(path, DOING))?;
    let mut devices = Vec::new();
    for row in table.iter().map_err(database(path, DOING))? {
        let (uuid, bytes) = row.map_err(database(path, DOING))?;
        let value = upgrade(version, DEVICES.name(), bytes.value());
        let value = value.map_err(record(path, "device of an older version:", &uuid.value()))?;
        devices.push((uuid.value().to_owned(), value));
    }
    for (uuid, value) in devices {
        table.insert(uuid.as_str(), value.as_slice()).map_err(database(path, DOING))?;
    }
    Ok(())
}
