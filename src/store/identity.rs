//! Which machine this is: a store says which one wrote it.

use crate::model::clean_line;

/// The machine, as far as a store cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The systemd machine id. Where a machine has none: its host name, marked as such.
    pub machine_id: String,
    /// For people.
    pub hostname: String,
}

impl Identity {
    /// Reads this machine's.
    pub fn read() -> Self {
        let hostname = clean_line(&rustix::system::uname().nodename().to_string_lossy());
        let machine_id = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            .iter()
            .find_map(|path| std::fs::read_to_string(path).ok().and_then(|text| machine_id(&text)))
            .unwrap_or_else(|| format!("host:{hostname}"));
        Self { machine_id, hostname }
    }
}

/// 32 hex digits; an image whose id is still to be made says `uninitialized`.
fn machine_id(text: &str) -> Option<String> {
    let text = text.trim();
    (text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_machine_id_has_none() {
        assert_eq!(machine_id("uninitialized\n"), None);
        assert_eq!(machine_id(""), None);
        let id = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(machine_id(&format!("{id}\n")), Some(id.to_ascii_lowercase()));
    }

    #[test]
    fn reading_twice_gives_the_same() {
        assert_eq!(Identity::read(), Identity::read());
        assert!(!Identity::read().hostname.is_empty());
    }
}
