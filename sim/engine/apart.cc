#include "sim/engine/apart.h"

#include <cerrno>
#include <concepts>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/encoding.h"

namespace rollcall::check {

template <typename Visitor, typename AnyCall>
requires std::same_as<std::remove_const_t<AnyCall>, ProgramCall>
void visit(Visitor& visitor, AnyCall& call) {
  visitor(call.kind, call.group, call.seq, call.numel, call.dtype, call.label, call.is_root, call.peer,
          call.tag, call.reduce, call.root, call.async_op, call.batch, call.shadow, call.group_index,
          call.group_made_by, call.pairing, call.is_strict, call.site, call.given_parts, call.filled_parts);
}

template <typename Visitor, typename AnyGroup>
requires std::same_as<std::remove_const_t<AnyGroup>, ProgramGroup>
void visit(Visitor& visitor, AnyGroup& group) {
  visitor(group.name, group.ranks, group.made_by, group.is_by_use);
}

template <typename Visitor, typename AnyProgram>
requires std::same_as<std::remove_const_t<AnyProgram>, RankProgram>
void visit(Visitor& visitor, AnyProgram& program) {
  visitor(program.rank, program.calls, program.groups, program.sets, program.is_whole, program.is_endless);
}

template <typename Visitor, typename AnyStep>
requires std::same_as<std::remove_const_t<AnyStep>, Step>
void visit(Visitor& visitor, AnyStep& step) {
  visitor(step.text, step.label, step.site, step.group, step.seq, step.shadow, step.is_presence,
          step.is_joins);
}

template <typename Visitor, typename AnyLog>
requires std::same_as<std::remove_const_t<AnyLog>, StepLog>
void visit(Visitor& visitor, AnyLog& log) { visitor(log.ranks, log.groups); }

}  // namespace rollcall::check

namespace rollcall::sim {
namespace {

constexpr unsigned seconds_max = 10;

void write_all(int pipe, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(pipe, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return;
    }
    bytes.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

std::string read_all(int pipe) {
  std::string bytes;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got > 0) {
      bytes.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return bytes;
    }
  }
}

// Hides the program's output, and keeps a crash from leaving a core file.
void silence() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(nowhere, standard);
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

[[noreturn]] void answer_and_leave(int pipe, const std::function<std::string()>& answer) {
  silence();
  ::alarm(seconds_max);
  try {
    write_all(pipe, answer());
  } catch (...) {
    // The parent gets no answer then.
  }
  ::_exit(0);  // destructors and buffers belong to the parent
}

// The result of `answer` in a child process; empty if it could not give one.
std::string ask(const std::function<std::string()>& answer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {};
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    answer_and_leave(ends[1], answer);
  }
  ::close(ends[1]);
  std::string bytes = child > 0 ? read_all(ends[0]) : std::string();
  ::close(ends[0]);
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return bytes;
}

template <typename T>
T ask_for(const std::function<T()>& answer) {
  const std::string bytes = ask([&] { return encode_value(answer()); });
  try {
    return bytes.empty() ? T() : decode_value<T>(bytes);
  } catch (const std::runtime_error&) {
    return {};  // the child died while it wrote
  }
}

}  // namespace

std::vector<check::RankProgram> Apart::programs(const std::vector<Rank>& ranks) const {
  return ask_for<std::vector<check::RankProgram>>([&] { return inner_.programs(ranks); });
}

check::StepLog Apart::steps(const std::vector<Rank>& ranks) const {
  return ask_for<check::StepLog>([&] { return inner_.steps(ranks); });
}

std::optional<FindingKind> Apart::outcome_of(const check::CallEdits& edits) const {
  return ask_for<std::optional<FindingKind>>([&] { return inner_.outcome_of(edits); });
}

}  // namespace rollcall::sim
