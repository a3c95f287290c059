#include "scenarios/test/outcome_codec.h"

#include <vector>

#include <nlohmann/json.hpp>

namespace rollcall::viz {

// CBOR preserves strings byte for byte, even if they are not UTF-8.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SourcePlace, file, line, column)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TestOutcome::Calls::Call, text, place)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TestOutcome::Calls, ranks, calls)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TestOutcome, status, file, title, tags, place, verdict, kind, headline,
                                   problems, text, shown, json, page, link, replay, seed, calls, elapsed)

}  // namespace rollcall::viz

namespace rollcall::scenario {

std::string encode(const viz::TestOutcome& outcome) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(nlohmann::json(outcome));
  return {bytes.begin(), bytes.end()};
}

viz::TestOutcome decode_outcome(const std::string& bytes) {
  return nlohmann::json::from_cbor(bytes).get<viz::TestOutcome>();
}

}  // namespace rollcall::scenario
