//! The process's environment as one value. [`Environment::read`] is the only place that looks at it.

use super::ConfigError;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What the environment and the account's entry say. Fields are public so that tests can say something else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `HOME`, else the account's home directory.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, if absolute.
    pub config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`, if absolute.
    pub state_home: Option<PathBuf>,
    /// `OVERNIGHT_ROOT`
    pub root: Option<PathBuf>,
    /// `OVERNIGHT_STATE`
    pub state: Option<PathBuf>,
    /// `OVERNIGHT_THEME`
    pub theme: Option<String>,
    /// `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// `TERM`
    pub term: Option<String>,
    /// `COLORTERM`
    pub colorterm: Option<String>,
    /// `COLORFGBG`: some terminals say by it what their background is.
    pub colorfgbg: Option<String>,
    /// `LANG` and all `LC_*` that are set.
    pub locale: BTreeMap<String, String>,
    /// `SSH_CONNECTION` is set: somebody watches over a network.
    pub ssh: bool,
    /// `VISUAL`, else `EDITOR`.
    pub editor: Option<String>,
    /// `PAGER`
    pub pager: Option<String>,
    /// `SHELL`: the person's, which may not be the account's.
    pub own_shell: Option<PathBuf>,
    /// `PATH`
    pub path: Option<String>,
    /// `LD_LIBRARY_PATH`: where the driver's library may be. For our own processes, never for the work.
    pub library_path: Option<String>,
    /// The account's login shell, else `SHELL`, else `/bin/sh`.
    pub shell: PathBuf,
    /// The account's name, or its number where it has none.
    pub user: String,
    /// The account.
    pub uid: u32,
    /// `SUDO_USER`: who became this account for one command.
    pub sudo_user: Option<String>,
}

impl Environment {
    /// Reads everything, once, at the start of the process.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn read() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
        let uid = rustix::process::getuid().as_raw();
        let account = Account::of(uid);
        let locale = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name == "LANG" || name.starts_with("LC_"))
            .collect();
        let account = account.unwrap_or_default();
        Self {
            home: absolute("HOME").or(account.home),
            config_home: absolute("XDG_CONFIG_HOME"),
            state_home: absolute("XDG_STATE_HOME"),
            root: path("OVERNIGHT_ROOT"),
            state: path("OVERNIGHT_STATE"),
            theme: text("OVERNIGHT_THEME"),
            no_color: text("NO_COLOR").is_some(),
            term: text("TERM"),
            colorterm: text("COLORTERM"),
            colorfgbg: text("COLORFGBG"),
            locale,
            ssh: text("SSH_CONNECTION").is_some(),
            editor: text("VISUAL").or_else(|| text("EDITOR")),
            pager: text("PAGER"),
            own_shell: absolute("SHELL"),
            path: text("PATH"),
            library_path: text("LD_LIBRARY_PATH"),
            shell: account.shell.or_else(|| absolute("SHELL")).unwrap_or_else(|| "/bin/sh".into()),
            user: account.name.unwrap_or_else(|| uid.to_string()),
            uid,
            sudo_user: text("SUDO_USER"),
        }
    }

    /// The home directory.
    pub fn home(&self) -> Result<&Path, ConfigError> {
        self.home.as_deref().ok_or(ConfigError::NoHome)
    }

    /// Where the config lies unless a flag says otherwise.
    pub fn config_file(&self) -> Result<PathBuf, ConfigError> {
        let base = match &self.config_home {
            Some(set) => set.clone(),
            None => self.home()?.join(".config"),
        };
        Ok(base.join("overnight").join("config.toml"))
    }

    /// `XDG_STATE_HOME` or its default.
    pub fn state_home(&self) -> Result<PathBuf, ConfigError> {
        match &self.state_home {
            Some(set) => Ok(set.clone()),
            None => Ok(self.home()?.join(".local/state")),
        }
    }

    /// A path of the config file: `~/` is the home directory, and nothing else expands.
    pub fn expand(&self, path: &Path) -> Result<PathBuf, ConfigError> {
        match path.strip_prefix("~") {
            Ok(rest) => Ok(self.home()?.join(rest)),
            Err(_) => super::absolute(path),
        }
    }

    /// What `submit` sends for the work: `PATH`, `LANG`, `LC_*`.
    pub fn for_work(&self) -> BTreeMap<String, String> {
        let mut all = self.locale.clone();
        all.extend(self.path.iter().map(|path| ("PATH".to_owned(), path.clone())));
        all
    }

    /// What a process of ours needs to find the driver's library as this one does.
    pub fn for_driver(&self) -> BTreeMap<String, String> {
        self.library_path.iter().map(|path| ("LD_LIBRARY_PATH".to_owned(), path.clone())).collect()
    }

    /// Whether text goes out as UTF-8: by `LC_ALL`, else `LC_CTYPE`, else `LANG`.
    pub fn is_utf8(&self) -> bool {
        ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| self.locale.get(*name).filter(|value| !value.is_empty()))
            .is_some_and(|value| {
                let value = value.to_ascii_lowercase();
                value.contains("utf-8") || value.contains("utf8")
            })
    }
}

/// This host's name, made fit for a folder's name.
pub fn hostname() -> String {
    let name = rustix::system::uname();
    let name: String = name
        .nodename()
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' })
        .collect();
    if name.trim_matches('.').is_empty() { "localhost".to_owned() } else { name }
}

/// An account's entry.
#[derive(Debug, Default)]
struct Account {
    name: Option<String>,
    home: Option<PathBuf>,
    shell: Option<PathBuf>,
}

impl Account {
    /// Asks the account database, which may be more than `/etc/passwd`.
    #[expect(unsafe_code, reason = "getpwuid_r has no safe wrapper among our crates")]
    fn of(uid: u32) -> Option<Self> {
        let mut buffer = vec![0_u8; 1 << 14];
        loop {
            let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
            let mut found: *mut libc::passwd = std::ptr::null_mut();
            // SAFETY: all pointers are to live, writable memory of the lengths given; `found` is set to null or to `entry`.
            let rc = unsafe {
                libc::getpwuid_r(
                    uid,
                    entry.as_mut_ptr(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    &raw mut found,
                )
            };
            if rc == libc::ERANGE && buffer.len() < 1 << 20 {
                buffer.resize(buffer.len() * 4, 0);
                continue;
            }
            if rc != 0 || found.is_null() {
                return None;
            }
            // SAFETY: a successful call with a non-null result has filled `entry`; its strings end with NUL and lie in `buffer`.
            let (name, home, shell) = unsafe {
                let entry = entry.assume_init_ref();
                (text(entry.pw_name), text(entry.pw_dir), text(entry.pw_shell))
            };
            let path = |bytes: Option<Vec<u8>>| {
                bytes
                    .map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
                    .filter(|path| path.is_absolute())
            };
            return Some(Self {
                name: name.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|name| !name.is_empty()),
                home: path(home),
                shell: path(shell),
            });
        }
    }
}

/// A copy of a C string.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string.
#[expect(unsafe_code, reason = "reads strings of an account's entry")]
unsafe fn text(text: *const libc::c_char) -> Option<Vec<u8>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated by the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes().to_vec())
}
