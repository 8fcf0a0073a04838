//! The YAML parser's border: one document becomes a small tree of mappings, lists and texts with places.
//!
//! Texts stay exactly as written: `1e-4`, `010` and `no` are not made into numbers and truth values. The only module
//! that knows the parser. It decides nothing about jobs; `syntax` explains its errors.

use serde_yaml::granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, StructureStyle};
use std::ops::Range;

/// Levels of nesting.
pub(super) const DEPTH: usize = 32;
/// Values in one document.
const NODES: usize = 60_000;
/// Fields of one mapping.
const FIELDS: usize = 4096;
/// Aliases, anchors and tags in one document: each is refused, so that more need not be read.
const ODDITIES: usize = 100;

/// A place in the file: line and column from 1, width in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) width: u32,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

/// One value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) mark: Mark,
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Nothing, `~` or `null`.
    Nothing,
    /// A scalar.
    Text { value: String, style: Style, raw: Range<usize> },
    /// A sequence.
    List { items: Vec<Node>, flow: bool },
    /// A mapping, in the order of the file.
    Map { entries: Vec<(Node, Node)>, flow: bool },
    /// `*name`
    Alias(String),
}

impl Node {
    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text { value, .. } => Some(value),
            Kind::Nothing | Kind::List { .. } | Kind::Map { .. } | Kind::Alias(_) => None,
        }
    }
}

/// Something that YAML has and job files do not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oddity {
    Anchor,
    Tag,
}

/// One document.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Document {
    pub(super) root: Option<Node>,
    pub(super) oddities: Vec<(Oddity, Mark)>,
    /// Comments to the right of a value: place and text from `#`.
    pub(super) comments: Vec<(Mark, String)>,
    /// The parser gave up: what is missing may only not have been read.
    pub(super) partial: bool,
}

/// Why the parser gave up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) kind: Trouble,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// The parser's errors as far as they are told apart here.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Trouble {
    /// A character that cannot start a value.
    Character(char),
    /// `: ` where no mapping can be.
    Colon,
    /// An escape that YAML does not have.
    Escape,
    /// A tab where only blanks may be.
    Tab,
    /// More levels than [`DEPTH`].
    Depth,
    /// More values than allowed.
    Size,
    /// A quote that is not closed.
    Quote,
    /// `[` or `{` that is not closed.
    Bracket,
    /// `%YAML` and the like.
    Directive,
    /// Anything else, in the parser's words.
    Other(String),
}

enum Open {
    List { items: Vec<Node>, flow: bool, mark: Mark },
    Map { entries: Vec<(Node, Node)>, key: Option<Node>, flow: bool, mark: Mark },
}

impl Open {
    /// A flow collection on one line is covered to its closing bracket.
    fn ends(&mut self, end: Mark) {
        match self {
            Self::List { flow: true, mark, .. } | Self::Map { flow: true, mark, .. }
                if mark.line == end.line && end.column + end.width > mark.column =>
            {
                mark.width = end.column + end.width - mark.column;
            }
            Self::List { .. } | Self::Map { .. } => {}
        }
    }
}

/// Reads one document; `first_line` is the line of the file on which `text` starts.
pub(super) fn build(text: &str, first_line: u32) -> (Document, Option<SyntaxError>) {
    let mut options = Options::default();
    options.emit_unresolved_aliases = true;
    options.emit_anchor_events = true;
    options.disallow_directives = true;
    options.flow_nesting_limit = DEPTH;
    options.block_nesting_limit = DEPTH;
    options.simple_key_max_lookahead = 1024;
    options.max_buffered_comment_events = 4096;
    let mut builder = Builder {
        document: Document::default(),
        stack: Vec::new(),
        nodes: 0,
        aliases: 0,
        wide: false,
        first_line,
        trouble: None,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.event(event, span, text),
            Err(error) => {
                let at = error.marker();
                builder.trouble = Some(SyntaxError {
                    kind: trouble(error.kind()),
                    line: first_line + (at.line() as u32).max(1) - 1,
                    column: at.col() as u32 + 1,
                });
            }
        }
        if builder.trouble.is_some() {
            builder.document.partial = true;
            while let Some(open) = builder.stack.pop() {
                builder.close(open);
            }
            break;
        }
    }
    (builder.document, builder.trouble)
}

