#pragma once

// Recordings for tests, in their own folder.

#include <string>

#include <zlib.h>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::test {

class Folder : public rollcall::test::Folder {
 public:
  void write_packed(const std::string& name, const std::string& bytes) const {
    gzFile file = ::gzopen(path(name).c_str(), "wb");
    REQUIRE(::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) > 0);
    ::gzclose(file);
  }
};

// Returns the diagnosis of all files in a folder.
inline Diagnosis diagnosis_of(const Folder& folder) {
  const ReadResult input = read_recordings({folder.path()});
  CHECK(input.problems.empty());
  return check::judge_dump(input.job);
}

}  // namespace rollcall::traces::test
