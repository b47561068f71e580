# tongs: build, check, install. POSIX make; see README.md for what a bare
# machine needs and src/README.md for the map.
.POSIX:

prefix = /usr/local
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
datarootdir = $(prefix)/share
datadir = $(datarootdir)
mandir = $(datarootdir)/man
unitdir = $(prefix)/lib/systemd/user
bashdir = $(datadir)/bash-completion/completions
zshdir = $(datadir)/zsh/site-functions
fishdir = $(datadir)/fish/vendor_completions.d
CARGO = cargo
PYTHON = python3
INSTALL = install
# Empty: the best one that this machine can build, packaging/target.sh.
TARGET =
# DESTDIR comes from the command line or the environment, and reaches the recipes by
# the environment: it may have any character.

PAGES1 = man/tongs.1 man/tongs-hook.1 man/tongs-agents.1 man/tongs-bridge-import.1
PAGES5 = man/tongs-record.5
PAGES7 = man/tongs.7 man/tongs-harnesses.7 man/tongs-terminals.7 man/tongs-bridges.7

UNITS = tongs-notify.service tongs-cleanup.service tongs-cleanup.timer tongs-bridge@.service
PLISTS = tongs.notify.plist tongs.cleanup.plist
EXAMPLES = push-to-phone.sh pick-session.sh redis-send.sh redis-receive.sh
SNIPPETS = tmux.conf starship.toml prompt.bash prompt.zsh prompt.fish devcontainer.json

# Whose completion each shell looks for by its name; the file is tongs's.
COMPLETED = tongs-agents tongs-hook tongs-bridge-import

all: build/tongs

build/tongs: FORCE
	@set -e; CARGO="$(CARGO)" sh packaging/build-check.sh; \
	target=$(TARGET); [ -n "$$target" ] || target=$$(sh packaging/target.sh); \
	$(CARGO) build --release --locked --target "$$target" \
	    --config "target.$$target.rustflags=$$(sh packaging/flags.sh "$$target")"; \
	mkdir -p build; \
	cmp -s "target/$$target/release/tongs" build/tongs || \
	    { cp "target/$$target/release/tongs" build/tongs.new; mv build/tongs.new build/tongs; }; \
	build/tongs --install-links build

check: build/tongs lint-man
	TONGS_BIN="$$PWD/build/tongs" $(CARGO) test --locked --workspace --tests

demo: build/tongs
	@sh packaging/demo.sh build

bench: build/tongs
	@sh tests/bench/run.sh "$$PWD/build/tongs"

# Against other programs of this kind, which it installs and throws away again.
bench-peers: build/tongs
	@sh tests/bench/peers.sh "$$PWD/build/tongs"

# The pictures of the README, from the program itself.
pictures: build/tongs
	sh packaging/pictures/make.sh build packaging/pictures

interop: build/tongs
	@sh tests/interop/run.sh "$$PWD/build/tongs"

# The other processor of Linux, and the types for other systems.
cross:
	@sh packaging/cross.sh "$(CARGO)"

sweep: build/tongs
	TONGS_BIN="$$PWD/build/tongs" TONGS_TEST_SWEEP=all $(CARGO) test --locked --test sweep -- --nocapture

FMT = $(CARGO) fmt --all -- --config-path packaging/rustfmt.toml

fmt:
	$(FMT)

lint: lint-man
	$(FMT) --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

lint-man:
	@if command -v mandoc >/dev/null 2>&1; then \
	    mandoc -T lint -W warning $(PAGES1) $(PAGES5) $(PAGES7); \
	else echo 'mandoc is not installed: man pages are not checked' >&2; fi

# Does not build as root: sudo has no toolchain. Looks first, then installs all or nothing.
install:
	@MAKE="$(MAKE)" sh packaging/install.sh

