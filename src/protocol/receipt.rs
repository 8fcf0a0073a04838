//! `receipt.md`: the receipt for people. The same facts as `receipt.json`, in words.

use super::json::At;
use super::{AttemptRow, JobDetail, JobRow};
use crate::model::{Bytes, EndedBy, Limit, Span, Verdict, clean_line};
use jiff::tz::TimeZone;
use std::fmt::{self, Write};

/// The receipt of a job: asked, held and when, how it ended, what came back, proof of release.
pub fn receipt_markdown(detail: &JobDetail, zone: &TimeZone) -> String {
    let mut page = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut page, detail, zone);
    page
}

fn write(page: &mut String, detail: &JobDetail, zone: &TimeZone) -> fmt::Result {
    let row = &detail.row;
    let ending = match &row.outcome {
        Some(outcome) => clean_line(&outcome.to_string()),
        None => format!("not done yet: {}", row.state.word()),
    };
    writeln!(page, "# Receipt of job {}: {}\n\n**{ending}**\n", row.id, clean_line(&row.name))?;
    asked(page, row, zone)?;
    held(page, detail, zone)?;
    attempts(page, &detail.attempts, zone)?;
    came_back(page, detail)?;
    let said: Vec<&String> = detail.warnings.iter().chain(&detail.notes).collect();
    if !said.is_empty() {
        writeln!(page, "\n## Notes\n")?;
        for line in said {
            writeln!(page, "- {}", clean_line(line))?;
        }
    }
    Ok(())
}

fn asked(page: &mut String, row: &JobRow, zone: &TimeZone) -> fmt::Result {
    writeln!(page, "## Asked\n")?;
    writeln!(page, "- by {}, {}", clean_line(&row.user), At(row.submitted_at, zone))?;
    if let Some(project) = &row.project {
        writeln!(page, "- project {}", clean_line(project))?;
    }
    let limit = match row.limit {
        Limit::For(span) => span.to_string(),
        Limit::UntilDone => "until done".to_owned(),
    };
    writeln!(page, "- {} GPU, {} cores, {} of memory, for {limit}", row.gpus, row.cpus, row.memory)?;
    if let Some(at) = row.finish_by {
        let kept = if row.late { "; missed or about to be" } else { "" };
        writeln!(page, "- finish by {}{kept}", At(at, zone))?;
    }
    if let Some(of) = row.retry_of {
        writeln!(page, "- retries job {of}")?;
    }
    writeln!(page, "- runs:\n\n      {}\n", clean_line(&row.command))
}

fn held(page: &mut String, detail: &JobDetail, zone: &TimeZone) -> fmt::Result {
    let row = &detail.row;
    writeln!(page, "## Held\n")?;
    writeln!(page, "| step | reached |\n|---|---|")?;
    for step in &detail.steps {
        match step.at {
            Some(at) => writeln!(page, "| {} | {} |", clean_line(&step.step), At(at, zone))?,
            None => writeln!(page, "| {} | - |", clean_line(&step.step))?,
        }
    }
    let gpu_ms = row.gpu_ms(&detail.at);
    writeln!(page, "\nGPU-hours: {} ({} ms)", hours(gpu_ms), gpu_ms)?;
    let core_ms = row.core_ms(&detail.at);
    writeln!(page, "Core-hours: {} ({} ms)", hours(core_ms), core_ms)?;
    if row.waived_gpu_ms > 0 {
        writeln!(page, "Of these GPU-hours {} are not billed.", hours(row.waived_gpu_ms))?;
    }
    writeln!(page)
}

fn attempts(page: &mut String, rows: &[AttemptRow], zone: &TimeZone) -> fmt::Result {
    for row in rows {
        writeln!(page, "## Attempt {} of task {}\n", row.attempt, row.task)?;
        if let Some(lease) = row.lease {
            let devices: Vec<&str> = row.devices.iter().map(|uuid| uuid.0.as_str()).collect();
            let devices = if devices.is_empty() { "no GPU".to_owned() } else { devices.join(", ") };
            writeln!(page, "- lease {lease} on {}", clean_line(&devices))?;
        }
        let moments = [
            ("granted", row.granted),
            ("started", row.started),
            ("ended", row.ended),
            ("returned", row.returned),
        ];
        for (word, moment) in moments {
            if let Some(moment) = moment {
                writeln!(page, "- {word} {}", At(moment.wall_ms, zone))?;
            }
        }
        if let Some(held) = row.held {
            let waived = if row.waived { ", not billed" } else { "" };
            writeln!(page, "- held {}{waived}", exact(held))?;
        }
        if let Some(enforcement) = &row.enforcement {
            writeln!(page, "- limits: {}", clean_line(&enforcement.to_string()))?;
        }
        if let Some(outcome) = &row.outcome {
            writeln!(page, "- {}", clean_line(&outcome.to_string()))?;
        }
        writeln!(page, "- {}\n", clean_line(&release(row)))?;
    }
    Ok(())
}

/// The proof of release in words.
fn release(row: &AttemptRow) -> String {
    if row.lease.is_none() {
        return "held nothing, so nothing had to be released".to_owned();
    }
    let end = match row.ended_by {
        None => "still held",
        Some(EndedBy::Proven) => "every process was seen to be gone",
        Some(EndedBy::AfterKill) => "some process did not answer its kill",
        Some(EndedBy::Estimated) => "nobody saw the end: the last sign of life counts",
    };
    match &row.verdict {
        None => format!("release: {end}; the devices are not proven clean yet"),
        Some(Verdict::Clean) => format!("release: {end}; the devices came back clean"),
        Some(Verdict::Quarantined { detail }) => format!("release: {end}; in quarantine: {detail}"),
    }
}

fn came_back(page: &mut String, detail: &JobDetail) -> fmt::Result {
    writeln!(page, "## Came back\n")?;
    if detail.outputs.is_empty() {
        return writeln!(page, "Nothing.");
    }
    writeln!(page, "In `{}`.\n", clean_line(&detail.row.directory.display().to_string()))?;
    writeln!(page, "| task | file | size | BLAKE3 |\n|---|---|---|---|")?;
    for (task, file) in &detail.outputs {
        let name = clean_line(&file.path.display().to_string()).replace('|', "\\|");
        let partial = if file.partial { " (partial)" } else { "" };
        writeln!(page, "| {task} | {name}{partial} | {} | `{}` |", file.bytes, clean_line(&file.blake3))?;
    }
    let all = Bytes(detail.outputs.iter().map(|(_, file)| file.bytes.0).sum());
    let files = if detail.outputs.len() == 1 { "file" } else { "files" };
    writeln!(page, "\n{} {files}, {all}.", detail.outputs.len())
}

/// Hours to two digits, as on screens.
fn hours(ms: u64) -> String {
    format!("{:.2}", ms as f64 / 3_600_000.0)
}

/// With milliseconds below a minute, where they are most of it.
fn exact(span: Span) -> String {
    if span.0 < 60_000 { format!("{}.{:03}s", span.0 / 1000, span.0 % 1000) } else { span.to_string() }
}
