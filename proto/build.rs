//! Compiles the `.proto` files without a `protoc` on the machine, and keeps their descriptors for reflection.

use std::{env, error::Error, fmt::Write as _, fs, path::PathBuf};

use protox::{
    Compiler,
    prost_reflect::{DescriptorPool, Value},
};

const FILES: [&str; 27] = [
    "satchel/v1/options.proto",
    "satchel/v1/common.proto",
    "satchel/v1/memory.proto",
    "satchel/v1/memory_service.proto",
    "satchel/v1/conversation.proto",
    "satchel/v1/conversation_service.proto",
    "satchel/v1/import.proto",
    "satchel/v1/import_service.proto",
    "satchel/v1/plugin.proto",
    "satchel/v1/plugin_service.proto",
    "satchel/v1/export.proto",
    "satchel/v1/export_service.proto",
    "satchel/v1/source.proto",
    "satchel/v1/admin.proto",
    "satchel/v1/admin_service.proto",
    "satchel/v1/operation.proto",
    "satchel/v1/operation_service.proto",
    "satchel/v1/device.proto",
    "satchel/v1/device_service.proto",
    "satchel/v1/pairing_service.proto",
    "satchel/v1/watch_service.proto",
    "satchel/v1/upload_service.proto",
    "satchel/v1/attachment_service.proto",
    "satchel/v1/embedding_service.proto",
    "satchel/v1/search_service.proto",
    "satchel/v1/sync_service.proto",
    "satchel/v1/peer_service.proto",
];

/// What the names of methods that change nothing begin with.
const READ_VERBS: [&str; 8] = ["Get", "BatchGet", "List", "Watch", "Download", "Verify", "Search", "Build"];

/// Messages with secrets in them: how they are shown is written by hand.
const PRIVATE: [&str; 2] = [".satchel.v1.Unlock", ".satchel.v1.CreateExportRequest"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=satchel");
    println!("cargo::rerun-if-changed=google");
    let mut compiler = Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    compiler.open_files(FILES)?;
    // The encoded form keeps our method options, which the decoded one would drop.
    fs::write(out.join("descriptor_set.bin"), compiler.encode_file_descriptor_set())?;
    fs::write(out.join("methods.rs"), methods(&compiler.descriptor_pool())?)?;
    tonic_prost_build::configure()
        .skip_debug(PRIVATE)
        .extern_path(".google.rpc.Status", "::tonic_types::pb::Status")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

/// The table of methods, with their options.
fn methods(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let option = |name| pool.get_extension_by_name(name).ok_or(format!("there is no option {name}"));
    let (scope, mutates, long_running) = (
        option("satchel.v1.required_scope")?,
        option("satchel.v1.mutates")?,
        option("satchel.v1.long_running")?,
    );
    let mut table = "&[\n".to_owned();
    for service in pool.services() {
        for method in service.methods() {
            let options = method.options();
            let set = |option| *options.get_extension(option) == Value::Bool(true);
            let scope = options.get_extension(&scope).as_enum_number().unwrap_or_default();
            if scope == 0 {
                return Err(format!("{} must declare a required_scope", method.full_name()).into());
            }
            let reads = READ_VERBS.iter().any(|verb| method.name().starts_with(verb));
            if set(&mutates) == reads {
                return Err(format!(
                    "{} must set `mutates` to true, or begin with one of {READ_VERBS:?}",
                    method.full_name()
                )
                .into());
            }
            writeln!(
                table,
                "Method {{ path: \"/{}/{}\", required_scope: {scope}, mutates: {}, long_running: {} }},",
                service.full_name(),
                method.name(),
                set(&mutates),
                set(&long_running),
            )?;
        }
    }
    Ok(table + "]")
}
