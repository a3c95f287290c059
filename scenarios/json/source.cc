#include "scenarios/json/source.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenarios/json/diagnostic.h"
#include "sim/base/utf8.h"

namespace rollcall::scenario {

SourceText::SourceText(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
  line_starts_.push_back(0);
  for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', end + 1)) {
    line_starts_.push_back(static_cast<std::uint32_t>(end + 1));
  }
}

std::size_t SourceText::line_of(std::size_t offset) const {
  auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::size_t>(after - line_starts_.begin()) - 1;
}

std::string_view SourceText::line_text(std::size_t line) const {
  const std::size_t begin = line_starts_[line];
  std::size_t end = std::min(text_.find('\n', begin), text_.size());
  if (end > begin && text_[end - 1] == '\r') {
    --end;
  }
  return std::string_view(text_).substr(begin, end - begin);
}

Position SourceText::position(std::size_t offset) const {
  // Counting characters takes time proportional to the line's length, for every statement on it: a generated file of
  // one line must not become quadratic.
  constexpr std::size_t counted_line_max = 4096;
  const std::size_t line = line_of(offset);
  const std::size_t begin = line_starts_[line];
  const std::string_view before = std::string_view(text_).substr(begin, offset - begin);
  const std::size_t characters = before.size() <= counted_line_max ? count_characters(before) : before.size();
  return {static_cast<std::uint32_t>(line + 1), static_cast<std::uint32_t>(characters + 1)};
}

std::string SourceText::excerpt(std::size_t offset) const {
  constexpr std::size_t context = 60;  // bytes on either side of the caret
  const std::size_t line = line_of(offset);
  const std::string_view whole = line_text(line);
  if (whole.empty()) {
    return {};
  }
  const std::size_t caret = std::min(offset - line_starts_[line], whole.size());
  const std::size_t first = caret <= 2 * context ? 0 : character_start(whole, caret - context);
  const std::size_t last =
      whole.size() - caret <= context ? whole.size() : character_start(whole, caret + context);

  const bool is_text = first_invalid_utf8(whole) == whole.size();  // a stray byte must not reach a terminal
  std::string shown = first == 0 ? "  " : "  …";
  std::string below = first == 0 ? "  " : "   ";
  for (std::size_t i = first; i < last; ++i) {
    const char c = whole[i];
    const bool is_control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    const bool is_ascii = static_cast<unsigned char>(c) < 0x80;
    shown += is_control && c != '\t' ? ' ' : is_ascii || is_text ? c : '?';
    if (i < caret && (begins_character(c) || !is_text)) {
      below += c == '\t' ? '\t' : ' ';
    }
  }
  shown += last == whole.size() ? "" : "…";
  return shown + "\n" + below + "^";
}

namespace {

[[noreturn]] void refuse(const std::string& name, std::string message) {
  throw InvalidScenario({{.file = name, .message = std::move(message)}});
}

[[noreturn]] void refuse_size(const std::string& name) {
  refuse(name, fmt::format("the file is larger than {} MiB", SourceText::bytes_max >> 20));
}

// How long a pipe may be silent before it is assumed that no process writes to it. Standard input may be a person
// typing.
constexpr int patience_ms = 10'000;

void await_bytes(int descriptor, const std::string& path) {
  pollfd polled{descriptor, POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&polled, 1, patience_ms)) < 0 && errno == EINTR) {
  }
  if (ready == 0) {
    refuse(path,
           fmt::format("no data has come through this pipe for {} s; `-` reads standard input, and waits",
                       patience_ms / 1000));
  }
}

std::string read_all(int descriptor, const std::string& path, bool waits_for_ever) {
  std::string text;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && status.st_size > 0) {
    if (static_cast<std::uintmax_t>(status.st_size) > SourceText::bytes_max) {
      refuse_size(path);
    }
    text.reserve(static_cast<std::size_t>(status.st_size) + 1);
  }
  const bool may_be_silent = S_ISFIFO(status.st_mode) && !waits_for_ever;
  char block[16384];
  for (;;) {
    if (may_be_silent) {
      await_bytes(descriptor, path);
    }
    const ssize_t got = ::read(descriptor, block, sizeof block);
    if (got == 0) {
      return text;
    }
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
      refuse(path, fmt::format("cannot read the file: {}", std::strerror(errno)));
    }
    text.append(block, got > 0 ? static_cast<std::size_t>(got) : 0);
    if (text.size() > SourceText::bytes_max) {
      refuse_size(path);
    }
  }
}

// A file that can be read to its end.
class OpenFile {
 public:
  // Opening a pipe waits for a writer unless O_NONBLOCK is set.
  explicit OpenFile(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0) {
      refuse(path, fmt::format("cannot open the file: {}", std::strerror(errno)));
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(number_); }

  int number() const { return number_; }

 private:
  int number_;
};

void require_end(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    return;  // reading reports why
  }
  if (S_ISDIR(status.st_mode)) {
    refuse(path,
           fmt::format("this is a directory, not a scenario file; `rollcall diagnose {}` reads a job's dumps",
                       path));
  }
  if ((S_ISCHR(status.st_mode) && ::isatty(descriptor) == 0) || S_ISBLK(status.st_mode)) {
    refuse(path, "this is a device, not a file");
  }
}

bool has_utf16_mark(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
}

// Checks everything that no later stage should have to consider.
void require_text(const SourceText& source) {
  const std::string_view text = source.text();
  if (text.empty()) {
    refuse(source.name(), "the file is empty");
  }
  if (text.size() > SourceText::bytes_max) {
    refuse(source.name(), fmt::format("the text is larger than {} MiB", SourceText::bytes_max >> 20));
  }
  if (has_utf16_mark(text)) {
    refuse(source.name(), "the file is UTF-16; save it as UTF-8");
  }
  Diagnostics diagnostics(source);
  const std::size_t nul = text.find('\0');
  if (const std::size_t bad = first_invalid_utf8(text); bad < std::min(nul, text.size())) {
    diagnostics.error(bad, "",
                      fmt::format("byte 0x{:02x} is not valid UTF-8", static_cast<unsigned char>(text[bad])));
  } else if (nul != std::string_view::npos) {
    diagnostics.error(nul, "", "a NUL byte: this is not a text file");
  }
  diagnostics.throw_if_any();
}

}  // namespace

SourceText check_source(std::string name, std::string text) {
  SourceText source(std::move(name), std::move(text));
  require_text(source);
  return source;
}

namespace {

// Standard input can be read only once, and commands read a scenario more than once.
const std::string& standard_input() {
  static const std::string text = read_all(STDIN_FILENO, "standard input", true);
  return text;
}

}  // namespace

SourceText read_source(const std::string& path) {
  if (path == "-") {
    return check_source(path, standard_input());
  }
  if (path.ends_with(".py")) {
    refuse(path,
           fmt::format("a Python script is not a scenario; `rollcall record -n 4 {}` records it", path));
  }
  const OpenFile file(path);
  require_end(file.number(), path);
  return check_source(path, read_all(file.number(), path, false));
}

}  // namespace rollcall::scenario
