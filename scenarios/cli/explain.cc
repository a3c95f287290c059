#include "scenarios/cli/cli.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/json/suggest.h"
#include "viz/kinds/explanations.h"

namespace rollcall::cli {

namespace {

using Json = nlohmann::ordered_json;

// Splits "deadlock, mismatch" into a list.
Json words_of(std::string_view text) {
  Json words = Json::array();
  for (std::size_t end = text.find(", "); end != std::string_view::npos; end = text.find(", ")) {
    words.push_back(text.substr(0, end));
    text.remove_prefix(end + 2);
  }
  words.push_back(text);
  return words;
}

Json json_of(const viz::Explanation& explanation) {
  Json object = {{"word", explanation.word}};
  if (!explanation.verdicts.empty()) {
    object["verdicts"] = words_of(explanation.verdicts);
  }
  object.update({{"title", explanation.title},
                 {"meaning", explanation.meaning},
                 {"cause", explanation.cause},
                 {"advice", explanation.advice}});
  if (!explanation.example.empty()) {
    object.update({{"example", explanation.example},
                   {"on_gloo", explanation.on_gloo},
                   {"on_nccl", explanation.on_nccl}});
  }
  if (!explanation.reports.empty()) {
    object["reports"] = words_of(explanation.reports);
  }
  return object;
}

std::string overview(const CommandLine& line) {
  if (line.format == Format::text) {
    return viz::explanations_overview(wants_color(line));
  }
  Json list = Json::array();
  for (const viz::Explanation& explanation : viz::explanations()) {
    list.push_back(json_of(explanation));
  }
  return list.dump(2) + "\n";
}

const viz::Explanation& find(std::string_view word) {
  if (const viz::Explanation* found = viz::find_explanation(word)) {
    return *found;
  }
  const std::string_view nearest = scenario::suggest_from(word, viz::explanations(), &viz::Explanation::word);
  throw UsageError(fmt::format(
      "unknown verdict or kind '{}'{}", word,
      nearest.empty() ? "; `rollcall explain` lists them" : fmt::format(" (did you mean '{}'?)", nearest)));
}

}  // namespace

ExitCode explain_kind(const CommandLine& line) {
  if (line.word.empty()) {
    emit(line, overview(line));
    return ExitCode::as_expected;
  }
  const viz::Explanation& explanation = find(line.word);
  emit(line, line.format == Format::json ? json_of(explanation).dump(2) + "\n"
                                         : viz::explanation_text(explanation, wants_color(line)));
  return ExitCode::as_expected;
}

}  // namespace rollcall::cli
