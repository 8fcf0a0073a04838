//! From a filter's text to what it asks of a row.

use super::{FilterError, Range, Subject, Term, Test, Text};
use regex::{Regex, RegexBuilder};
use std::iter::Peekable;
use std::str::CharIndices;

/// A compiled expression takes no more; one that would is refused in words.
const REGEX_BYTES: usize = 1 << 20;

/// A word as it stands in the text.
struct Word {
    /// Where it begins.
    at: usize,
    inverted: bool,
    /// Before the colon.
    field: Option<String>,
    value: Value,
}

/// A value as it is written.
enum Value {
    Plain(String),
    Quoted(String),
    Regex(String),
}

/// Everything a text asks for. An empty value asks for nothing: somebody is about to type it.
pub(super) fn terms(subject: Subject, text: &str) -> Result<Vec<Term>, FilterError> {
    let mut chars = text.char_indices().peekable();
    let mut terms = Vec::new();
    while let Some(word) = word(&mut chars) {
        let (at, inverted) = (word.at, word.inverted);
        match test(subject, word) {
            Ok(Some(test)) => terms.push(Term { inverted, test }),
            Ok(None) => {}
            Err(why) => return Err(FilterError { at, why }),
        }
    }
    Ok(terms)
}

fn word(chars: &mut Peekable<CharIndices<'_>>) -> Option<Word> {
    while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
    let at = chars.peek()?.0;
    let inverted = chars.next_if(|(_, c)| matches!(c, '!' | '-')).is_some();
    let mut field = None;
    let mut plain = String::new();
    loop {
        match chars.peek().map(|(_, c)| *c) {
            Some('"') if plain.is_empty() => {
                chars.next();
                let value = Value::Quoted(until(chars, '"'));
                return Some(Word { at, inverted, field, value });
            }
            Some('/') if plain.is_empty() => {
                chars.next();
                let value = Value::Regex(until(chars, '/'));
                return Some(Word { at, inverted, field, value });
            }
            Some(':') if field.is_none() && is_name(&plain) => {
                chars.next();
                field = Some(std::mem::take(&mut plain));
            }
            Some(c) if !c.is_whitespace() => {
                chars.next();
                plain.push(c);
            }
            Some(_) | None => return Some(Word { at, inverted, field, value: Value::Plain(plain) }),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic())
}

/// What is before `end`, or all of it while it is still typed. A backslash before `end` makes it a part of the text.
fn until(chars: &mut Peekable<CharIndices<'_>>, end: char) -> String {
    let mut text = String::new();
    while let Some((_, c)) = chars.next() {
        if c == end {
            return text;
        }
        if c == '\\' && chars.next_if(|(_, next)| *next == end).is_some() {
            text.push(end);
            continue;
        }
        text.push(c);
    }
    text
}

fn test(subject: Subject, word: Word) -> Result<Option<Test>, String> {
    let Word { field, value, .. } = word;
    let is_empty = match &value {
        Value::Plain(text) | Value::Quoted(text) | Value::Regex(text) => text.is_empty(),
    };
    let name = field.as_deref().unwrap_or_default().to_ascii_lowercase();
    let fields = subject.spec().fields;
    if !name.is_empty() && !fields.iter().any(|field| field.names.contains(&name.as_str())) {
        let there: Vec<String> = fields.iter().map(|field| format!("{}:", field.names[0])).collect();
        let there = there.join(" ");
        return Err(format!("no field `{name}:`; there are {there}, and \"{name}:\" as text"));
    }
    if is_empty {
        return Ok(None);
    }
    Ok(Some(match name.as_str() {
        "u" | "user" => Test::User(text(value)?),
        "n" | "name" => Test::Name(text(value)?),
        "p" | "project" => Test::Project(text(value)?),
        "s" | "state" => Test::State(state(subject, value)?),
        "g" | "gpus" => Test::Gpus(range("g", value)?),
        "gpu" => Test::Device(range("gpu", value)?),
        "id" => Test::Id(range("id", value)?),
        _ => {
            let id = match &value {
                Value::Plain(text) => Some(text.trim_start_matches('#').to_owned()),
                Value::Quoted(_) | Value::Regex(_) => None,
            };
            Test::Any { id: id.filter(|id| !id.is_empty()), text: text(value)? }
        }
    }))
}

fn text(value: Value) -> Result<Text, String> {
    let (pattern, is_regex) = match value {
        Value::Regex(text) => (text, true),
        Value::Plain(text) | Value::Quoted(text) => (regex::escape(&text), false),
    };
    // A capital letter in an expression means itself; `\S` is no letter.
    let has_capital = pattern.replace("\\\\", "").split('\\').enumerate().any(|(at, part)| {
        let skipped = usize::from(at > 0);
        part.chars().skip(skipped).any(char::is_uppercase)
    });
    let part: Result<Regex, regex::Error> = RegexBuilder::new(&pattern)
        .case_insensitive(!(is_regex && has_capital))
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .build();
    part.map(|part| Text { part }).map_err(|error| why(&error))
}

/// The last line of what the library says is the reason.
fn why(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    format!("not a regular expression: {}", last.trim_start_matches("error: "))
}

fn state(subject: Subject, value: Value) -> Result<String, String> {
    let text = match value {
        Value::Plain(text) | Value::Quoted(text) => text.to_ascii_lowercase(),
        Value::Regex(_) => return Err("s: takes the beginning of a state: s:run".to_owned()),
    };
    if subject.spec().states.iter().any(|word| word.starts_with(&text)) {
        return Ok(text);
    }
    Err(format!("no state begins with `{text}`: {}", subject.spec().told))
}

fn range(field: &str, value: Value) -> Result<Range, String> {
    let text = match value {
        Value::Plain(text) | Value::Quoted(text) => text,
        Value::Regex(_) => return Err(format!("{field}: takes a number: {field}:>2")),
    };
    let number = |text: &str| {
        let digits = text.trim_start_matches('#');
        digits
            .parse::<u64>()
            .map_err(|_| format!("{field}: takes a number: {field}:4 {field}:>2 {field}:2..4"))
    };
    let (from, to) = if let Some((from, to)) = text.split_once("..") {
        let from = if from.is_empty() { 0 } else { number(from)? };
        (from, if to.is_empty() { u64::MAX } else { number(to)? })
    } else if let Some(rest) = text.strip_prefix(">=") {
        (number(rest)?, u64::MAX)
    } else if let Some(rest) = text.strip_prefix("<=") {
        (0, number(rest)?)
    } else if let Some(rest) = text.strip_prefix('>') {
        // Nothing is above the largest number: an empty range.
        number(rest)?.checked_add(1).map_or((1, 0), |from| (from, u64::MAX))
    } else if let Some(rest) = text.strip_prefix('<') {
        number(rest)?.checked_sub(1).map_or((1, 0), |to| (0, to))
    } else {
        let exact = number(text.strip_prefix('=').unwrap_or(&text))?;
        (exact, exact)
    };
    Ok(Range { from, to })
}
