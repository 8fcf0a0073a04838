use super::*;
use crate::model::{Bytes, Span};
use std::collections::BTreeMap;

fn environment() -> Environment {
    Environment {
        home: Some("/home/ana".into()),
        shell: "/bin/sh".into(),
        user: "ana".into(),
        ..Environment::default()
    }
}

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("config.toml")).map_err(|error| error.to_string())
}

#[test]
fn every_key_can_be_set() {
    let config = parse(
        r#"
        root = "~/jobs"
        gpus = "simulated:8"
        theme = "harbor-light"
        environment = {path = "/usr/bin", lang = "C.UTF-8"}
        limits = {until_done = "7d", max_file = "2MiB", snapshot_mib = 10, snapshot_files = 5, log_mib = 1, tasks = 9}
        defaults = {grace = "1m30s", cpus_per_gpu = 4, memory_per_gpu = "16GiB"}
        outside.ignore = ["kwin*"]
        rates = {gpu_hour = 1.5, core_hour = 0.02}
        keep = {days = 30, gib = 100}
        notify.command = ["mail", "ana"]
        ui = {ascii = true, mouse = true, sync = false, low_bandwidth = true, spinner = "on", notify = "osc9", columns = ["name", "why"]}
        [keys]
        cancel = ["x", "f9"]
        "#,
    )
    .unwrap();
    assert_eq!(config.gpus, GpuSource::Simulated(8));
    assert_eq!(config.limits.until_done, UntilDone::Cap(Span::secs(7 * 86_400)));
    assert_eq!(config.limits.max_file, Bytes::mib(2));
    assert_eq!(config.defaults.grace, Span::secs(90));
    assert_eq!(config.defaults.memory_per_gpu, Some(Bytes::gib(16)));
    assert_eq!(config.keys["cancel"], ["x", "f9"]);
    // What is written is read back as the same.
    assert_eq!(parse(&toml::to_string(&config).unwrap()).unwrap(), config);
}

#[test]
fn a_theme_is_one_or_a_pair() {
    let pair = parse("theme = { dark = \"nord\", light = \"okabe-light\", detect = \"osc11\" }").unwrap();
    let expected =
        ThemeSetting::Pair { dark: "nord".into(), light: "okabe-light".into(), detect: Detect::Osc11 };
    assert_eq!(pair.theme, Some(expected));
    assert_eq!(parse(&toml::to_string(&pair).unwrap()).unwrap(), pair);
    // A theme is no reason not to start: what is missing is `auto`, and it is told.
    let pair = |dark: &str, light: &str| ThemeSetting::Pair {
        dark: dark.into(),
        light: light.into(),
        detect: Detect::Off,
    };
    for (text, counts, message) in [
        ("theme = { dark = \"nord\" }", pair("nord", "auto"), "there is no `light`: `auto` stands for it"),
        ("theme = { light = \"nord\", dark = 1 }", pair("auto", "nord"), "`dark` is no theme's name"),
        ("theme = { dark = \"nord\", lite = \"mono\" }", pair("nord", "auto"), "`lite` is no key of it"),
        ("theme = { dark = \"a\", light = \"b\", detect = 1 }", pair("a", "b"), "`off` or `osc11`"),
        ("theme = 3", ThemeSetting::One("auto".into()), "`3` is no theme: `auto`"),
        ("theme = [\"nord\"]", ThemeSetting::One("auto".into()), "a list is no theme"),
    ] {
        let config = parse(text).unwrap();
        let theme = config.theme.clone().unwrap();
        assert_eq!(theme.plain(), &counts, "{text}");
        assert!(theme.complaint().is_some_and(|why| why.contains(message)), "{theme:?}");
        // What is written is what counts.
        assert_eq!(parse(&toml::to_string(&config).unwrap()).unwrap().theme, Some(counts));
    }
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(parse("").unwrap(), Config::default());
    assert_eq!(parse("[limits]\n").unwrap().limits.log_mib, 256);
}

#[test]
fn mistakes_are_told_with_place_and_nearest_name() {
    let cases = [
        ("\nthem = \"mono\"\n", "config.toml:2:1: unknown key `them`: did you mean `theme`?"),
        (
            "[limits]\nsnapshot_mb = 3\n",
            "config.toml:2:1: unknown key `snapshot_mb`: did you mean `snapshot_mib`?",
        ),
        ("gpus = \"simulated:0\"\n", "config.toml:1:8: `simulated:0`: the number is from 1 to 1024"),
        ("gpus = \"some\"\n", "config.toml:1:8: `some` is not auto, none or simulated:N"),
        ("defaults.grace = \"2\"\n", "config.toml:1:18: 2 what?: write it like \"30s\" or \"2m\""),
        (
            "limits.max_file = \"2Mb\"\n",
            "config.toml:1:19: `Mb` is a number of bits: write it like \"32GiB\"",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).unwrap_err(), message, "{text}");
    }
    assert!(
        parse("zebra = 1").unwrap_err().starts_with("config.toml:1:1: unknown key `zebra`, expected one of")
    );
    assert!(parse("root = [").unwrap_err().starts_with("config.toml:1:"));
}

