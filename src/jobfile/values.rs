//! Numbers, lengths of time and sizes, read from text exactly as written.

use super::findings::error;
use super::reader::{Field, Reader};
use super::tree::Mark;
use crate::model::{Amount, Bytes, ParseValueError, Span, parse_bytes, parse_span};

const NUMBER_WORDS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
];

impl Reader<'_, '_> {
    /// A whole number, digits only.
    pub(super) fn count(&mut self, field: Field<'_>) -> Option<u32> {
        let text = self.text(field)?;
        self.digits(field.name, text, field.value.mark)
    }

    /// A whole number or `all`.
    pub(super) fn count_or_all(&mut self, field: Field<'_>) -> Option<Amount<u32>> {
        let text = self.text(field)?;
        if text == "all" {
            return Some(Amount::All);
        }
        self.digits(field.name, text, field.value.mark).map(Amount::Some)
    }

    pub(super) fn digits(&mut self, name: &str, text: &str, mark: Mark) -> Option<u32> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits && (text.len() == 1 || !text.starts_with('0')) {
            let number = text.parse().ok();
            if number.is_none() {
                self.add(error(99, mark, format!("{name}: `{text}` is too large")));
            }
            return number;
        }
        let lower = text.to_lowercase();
        let finding = if let Some(n) = NUMBER_WORDS.iter().position(|word| *word == lower) {
            error(8, mark, format!("{name}: `{text}` is not a whole number")).hint(format!("write {n}"))
        } else if let Some(n) = odd_number(&lower) {
            error(11, mark, format!("{name}: digits only")).hint(format!("write {n}"))
        } else if name == "gpus" && lower.parse::<f64>().is_ok_and(f64::is_finite) {
            error(9, mark, format!("gpus: {} cannot be leased", part_of_a_gpu(&lower)))
                .hint("`gpus: 1`; sharing one, `share: true` with `gpu_memory: 10GiB`, is not supported yet")
        } else if name == "gpus"
            && let Some((model, n)) = model_and_number(&lower)
        {
            let fix = format!("{n}\n{}gpu_model: {model}", " ".repeat(self.indent_of(mark)));
            let finding = error(10, mark, "gpus: number and model are two fields")
                .hint(format!("`gpus: {n}` and `gpu_model: {model}`"));
            if self.in_flow(mark) {
                finding.fix(format!("{n}, gpu_model: {model}"))
            } else {
                finding.fix(fix)
            }
        } else {
            error(8, mark, format!("{name}: `{text}` is not a whole number")).hint("write digits, such as 2")
        };
        self.add(finding);
        None
    }

    /// Blanks before the first character of a line.
    fn indent_of(&self, mark: Mark) -> usize {
        self.found.line(mark.line).chars().take_while(|c| *c == ' ').count()
    }

    /// Whether a place is inside `{…}` on its line.
    fn in_flow(&self, mark: Mark) -> bool {
        self.found.line(mark.line).chars().take(mark.column as usize).any(|c| c == '{')
    }

    /// A length of time.
    pub(super) fn span(&mut self, field: Field<'_>) -> Option<Span> {
        let text = self.text(field)?;
        self.span_text(field.name, text, field.value.mark)
    }

    pub(super) fn span_text(&mut self, name: &str, text: &str, mark: Mark) -> Option<Span> {
        let reason = match parse_span(text) {
            Ok(span) => return Some(span),
            Err(reason) => reason,
        };
        let finding = match reason {
            ParseValueError::NoUnit(n) => error(16, mark, format!("{name}: {n} what?"))
                .hint(format!("`{n}h` hours, `{n}m` minutes, `{n}d` days")),
            ParseValueError::Ambiguous(_) => {
                let (a, b) = text.split_once(':').unwrap_or((text, "0"));
                let (a, b) = (plain(a), plain(b));
                let minutes = if b == 0 { format!("{a}m") } else { format!("{a}m{b}s") };
                let hours = if b == 0 { format!("{a}h") } else { format!("{a}h{b}m") };
                let (few, many) = (unit(a, "minute"), unit(a, "hour"));
                error(17, mark, format!("{name}: `{text}` may be {few} or {many}"))
                    .hint(format!("write {minutes} or {hours}; with seconds {text}:00 is fine"))
            }
            ParseValueError::Zero => error(99, mark, format!("{name}: must be more than 0")),
            ParseValueError::TooLarge(_) => error(99, mark, format!("{name}: `{text}` is too long")),
            ParseValueError::Bits(_) | ParseValueError::Form(_) => {
                let finding = error(19, mark, format!("{name}: `{text}` is not a length of time"));
                match rewritten(text) {
                    Some(better) => finding.hint(format!("write `{better}`; units s m h d")).fix(better),
                    None => finding.hint("such as `90s`, `45m`, `1h30m`, `2d`; units s m h d"),
                }
            }
        };
        self.add(finding);
        None
    }

    /// A size with its unit.
    pub(super) fn size(&mut self, field: Field<'_>) -> Option<Bytes> {
        let text = self.text(field)?;
        let mark = field.value.mark;
        let name = field.name;
        let finding = match parse_bytes(text) {
            Ok(bytes) => return Some(bytes),
            Err(ParseValueError::NoUnit(n)) => {
                error(21, mark, format!("{name}: {n} what?")).hint(format!("`{n}GiB`"))
            }
            Err(ParseValueError::Bits(unit)) => {
                let digits = text.trim_end_matches(&unit).trim();
                let letter = unit.chars().next().unwrap_or('G');
                let bits = match letter {
                    'K' => "kilobit",
                    'M' => "megabit",
                    'T' => "terabit",
                    _ => "gigabit",
                };
                error(22, mark, format!("{name}: `{unit}` is {bits}"))
                    .hint(format!("`{digits}{letter}B` or `{digits}{letter}iB`"))
            }
            Err(ParseValueError::Zero) => error(99, mark, format!("{name}: must be more than 0")),
            Err(ParseValueError::TooLarge(_)) => error(99, mark, format!("{name}: `{text}` is too large")),
            Err(ParseValueError::Form(_) | ParseValueError::Ambiguous(_)) => {
                error(21, mark, format!("{name}: `{text}` is not a size")).hint("such as `32GiB` or `512MiB`")
            }
        };
        self.add(finding);
        None
    }
}

