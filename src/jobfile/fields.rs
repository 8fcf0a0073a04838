//! The fields of a job file: one table for each section. The reader takes its known fields from here, and the JSON
//! Schema is derived from the same tables, so that a field cannot be known to one and not to the other.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The known fields of one section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    /// As in "not a field of request".
    pub(super) name: &'static str,
    pub(super) fields: &'static [&'static str],
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident $title:literal {
        $($(#[$field_doc:meta])* $field:ident $text:literal: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(JsonSchema)]
        #[schemars(deny_unknown_fields)]
        #[expect(dead_code, reason = "its shape is the JSON Schema; the values are read from the tree")]
        pub(super) struct $name { $($(#[$field_doc])* #[schemars(rename = $text)] $field: $type,)* }

        impl $name {
            pub(super) const SECTION: Section = Section { name: $title, fields: &[$($text),*] };
        }
    };
}

macro_rules! value {
    ($(#[$doc:meta])* $name:ident $schema:tt) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

value!(/// Any scalar, kept as written.
    AnyText {"type": ["string", "number", "boolean"]});
value!(/// A job's name.
    JobName {"type": "string", "pattern": "^[a-z0-9._{}-]{1,64}$"});
value!(/// A directory or file of this host.
    HostPath {"type": "string", "description": "absolute, or ~/…, or relative to `in`, to a dropped folder, to the submitted file"});
value!(/// A whole number.
    Count {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+$"}]});
value!(/// A whole number, or everything.
    CountOrAll {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^([0-9]+|all)$"}]});
value!(/// A length of time.
    Length {"type": "string", "pattern": "^([0-9]+d)? ?([0-9]+h)? ?([0-9]+m)? ?([0-9]+s)?$|^([0-9]+-)?[0-9]+:[0-9]{2}:[0-9]{2}$|^[0-9]+-[0-9]+:[0-9]{2}$", "examples": ["90s", "45m", "6h", "2d", "1h30m", "2:00:00"]});
value!(/// A length of time, or no limit.
    LimitValue {"anyOf": [{"$ref": "#/$defs/Length"}, {"const": "until_done"}]});
value!(/// A size with its unit.
    Size {"type": "string", "pattern": "^[0-9]+ ?(B|[KMGT]i?B?|[kmgt]|kB|kiB|mb|gb|tb)$", "examples": ["32GiB", "32GB", "32G"]});
value!(/// A size with its unit, or everything.
    SizeOrAll {"anyOf": [{"$ref": "#/$defs/Size"}, {"const": "all"}]});
value!(/// A moment.
    When {"type": "string", "examples": ["2026-12-01T08:00:00+01:00", "2026-12-01 08:00", "08:00", "tomorrow 08:00", "fri 09:00", "in 10h"]});
value!(/// Higher goes first.
    PriorityValue {"anyOf": [{"enum": ["low", "normal", "high"]}, {"type": "integer", "minimum": -100, "maximum": 100}]});
value!(/// One word or a list of them; any of them will do.
    Words {"anyOf": [{"type": ["string", "number"]}, {"type": "array", "items": {"type": ["string", "number"]}}]});
value!(/// Text for bash, or a program and its arguments.
    RunValue {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}]});
value!(/// Environment variables; values are text.
    EnvValue {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}, "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}});
value!(/// One task for each combination of values.
    ForEachValue {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^[a-z][a-z0-9_]*$"}, "additionalProperties": {"anyOf": [
        {"type": "array"}, {"type": "string", "pattern": "^-?[0-9]+\\.\\.-?[0-9]+(\\.\\.[0-9]+)?$"}, {"type": "string"},
        {"type": "object", "properties": {"lines": {"type": "string"}, "files": {"type": "string"}}, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}]}});
value!(/// What the work is.
    KindValue {"enum": ["training", "inference", "processing", "simulation", "other"]});
value!(/// How a data item gets there.
    StageValue {"enum": ["link", "copy", "unpack"]});
value!(/// What `CUDA_VISIBLE_DEVICES` holds.
    GpuIdsValue {"enum": ["index", "uuid"]});
value!(/// What kind of output it is.
    OutputKindValue {"enum": ["model", "results", "files", "report"]});
value!(/// When to notify.
    NotifyValue {"enum": ["end", "fail", "late"]});
value!(/// The warning signal.
    SignalValue {"enum": ["TERM", "INT", "HUP", "USR1", "USR2"]});
value!(/// An end after which a task is tried again.
    RetryOnValue {"anyOf": [{"enum": ["lost", "limit"]}, {"type": "integer", "minimum": 1, "maximum": 255}]});
value!(/// How the directory named by `in` reaches the work.
    CodeValue {"anyOf": [{"enum": ["snapshot", "live"]}, {"$ref": "#/$defs/Adjust"}]});
value!(/// A path, or a mapping with more about it.
    DataValue {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/DataEntry"}]});
value!(/// A path or glob, or a mapping with more about it.
    OutputValue {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/OutputEntry"}]});

section! {
    /// One job of an Overnight job file: work, data, request, output.
    JobFile "a job file" {
        /// `[a-z0-9._-]`, at most 64; default: the file's stem.
        name "name": Option<JobName>,
        /// Usage is also summed per project.
        project "project": Option<JobName>,
        /// What runs.
        work "work": WorkSection,
        /// What it reads; may be `[]`, must be present.
        data "data": Vec<DataValue>,
        /// How much, how long, by when.
        request "request": RequestSection,
        /// What comes back; may be `[]`, must be present.
        output "output": Vec<OutputValue>,
        /// An extra place for the output; never overwrites another job's files.
        output_to "output_to": Option<HostPath>,
        /// When to run the configured notification command. Not supported yet.
        notify "notify": Option<Vec<NotifyValue>>,
    }
}

section! {
    /// What runs.
    WorkSection "work" {
        /// For filters and history; changes nothing else.
        kind "kind": Option<KindValue>,
        /// The directory the work starts from; default: an empty private directory.
        dir "in": Option<HostPath>,
        /// `snapshot` (default), `live`, or a snapshot adjusted.
        code "code": Option<CodeValue>,
        /// Run before the work, without `-e`.
        setup "setup": Option<SetupSection>,
        /// The command: text for `bash -eo pipefail`, or a list without a shell.
        run "run": RunValue,
        /// Environment variables.
        env "env": Option<EnvValue>,
        /// `KEY=value` lines; must be 0600 and yours; read at start, never stored.
        env_file "env_file": Option<HostPath>,
        /// One task per combination. More than one task is not supported yet.
        for_each "for_each": Option<ForEachValue>,
        /// Kept between attempts. Not supported yet.
        checkpoint "checkpoint": Option<HostPath>,
        /// The warning before the kill.
        stop "stop": Option<StopSection>,
    }
}

section! {
    /// The environment of the work, set up in this order.
    SetupSection "setup" {
        /// `module load` each.
        modules "modules": Option<Words>,
        /// A conda environment: a name or a prefix.
        conda "conda": Option<AnyText>,
        /// The directory of a virtual environment on disk.
        venv "venv": Option<HostPath>,
        /// Shell text.
        shell "shell": Option<AnyText>,
    }
}

section! {
    /// The warning signal and how long it has before the kill.
    StopSection "stop" {
        /// Default TERM.
        signal "signal": Option<SignalValue>,
        /// From the warning to the kill; default 30s.
        grace "grace": Option<Length>,
    }
}

section! {
    /// A snapshot, adjusted.
    Adjust "code" {
        /// Also left out.
        skip "skip": Option<Words>,
        /// Taken although ignored.
        keep "keep": Option<Words>,
    }
}

section! {
    /// One entry of `data`.
    DataEntry "a data entry" {
        /// An absolute path, or `job:NAME/PATH`.
        from "from": AnyText,
        /// Below an earlier job's output.
        path "path": Option<AnyText>,
        /// The name it appears under.
        name "as": Option<AnyText>,
        /// `link` (default); `copy` and `unpack` are not supported yet.
        stage "stage": Option<StageValue>,
        /// Not supported yet.
        sha256 "sha256": Option<AnyText>,
    }
}

section! {
    /// How much, how long, by when.
    RequestSection "request" {
        /// GPUs; 0 is CPU-only.
        gpus "gpus": CountOrAll,
        /// Words of the device's name; any of them.
        gpu_model "gpu_model": Option<Words>,
        /// Each; a card that reports 93 % of it fits.
        gpu_memory "gpu_memory": Option<Size>,
        /// What `CUDA_VISIBLE_DEVICES` holds.
        gpu_ids "gpu_ids": Option<GpuIdsValue>,
        /// May share a GPU. Not supported yet.
        share "share": Option<bool>,
        /// CPU cores; default: the pool's share for the GPUs.
        cpus "cpus": Option<CountOrAll>,
        /// Host memory; default: the pool's share for the GPUs.
        memory "memory": Option<SizeOrAll>,
        /// Scratch and staged data. Not supported yet.
        disk "disk": Option<Size>,
        /// How long it may take.
        limit "for": LimitValue,
        /// When the result is needed.
        finish_by "finish_by": Option<When>,
        /// Not started before.
        start_after "start_after": Option<When>,
        /// Names of jobs that must have succeeded.
        after "after": Option<Vec<JobName>>,
        /// Names of jobs that must have ended.
        after_any "after_any": Option<Vec<JobName>>,
        /// `low`, `normal`, `high`, or −100 to 100.
        priority "priority": Option<PriorityValue>,
        /// Tasks at the same time. Not supported yet.
        at_once "at_once": Option<Count>,
        /// When to try again.
        retry "retry": Option<RetrySection>,
    }
}

section! {
    /// When a task is tried again.
    RetrySection "retry" {
        /// How often at most; default 1.
        times "times": Option<Count>,
        /// After which ends; default `[lost]`. `limit` is not supported yet.
        when "when": Option<Vec<RetryOnValue>>,
    }
}

section! {
    /// One entry of `output`.
    OutputEntry "an output entry" {
        /// A file, directory or glob in the work directory or `$OVERNIGHT_OUTPUT`.
        path "path": AnyText,
        /// Default `files`.
        kind "kind": Option<OutputKindValue>,
        /// Missing is no failure.
        optional "optional": Option<bool>,
    }
}

/// The JSON Schema of the job file, from the tables that the reader uses.
pub fn schema() -> serde_json::Value {
    let mut generator = SchemaGenerator::default();
    // Values refer to these by name.
    generator.subschema_for::<Length>();
    generator.subschema_for::<Size>();
    generator.subschema_for::<Adjust>();
    generator.subschema_for::<DataEntry>();
    generator.subschema_for::<OutputEntry>();
    let mut schema = generator.into_root_schema_for::<JobFile>();
    schema.insert("title".to_owned(), "Overnight job file".into());
    schema.to_value()
}
