#include "traces/logs/python_errors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "sim/base/ascii.h"
#include "traces/logs/lines.h"
#include "traces/logs/user_frame.h"

namespace rollcall::traces {

namespace {

using check::LogFact;
using Kind = LogFact::Kind;

constexpr std::string_view traceback = "Traceback (most recent call last)";
constexpr std::string_view terminate = "terminate called after throwing";
constexpr std::string_view fatal = "Fatal Python error: ";
constexpr std::string_view gloos = "gloo/transport/";  // an error of Gloo names the file that it is from
constexpr std::string_view too_long = "op.preamble.length <= op.nbytes. ";
constexpr std::size_t text_max = 160;
constexpr std::size_t message_lines_max = 4;  // lines after the first line of an error

template <std::size_t size>
bool has_one_of(std::string_view text, const std::array<std::string_view, size>& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return contains_ignoring_case(text, word); });
}

constexpr std::array<std::string_view, 17> of_others = {"Connection closed by peer",
                                                        "closed by remote peer",
                                                        "Connection was likely closed",
                                                        "remote server shutdown",
                                                        "got 0 bytes",
                                                        "Connection reset by peer",
                                                        "Broken pipe",
                                                        "Socket closed",
                                                        "recvValue failed",
                                                        "failed to recv",
                                                        "emote process exited",
                                                        "ncclRemoteError",
                                                        "communicator was aborted",
                                                        "Connection refused",
                                                        "has failed to connect",
                                                        "sendBytes failed",
                                                        "SocketException"};
constexpr std::array<std::string_view, 2> too_late = {"timed out", "timeout"};
// Errors of ranks that wait, which are about other ranks, or of programs that end processes.
constexpr std::array<std::string_view, 7> of_nobody = {
    "CollectiveFingerPrint", "monitoredBarrier", "ChildFailedError",      "SignalException",
    "KeyboardInterrupt",     "SystemExit",       "ProcessRaisedException"};

// torch.multiprocessing.spawn names the first of its processes to fail, before that one's traceback or as an error of
// its own. On one machine, their numbers are the ranks.
constexpr std::string_view spawned_raised = "-- Process ";
constexpr std::string_view spawned_ended = "ProcessExitedException: process ";

// Before the traceback of an error that follows from the one before it. The first: of `raise ... from`.
constexpr std::string_view raised_from = "above exception was the direct cause";
constexpr std::array<std::string_view, 2> chained = {raised_from, "handling of the above exception"};
// torch/_utils.py raises errors of a rank's other processes and threads again, with the traceback from there below.
constexpr std::string_view caught = ": Caught ";
constexpr std::string_view original = "Original Traceback";
// Before the traceback of an error that does not end the program by itself.
constexpr std::array<std::string_view, 2> beside_main = {"Exception ignored in", "Exception in thread"};

// c10d raises RuntimeError and subclasses of its own, torch.distributed.DistStoreError; other classes only from its own
// files: torch 1.13's rendezvous raises TimeoutError. A program that reads from a network raises the same words.
bool may_be_of_c10d(std::string_view text, const check::DumpStack& frames) {
  if (frames.empty()) {
    return true;
  }
  const std::string& file = frames.front().file;
  const std::string_view dotted = text.substr(0, text.find_first_of(":\n"));
  const std::string_view name = dotted.substr(dotted.rfind('.') + 1);  // npos + 1 is 0
  return name == "RuntimeError" || name.starts_with("Dist") ? !contains(file, "torch/utils/data/")
                                                            : contains(file, "torch/distributed/");
}

std::optional<check::DumpFrame> frame_of_traceback(std::string_view line) { return frame_in(line, ", in "); }

// The rank that raised the error, if the text has it; -1: it has not. The words are those of ProcessGroupNCCL and of
// DDP's reducer: "[4] is setting up NCCL communicator", "Parameters which did not receive grad for rank 3".
Rank own_rank_in(std::string_view text) {
  if (const std::size_t end = text.find("] is setting up NCCL communicator"); end != std::string_view::npos) {
    const std::size_t open = text.rfind('[', end);
    return open == std::string_view::npos ? -1 : rank_after(text.substr(open), "[").value_or(-1);
  }
  for (const std::string_view before :
       {"what():  [Rank ", "did not receive grad for rank ", "NCCL communicator was aborted on rank "}) {
    if (const std::optional<Rank> rank = rank_after(text, before)) {
      return *rank;
    }
  }
  return -1;
}

