#include "scenarios/import/scenario_writer.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

namespace rollcall::scenario {
namespace {

constexpr std::size_t comment_width = 100;

bool is_block(const OrderedJson& value) {
  const auto is_statement = [](const OrderedJson& element) { return element.is_object(); };
  return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_statement);
}

// A list of branches or threads.
bool is_list_of_blocks(const OrderedJson& value) {
  const auto is_list = [](const OrderedJson& element) { return element.is_array(); };
  return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_list);
}

class Writer {
 public:
  std::string document(const OrderedJson& scenario, const std::string& comment) {
    text_ += "{\n" + comment;
    bool first = true;
    for (const auto& [key, value] : scenario.items()) {
      text_ += first ? "  " : ",\n  ";
      first = false;
      text_ += OrderedJson(key).dump() + ": ";
      if (key == "program") {
        block(value, 2);
      } else if (key == "programs") {
        programs(value);
      } else {
        text_ += one_line(value);
      }
    }
    text_ += "\n}\n";
    return text_;
  }

 private:
  void programs(const OrderedJson& lists) {
    text_ += "{\n";
    bool first = true;
    for (const auto& [ranks, list] : lists.items()) {
      text_ += (first ? "    " : ",\n    ") + OrderedJson(ranks).dump() + ": ";
      first = false;
      block(list, 4);
    }
    text_ += "\n  }";
  }

  void block(const OrderedJson& statements, std::size_t indent) {
    if (statements.empty()) {
      text_ += "[]";
      return;
    }
    const std::string inner(indent + 2, ' ');
    text_ += "[\n";
    for (std::size_t i = 0; i < statements.size(); ++i) {
      text_ += inner;
      statement(statements[i], indent + 2);
      text_ += i + 1 < statements.size() ? ",\n" : "\n";
    }
    text_ += std::string(indent, ' ') + "]";
  }

  void statement(const OrderedJson& value, std::size_t indent) {
    const bool nests = value.contains("do") || is_list_of_blocks(value.begin().value());
    if (!nests) {
      text_ += one_line(value);
      return;
    }
    text_ += "{";
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      text_ += (first ? "" : ", ") + OrderedJson(key).dump() + ": ";
      first = false;
      if (is_list_of_blocks(member)) {
        blocks(member, indent);
      } else if (is_block(member)) {
        block(member, indent);
      } else {
        text_ += one_line(member);
      }
    }
    text_ += "}";
  }

  void blocks(const OrderedJson& lists, std::size_t indent) {
    text_ += "[\n";
    for (std::size_t i = 0; i < lists.size(); ++i) {
      text_ += std::string(indent + 2, ' ');
      block(lists[i], indent + 2);
      text_ += i + 1 < lists.size() ? ",\n" : "\n";
    }
    text_ += std::string(indent, ' ') + "]";
  }

  std::string text_;
};

// The comment, with long lines broken.
std::string comment_text(const std::string& comment) {
  std::istringstream lines(comment);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string filled = "  //";
    for (std::string word; words >> word;) {
      if (filled.size() + 1 + word.size() > comment_width) {
        text += filled + "\n";
        filled = "  //";
      }
      filled += " " + word;
    }
    text += filled + "\n";
  }
  return text;
}

}  // namespace

std::string one_line(const OrderedJson& value) {
  if (!value.is_structured()) {
    return value.dump();
  }
  std::string text(1, value.is_array() ? '[' : '{');
  bool first = true;
  for (const auto& [key, element] : value.items()) {
    text += first ? "" : ", ";
    first = false;
    text += value.is_array() ? "" : OrderedJson(key).dump() + ": ";
    text += one_line(element);
  }
  return text + (value.is_array() ? "]" : "}");
}

std::string scenario_text(const OrderedJson& scenario, const std::string& comment) {
  return Writer().document(scenario, comment_text(comment));
}

}  // namespace rollcall::scenario
