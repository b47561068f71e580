//! The program for the other processor of Linux, which `make cross` builds, run by
//! qemu-user: all that a session does, with real processes of this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{World, claude, finish};

const OTHER: &str = if cfg!(target_arch = "x86_64") { "aarch64" } else { "x86_64" };

/// The program and an emulator for it; says why where there is none.
fn emulated(test: &str) -> Option<(PathBuf, String)> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("build").join(OTHER).join("tongs");
    if !program.exists() {
        eprintln!("skipped {test}: build/{OTHER}/tongs is missing: run 'make cross'");
        return None;
    }
    let names = [format!("qemu-{OTHER}-static"), format!("qemu-{OTHER}")];
    let emulator = names.into_iter().find(|name| {
        let mut command = Command::new("sh");
        command.args(["-c", "command -v \"$0\"", name]);
        finish(command, b"").code == Some(0)
    });
    if emulator.is_none() {
        eprintln!("skipped {test}: qemu-user is not installed");
    }
    Some((program, emulator?))
}

#[test]
fn the_program_for_the_other_processor_does_its_work() {
    let Some((program, emulator)) = emulated("the_program_for_the_other_processor") else { return };
    let bytes = fs::read(&program).unwrap();
    assert_eq!(&bytes[..4], b"\x7fELF");
    // e_machine: EM_AARCH64, EM_X86_64.
    let machine = u16::from_le_bytes([bytes[18], bytes[19]]);
    assert_eq!(machine, if OTHER == "aarch64" { 183 } else { 62 });
    assert!(!bytes.windows(15).any(|w| w == b"/lib/ld-linux-a"), "it is not static");
    assert!(bytes.len() <= 1536 * 1024, "{} bytes", bytes.len());

    let world = World::new();
    for name in ["tongs-hook", "tongs-agents", "tongs-bridge-import"] {
        let file = world.path("bin").join(name);
        let _ = fs::remove_file(&file);
        let script =
            format!("#!/bin/sh\nexec {emulator} -0 {name} '{}' \"$@\"\n", program.display());
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let version = format!("tongs-agents {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(world.agents(&["--version"]).out, version);

    let mut agent = world.harness("claude");
    agent.hook(&["claude", "UserPromptSubmit"], &claude("s", "")).silent();
    let record = world.record();
    assert_eq!(record["status"], "running");
    assert_eq!(record["pid"], agent.pid().to_string());
    let ask = claude("s", r#","tool_name":"Bash""#);
    agent.hook(&["claude", "PermissionRequest"], &ask).silent();
    let session = world.session("s").unwrap();
    assert_eq!(
        (&session["status"], &session["needs_attention"]),
        (&"waiting".into(), &true.into())
    );
    agent.kill();
    assert_eq!(world.agents(&["cleanup"]).code, Some(0));
    assert!(world.session("s").is_none());
}