#[test]
fn only_a_config_that_was_named_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment { config_home: Some(folder.path().to_owned()), ..environment() };
    assert_eq!(Config::load(None, &environment).unwrap(), Config::default());
    let named = folder.path().join("mine.toml");
    assert!(matches!(Config::load(Some(&named), &environment), Err(ConfigError::Read { .. })));
    std::fs::write(&named, "theme = \"mono\"").unwrap();
    let mono = ThemeSetting::One("mono".into());
    assert_eq!(Config::load(Some(&named), &environment).unwrap().theme, Some(mono.clone()));
    std::fs::create_dir(folder.path().join("overnight")).unwrap();
    std::fs::rename(&named, folder.path().join("overnight/config.toml")).unwrap();
    assert_eq!(Config::load(None, &environment).unwrap().theme, Some(mono));
}

#[test]
fn folders_come_from_flags_then_variables_then_config_then_home() {
    let plain = environment();
    let set = Environment { root: Some("/var/r".into()), ..environment() };
    let both = Environment { state: Some("/var/s".into()), ..set.clone() };
    let config = Config { root: Some("~/jobs".into()), ..Config::default() };
    let none = Config::default();
    let flag = Some(Path::new("/flag"));
    let own = format!("/home/ana/.local/state/overnight/{}", hostname());
    let cases: [(_, _, &Config, &Environment, &str, &str); 9] = [
        (None, None, &none, &plain, "/home/ana/overnight", &own),
        (None, None, &config, &plain, "/home/ana/jobs", &own),
        (None, None, &config, &set, "/var/r", "/var/r/.state"),
        (None, None, &none, &both, "/var/r", "/var/s"),
        (flag, None, &none, &plain, "/flag", "/flag/.state"),
        (flag, None, &config, &both, "/flag", "/flag/.state"),
        (None, flag, &none, &both, "/var/r", "/flag"),
        (None, flag, &config, &plain, "/home/ana/jobs", "/flag"),
        (Some(Path::new("/r")), flag, &none, &both, "/r", "/flag"),
    ];
    for (root, state, config, environment, expected_root, expected_state) in cases {
        let paths = Paths::resolve(root, state, config, environment).unwrap();
        let expected = Paths { root: expected_root.into(), state: expected_state.into() };
        assert_eq!(paths, expected, "{root:?} {state:?} {:?}", config.root);
    }
    let homeless = Environment { home: None, ..environment() };
    assert!(matches!(Paths::resolve(None, None, &none, &homeless), Err(ConfigError::NoHome)));
    assert!(Paths::resolve(flag, None, &none, &homeless).is_ok());
}

#[test]
fn the_environment_knows_its_account() {
    let environment = Environment::read();
    assert_eq!(environment.uid, rustix::process::getuid().as_raw());
    assert!(!environment.user.is_empty());
    assert!(environment.shell.is_absolute());
    assert!(environment.for_work().contains_key("PATH"));
}

#[test]
fn utf8_is_told_by_the_variable_that_rules() {
    let with = |pairs: &[(&str, &str)]| Environment {
        locale: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..environment()
    };
    assert!(with(&[("LANG", "de_DE.UTF-8")]).is_utf8());
    assert!(!with(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]).is_utf8());
    assert!(with(&[("LC_CTYPE", "C.utf8"), ("LC_ALL", "")]).is_utf8());
    assert!(!with(&[]).is_utf8());
}

/// A stand-in for a login shell that also prints, and leaves something running that holds its output open.
fn shell(folder: &Path, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("shell");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_login_shells_path_is_captured_once() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo PATH=/decoy; echo hello; sleep 60 & LC_TIME=C PATH=/opt/x:$PATH; export LC_TIME PATH; sh -c \"$2\"";
    let shell = shell(folder.path(), script);
    let environment = Environment { shell, ..environment() };
    let paths = Paths { root: folder.path().into(), state: folder.path().into() };
    let begun = crate::clock::monotonic().0;
    let captured = capture_login_path(&paths, &environment);
    assert!(crate::clock::monotonic().0 - begun < 2500, "waited for what the shell left running");
    assert_eq!(captured["PATH"], "/opt/x:/usr/local/bin:/usr/bin:/bin");
    assert_eq!(captured["LC_TIME"], "C");
    let kept = Environment { shell: "/nonexistent".into(), ..environment };
    assert_eq!(capture_login_path(&paths, &kept), captured);
    let config = parse("environment.path = \"/only\"").unwrap();
    let with = work_environment(&paths, &config, &kept);
    assert_eq!((with["PATH"].as_str(), with["LC_TIME"].as_str()), ("/only", "C"));
}

#[test]
fn a_login_shell_that_fails_or_hangs_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths { root: folder.path().into(), state: folder.path().into() };
    let expected = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    for shell in ["/nonexistent".into(), shell(folder.path(), "exit 1"), shell(folder.path(), "sleep 60")] {
        let environment = Environment { shell, ..environment() };
        assert_eq!(capture_login_path(&paths, &environment), expected);
        assert!(!folder.path().join("environment.json").exists(), "a guess was kept");
    }
}

#[test]
fn the_page_is_made_from_the_types() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    let made = markdown();
    if written != made {
        std::fs::write(&page, &made).unwrap();
        panic!("docs/configuration.md was out of date; it has been written anew: look at it and commit it");
    }
    for key in [
        "limits.until_done",
        "environment.lang",
        "defaults.memory_per_gpu",
        "outside.ignore",
        "ui.sync",
        "keys",
    ] {
        assert!(made.contains(&format!("| `{key}` |")), "{key}");
    }
}
