#include "viz/json/json_diagnosis.h"

#include <nlohmann/json.hpp>

#include "viz/json/json_parts.h"

namespace rollcall::viz {

namespace {

using Json = nlohmann::ordered_json;

FindingKind kind_in_runs(FindingKind kind) {
  return finding_rows()[static_cast<std::size_t>(kind)].same_in_runs;
}

const char* seq_key(bool is_message) { return is_message ? "p2p_seq_id" : "collective_seq_id"; }

Json place_of(const Diagnosis& diagnosis, const Place& place) {
  Json object = {{"op", place.call.op}, {"group", diagnosis.group_name}};
  set(object, "group_desc", diagnosis.group_description);
  object["group_ranks"] = diagnosis.group_ranks.to_vector();
  object["seq"] = place.call.seq;
  object[seq_key(diagnosis.is_message)] = place.call.seq;
  if (place.call.peer >= 0) {
    object["peer"] = place.call.peer;
  }
  object["waiting"] = place.waiting.to_vector();
  object["missing"] = place.missing.to_vector();
  set(object, "label", place.call.label);
  set(object, "site", place.call.site);
  return object;
}

Json json_of(const Victim& victim) {
  return {{"ranks", to_string(victim.ranks)},
          {"op", call_json(victim.call)},
          {"waits_for", to_string(victim.waits_for)}};
}

}  // namespace

std::string json_diagnosis(const Diagnosis& diagnosis, const Remarks& remarks) {
  const Finding& finding = diagnosis.finding;
  Json object = {
      {"schema_version", 1}, {"verdict", to_string(finding.kind)}, {"kind", to_string(finding.kind)}};
  object["kind_in_runs"] = to_string(kind_in_runs(finding.kind));
  object["alarm"] = is_alarm(diagnosis);
  object["undecided"] = diagnosis.may_be_healthy;
  object["confidence"] = to_string(diagnosis.confidence);
  object["culprits"] = finding.culprits.to_vector();
  if (finding.tie) {
    object["tie"] = true;
  }
  if (!diagnosis.alternatives.empty()) {
    object["alternatives"] = words_of(diagnosis.alternatives);
  }
  if (finding.at) {
    object["at"] = place_of(diagnosis, *finding.at);
  }
  if (diagnosis.first_symptom_seq >= 0) {
    object["first_symptom_seq"] = diagnosis.first_symptom_seq;
  }
  if (!diagnosis.variants.empty()) {
    object["variants"] = variants_json(diagnosis.variants);
  }
  set(object, "headline", finding.headline);
  set(object, "cause", finding.cause);
  set(object, "advice", finding.advice);
  add_repair(object, finding);
  set(object, "chain", finding.chain);
  object["evidence"] = diagnosis.evidence;
  object["would_settle"] = diagnosis.would_settle;
  object["victims"] = Json::array();
  for (const Victim& victim : diagnosis.victims) {
    object["victims"].push_back(json_of(victim));
  }
  object["world_size"] = diagnosis.world_size;
  object["without_dump"] = diagnosis.without_dump.to_vector();
  object["records"] = diagnosis.records;
  set(object, "remarks", remarks);
  return object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace rollcall::viz
