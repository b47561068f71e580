# A formula for Homebrew on Linux, by make and make install.
# Usage: `make dist` makes tongs-VERSION.tar.gz and its checksum in dist; put the
# checksum in here, this file into a tap, and say where the tarball is:
#   brew tap-new me/local; cp tongs.rb "$(brew --repository me/local)/Formula"
#   HOMEBREW_TONGS_DIST=$PWD/dist brew install --build-from-source me/local/tongs
# No sources are published so far: the homepage is a placeholder.
class Tongs < Formula
  desc "Says which coding agent works and which one waits for you"
  homepage "https://tongs.invalid/"
  url "file://#{ENV.fetch("HOMEBREW_TONGS_DIST", "/nonexistent")}/tongs-0.1.0.tar.gz"
  version "0.1.0"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "make"
    system "make", "install", "prefix=#{prefix}"
  end

  def caveats
    <<~TEXT
      Hooks in the settings of agents stay and do nothing once tongs is gone.
      Before `brew uninstall tongs`, each user takes them out:
        tongs-agents uninstall --all
    TEXT
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tongs-agents --version")
    system bin/"tongs-agents", "status"
  end
end