// "torch.OutOfMemoryError: CUDA out of memory".
bool is_exception(std::string_view line) {
  const std::string_view name = line.substr(0, line.find_first_of(": "));
  const bool is_dotted = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
  });
  return is_dotted && line.substr(name.size()).starts_with(": ") &&
         (name.ends_with("Error") || name.ends_with("Exception"));
}

// A line without what differs each time it is written: "step 41: loss 2.3" is "step #: loss #.#". Empty for a line
// that says too little, and for lines of c10d and NCCL, "[W1125 10:00:01 socket.cpp", which a process that ends
// writes as well.
std::string shape_of(std::string_view line) {
  constexpr std::size_t shape_max = 60;
  constexpr std::ptrdiff_t letters_min = 4;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool is_of_c10d = line.size() > 2 && line[0] == '[' &&
                          std::string_view("EFIW").find(line[1]) != std::string_view::npos &&
                          (is_digit(line[2]) || line[2] == ' ');
  if (is_of_c10d || contains(line, " NCCL ")) {
    return "";
  }
  std::string shape;
  for (const char c : line) {
    if (!is_digit(c) || !shape.ends_with('#')) {
      shape += is_digit(c) ? '#' : c;
    }
    if (shape.size() == shape_max) {
      break;
    }
  }
  return std::ranges::count_if(shape, is_letter) < letters_min ? "" : shape;
}

// Whole sentences of a long line, or at least whole words.
std::string shortened(std::string_view line) {
  constexpr std::string_view more = "...";
  if (line.size() <= text_max) {
    return std::string(line);
  }
  const std::string_view start = line.substr(0, text_max - more.size());
  if (const std::size_t sentence = start.rfind(". ");
      sentence != std::string_view::npos && sentence > text_max / 3) {
    return std::string(start.substr(0, sentence + 1));
  }
  return std::string(start.substr(0, start.rfind(' '))) + std::string(more);
}