# What install brings, below the directory STAGE of the environment.
tree:
	@[ -n "$$STAGE" ] || { echo 'make: tree needs STAGE; you want install' >&2; exit 64; }
	$(INSTALL) -d "$$STAGE$(bindir)" "$$STAGE$(mandir)/man1" \
	    "$$STAGE$(mandir)/man5" "$$STAGE$(mandir)/man7"
	$(INSTALL) -m 755 build/tongs "$$STAGE$(bindir)/tongs"
	build/tongs --install-links "$$STAGE$(bindir)"
	$(INSTALL) -m 644 $(PAGES1) "$$STAGE$(mandir)/man1"
	$(INSTALL) -m 644 $(PAGES5) "$$STAGE$(mandir)/man5"
	$(INSTALL) -m 644 $(PAGES7) "$$STAGE$(mandir)/man7"
	$(INSTALL) -d "$$STAGE$(unitdir)" "$$STAGE$(datadir)/tongs/launchd" \
	    "$$STAGE$(datadir)/tongs/examples" "$$STAGE$(datadir)/tongs/hooks"
	@set -e; place() { \
	    sed -e 's|/usr/local/bin|$(bindir)|' -e 's|/usr/local/share|$(datadir)|' \
	        "packaging/$$1" >"$$STAGE$$2"; chmod "$${3-644}" "$$STAGE$$2"; }; \
	for unit in $(UNITS); do place "systemd/$$unit" "$(unitdir)/$$unit"; done; \
	for plist in $(PLISTS); do place "launchd/$$plist" "$(datadir)/tongs/launchd/$$plist"; done; \
	for name in $(SNIPPETS); do place "examples/$$name" "$(datadir)/tongs/examples/$$name"; done; \
	for name in $(EXAMPLES); do place "examples/$$name" "$(datadir)/tongs/examples/$$name" 755; done
	$(INSTALL) -d "$$STAGE$(bashdir)" "$$STAGE$(zshdir)" "$$STAGE$(fishdir)"
	$(INSTALL) -m 644 packaging/completions/tongs.bash "$$STAGE$(bashdir)/tongs"
	$(INSTALL) -m 644 packaging/completions/_tongs "$$STAGE$(zshdir)/_tongs"
	$(INSTALL) -m 644 packaging/completions/tongs.fish "$$STAGE$(fishdir)/tongs.fish"
	@set -e; for name in $(COMPLETED); do \
	    ln -sf tongs "$$STAGE$(bashdir)/$$name"; \
	    ln -sf tongs.fish "$$STAGE$(fishdir)/$$name.fish"; \
	done
	@set -e; dir="$$STAGE$(datadir)/tongs/hooks"; \
	build/tongs agents install --list --home / | grep -v '^other ' | while read -r agent rest; do \
	    file=$${rest##*/}; case $$file in *.*) end=.$${file##*.} ;; *) end= ;; esac; \
	    build/tongs agents install --print --agent "$$agent" --hook-path "$(bindir)/tongs-hook" \
	        >"$$dir/$$agent$$end"; \
	    chmod 644 "$$dir/$$agent$$end"; \
	done

uninstall:
	@set --; \
	for name in tongs tongs-hook tongs-agents tongs-bridge-import; do set -- "$$@" "$(bindir)/$$name"; done; \
	for name in tongs $(COMPLETED); do \
	    set -- "$$@" "$(bashdir)/$$name" "$(fishdir)/$$name.fish"; \
	done; \
	for unit in $(UNITS); do set -- "$$@" "$(unitdir)/$$unit"; done; \
	for page in $(PAGES1:man/%=man1/%) $(PAGES5:man/%=man5/%) $(PAGES7:man/%=man7/%); do \
	    set -- "$$@" "$(mandir)/$$page"; \
	done; \
	sh packaging/uninstall.sh "$(datadir)/tongs" "$(zshdir)/_tongs" "$$@"

dist:
	@set -e; v=$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1); mkdir -p dist; \
	git archive --prefix="tongs-$$v/" -o "dist/tongs-$$v.tar.gz" HEAD; \
	cd dist; sha256sum "tongs-$$v.tar.gz" >"tongs-$$v.tar.gz.sha256"; echo "dist/tongs-$$v.tar.gz"

# Packages of what was built, each by way of 'make install'.
tarball: build/tongs
	@sh packaging/tarball.sh

deb: build/tongs
	@sh packaging/deb.sh

rpm: build/tongs
	@sh packaging/rpm.sh

# By the recipes of Arch Linux and Alpine Linux, which build by themselves.
arch:
	@sh packaging/arch.sh

apk:
	@sh packaging/apk.sh

# The README on a bare Debian machine, and the package on another.
freshcheck:
	@sh packaging/freshcheck/run.sh

clean:
	rm -rf build dist
	$(CARGO) clean

FORCE:
.PHONY: all check demo pictures bench bench-peers interop cross sweep fmt lint lint-man install tree uninstall dist tarball deb rpm clean arch apk freshcheck FORCE
