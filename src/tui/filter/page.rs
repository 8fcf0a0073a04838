//! What can be filtered by, written from the tables of fields: a part of `docs/keys.md`.

use super::rows::Subject;
use std::fmt::Write as _;

/// One table for each kind of rows.
pub(in crate::tui) fn page() -> String {
    let mut out = String::new();
    for subject in Subject::ALL {
        let spec = subject.spec();
        let _ = write!(out, "\n### {}\n\n| written | lets through |\n|---|---|\n", spec.what);
        for field in spec.fields {
            let written: Vec<String> = field.written.iter().map(|one| format!("`{one}`")).collect();
            let (written, about) = (written.join(" "), field.about);
            let states = if field.names[0] == "s" { format!(": {}", spec.told) } else { String::new() };
            let long = field.names[1];
            let long = if long.is_empty() { String::new() } else { format!(" or `{long}:`") };
            let _ = writeln!(out, "| {written}{long} | {about}{states} |");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::filter::Filter;

    #[test]
    fn what_is_written_on_the_page_can_be_typed() {
        for subject in Subject::ALL {
            for field in subject.spec().fields {
                for written in field.written {
                    assert!(written.starts_with(&format!("{}:", field.names[0])), "{written}");
                    assert_eq!(Filter::read_as(subject, written).error(), None, "{written}");
                }
                let state = field.names[0] == "s";
                for told in subject.spec().told.split(' ').filter(|_| state) {
                    assert_eq!(Filter::read_as(subject, &format!("s:{told}")).error(), None, "{told}");
                }
            }
        }
    }
}
