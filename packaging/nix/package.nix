# A package for Nix, by make and make install.
# Usage: nix-build -E 'with import <nixpkgs> { }; callPackage ./packaging/nix/package.nix { }'
# The sources are those beside it; of a tarball of `make dist`, give `src`.
# Hooks in the settings of agents stay when the package goes: each user runs
# `tongs-agents uninstall --all` before. No homepage is published so far: it is a
# placeholder.
{
  lib,
  stdenv,
  rustPlatform,
  glibc,
  src ? lib.cleanSourceWith {
    src = lib.cleanSource ../..;
    filter = path: _: !(builtins.elem (baseNameOf path) [ "target" "build" "dist" ]);
  },
}:

rustPlatform.buildRustPackage {
  pname = "tongs";
  version = "0.1.0";
  inherit src;
  cargoLock.lockFile = ../../Cargo.lock;

  # The C library as an archive: the program is static.
  buildInputs = lib.optionals stdenv.hostPlatform.isGnu [ glibc.static ];

  buildPhase = ''
    runHook preBuild
    make
    runHook postBuild
  '';

  # The tests look for programs where other systems have them.
  doCheck = false;

  installPhase = ''
    runHook preInstall
    make install prefix=$out
    runHook postInstall
  '';

  meta = {
    description = "Says which coding agent works and which one waits for you";
    longDescription = ''
      Each coding agent runs the hook of tongs at every step of its work; the hook
      writes one small record per session, and everything else reads these. Before
      the package is removed, run `tongs-agents uninstall --all`.
    '';
    homepage = "https://tongs.invalid/";
    license = lib.licenses.mit;
    mainProgram = "tongs-agents";
    platforms = lib.platforms.linux;
  };
}
