//! stub
pub use self::stub::*;
mod stub {
    pub trait Connector: Send { fn connect(&mut self) -> Result<Box<dyn Session>, String>; }
    pub trait Session: Send { fn split(self: Box<Self>) -> (Box<dyn SessionReader>, Box<dyn SessionWriter>); }
    pub trait SessionReader: Send { fn read(&mut self) -> Result<Option<crate::protocol::ServerMessage>, String>; }
    pub trait SessionWriter: Send { fn send(&mut self, r: &crate::protocol::Request) -> Result<(), String>; }
    #[derive(PartialEq)] pub enum Glyphs { Ascii, Unicode }
    pub struct Options { pub theme: String, pub glyphs: Glyphs, pub tz: jiff::tz::TimeZone, pub me: String }
    impl Options { pub fn from_lookup(_: &dyn Fn(&str) -> Option<String>) -> Self { Self { theme: String::new(), glyphs: Glyphs::Unicode, tz: jiff::tz::TimeZone::UTC, me: String::new() } } }
    pub fn refusal(_: bool, _: Option<&str>) -> Option<&'static str> { Some("no tui") }
    #[derive(Debug, thiserror::Error)] #[error("x")] pub struct TuiError;
    pub fn run(_: Options, _: impl Connector) -> Result<(), TuiError> { Err(TuiError) }
}