// The first line of an error. What NCCL says last is the most exact: "... Last error:\nCuda failure 700".
std::string summary_of(std::string_view text) {
  constexpr std::string_view last_error = "Last error:";
  const std::string first = shortened(text.substr(0, text.find('\n')));
  const std::size_t place = text.find(last_error);
  if (place == std::string_view::npos) {
    return first;
  }
  std::string_view rest = text.substr(place + last_error.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
  rest = rest.substr(0, rest.find('\n'));
  return rest.empty() ? first : fmt::format("{}: {}", first.substr(0, first.find(": ")), shortened(rest));
}

// True if the error came up while a DataLoader read from one of its workers: that one is gone.
bool is_of_data_worker(const check::DumpStack& frames) {
  return std::ranges::any_of(frames, [](const check::DumpFrame& frame) {
    return frame.function == "_try_get_data" && contains(frame.file, "torch/utils/data/");
  });
}

std::string site_of(const check::DumpStack& frames) {
  const auto innermost = std::ranges::find_if(frames, is_users);
  return innermost == frames.end() ? std::string() : fmt::format("{}:{}", innermost->file, innermost->line);
}

// An error, and how it is reported.
struct ReportedError {
  std::int64_t begin = 0;  // the line of its traceback's title
  LogFact fact;
  bool is_traceback = false;
  bool is_line = false;         // of c10d, in a line of the program
  bool is_chained = false;      // to the error before it
  bool is_raised_from = false;  // the error before it
  bool is_beside_main = false;  // of a thread or a destructor
};

// Where a log returns to what it wrote before.
class Returns {
 public:
  void add(std::string_view line, std::int64_t number) {
    std::string shape = shape_of(line);
    if (shape.empty()) {
      return;
    }
    const auto known = first_.find(shape);
    if (known != first_.end()) {
      lines_.push_back({number, known->second});
    } else if (first_.size() < shapes_max) {
      first_.emplace(std::move(shape), number);
    }
  }

  // Takes errors that are followed by a line like one before them for survived. `errors`: by line number.
  void mark_survived(std::vector<ReportedError>& errors) const {
    auto line = lines_.rbegin();
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();  // of the lines that are repeated later
    for (auto error = errors.rbegin(); error != errors.rend(); ++error) {
      for (; line != lines_.rend() && line->number > error->fact.line; ++line) {
        earliest = std::min(earliest, line->first);
      }
      const bool may_be_survived =
          error->is_line || (error->is_traceback && error->fact.kind == Kind::raised);
      if (may_be_survived && earliest < error->begin) {
        error->fact.kind = Kind::logged;
      }
    }
  }

 private:
  struct Line {
    std::int64_t number;
    std::int64_t first;  // the first line of this shape
  };
  static constexpr std::size_t shapes_max = 4096;

  std::map<std::string, std::int64_t, std::less<>> first_;
  std::vector<Line> lines_;
};

// An error that ends a program is its last one. One before was logged, and the program went on.
void drop_handled(std::vector<ReportedError>& errors) {
  const auto last = std::find_if(errors.rbegin(), errors.rend(), [](const ReportedError& error) {
    return error.is_traceback && !error.is_chained && !error.is_beside_main;
  });
  const std::int64_t ended_at = last == errors.rend() ? 0 : last->fact.line;
  std::erase_if(errors, [ended_at](const ReportedError& error) {
    return error.fact.line < ended_at && error.fact.kind == Kind::raised;
  });
}

// A program may answer the loss of a peer with an error of its own, which is about the peer as well.
void drop_consequences(std::vector<ReportedError>& errors) {
  bool is_victim = false;
  std::erase_if(errors, [&is_victim](const ReportedError& error) {
    const bool is_consequence = error.is_chained && is_victim && error.fact.kind == Kind::raised;
    is_victim = is_consequence || error.fact.kind == Kind::lost_peer || error.fact.kind == Kind::gave_up;
    return is_consequence;
  });
}

// An error that names its cause itself is told with it.
void merge_causes(std::vector<ReportedError>& errors) {
  for (std::size_t i = errors.size(); i-- > 1;) {
    ReportedError& error = errors[i];
    const ReportedError& cause = errors[i - 1];
    if (error.is_raised_from && error.fact.kind == Kind::raised && cause.fact.kind == Kind::raised &&
        error.fact.ranks == cause.fact.ranks) {
      error.fact.text += fmt::format(" (raised from {})", cause.fact.text);
      error.fact.site = cause.fact.site.empty() ? error.fact.site : cause.fact.site;
      error.is_raised_from = cause.is_raised_from;
      errors.erase(errors.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
  }
}

// Reads the lines of one rank.
class ErrorReader {
 public:
  explicit ErrorReader(const LogStream& log) : lines_(log.lines), rank_(log.rank) {}

  // By line number.
  std::vector<LogFact> read() {
    while (next_ < lines_.size()) {
      const auto [number, line] = lines_[next_++];
      if (line.starts_with(traceback)) {
        read_traceback(number);
      } else if (line.starts_with(terminate)) {
        add(std::string(line) + " " + rest_of_message(), {}, number);
      } else if (line.starts_with(fatal)) {
        add(std::string(line), {}, number);
      } else if (contains(line, gloos)) {
        add_line(line, number);
      } else if (is_error_without_title(number)) {
        read_error_without_title(number);
      } else if (line.starts_with(spawned_raised)) {
        spawned_ = rank_after(line, spawned_raised).value_or(-1);
      } else {
        returns_.add(line, number);
      }
      before_ = line.empty() ? before_ : line;
    }
    returns_.mark_survived(errors_);
    drop_handled(errors_);
    drop_consequences(errors_);
    merge_causes(errors_);
    std::vector<LogFact> facts;
    for (ReportedError& error : errors_) {
      const bool is_placed = !error.fact.ranks.empty();
      if (is_placed || error.fact.kind != Kind::logged) {
        const bool is_own = error.fact.kind == Kind::raised;
        error.fact.kind = is_placed ? error.fact.kind : is_own ? Kind::unplaced : Kind::unplaced_loss;
        facts.push_back(std::move(error.fact));
      }
    }
    return facts;
  }

 private:
  // Reads the lines below a traceback's title until that of the exception, which is not indented; null: there is none.
  // `frames`: innermost first.
  const LogLine* read_frames(check::DumpStack& frames) {
    while (next_ < lines_.size()) {
      const LogLine& line = lines_[next_++];
      if (std::optional<check::DumpFrame> frame = frame_of_traceback(line.text)) {
        frames.push_back(*std::move(frame));
      } else if (!line.text.empty() && !line.text.starts_with(' ') && !is_of_another(line.text) &&
                 !is_amid_frames()) {
        std::ranges::reverse(frames);
        return &line;
      }
    }
    return nullptr;
  }

  // Lines that are not an exception's: another process wrote its own amid the traceback.
  static bool is_of_another(std::string_view line) {
    return line.starts_with(traceback) || contains(line, "] NCCL ");
  }

  // True if frames follow on the line just read: it is one that the rank wrote to its other stream meanwhile.
  bool is_amid_frames() const {
    constexpr std::size_t lines_max = 3;
    for (std::size_t i = next_; i < std::min(next_ + lines_max, lines_.size()); ++i) {
      if (frame_of_traceback(lines_[i].text)) {
        return true;
      }
      if (lines_[i].text.empty() || lines_[i].text.starts_with(' ') || contains(lines_[i].text, traceback)) {
        return false;
      }
    }
    return false;
  }

  // The end of a traceback whose beginning is not in the log: someone cut it off, or copied only the last lines.
  // True for an exception's line that is the first of a rank, or follows on a frame.
  bool is_error_without_title(std::int64_t number) const {
    const bool is_first = next_ == 1 && lines_[0].number == number &&
                          (rank_ >= 0 || own_rank_in(std::string(lines_[0].text) + rest_of_message()) >= 0);
    return (is_first || has_frames_before(next_ - 1)) && is_exception(lines_[next_ - 1].text);
  }

  // True if the lines before this one are indented, and a frame is among them.
  bool has_frames_before(std::size_t index) const {
    constexpr std::size_t lines_max = 4;  // of one frame: its place, the code, a mark below
    for (std::size_t i = index;
         i-- > index - std::min(index, lines_max) && lines_[i].text.starts_with(' ');) {
      if (frame_of_traceback(lines_[i].text)) {
        return true;
      }
    }
    return false;
  }

  void read_error_without_title(std::int64_t number) {
    const std::size_t at = next_ - 1;
    check::DumpStack frames;  // innermost first
    for (std::size_t i = at; i-- > 0 && lines_[i].text.starts_with(' ');) {
      if (std::optional<check::DumpFrame> frame = frame_of_traceback(lines_[i].text)) {
        frames.push_back(*std::move(frame));
      }
    }
    if (ReportedError* error = add(std::string(lines_[at].text) + "\n" + rest_of_message(), frames, number)) {
      error->begin = number;
      error->is_traceback = true;
    }
  }

  // `begin`: the title's line.
  void read_traceback(std::int64_t begin) {
    check::DumpStack frames;
    const LogLine* last = read_frames(frames);
    if (last == nullptr) {
      return;
    }
    if (const std::size_t place = last->text.find(spawned_ended); place != std::string_view::npos) {
      add_spawned(last->text.substr(place), last->number);
      return;
    }
    ReportedError* error = add(std::string(last->text) + "\n" + rest_of_message(), frames, last->number);
    if (error == nullptr) {
      return;
    }
    error->begin = begin;
    error->is_traceback = true;
    error->is_chained = has_one_of(before_, chained);
    error->is_raised_from = contains_ignoring_case(before_, raised_from);
    error->is_beside_main = has_one_of(before_, beside_main);
    if (error->is_beside_main && error->fact.kind == Kind::raised) {
      error->fact.kind = Kind::logged;
    }
    if (const std::size_t place = last->text.find(caught); place != std::string_view::npos) {
      read_original(last->text.substr(place), error->fact);
    } else if (is_of_data_worker(frames) && !contains_ignoring_case(error->fact.text, "worker")) {
      error->fact.text += ", while reading from a DataLoader worker";
    }
  }

  // `where`: ": Caught OSError in DataLoader worker process 1."
  void read_original(std::string_view where, LogFact& fact) {
    const std::size_t place = where.find(" in ");
    if (place == std::string_view::npos || next_ == lines_.size() ||
        !lines_[next_].text.starts_with(original)) {
      return;
    }
    ++next_;
    check::DumpStack frames;
    if (const LogLine* last = read_frames(frames)) {
      where = where.substr(place + 1);
      fact.text = fmt::format("{} ({})", summary_of(last->text), where.substr(0, where.rfind('.')));
      fact.line = last->number;
      const std::string site = site_of(frames);
      fact.site = site.empty() ? fact.site : site;
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

  // "ProcessExitedException: process 1 terminated with signal SIGKILL", "... with exit code 3".
  void add_spawned(std::string_view text, std::int64_t number) {
    const std::size_t how = text.find("terminated");
    if (const std::optional<Rank> rank = rank_after(text, spawned_ended); rank && how != text.npos) {
      add_fact(Kind::ended, *rank, number).fact.text = text.substr(how);
    }
  }

  // What a program prints of an error of c10d that it has caught.
  void add_line(std::string_view line, std::int64_t number) {
    const std::optional<Kind> kind = kind_of_error(line);
    if (kind == Kind::lost_peer || kind == Kind::gave_up) {
      ReportedError* error = add(std::string(line), {}, number);
      error->begin = number;
      error->is_line = true;
    }
  }

  ReportedError& add_fact(Kind kind, Rank rank, std::int64_t number) {
    ReportedError& error = errors_.emplace_back();
    error.fact.kind = kind;
    error.fact.ranks = rank >= 0 ? RankSet{rank} : RankSet();
    error.fact.line = number;
    return error;
  }

  ReportedError* add(const std::string& text, const check::DumpStack& frames, std::int64_t number) {
    const std::optional<Kind> kind = kind_of_error(text, frames);
    if (!kind) {
      return nullptr;
    }
    const Rank rank = rank_ >= 0 ? rank_ : spawned_ >= 0 ? spawned_ : own_rank_in(text);
    if (spawned_ >= 0 && *kind != Kind::raised) {
      add_fact(Kind::first_to_fail, rank, number).fact.text = summary_of(text);
    }
    LogFact& fact = add_fact(*kind, rank, number).fact;
    fact.text = summary_of(text);
    if (*kind == Kind::aborted) {
      const std::string_view sizes = std::string_view(text).substr(text.find(too_long) + too_long.size());
      fact.text = sizes.substr(0, sizes.find_first_not_of("0123456789vs "));
    }
    fact.site = site_of(frames);
    for (const check::DumpFrame& frame : frames) {
      fact.op = is_c10d(frame) ? frame.function : fact.op;  // the outermost of c10d
    }
    return &errors_.back();
  }

  const std::vector<LogLine>& lines_;
  std::size_t next_ = 0;
  Rank rank_;
  Returns returns_;
  Rank spawned_ = -1;  // whose traceback follows, as torch.multiprocessing.spawn says
  std::vector<ReportedError> errors_;
  std::string_view before_;  // the line before this one that is not empty
};

}  // namespace

std::optional<Kind> kind_of_error(std::string_view text, const check::DumpStack& frames) {
  if (contains(text, too_long)) {
    return Kind::aborted;
  }
  if (has_one_of(text, of_nobody)) {
    return std::nullopt;
  }
  if (!may_be_of_c10d(text, frames)) {
    return Kind::raised;
  }
  if (has_one_of(text, of_others)) {
    return Kind::lost_peer;
  }
  return has_one_of(text, too_late) ? Kind::gave_up : Kind::raised;
}

namespace {

// True for a text with frames but without a title, or one that begins with an error: "[rank2]: RuntimeError: ...".
bool begins_or_has_end_of_traceback(std::string_view bytes) {
  std::string_view first = bytes.substr(0, bytes.find('\n'));
  if (const std::size_t label = first.find("]: ");
      first.starts_with('[') && label != std::string_view::npos) {
    first.remove_prefix(label + 3);
  }
  return is_exception(first) ||
         (contains(bytes, "File \"") && contains(bytes, "\", line ") && contains(bytes, "Error: "));
}

}  // namespace

bool looks_like_python_errors(std::string_view bytes) {
  return contains(bytes, traceback) || contains(bytes, terminate) || contains(bytes, fatal) ||
         contains(bytes, gloos) || begins_or_has_end_of_traceback(bytes);
}

std::vector<check::LogFact> read_python_errors(const LogStream& log) { return ErrorReader(log).read(); }

}  // namespace rollcall::traces
