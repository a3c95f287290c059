#include "traces/logs/python_errors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "traces/logs/lines.h"
#include "traces/logs/user_frame.h"

namespace rollcall::traces {

namespace {

using check::LogFact;
using Kind = LogFact::Kind;

constexpr std::string_view traceback = "Traceback (most recent call last)";
constexpr std::string_view terminate = "terminate called after throwing";
constexpr std::string_view fatal = "Fatal Python error: ";
constexpr std::string_view too_long = "op.preamble.length <= op.nbytes. ";
constexpr std::size_t text_max = 160;
constexpr std::size_t message_lines_max = 4;  // lines after the first line of an error

template <std::size_t size>
bool has_one_of(std::string_view text, const std::array<std::string_view, size>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

constexpr std::array<std::string_view, 13> of_others = {"Connection closed by peer",
                                                        "Connection reset by peer",
                                                        "Broken pipe",
                                                        "Socket closed",
                                                        "recvValue failed",
                                                        "failed to recv",
                                                        "DistNetworkError",
                                                        "emote process exited",
                                                        "ncclRemoteError",
                                                        "communicator was aborted",
                                                        "Connection refused",
                                                        "sendBytes failed",
                                                        "SocketException"};
constexpr std::array<std::string_view, 5> too_late = {"Timed out", "timed out", "imeout", "DistStoreError",
                                                      "TimeoutError"};
// Errors of ranks that wait, which are about other ranks, or of programs that end processes.
constexpr std::array<std::string_view, 6> of_nobody = {"CollectiveFingerPrint", "monitoredBarrier",
                                                       "ChildFailedError",      "SignalException",
                                                       "KeyboardInterrupt",     "SystemExit"};

// Before the traceback of an error that does not end the program by itself.
constexpr std::array<std::string_view, 4> of_other_errors = {"above exception was the direct cause",
                                                             "handling of the above exception",
                                                             "Exception ignored in", "Exception in thread"};

// Removes all up to torch's "[rank2]: ", and sets the rank. Collectors of logs put times and names before it.
bool take_torch_prefix(std::string_view& line, Rank& rank) {
  constexpr std::string_view word = "[rank";
  constexpr std::size_t place_max = 120;
  const std::size_t place = line.substr(0, place_max).find(word);
  const std::size_t end = place == std::string_view::npos ? place : line.find("]:", place);
  const bool is_number =
      end != std::string_view::npos &&
      line.substr(0, end).find_first_not_of("0123456789", place + word.size()) == std::string_view::npos;
  const std::optional<Rank> named = is_number ? rank_after(line.substr(place), word) : std::nullopt;
  if (!named) {
    return false;
  }
  rank = *named;
  line.remove_prefix(end + 2);
  line.remove_prefix(line.starts_with(' ') ? 1 : 0);
  return true;
}

// Removes the prefixes that launchers put before each line, and sets the rank that they name: "[rank2]: ", torchrun's
// "[default0]:", srun's "2: ".
std::string_view without_prefix(std::string_view line, Rank& rank) {
  constexpr std::size_t longest = 32;
  if (take_torch_prefix(line, rank)) {
    return line;
  }
  for (int i = 0; i < 2 && line.starts_with('['); ++i) {
    const std::size_t end = line.find("]:");
    const std::string_view name = line.substr(1, end == std::string_view::npos ? 0 : end - 1);
    const bool is_word = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (name.empty() || name.size() > longest || !is_word) {
      break;
    }
    line.remove_prefix(end + 2);
  }
  constexpr std::size_t digits_max = 5;
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  if (digits > 0 && digits <= digits_max && line.substr(digits).starts_with(": ")) {
    rank = static_cast<Rank>(number_at(line).value_or(rank));
    line.remove_prefix(digits + 2);
  }
  return line;
}

// `  File "train.py", line 12, in main`.
std::optional<check::DumpFrame> frame_in(std::string_view line) {
  const std::string_view text = without_blanks(line);
  if (!text.starts_with("File \"")) {
    return std::nullopt;
  }
  const std::size_t end = text.find('"', 6);
  const std::size_t name = text.find(", in ", end == std::string_view::npos ? text.size() : end);
  if (end == std::string_view::npos || name == std::string_view::npos) {
    return std::nullopt;
  }
  return check::DumpFrame{std::string(text.substr(name + 5)), std::string(text.substr(6, end - 6)),
                          number_after(text, "\", line ").value_or(0)};
}

struct NumberedLine {
  std::int64_t number;
  std::string_view text;
};

// The lines of each rank, without prefixes: in a log of several ranks, their lines may alternate.
std::map<Rank, std::vector<NumberedLine>> lines_by_rank(std::string_view bytes, Rank file_rank) {
  std::map<Rank, std::vector<NumberedLine>> by_rank;
  for (Lines lines(bytes); lines.next();) {
    Rank rank = file_rank;
    const std::string_view text = without_prefix(lines.line(), rank);
    by_rank[rank].push_back({lines.number(), text});
  }
  return by_rank;
}

// An error, and how it is reported.
struct ReportedError {
  std::int64_t number = 0;  // of its line
  LogFact fact;
  bool is_traceback = false;
  bool goes_with_others = false;  // it is chained to the error before it, or of a thread, or of a destructor
};

// An error that ends a program is its last one. One before was logged, and the program went on.
void drop_handled(std::vector<ReportedError>& errors) {
  const auto last = std::find_if(errors.rbegin(), errors.rend(), [](const ReportedError& error) {
    return error.is_traceback && !error.goes_with_others;
  });
  const std::int64_t ended_at = last == errors.rend() ? 0 : last->number;
  std::erase_if(errors, [ended_at](const ReportedError& error) {
    return error.number < ended_at && error.fact.kind == Kind::raised;
  });
}

// Reads the lines of one rank.
class ErrorReader {
 public:
  ErrorReader(const std::vector<NumberedLine>& lines, Rank rank, const std::string& file)
      : lines_(lines), rank_(rank), file_(file) {}

  // By line number.
  std::vector<ReportedError> read() {
    while (next_ < lines_.size()) {
      const auto [number, line] = lines_[next_++];
      if (line.starts_with(traceback)) {
        read_traceback(has_one_of(before_, of_other_errors));
      } else if (line.starts_with(terminate)) {
        add(std::string(line) + " " + rest_of_message(), {}, number);
      } else if (line.starts_with(fatal)) {
        add(std::string(line), {}, number);
      }
      before_ = line.empty() ? before_ : line;
    }
    drop_handled(errors_);
    return std::move(errors_);
  }

 private:
  // Frames are indented; the line of the exception is not.
  void read_traceback(bool goes_with_others) {
    std::vector<check::DumpFrame> frames;
    while (next_ < lines_.size()) {
      const auto [number, line] = lines_[next_++];
      if (std::optional<check::DumpFrame> frame = frame_in(line)) {
        frames.push_back(*std::move(frame));
        continue;
      }
      if (line.empty() || line.starts_with(' ')) {
        continue;
      }
      if (ReportedError* error = add(std::string(line) + "\n" + rest_of_message(), frames, number)) {
        error->is_traceback = true;
        error->goes_with_others = goes_with_others;
      }
      return;
    }
  }

  // Errors of c10d continue over several lines.
  std::string rest_of_message() const {
    std::string text;
    for (std::size_t i = next_; i < std::min(next_ + message_lines_max, lines_.size()); ++i) {
      const std::string_view line = lines_[i].text;
      if (line.empty() || line.starts_with(traceback)) {
        break;
      }
      text += std::string(line) + "\n";
    }
    return text;
  }

  ReportedError* add(const std::string& text, const std::vector<check::DumpFrame>& frames,
                     std::int64_t number) {
    const std::optional<Kind> kind = kind_of_error(text);
    if (!kind || rank_ < 0) {
      return nullptr;
    }
    errors_.emplace_back().number = number;
    LogFact& fact = errors_.back().fact;
    fact.kind = *kind;
    fact.ranks = RankSet{rank_};
    fact.place = fmt::format("{}:{}", file_, number);
    fact.text = text.substr(0, std::min(text.find('\n'), text_max));
    if (*kind == Kind::aborted) {
      const std::string_view sizes = std::string_view(text).substr(text.find(too_long) + too_long.size());
      fact.text = sizes.substr(0, std::min(sizes.find('.'), std::size_t{40}));
    }
    for (const check::DumpFrame& frame : frames) {  // the innermost is last
      fact.op = fact.op.empty() && is_c10d(frame) ? frame.function : fact.op;
      fact.site = is_users(frame) ? fmt::format("{}:{}", frame.file, frame.line) : fact.site;
    }
    return &errors_.back();
  }

  const std::vector<NumberedLine>& lines_;
  std::size_t next_ = 0;
  Rank rank_;
  const std::string& file_;
  std::vector<ReportedError> errors_;
  std::string_view before_;  // the line before this one that is not empty
};

}  // namespace

std::optional<Kind> kind_of_error(std::string_view text) {
  if (text.find(too_long) != std::string_view::npos) {
    return Kind::aborted;
  }
  if (has_one_of(text, of_nobody)) {
    return std::nullopt;
  }
  if (has_one_of(text, of_others)) {
    return Kind::lost_peer;
  }
  return has_one_of(text, too_late) ? Kind::gave_up : Kind::raised;
}

bool looks_like_python_errors(std::string_view bytes) {
  return bytes.find(traceback) != std::string_view::npos || bytes.find(terminate) != std::string_view::npos ||
         bytes.find(fatal) != std::string_view::npos;
}

std::vector<check::LogFact> read_python_errors(std::string_view bytes, Rank rank, const std::string& file) {
  std::vector<ReportedError> errors;
  for (const auto& [writer, lines] : lines_by_rank(bytes, rank)) {
    std::ranges::move(ErrorReader(lines, writer, file).read(), std::back_inserter(errors));
  }
  std::ranges::sort(errors, {}, &ReportedError::number);
  std::vector<LogFact> facts;
  for (ReportedError& error : errors) {
    facts.push_back(std::move(error.fact));
  }
  return facts;
}

}  // namespace rollcall::traces