fn plain(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn unit(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// What `0x2`, `1_0`, `010`, `+2`, `2.0` and `1e0` mean.
fn odd_number(text: &str) -> Option<u64> {
    let bare = text.strip_prefix('+').unwrap_or(text);
    if let Some(hex) = bare.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(octal) = bare.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok();
    }
    let joined: String = bare.chars().filter(|c| *c != '_').collect();
    if !joined.is_empty() && joined.bytes().all(|b| b.is_ascii_digit()) {
        return joined.parse().ok();
    }
    let number: f64 = bare.parse().ok()?;
    let starts_with_digit = bare.starts_with(|c: char| c.is_ascii_digit());
    let whole = number.is_finite() && number.fract() == 0.0 && (0.0..1e9).contains(&number);
    (starts_with_digit && whole).then_some(number as u64)
}

fn part_of_a_gpu(text: &str) -> String {
    match text {
        "0.5" | ".5" => "half a GPU".to_owned(),
        other => format!("{other} GPUs"),
    }
}

/// `a100:2`, `2:a100`, `2xa100`, `2 a100`.
fn model_and_number(text: &str) -> Option<(&str, u32)> {
    let (a, b) = text.split_once(':').or_else(|| text.split_once('x')).or_else(|| text.split_once(' '))?;
    let (a, b) = (a.trim(), b.trim());
    let model = |text: &str| {
        !text.is_empty()
            && text.chars().any(char::is_alphabetic)
            && text.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    match (a.parse(), b.parse()) {
        (Err(_), Ok(n)) if model(a) => Some((a, n)),
        (Ok(n), Err(_)) if model(b) => Some((b, n)),
        _ => None,
    }
}

/// `1.5h` as `1h30m`, `6 hours` as `6h`.
fn rewritten(text: &str) -> Option<String> {
    let lower = text.trim().to_lowercase();
    let mut seconds = 0_f64;
    let mut rest = lower.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let n: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let factor = match &rest[..end] {
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86400.0,
            "w" | "week" | "weeks" => 7.0 * 86400.0,
            _ => return None,
        };
        seconds += n * factor;
        rest = rest[end..].trim_start_matches([' ', ',']).trim_start();
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    let whole = seconds.round();
    if !(1.0..3e9).contains(&whole) || (whole - seconds).abs() > 1e-6 {
        return None;
    }
    let whole = whole as u64;
    let parts =
        [(whole / 86400, 'd'), (whole % 86400 / 3600, 'h'), (whole % 3600 / 60, 'm'), (whole % 60, 's')];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    Some(parts.concat())
}
