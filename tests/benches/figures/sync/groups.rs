//! More than two stores, small differences, and what the series cost on the disk.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Result;
use satchel_proto::v1;

use super::{Machine, first_sync, loopback_bytes, sync_part, wait};
use crate::{
    megabytes, print_line,
    process::{run, satchel_program},
};

/// Stores in a chain and in a ring.
const STORES: usize = 10;
/// Edits whose way through all of them is measured.
const EDITS: usize = 30;
/// Days of a year, and the edits of the owner in that time, spread over three machines.
const DAYS: usize = 365;
const EDITS_OF_A_YEAR: usize = 10_000;

/// Measures how long an edit takes through ten stores, of which each is connected to the next one only, and with the last one connected to
/// the first one too.
pub(super) fn chain_and_ring(scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let machines = (0..STORES)
        .map(|at| Machine::start(&program, &scratch.join(format!("chain-{at}"))))
        .collect::<Result<Vec<_>>>()?;
    for pair in machines.windows(2) {
        first_sync(&pair[1], &pair[0])?;
    }
    through("a chain of ten", &machines[0], &machines[STORES - 1])?;
    first_sync(&machines[0], &machines[STORES - 1])?;
    through("a ring of ten, to the other side", &machines[0], &machines[STORES / 2])?;
    wait("in step", || machines.iter().try_fold(true, |all, machine| Ok(all && machine.in_step()?)))
}

