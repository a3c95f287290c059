// The part of HeaderReader about "expect": the expected outcome.

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include "scenarios/format/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/rank_sets.h"
#include "scenarios/program/statements.h"
#include "scenarios/program/units.h"
#include "sim/c10d/op_table.h"

namespace rollcall::scenario {
namespace {

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> texts;
  for (Json element : list.children()) {
    texts.emplace_back(element.text());
  }
  return texts;
}

// True if a statement below `node` creates a group of this name. Several that are created at once
// are numbered.
bool is_made_in(const Json& node, std::string_view name) {
  if (const auto statement = Statement::recognize(node)) {
    const auto made = statement->find("as");
    const bool fits =
        made && made->is(JsonType::string) && name.starts_with(made->text()) &&
        std::ranges::all_of(name.substr(made->text().size()), [](char c) { return c >= '0' && c <= '9'; });
    if (fits && statement->rule().declares == Declares::group) {
      return true;
    }
  }
  const bool has_children = node.is(JsonType::object) || node.is(JsonType::array);
  if (!has_children) {
    return false;
  }
  for (Json child : node.children()) {
    if (is_made_in(child, name)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void HeaderReader::read_expect() {
  const auto expect = root_.find("expect");
  if (!expect) {
    return;
  }
  expect->read("verdict", scenario_.expect.verdict);
  if (const auto kind = expect->find("kind")) {
    scenario_.expect.kind = parse_finding_kind(kind->text());
    if (!scenario_.expect.kind) {
      error(*kind, fmt::format("unknown kind \"{}\"; `rollcall explain` lists them", kind->text()),
            suggest_from(kind->text(), finding_rows(), &FindingRow::word));
    }
  }
  if (const auto culprits = expect->find("culprits")) {
    scenario_.expect.culprits = read_ranks(*culprits, scenario_.options.world_size, diagnostics_);
  }
  if (const auto at = expect->find("at")) {
    read_place(*at);
  }
  if (const auto prints = expect->find("prints")) {
    read_prints(*prints);
  }
  if (const auto values = expect->find("values")) {
    read_values(*values);
  }
  if (const auto counts = expect->find("counts")) {
    read_counts(*counts);
  }
  if (const auto bounds = expect->find("at_most")) {
    read_bounds(*bounds);
  }
  if (const auto golden = expect->find("golden")) {
    const std::filesystem::path folder = std::filesystem::path(scenario_.file).parent_path();
    scenario_.expect.golden = (folder / std::string(golden->text())).generic_string();
  }
}

void HeaderReader::read_place(const Json& at) {
  Expectation::At place;
  if (const auto op = at.find("op")) {
    const std::optional<OpKind> kind = parse_op_kind(op->text());
    place.op = kind ? to_string(*kind) : op->text();  // reports use one name for it
    if (!kind) {
      error(*op, fmt::format("unknown operation \"{}\"", op->text()),
            suggest_from(op->text(), op_rows, &OpRow::name));
    }
  }
  if (const auto group = at.find("group")) {
    place.group = group->text();
    std::vector<std::string_view> known{"world"};
    for (const sim::Group& own : scenario_.options.groups) {
      known.push_back(own.name);
    }
    const bool exists = std::find(known.begin(), known.end(), group->text()) != known.end();
    if (!exists && !is_made_in(root_, group->text())) {
      error(*group, fmt::format("unknown group \"{}\"", group->text()), suggest(group->text(), known));
    }
  }
  at.read("seq", place.seq);
  if (const auto waiting = at.find("waiting")) {
    place.waiting = read_ranks(*waiting, scenario_.options.world_size, diagnostics_);
  }
  if (const auto missing = at.find("missing")) {
    place.missing = read_ranks(*missing, scenario_.options.world_size, diagnostics_);
  }
  scenario_.expect.at = std::move(place);
}

double HeaderReader::element_of(const Json& value) {
  if (!value.is(JsonType::string)) {
    return value.real();
  }
  const std::optional<double> special = parse_non_finite(value.text());
  if (!special) {
    error(value, "an element is a number, \"nan\", \"inf\" or \"-inf\"");
  }
  return special.value_or(0);
}

void HeaderReader::read_values(const Json& values) {
  for (Json entry : values.children()) {
    const std::optional<RankSet> ranks = read_key_ranks(entry, scenario_.options.world_size, diagnostics_);
    if (!ranks) {
      continue;
    }
    for (Json tensor : entry.children()) {
      Expectation::Values& expected = scenario_.expect.values.emplace_back();
      expected = {*ranks, std::string(tensor.key()), {}};
      if (!tensor.is(JsonType::array)) {
        expected.elements.push_back(element_of(tensor));
      }
      for (Json element : tensor.children()) {
        expected.elements.push_back(element_of(element));
      }
    }
  }
}

void HeaderReader::read_count(const Json& entry, const std::optional<RankSet>& ranks) {
  const std::string op(entry.key());
  const auto kind = parse_op_kind(op);
  if (!kind || is_about_groups(*kind) || is_about_store(*kind)) {
    diagnostics_.error_at_key(entry,
                              kind ? fmt::format("calls of {} are not counted, because they move no data", op)
                                   : fmt::format("unknown operation \"{}\"", op),
                              kind ? std::string_view() : suggest_from(op, op_rows, &OpRow::name));
  } else if (!entry.is(JsonType::integer)) {
    error(entry, fmt::format("expected the number of calls, found {}", to_phrase(entry.type())));
  } else {
    scenario_.expect.counts.push_back({ranks, std::string(to_string(*kind)), entry.integer()});
  }
}

// Keys are operations, for all ranks together, or rank sets with operations of their own.
void HeaderReader::read_counts(const Json& counts) {
  for (Json entry : counts.children()) {
    if (!entry.is(JsonType::object)) {
      read_count(entry, std::nullopt);
    } else if (const std::optional<RankSet> ranks =
                   read_key_ranks(entry, scenario_.options.world_size, diagnostics_)) {
      for (Json own : entry.children()) {
        read_count(own, ranks);
      }
    }
  }
}

void HeaderReader::read_bounds(const Json& bounds) {
  Expectation::AtMost& at_most = scenario_.expect.at_most;
  if (const auto time = bounds.find("simulated_time")) {
    at_most.simulated_time = duration(*time);
  }
  if (const auto time = bounds.find("idle_time")) {
    at_most.idle_time = duration(*time);
  }
  bounds.read("shadow_collectives", at_most.shadow_collectives);
}

void HeaderReader::read_prints(const Json& prints) {
  if (prints.is(JsonType::array)) {
    scenario_.expect.output = strings(prints);
    return;
  }
  for (Json entry : prints.children()) {
    if (std::optional<RankSet> ranks = read_key_ranks(entry, scenario_.options.world_size, diagnostics_)) {
      scenario_.expect.prints.push_back({std::move(*ranks), strings(entry)});
    }
  }
}

}  // namespace rollcall::scenario
