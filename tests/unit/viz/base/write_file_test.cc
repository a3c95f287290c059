#include "viz/base/write_file.h"
#include "tests/catch.h"
#include "tests/contents.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include <unistd.h>

namespace rollcall::viz::write_file_test {

namespace {

using rollcall::test::contents;
namespace fs = std::filesystem;

// A temporary folder, which is removed after the test.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("rollcall_write_file_test." + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

void write_text(const std::string& path, const std::string& text) {
  write_file(path, [&text](std::ostream& out) { out << text; });
}

}  // namespace

TEST_CASE("a written file holds the new text and nothing else is left") {
  const Folder folder;
  write_text(folder.file("a.json"), "old, and longer");
  write_text(folder.file("a.json"), "new");
  CHECK(contents(folder.file("a.json")) == "new");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a write that fails half-way leaves what was there") {
  const Folder folder;
  write_text(folder.file("a.json"), "old");
  const auto fail_half_way = [](std::ostream& out) {
    out << "half";
    out.setstate(std::ios::badbit);
  };
  CHECK_THROWS_AS(write_file(folder.file("a.json"), fail_half_way), OutputError);
  CHECK(contents(folder.file("a.json")) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a writer that throws leaves nothing behind") {
  const Folder folder;
  CHECK_THROWS_AS(write_file(folder.file("a.json"), [](std::ostream&) { throw std::runtime_error("no"); }),
                  std::runtime_error);
  CHECK(folder.entries() == 0);
}

TEST_CASE("writing through a link changes the file, not the link") {
  const Folder folder;
  write_text(folder.file("real.json"), "old");
  fs::create_symlink("real.json", folder.file("link.json"));
  write_text(folder.file("link.json"), "new");
  CHECK(fs::is_symlink(folder.file("link.json")));
  CHECK(contents(folder.file("real.json")) == "new");
}

TEST_CASE("a path that cannot be written is named, with the reason") {
  const Folder folder;
  CHECK_THROWS_WITH(write_text(folder.file("no/such/folder.json"), "x"),
                    Contains("no/such/folder.json") && Contains("No such file or directory"));
  CHECK_THROWS_AS(write_text(folder.path.string(), "x"), OutputError);
}

TEST_CASE("a full device is an error, and stays a device") {
  if (!fs::is_character_file("/dev/full")) {
    WARN("skipped: this machine has no /dev/full");
    return;
  }
  CHECK_THROWS_WITH(write_text("/dev/full", "x"), Contains("No space left on device"));
  CHECK(fs::is_character_file("/dev/full"));
}

}  // namespace rollcall::viz::write_file_test
