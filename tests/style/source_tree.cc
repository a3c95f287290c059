#include "tests/style/source_tree.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace rollcall::test {

namespace {

constexpr std::array source_folders = {"sim", "viz", "traces", "real", "scenarios", "tests", "bench"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Reads C++ just well enough to distinguish code from comments and literals.
class Blanker {
 public:
  explicit Blanker(const std::string& text) : in_(text), out_(text) {}

  std::string run() {
    while (at_ < in_.size()) {
      step();
    }
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view token) const { return std::string_view(in_).substr(at_).starts_with(token); }

  void step() {
    if (next_is("//")) {
      blank_until("\n", 0);
    } else if (next_is("/*")) {
      blank_until("*/", 2);
    } else if (next_is("R\"") && !follows_word()) {
      blank_raw_string();
    } else if (in_[at_] == '"' || (in_[at_] == '\'' && !follows_word())) {  // not the ' of 1'000
      blank_literal(in_[at_]);
    } else {
      ++at_;
    }
  }

  bool follows_word() const { return at_ > 0 && is_word(in_[at_ - 1]); }

  // Blanks up to the next `token`, and `keep_past` more characters.
  void blank_until(std::string_view token, std::size_t keep_past) {
    std::size_t found = in_.find(token, at_ + keep_past);
    blank_to(found == std::string::npos ? in_.size() : found + keep_past);
  }

  void blank_raw_string() {
    std::size_t open = in_.find('(', at_);
    std::string close = ")" + in_.substr(at_ + 2, open - at_ - 2) + "\"";
    std::size_t end = in_.find(close, open);
    blank_to(end == std::string::npos ? in_.size() : end + close.size());
  }

  // Keeps the quotes, so that `code` still shows where a literal was.
  void blank_literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < in_.size() && in_[end] != quote && in_[end] != '\n') {
      end += in_[end] == '\\' ? 2 : 1;
    }
    ++at_;
    blank_to(std::min(end, in_.size()));
    at_ = std::min(at_ + 1, in_.size());
  }

  void blank_to(std::size_t end) {
    for (; at_ < end; ++at_) {
      if (in_[at_] != '\n') {
        out_[at_] = ' ';
      }
    }
  }

  const std::string& in_;
  std::string out_;
  std::size_t at_ = 0;
};

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw std::runtime_error("cannot read " + path.string());
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<SourceFile> read_tree() {
  const std::filesystem::path root = ROLLCALL_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const char* folder : source_folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      auto extension = entry.path().extension();
      const bool is_ours =
          entry.path().string().find("/tests/package/") == std::string::npos;  // otherwise it is a user's
      if (is_ours && entry.is_regular_file() && (extension == ".h" || extension == ".cc")) {
        files.push_back(
            parse_source(entry.path().lexically_relative(root).generic_string(), read_text(entry.path())));
      }
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

}  // namespace

std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

std::string SourceFile::folder() const { return folder_of(path); }

SourceFile parse_source(std::string path, const std::string& text) {
  return {.path = std::move(path), .lines = split_lines(text), .code = split_lines(Blanker(text).run())};
}

const std::vector<SourceFile>& source_tree() {
  static const std::vector<SourceFile> files = read_tree();
  return files;
}

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (!file.code[i].starts_with("#include")) {
      continue;
    }
    std::size_t open = line.find_first_of("\"<");
    std::size_t close = line.find_first_of("\">", open + 1);
    if (open != std::string::npos && close != std::string::npos) {
      includes.push_back({line.substr(open + 1, close - open - 1), i + 1, line[open] == '"'});
    }
  }
  return includes;
}

}  // namespace rollcall::test
