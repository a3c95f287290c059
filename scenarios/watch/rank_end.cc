#include "scenarios/watch/rank_end.h"

#include <algorithm>
#include <csignal>

#include <sys/wait.h>

#include <fmt/core.h>

namespace rollcall::watch {

namespace {

std::string line(const char* verb, const RankEnd& end) {
  return fmt::format("rank {} {}: {}\n", end.rank, verb, end.phrase);
}

// As launchers end the ranks that are left when one has failed.
bool is_terminated(const RankEnd& end) {
  return end.wait_status && WIFSIGNALED(*end.wait_status) && WTERMSIG(*end.wait_status) == SIGTERM;
}

// An exit code may follow from an error of the rank's own or from a lost peer.
bool is_unclear(const RankEnd& end) { return !end.wait_status || WIFEXITED(*end.wait_status); }

// What a scheduler or a user does to all ranks at once. A rank that fails leaves an error or a status of its own.
bool was_ended_from_outside(const RankEnd& end) {
  return end.error == RankEnd::Error::none && !end.is_good && (is_terminated(end) || !end.wait_status);
}

}  // namespace

std::string lines_of_ended(const std::vector<RankEnd>& ends) {
  std::string lines;
  for (const RankEnd& end : ends) {
    if (end.error == RankEnd::Error::none) {
      lines += line(end.is_good ? "exited" : "ended", end);
    }
    if (end.error != RankEnd::Error::none || !end.is_good) {
      break;  // a launcher ends the others when one fails
    }
  }
  return lines;
}

// Not a rank that had lost a peer, had waited too long, or was ended by the launcher: then it is a rank that was done
// before. An exit code tells only if no rank was done before.
std::string line_of_failure(const std::vector<RankEnd>& ends, std::size_t ranks) {
  if (ends.size() == ranks && std::ranges::all_of(ends, was_ended_from_outside)) {
    return "";
  }
  const RankEnd* done = nullptr;
  const RankEnd* terminated = nullptr;
  const RankEnd* unclear = nullptr;
  bool has_victims = false;
  const auto keep_first = [](const RankEnd*& kept, const RankEnd& end) {
    kept = kept == nullptr ? &end : kept;
  };
  for (const RankEnd& end : ends) {
    if (end.error == RankEnd::Error::own) {
      return fmt::format("rank {} ended: by an exception\n", end.rank);
    }
    if (end.error == RankEnd::Error::of_others) {
      has_victims = true;
    } else if (end.is_good) {
      keep_first(done, end);
    } else if (is_terminated(end)) {
      keep_first(terminated, end);
    } else if (!is_unclear(end)) {
      return line("ended", end);
    } else if (unclear != nullptr && !unclear->wait_status && end.wait_status) {
      unclear = &end;  // its exit code says more
    } else {
      keep_first(unclear, end);
    }
  }
  if (done != nullptr && unclear == nullptr && (has_victims || terminated != nullptr)) {
    return line("exited", *done);
  }
  if (unclear != nullptr && done == nullptr) {
    return line("ended", *unclear);
  }
  return terminated != nullptr && done == nullptr && !has_victims ? line("ended", *terminated) : "";
}

}  // namespace rollcall::watch