fn trouble(kind: &ErrorKind) -> Trouble {
    match kind {
        ErrorKind::UnexpectedCharacter { character } => Trouble::Character(*character),
        ErrorKind::MappingValueNotAllowed => Trouble::Colon,
        ErrorKind::UnknownQuotedScalarEscape => Trouble::Escape,
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => Trouble::Tab,
        ErrorKind::RecursionLimitExceeded => Trouble::Depth,
        ErrorKind::UnclosedQuotedScalar => Trouble::Quote,
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofImplicitFlowMapping => Trouble::Bracket,
        ErrorKind::DirectiveDisallowed => Trouble::Directive,
        other => Trouble::Other(other.to_string()),
    }
}

struct Builder {
    document: Document,
    stack: Vec<Open>,
    nodes: usize,
    aliases: usize,
    wide: bool,
    first_line: u32,
    trouble: Option<SyntaxError>,
}

impl Builder {
    fn mark(&self, span: &Span) -> Mark {
        let width = if span.start.line() == span.end.line() {
            span.end.col().saturating_sub(span.start.col())
        } else {
            1
        };
        Mark {
            line: self.first_line + (span.start.line() as u32).max(1) - 1,
            column: span.start.col() as u32 + 1,
            width: width as u32,
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span, text: &str) {
        let mark = self.mark(&span);
        if let Some(tag) = span.tag_span() {
            let tag = self.mark(&tag);
            self.document.oddities.push((Oddity::Tag, tag));
        }
        match event {
            Event::Scalar(value, style, ..) => {
                let node = scalar(value.into_owned(), style, mark, &span, text);
                self.value(node);
            }
            Event::UnresolvedAlias(name) => {
                self.aliases += 1;
                self.value(Node { mark, kind: Kind::Alias(name.into_owned()) });
            }
            Event::Alias(_) => {
                self.aliases += 1;
                let name = span.slice(text).unwrap_or("*").trim_start_matches('*').to_owned();
                self.value(Node { mark, kind: Kind::Alias(name) });
            }
            Event::SequenceStart(style, ..) => {
                self.open(Open::List { items: Vec::new(), flow: style == StructureStyle::Flow, mark });
            }
            Event::MappingStart(style, ..) => self.open(Open::Map {
                entries: Vec::new(),
                key: None,
                flow: style == StructureStyle::Flow,
                mark,
            }),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(mut open) = self.stack.pop() {
                    open.ends(mark);
                    self.close(open);
                }
            }
            Event::Anchor(..) => self.document.oddities.push((Oddity::Anchor, mark)),
            Event::Comment(comment, _) => {
                self.document.comments.push((mark, format!("#{comment}")));
            }
            // The parser's enum may grow; what is not a value changes nothing here.
            _ => {}
        }
    }

    fn open(&mut self, open: Open) {
        if self.stack.len() >= DEPTH {
            let mark = match &open {
                Open::List { mark, .. } | Open::Map { mark, .. } => *mark,
            };
            self.trouble = Some(SyntaxError { kind: Trouble::Depth, line: mark.line, column: mark.column });
        }
        self.stack.push(open);
    }

    fn close(&mut self, open: Open) {
        let node = match open {
            Open::List { items, flow, mark } => Node { mark, kind: Kind::List { items, flow } },
            Open::Map { mut entries, key, flow, mark } => {
                // A key that the parser stopped behind may well have a value.
                if let Some(key) = key.filter(|_| self.trouble.is_none()) {
                    let nothing = Node { mark: Mark { width: 0, ..key.mark }, kind: Kind::Nothing };
                    entries.push((key, nothing));
                }
                Node { mark, kind: Kind::Map { entries, flow } }
            }
        };
        self.value(node);
    }

    fn value(&mut self, node: Node) {
        self.nodes += 1;
        let odd = self.aliases + self.document.oddities.len() > ODDITIES;
        if (self.nodes > NODES || odd || self.wide) && self.trouble.is_none() {
            self.trouble =
                Some(SyntaxError { kind: Trouble::Size, line: node.mark.line, column: node.mark.column });
        }
        match self.stack.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                Some(key) => {
                    entries.push((key, node));
                    self.wide |= entries.len() > FIELDS;
                }
                None => *key = Some(node),
            },
            None => self.document.root = Some(node),
        }
    }
}

fn scalar(value: String, style: ScalarStyle, mark: Mark, span: &Span, text: &str) -> Node {
    let style = match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::Single,
        ScalarStyle::DoubleQuoted => Style::Double,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    };
    let raw = span.byte_range().unwrap_or(0..0);
    let written = text.get(raw.clone()).unwrap_or("");
    let nothing = style == Style::Plain && matches!(written, "" | "~" | "null" | "Null" | "NULL");
    let kind = if nothing { Kind::Nothing } else { Kind::Text { value, style, raw } };
    Node { mark, kind }
}
