// Fuzz targets for text that users write: scenarios, their expressions, and command-line arguments that are also in
// files.

#include <exception>
#include <string>
#include <vector>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/program/expression.h"
#include "scenarios/program/units.h"
#include "scenarios/test/keyword_expression.h"
#include "sim/base/error.h"
#include "sim/base/expects.h"
#include "sim/explore/schedule.h"
#include "tests/fuzz/targets.h"

namespace rollcall::fuzz {

void read_scenario(std::string_view bytes) {
  try {
    scenario::parse_scenario(std::string(bytes), "fuzz.json");
  } catch (const scenario::InvalidScenario& refused) {
    // its error for such files
  }
}

void read_expression(std::string_view bytes) {
  const std::vector<std::string> names = {"rank", "world_size", "unset", "text"};
  const std::vector<scenario::Variable> variables = {{3, scenario::Variable::State::number},
                                                     {8, scenario::Variable::State::number},
                                                     {0, scenario::Variable::State::unset},
                                                     {0, scenario::Variable::State::not_a_number}};
  const auto look_up = [&names](std::string_view name) -> scenario::NameLookup {
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      if (names[slot] == name) {
        return {static_cast<scenario::SlotIndex>(slot), {}};
      }
    }
    return {{}, {0, "unknown name", ""}};
  };
  try {
    scenario::compile_expression(bytes, look_up).evaluate(variables, names);
  } catch (const scenario::ExpressionError& refused) {
    // its error for such texts
  } catch (const Error& raised) {
    // the expression raises
  }
}

// A schedule is written as the text that it was read from, except for numbers with unnecessary digits.
void read_words(std::string_view bytes) {
  scenario::parse_duration(bytes);
  scenario::parse_bytes(bytes);
  try {
    const sim::Schedule schedule = sim::parse_schedule(bytes);
    expects(sim::parse_schedule(sim::to_text(schedule)) == schedule, "a schedule is read as it was written");
  } catch (const sim::BadSchedule& refused) {
    // its error for such texts
  }
  try {
    scenario::KeywordExpression(bytes).evaluate([](const std::string& word) { return word.size() > 2; });
  } catch (const scenario::BadExpression& refused) {
    // its error for such texts
  }
}

}  // namespace rollcall::fuzz
