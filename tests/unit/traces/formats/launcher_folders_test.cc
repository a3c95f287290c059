#include "traces/formats/launcher_folders.h"

#include "tests/catch.h"

namespace rollcall::traces::launcher_folders_test {

TEST_CASE("a file in a folder of torchrun has its run, its attempt and its local rank", "[traces]") {
  CHECK(launcher_folder("logs/none_ab12/attempt_1/3/stderr.log") == LauncherFolder{"logs/none_ab12", 1, 3});
  CHECK(launcher_folder("logs/3/error.json") == LauncherFolder{"logs", 0, 3});
  CHECK_FALSE(launcher_folder("logs/attempt_1/3/train.log"));
  CHECK_FALSE(launcher_folder("logs/rank_3/stderr.log"));
  CHECK_FALSE(launcher_folder("stderr.log"));
}

TEST_CASE("a local rank is the rank unless several runs have it", "[traces]") {
  const LauncherFolders one(
      {"a/attempt_0/0/stderr.log", "a/attempt_0/0/stdout.log", "a/attempt_0/1/stderr.log"});
  CHECK(one.local_ranks_are_ranks());
  CHECK(one.earlier_attempts().empty());
  CHECK_FALSE(
      LauncherFolders({"a/attempt_0/0/stderr.log", "b/attempt_0/0/stderr.log"}).local_ranks_are_ranks());
  // One node has ranks 0 and 1, and of the other only rank 2 left a file.
  CHECK(LauncherFolders({"a/attempt_0/0/stderr.log", "b/attempt_0/2/stderr.log"}).local_ranks_are_ranks());
}

TEST_CASE("attempts before the last one of a run are known", "[traces]") {
  const LauncherFolders folders({"a/attempt_0/0/stderr.log", "a/attempt_1/0/stderr.log",
                                 "a/attempt_0/1/stderr.log", "b/attempt_0/1/stderr.log"});
  CHECK(folders.earlier_attempts() == std::vector<std::string>{"a/attempt_0"});
  CHECK(folders.is_of_earlier_attempt("a/attempt_0/1/stderr.log"));
  CHECK_FALSE(folders.is_of_earlier_attempt("a/attempt_1/0/stderr.log"));
  CHECK_FALSE(folders.is_of_earlier_attempt("b/attempt_0/1/stderr.log"));
  CHECK(folders.local_ranks_are_ranks());
}

}  // namespace rollcall::traces::launcher_folders_test
