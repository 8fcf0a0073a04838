//! Lengths of time and sizes as people write them: one reading for job files, the command line and config.

use super::{Bytes, Span};
use thiserror::Error;

/// Why a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseValueError {
    /// A bare number.
    #[error("{0} what?")]
    NoUnit(String),
    /// `2:00`.
    #[error("`{0}` may be minutes or hours")]
    Ambiguous(String),
    /// `Gb`, `Mb`.
    #[error("`{0}` is a number of bits")]
    Bits(String),
    /// A fraction or a word for a unit.
    #[error("`{0}` is not written that way")]
    Form(String),
    /// Zero.
    #[error("must be more than 0")]
    Zero,
    /// Beyond what can be counted.
    #[error("`{0}` is too large")]
    TooLarge(String),
}

/// A length of time: `90s 45m 6h 2d 1h30m 2:00:00 1-12:00:00`.
pub fn parse_span(text: &str) -> Result<Span, ParseValueError> {
    let text = text.trim();
    let form = || ParseValueError::Form(text.to_owned());
    let large = || ParseValueError::TooLarge(text.to_owned());
    if text.is_empty() {
        return Err(form());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseValueError::NoUnit(text.to_owned()));
    }
    let seconds = if text.contains(':') {
        let (days, clock) =
            text.split_once('-').map_or((0, text), |(d, c)| (d.parse().unwrap_or(u64::MAX), c));
        let parts: Vec<Option<u64>> = clock
            .split(':')
            .map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten())
            .collect();
        match parts.as_slice() {
            [Some(_), Some(_)] if days == 0 => return Err(ParseValueError::Ambiguous(text.to_owned())),
            [Some(h), Some(m)] if *m < 60 => [days, *h, *m, 0],
            [Some(h), Some(m), Some(s)] if *m < 60 && *s < 60 => [days, *h, *m, *s],
            _ => return Err(form()),
        }
        .iter()
        .zip([86400, 3600, 60, 1])
        .try_fold(0_u64, |sum, (n, unit)| n.checked_mul(unit).and_then(|n| sum.checked_add(n)))
    } else {
        let mut sum = Some(0_u64);
        let mut last = u64::MAX;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let n: u64 = rest[..digits].parse().map_err(|_| form())?;
            let letters = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit = match &rest[digits..digits + letters] {
                "s" => 1,
                "m" => 60,
                "h" => 3600,
                "d" => 86400,
                _ => return Err(form()),
            };
            if unit >= last {
                return Err(form());
            }
            last = unit;
            sum = sum.and_then(|sum| n.checked_mul(unit).and_then(|n| sum.checked_add(n)));
            rest = rest[digits + letters..].trim_start_matches(' ');
        }
        sum
    };
    // A century is more than any clock here is asked to hold.
    match seconds {
        Some(0) => Err(ParseValueError::Zero),
        Some(s) if s <= 100 * 366 * 86400 => Ok(Span(s * 1000)),
        Some(_) | None => Err(large()),
    }
}

/// A size: `32GiB 32GB 32G(=GiB) 512MiB`. Bare numbers and bits are refused.
pub fn parse_bytes(text: &str) -> Result<Bytes, ParseValueError> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = text[digits..].trim_start();
    if digits == 0 {
        return Err(ParseValueError::Form(text.to_owned()));
    }
    if unit.is_empty() {
        return Err(ParseValueError::NoUnit(text.to_owned()));
    }
    let factor: u64 = match unit {
        "B" => 1,
        "K" | "k" | "KiB" | "kiB" => 1 << 10,
        "KB" | "kB" => 1000,
        "M" | "m" | "MiB" => 1 << 20,
        "MB" | "mb" => 1_000_000,
        "G" | "g" | "GiB" => 1 << 30,
        "GB" | "gb" => 1_000_000_000,
        "T" | "t" | "TiB" => 1 << 40,
        "TB" | "tb" => 1_000_000_000_000,
        "Kb" | "Mb" | "Gb" | "Tb" => return Err(ParseValueError::Bits(unit.to_owned())),
        _ => return Err(ParseValueError::Form(text.to_owned())),
    };
    let bytes = text[..digits].parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    match bytes {
        Some(0) => Err(ParseValueError::Zero),
        Some(n) if n <= 1 << 60 => Ok(Bytes(n)),
        Some(_) | None => Err(ParseValueError::TooLarge(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90),
            ("45m", 2700),
            ("6h", 21600),
            ("2d", 172_800),
            ("1h30m", 5400),
            ("1h 30m", 5400),
            ("2:00:00", 7200),
            ("1-12:00:00", 129_600),
            ("1-12:00", 129_600),
        ] {
            assert_eq!(parse_span(text), Ok(Span::secs(seconds)), "{text}");
        }
        for (text, error) in [
            ("2", ParseValueError::NoUnit("2".into())),
            ("2:00", ParseValueError::Ambiguous("2:00".into())),
            ("1.5h", ParseValueError::Form("1.5h".into())),
            ("6 hours", ParseValueError::Form("6 hours".into())),
            ("30m1h", ParseValueError::Form("30m1h".into())),
            ("0s", ParseValueError::Zero),
            ("99999999999999999999h", ParseValueError::Form("99999999999999999999h".into())),
            ("9999999999d", ParseValueError::TooLarge("9999999999d".into())),
        ] {
            assert_eq!(parse_span(text), Err(error), "{text}");
        }
    }

    #[test]
    fn sizes_as_people_write_them() {
        assert_eq!(parse_bytes("32GiB"), Ok(Bytes::gib(32)));
        assert_eq!(parse_bytes("32G"), Ok(Bytes::gib(32)));
        assert_eq!(parse_bytes("32 GiB"), Ok(Bytes::gib(32)));
        assert_eq!(parse_bytes("32GB"), Ok(Bytes(32_000_000_000)));
        assert_eq!(parse_bytes("32"), Err(ParseValueError::NoUnit("32".into())));
        assert_eq!(parse_bytes("32Gb"), Err(ParseValueError::Bits("Gb".into())));
        assert_eq!(parse_bytes("lots"), Err(ParseValueError::Form("lots".into())));
        assert_eq!(parse_bytes("0GiB"), Err(ParseValueError::Zero));
    }
}