fn through(label: &str, from: &Machine, to: &Machine) -> Result<()> {
    let mut times = Vec::new();
    for number in 0..EDITS {
        let begun = Instant::now();
        let id = from.add(format!("Note {number}, {label}"))?;
        wait("the memory", || to.has(&id))?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let (median, last) = (times[EDITS / 2], times[EDITS - 1]);
    print_line(&format!("an edit through {label}: p50 {median:.0} ms, longest {last:.0} ms"));
    Ok(())
}

/// Measures what is sent if one store has one in a hundred messages more than the other one, compared with the export that brought them.
pub(super) fn small_difference(
    (desk, laptop): (&Machine, &Machine),
    scratch: &Path,
    megabytes_of_export: u64,
) -> Result<()> {
    let export = scratch.join("one-percent");
    satchel_tests::generate::chatgpt(&export, megabytes_of_export * 10_000, 8)?;
    laptop.pause(true)?;
    desk.import(&export)?;
    wait("the import is recorded", || Ok(!desk.in_step()?))?;
    let before = loopback_bytes()?;
    let begun = Instant::now();
    laptop.pause(false)?;
    wait("in step", || Ok(laptop.in_step()? && desk.in_step()?))?;
    let (seconds, moved) = (begun.elapsed().as_secs_f64(), (loopback_bytes()? - before) / 1e6);
    let brought = megabytes(&export)?;
    print_line(&format!(
        "a difference of 1 %: {moved:.2} MB with all headers for an export of {brought:.2} MB, ratio {:.2}, in {seconds:.2} s",
        moved / brought
    ));
    Ok(())
}

/// Measures a peer that gets only what has a tag, of a store with much else: the first exchange, new memories of the part, and memories that
/// come into it.
pub(super) fn part(desk: &Machine, scratch: &Path) -> Result<()> {
    let office = Machine::start(&satchel_program()?, &scratch.join("office"))?;
    let tags = vec!["work".to_owned()];
    let selection = v1::DeviceSelection { tags, ..v1::DeviceSelection::default() };
    let seconds = sync_part(desk, &office, "office", Some(selection))?;
    let status =
        office.runtime.block_on(office.peers().get_sync_status(v1::GetSyncStatusRequest::default()))?;
    let withheld = status.into_inner().missing_payloads;
    let (mut new, mut late) = (Vec::new(), Vec::new());
    for number in 0..EDITS {
        let hidden = desk.add(format!("Note {number}, for later"))?;
        let begun = Instant::now();
        let id = desk.add_tagged(format!("Note {number}, of the part"), &["work"])?;
        wait("the memory", || office.has(&id))?;
        new.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        desk.tag(&hidden, "work")?;
        wait("the memory", || office.has(&hidden))?;
        late.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    [&mut new, &mut late].into_iter().for_each(|times| times.sort_by(f64::total_cmp));
    print_line(&format!(
        "a peer that gets a part: first sync {seconds:.1} s, {withheld} payloads withheld, private memory {} MiB; a new memory p50 {:.0} ms, \
         longest {:.0} ms; one that comes into the part p50 {:.0} ms, longest {:.0} ms",
        office.daemon.private_mib()?,
        new[EDITS / 2],
        new[EDITS - 1],
        late[EDITS / 2],
        late[EDITS - 1]
    ));
    Ok(())
}

/// Measures the data directories of three machines after a year, and that of one machine alone that did the same.
pub(super) fn growth(scratch: &Path) -> Result<()> {
    let program = satchel_program()?;
    let data = |name: &str| scratch.join(format!("year-{name}"));
    let names = ["desk", "laptop", "server"];
    let machines =
        names.iter().map(|name| Machine::start(&program, &data(name))).collect::<Result<Vec<_>>>()?;
    for machine in &machines[1..] {
        first_sync(&machines[0], machine)?;
    }
    let exports: Vec<PathBuf> = (0..DAYS).map(|day| scratch.join(format!("day-{day}"))).collect();
    for (export, seed) in exports.iter().zip(0..) {
        satchel_tests::generate::chatgpt_short(export, 2, seed)?;
    }
    year(&[&machines[0], &machines[1], &machines[2]], &exports)?;
    wait("in step", || machines.iter().try_fold(true, |all, machine| Ok(all && machine.in_step()?)))?;
    drop(machines);
    let alone = Machine::start(&program, &data("alone"))?;
    year(&[&alone, &alone, &alone], &exports)?;
    drop(alone);
    let (alone, sizes) = (megabytes(&data("alone"))?, names.map(|name| megabytes(&data(name))));
    let sizes = sizes.into_iter().collect::<Result<Vec<f64>>>()?;
    print_line(&format!(
        "after a year of daily imports and {EDITS_OF_A_YEAR} edits on three machines: {:.1}, {:.1} and {:.1} MB; one machine alone {alone:.1} MB, ratio {:.2}",
        sizes[0],
        sizes[1],
        sizes[2],
        sizes[0] / alone
    ));
    let words: [std::ffi::OsString; 3] = ["--data-dir".into(), data("desk").into(), "doctor".into()];
    run(&program, &words)?;
    Ok(())
}

/// Imports an export each day on the first machine, and edits on all.
fn year(machines: &[&Machine; 3], exports: &[PathBuf]) -> Result<()> {
    let each_day = EDITS_OF_A_YEAR / DAYS;
    let mut written: Vec<String> = Vec::new();
    for (day, export) in exports.iter().enumerate() {
        machines[0].import(export)?;
        for number in 0..each_day {
            let machine = machines[number % 3];
            match written.get((day * 7 + number * 13) % written.len().max(1)) {
                // Every second one changes what is there, if it has come.
                Some(id) if number % 2 == 0 && machine.has(id)? => {
                    machine.rewrite(id, format!("Day {day}, written again, {number}"))?;
                }
                _ => written.push(machine.add(format!("Day {day}, number {number}"))?),
            }
        }
    }
    Ok(())
}

impl Machine {
    fn import(&self, export: &Path) -> Result<()> {
        let mut imports = v1::import_service_client::ImportServiceClient::new(self.channel.clone());
        let path = export.to_str().unwrap_or_default().to_owned();
        let request = v1::CreateImportRequest { path, ..v1::CreateImportRequest::default() };
        let started = self.runtime.block_on(imports.create_import(request))?.into_inner().operation;
        let id = started.unwrap_or_default().id;
        self.runtime.block_on(satchel_tests::operation::wait(&self.channel, &id))?;
        Ok(())
    }

    fn tag(&self, id: &str, tag: &str) -> Result<()> {
        let tags = vec![tag.to_owned()];
        self.update(v1::Memory { id: id.to_owned(), tags, ..v1::Memory::default() }, "tags")
    }

    fn rewrite(&self, id: &str, content: String) -> Result<()> {
        self.update(v1::Memory { id: id.to_owned(), content, ..v1::Memory::default() }, "content")
    }

    fn update(&self, memory: v1::Memory, path: &str) -> Result<()> {
        let mask = prost_types::FieldMask { paths: vec![path.to_owned()] };
        let request = v1::UpdateMemoryRequest {
            memory: Some(memory),
            update_mask: Some(mask),
            ..v1::UpdateMemoryRequest::default()
        };
        self.runtime.block_on(self.memories().update_memory(request))?;
        Ok(())
    }
}
