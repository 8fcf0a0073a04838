//! Reads shell text far enough to look at its commands: words, quotes, comments, here-documents. Runs nothing.

/// One word as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Characters from the start of the script.
    pub(super) at: usize,
    /// Holds a quote.
    pub(super) quoted: bool,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Ends in `&`.
    pub(super) background: bool,
}

/// Words that stand before a command.
const BEFORE: &[&str] = &[
    "exec", "time", "nice", "sudo", "env", "command", "then", "do", "else", "if", "while", "until", "!", "{",
    "(",
];

impl Command {
    /// The words from the program's name on, without assignments and keywords before it.
    pub(super) fn program(&self) -> &[Word] {
        let assignment = |word: &Word| {
            word.text.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            })
        };
        let skip = self
            .words
            .iter()
            .take_while(|word| BEFORE.contains(&word.text.as_str()) || assignment(word))
            .count();
        self.words.get(skip..).unwrap_or_default()
    }

    /// The program's name without its directory.
    pub(super) fn name(&self) -> &str {
        self.program().first().map_or("", |word| word.text.rsplit('/').next().unwrap_or(""))
    }
}

/// The simple commands of a script, in order.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let mut reader =
        Reader { chars: script.chars().collect(), at: 0, command: Command::default(), out: Vec::new() };
    reader.read();
    reader.out
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    command: Command,
    out: Vec<Command>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn end(&mut self, background: bool) {
        let mut command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            command.background = background;
            self.out.push(command);
        }
    }

    fn read(&mut self) {
        let mut here: Vec<String> = Vec::new();
        while let Some(c) = self.peek(0) {
            match c {
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '\n' => {
                    self.end(false);
                    self.at += 1;
                    for delimiter in here.drain(..) {
                        self.skip_here(&delimiter);
                    }
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '#' => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                ';' | '|' | '(' | ')' => {
                    self.end(false);
                    self.at += 1;
                }
                '&' => self.ampersand(),
                _ => {
                    let word = self.word();
                    if let Some(delimiter) =
                        word.text.strip_prefix("<<").filter(|rest| !rest.starts_with('<'))
                    {
                        let bare: String = delimiter
                            .trim_start_matches('-')
                            .chars()
                            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
                            .collect();
                        if bare.is_empty() {
                            while matches!(self.peek(0), Some(' ')) {
                                self.at += 1;
                            }
                            let next = self.word();
                            here.push(next.text.trim_matches(['\'', '"']).to_owned());
                        } else {
                            here.push(bare);
                        }
                    } else {
                        self.command.words.push(word);
                    }
                }
            }
        }
        self.end(false);
    }

    /// `&`, `&&`, `&>file`, `>&2`.
    fn ampersand(&mut self) {
        match self.peek(1) {
            Some('&') => {
                self.end(false);
                self.at += 2;
            }
            Some('>') => {
                let word = self.word();
                self.command.words.push(word);
            }
            _ => {
                self.end(true);
                self.at += 1;
            }
        }
    }

    fn word(&mut self) -> Word {
        let start = self.at;
        let mut quote: Option<char> = None;
        let mut quoted = false;
        while let Some(c) = self.peek(0) {
            match (quote, c) {
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (Some('"') | None, '\\') => self.at += 1,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    quoted = true;
                }
                (None, '&') if self.at > start && matches!(self.chars.get(self.at - 1), Some('>' | '<')) => {}
                (None, '&') if self.at == start => {}
                (None, ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '(' | ')') => break,
                (Some(_) | None, _) => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.chars.len());
        if self.at == start {
            self.at += 1;
        }
        let text = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        Word { text, at: start, quoted }
    }

    fn skip_here(&mut self, delimiter: &str) {
        while self.at < self.chars.len() {
            let start = self.at;
            while self.peek(0).is_some_and(|c| c != '\n') {
                self.at += 1;
            }
            let line: String = self.chars[start..self.at].iter().collect();
            self.at += 1;
            if line.trim() == delimiter {
                return;
            }
        }
    }
}
