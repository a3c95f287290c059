#include "scenarios/format/cases.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"

namespace rollcall::scenario {

CaseAddress parse_address(const std::string& text) {
  const std::size_t sign = text.find("::");
  std::error_code ignored;  // then there is no file of this name
  if (sign == std::string::npos || std::filesystem::exists(text, ignored)) {
    return {text, ""};
  }
  return {text.substr(0, sign), text.substr(sign + 2)};
}

std::string Case::title() const {
  return parameters.empty() ? name : fmt::format("{}[{}]", name, parameters);
}

std::string Case::address() const { return file + "::" + title(); }

bool Case::matches(std::string_view selection) const {
  return selection.empty() || selection == name || selection == title() ||
         (!parameters.empty() && selection == fmt::format("[{}]", parameters));
}

namespace {

std::vector<std::string> tags_of(const Json& root) {
  std::vector<std::string> tags;
  const auto list = root.find("tags");
  if (list && list->is(JsonType::array)) {
    for (Json tag : list->children()) {
      if (tag.is(JsonType::string)) {
        tags.emplace_back(tag.text());
      }
    }
  }
  return tags;
}

}  // namespace

std::string name_of(const Json& root, const std::string& file) {
  const auto name = root.find("name");
  return name && name->is(JsonType::string) ? std::string(name->text())
                                            : file.substr(file.find_last_of('/') + 1);
}

std::vector<Case> cases_of(const std::string& file) {
  const SourceText source = read_source(file);
  const JsonTree tree = read_json(source);
  const Json root = tree.root();
  const auto expect = root.find("expect");
  Case common{.file = file,
              .name = name_of(root, file),
              .parameters = {},
              .tags = tags_of(root),
              .expect = expect ? source.position(expect->key_offset()) : Position{}};
  std::vector<Case> cases;
  for (Combination& combination : combinations_of(root)) {
    cases.push_back(common);
    cases.back().parameters = std::move(combination.parameters);
  }
  return cases;
}

}  // namespace rollcall::scenario
